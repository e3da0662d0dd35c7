/* lib/backend/cuda/comm/nccl.c - pk/nccl.h: operations of communicators on streams, and groups of
 * them */
#include <errno.h>
#include <pk/nccl.h>
#include <stdlib.h>
#include "backend/cuda/cuda.h"
#include "backend/cuda/lane.h"
#include "base/compiler.h"
#include "core/join.h"

/* ---- operations that have not come into their stream yet ---- */

/* Operations of this thread whose call has answered
 * ncclInProgress: they come into their stream later, and have when ncclCommGetAsyncError answers
 * success for the first time. Only then their end is recorded, behind them.
 *
 * A lane is its thread's, so only the thread that made the call can end it. What is not asked about
 * there until the next operation on the communicator is given up: when it came is not known.
 */

/* What has become of those on the communicator; NULL asks for nothing. */
typedef enum pki_cuda_arrival {
    PKI_CUDA_ARRIVED,
    PKI_CUDA_NEVER_ASKED,
    PKI_CUDA_FAILED
} pki_cuda_arrival;

#define MOST 64u

typedef struct waiting {
    const pk_comm *comm;
    pki_cuda_lane *lane;
    CUstream stream;
    uint32_t name, session;
} waiting;

static _Thread_local struct {
    waiting *list;
    uint32_t count;
} pending;

/* False: there are too many. One entry for each communicator that a group has an operation of. */
static bool pki_cuda_pending_add(pk_comm *comm, pki_cuda_lane *lane, CUstream stream, uint32_t name)
{
    if (!pending.list)
        pending.list = calloc(MOST, sizeof *pending.list);
    if (!pending.list || pending.count == MOST)
        return false;
    pending.list[pending.count++] =
        (waiting){comm, lane, stream, name, pki_load(&pki_cuda_session)};
    return true;
}

/* This thread ends. */
static void pki_cuda_pending_free(void)
{
    free(pending.list);
    pending.list = NULL;
    pending.count = 0;
}

static bool is_same(const waiting *a, const waiting *b)
{
    return a->lane == b->lane && a->name == b->name && a->session == b->session;
}

static waiting remove_at(uint32_t i)
{
    waiting w = pending.list[i];
    pending.count--;
    for (; i < pending.count; i++)
        pending.list[i] = pending.list[i + 1];
    return w;
}

/* Of a group of several communicators the others, too: true, if there were any. */
static bool is_awaited(const waiting *w, bool forget)
{
    bool any = false;
    for (uint32_t i = pending.count; i-- > 0;)
        if (is_same(&pending.list[i], w)) {
            any = true;
            if (forget)
                remove_at(i);
        }
    return any;
}

static void settle(const waiting *w, pki_cuda_arrival how)
{
    bool others = is_awaited(w, how != PKI_CUDA_ARRIVED);
    if (w->session != pki_load(&pki_cuda_session) || !pki_cuda_lane_is_own(w->lane, w->stream))
        return;
    if (how != PKI_CUDA_ARRIVED || !others)
        pki_cuda_operation_settle(w->lane, w->name, how == PKI_CUDA_ARRIVED,
                                  how == PKI_CUDA_FAILED);
}

/* The newest first, as they nest. */
static void pki_cuda_pending_settle(const pk_comm *comm, pki_cuda_arrival how)
{
    for (uint32_t i = pending.count; i-- > 0;) {
        if (i >= pending.count || pending.list[i].comm != comm)
            continue;
        waiting w = remove_at(i);
        settle(&w, how);
    }
}

/* ---- group ---- */

/* What a stream is given by a group, as one operation (pk/nccl.h
 * says by which rules). */

#define PKI_CUDA_ALONE UINT32_MAX

typedef struct pki_cuda_member {
    pk_comm *comm; /* NULL: not any more */
    pki_cuda_lane *lane;
    CUstream stream;
    uint64_t count;
    uint32_t op, type, parent;
    int32_t peer;
    uint32_t next; /* index of the next one on the same lane; PKI_CUDA_ALONE: the last */
    uint32_t name; /* of the operation that it leads; 0: none */
    bool follows;  /* is it somebody's next? */
} pki_cuda_member;

#define PEERS_TOLD_APART 4096

static pki_cuda_operation make(const pki_cuda_member *m, pk_comm_op op, uint64_t count,
                               uint32_t type, uint32_t calls)
{
    pki_comm_fields f = {.comm = m->comm->name,
                         .parent = m->parent,
                         .op = (uint32_t)op,
                         .type = type,
                         .peer = m->peer};
    pki_comm_payload payload = pki_comm_pack(&f);
    return (pki_cuda_operation){payload.what, payload.extra, count, calls, 0};
}

/* One operation by itself. */
static pki_cuda_operation pki_cuda_operation_of(const pki_cuda_member *m)
{
    return make(m, (pk_comm_op)m->op, m->count, m->type, 1);
}

/* ---- the members of a stream ---- */

static const pki_cuda_member *after(const pki_cuda_member *list, const pki_cuda_member *m)
{
    do
        m = m->next == PKI_CUDA_ALONE ? NULL : &list[m->next];
    while (m && !m->comm);
    return m;
}

static void link_lane(pki_cuda_member *list, uint32_t count, uint32_t first)
{
    uint32_t last = first;
    for (uint32_t i = first + 1; i < count; i++) {
        if (list[i].lane != list[first].lane)
            continue;
        list[last].next = i;
        list[i].follows = true;
        last = i;
    }
    list[last].next = PKI_CUDA_ALONE;
}

/* Links those of each lane. */
static void pki_cuda_group_link(pki_cuda_member *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!list[i].follows)
            link_lane(list, count, i);
}

/* ---- patterns ---- */

/* Of which there are how many; 0: they are not alike. */
static uint32_t count_alike(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint32_t n = 0;
    for (const pki_cuda_member *m = first; m; m = after(list, m), n++)
        if (m->comm != first->comm || m->op != first->op || m->type != first->type ||
            m->count != first->count)
            return 0;
    return n;
}

/* Pairs of a send and a receive, all of the same size on one communicator; 0: something else. */
static uint32_t count_pairs(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint32_t sends = 0, receives = 0;
    uint64_t bytes = first->count * pki_comm_type_bytes(first->type);
    for (const pki_cuda_member *m = first; m; m = after(list, m)) {
        sends += m->op == PK_COMM_OP_SEND;
        receives += m->op == PK_COMM_OP_RECV;
        if (m->comm != first->comm || (m->op != PK_COMM_OP_SEND && m->op != PK_COMM_OP_RECV) ||
            m->count * pki_comm_type_bytes(m->type) != bytes)
            return 0;
    }
    return sends == receives ? sends : 0;
}

/* Do the members of this operation go to different ranks? */
static bool are_apart(const pki_cuda_member *list, const pki_cuda_member *first, pk_comm_op op)
{
    uint64_t seen[PEERS_TOLD_APART / 64] = {0};
    for (const pki_cuda_member *m = first; m; m = after(list, m)) {
        if (m->op != (uint32_t)op)
            continue;
        if (m->peer < 0 || m->peer >= PEERS_TOLD_APART)
            return false;
        uint64_t bit = (uint64_t)1 << (m->peer % 64);
        if (seen[m->peer / 64] & bit)
            return false;
        seen[m->peer / 64] |= bit;
    }
    return true;
}

static bool is_all_to_all(const pki_cuda_member *list, const pki_cuda_member *first, uint32_t pairs)
{
    int32_t ranks = first->comm->size;
    return pairs > 1 && (pairs == (uint32_t)ranks || pairs + 1 == (uint32_t)ranks) &&
           are_apart(list, first, PK_COMM_OP_SEND) && are_apart(list, first, PK_COMM_OP_RECV);
}

static pki_cuda_operation fold_pairs(const pki_cuda_member *list, const pki_cuda_member *first,
                                     uint32_t pairs)
{
    bool all = is_all_to_all(list, first, pairs);
    pki_cuda_member pair = *first;
    pair.peer = -1; /* they have several */
    return make(&pair, all ? PK_COMM_OP_ALL_TO_ALL : PK_COMM_OP_SEND_RECV, first->count,
                first->type, all ? 1 : pairs);
}

/* ---- anything else ---- */

static bool is_first_of_comm(const pki_cuda_member *list, const pki_cuda_member *first,
                             const pki_cuda_member *m)
{
    const pki_cuda_member *other = first;
    while (other->comm != m->comm)
        other = after(list, other);
    return other == m;
}

static uint64_t sum_bytes(const pki_cuda_member *list, const pki_cuda_member *first)
{
    uint64_t bytes = 0;
    for (const pki_cuda_member *m = first; m; m = after(list, m))
        if (m->comm == first->comm)
            bytes += m->count * pki_comm_type_bytes(m->type);
    return bytes;
}

/* Behind the part at the end; where the end is then. */
static pki_cuda_operation *append(pki_cuda_operation *end, pki_cuda_operation part)
{
    uint32_t index = pki_cuda_part_allocate();
    if (!index)
        return NULL;
    *pki_cuda_part_at(index) = part;
    end->more = index;
    return pki_cuda_part_at(index);
}

/* Without memory for them some members are not listed, and communicators not counted. */
static pki_cuda_operation *append_members(const pki_cuda_member *list, const pki_cuda_member *first,
                                          pki_cuda_operation *end)
{
    for (const pki_cuda_member *m = first; m && end; m = after(list, m))
        if (m->comm == first->comm)
            end = append(end, make(m, (pk_comm_op)m->op, m->count, m->type, 0));
    return end;
}

static pki_cuda_operation part_of(const pki_cuda_member *list, const pki_cuda_member *first)
{
    return make(first, PK_COMM_OP_GROUP, sum_bytes(list, first), PK_COMM_TYPE_BYTE, 1);
}

static pki_cuda_operation fold_unlike(const pki_cuda_member *list, const pki_cuda_member *first)
{
    pki_cuda_operation whole = part_of(list, first);
    pki_cuda_operation *end = append_members(list, first, &whole);
    for (const pki_cuda_member *m = after(list, first); m && end; m = after(list, m)) {
        if (!is_first_of_comm(list, first, m))
            continue;
        end = append(end, part_of(list, m));
        end = end ? append_members(list, m, end) : NULL;
    }
    return whole;
}

/* The operation of all that follow from the first one on. what 0: there is none left. */
static pki_cuda_operation pki_cuda_group_fold(const pki_cuda_member *list, uint32_t index)
{
    const pki_cuda_member *first = &list[index];
    first = first->comm ? first : after(list, first);
    if (!first)
        return (pki_cuda_operation){0};
    uint32_t alike = count_alike(list, first), pairs = alike ? 0 : count_pairs(list, first);
    if (alike)
        return make(first, (pk_comm_op)first->op, first->count, first->type, alike);
    return pairs ? fold_pairs(list, first, pairs) : fold_unlike(list, first);
}

/* ---- pk/nccl.h: operations of communicators on streams, and groups of them ---- */

#define IN_PROGRESS 7 /* ncclInProgress */
#define ROOM_FIRST 64u
#define ROOM_MOST 65536u

/* What lies between this thread's group start and end. */
static _Thread_local struct {
    uint32_t depth;
    uint32_t session; /* of the list */
    uint32_t count, room;
    bool launched;
    pki_cuda_member *list;
} group;

static void free_group(void)
{
    free(group.list);
    group.list = NULL;
    group.count = group.room = 0;
    pki_cuda_pending_free();
}

static uint32_t open_region(void)
{
    const pki_thread *t = pki_self;
    return pki_thread_is_joined(t) && !pki_load(&t->ended) ? pki_open_region(t) : 0;
}

static void note_wrapped(void)
{
    if (PKI_UNLIKELY(!pki_load(&pki_comms_wrapped)))
        pki_store(&pki_comms_wrapped, 1u);
}

/* Not on a stream that could be followed, which has been counted. */
static PKI_COLD void count_unseen(const pki_cuda_member *m)
{
    pki_cuda_operation op = pki_cuda_operation_of(m);
    pki_cuda_operation_unseen(&op);
}

/* ---- in a group ---- */

static bool has_room(void)
{
    if (PKI_LIKELY(group.count < group.room))
        return true;
    uint32_t room = group.room ? 2 * group.room : ROOM_FIRST;
    pki_cuda_member *more = room <= ROOM_MOST ? realloc(group.list, room * sizeof *more) : NULL;
    if (!more)
        return false;
    pki_store(&pki_cuda_at_thread_end, free_group);
    group.list = more;
    group.room = room;
    return true;
}

static void count_skipped(pki_cuda_lane *l, uint64_t *counter)
{
    pki_bump(&l->counters.begun, 1);
    pki_store_release(counter, pki_load(counter) + 1); /* acquire: pki_cuda_sum */
}

static void join_group(const pki_cuda_member *m)
{
    uint32_t session = pki_load(&pki_cuda_session);
    if (group.session != session)
        group.count = 0;
    group.session = session;
    if (has_room()) {
        group.list[group.count++] = *m;
    } else {
        count_skipped(m->lane, &m->lane->counters.dropped);
        pki_cuda_note_reason(PKI_CUDA_NO_MEMORY, CUDA_SUCCESS, 0);
        count_unseen(m);
    }
}

/* NCCL refused the call: the group is without it. */
static PKI_COLD void remove_from_group(const pk_comm *comm, CUstream stream)
{
    pki_cuda_member *last = group.count ? &group.list[group.count - 1] : NULL;
    if (!last || last->comm != comm || last->stream != stream)
        return;
    pki_bump(&last->lane->counters.refused, 1);
    count_skipped(last->lane, &last->lane->counters.skipped);
    pki_cuda_note_reason(PKI_CUDA_REFUSED, CUDA_SUCCESS, 0);
    group.count--;
}

/* ---- an operation ---- */

static void begin(pki_cuda_member *m, CUstream stream)
{
    m->lane = pki_cuda_is_ready() ? pki_cuda_lane_of(stream, true) : NULL;
    m->stream = stream;
    m->parent = open_region();
    note_wrapped();
    pki_cuda_pending_settle(m->comm, PKI_CUDA_NEVER_ASKED);
    if (PKI_UNLIKELY(!m->lane)) {
        count_unseen(m);
    } else if (group.depth > 0) {
        join_group(m);
    } else {
        pki_cuda_operation op = pki_cuda_operation_of(m);
        pki_cuda_operation_begin(m->lane, m->comm->name, &op);
    }
}

void pk_nccl_begin_on_(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                       int32_t peer, void *stream)
{
    int saved = errno;
    pki_cuda_member m = {.comm = comm,
                         .count = count,
                         .op = (uint32_t)op,
                         .type = (uint32_t)type,
                         .peer = peer,
                         .next = PKI_CUDA_ALONE};
    if (comm)
        begin(&m, pki_cuda_stream_of(stream));
    errno = saved;
}

/* It comes later: the end waits for the communicator to say so. */
static PKI_COLD void wait_on_lane(pk_comm *comm, pki_cuda_lane *l, CUstream stream, uint32_t name)
{
    pki_store(&pki_cuda_at_thread_end, free_group);
    if (!pki_cuda_operation_wait(l, name) || !pki_cuda_pending_add(comm, l, stream, name))
        pki_cuda_operation_refused(l, name, false);
}

static void end_on_lane(pk_comm *comm, pki_cuda_lane *l, CUstream stream, uint32_t name,
                        int32_t result)
{
    if (PKI_LIKELY(result == 0))
        pki_cuda_operation_end(l, name);
    else if (result == IN_PROGRESS)
        wait_on_lane(comm, l, stream, name);
    else
        pki_cuda_operation_refused(l, name, true);
}

void pk_nccl_end_on_(pk_comm *comm, void *stream, int32_t result)
{
    int saved = errno;
    if (comm && group.depth > 0) {
        if (PKI_UNLIKELY(result != 0 && result != IN_PROGRESS))
            remove_from_group(comm, pki_cuda_stream_of(stream));
    } else if (comm && pki_cuda_known() == PKI_CUDA_LIVE) {
        pki_cuda_lane *l = pki_cuda_lane_of(pki_cuda_stream_of(stream), false);
        if (PKI_LIKELY(l))
            end_on_lane(comm, l, pki_cuda_stream_of(stream), comm->name, result);
    }
    errno = saved;
}

/* ---- groups ---- */

void pk_nccl_group_start(void)
{
    group.depth++;
}

static bool is_of_session(void)
{
    return pki_load(&pk_gpu_gate_) && group.session == pki_load(&pki_cuda_session);
}

/* A lane that has been left meanwhile may be somebody else's. */
static bool leads(const pki_cuda_member *m)
{
    return !m->follows && pki_cuda_lane_is_own(m->lane, m->stream);
}

static void launch(void)
{
    pki_cuda_group_link(group.list, group.count);
    for (uint32_t i = 0; i < group.count; i++) {
        pki_cuda_member *m = &group.list[i];
        if (!leads(m))
            continue;
        pki_cuda_operation op = pki_cuda_group_fold(group.list, i);
        m->name = op.what ? pki_comm_unpack(op.what, op.extra).comm : 0;
        if (m->name)
            pki_cuda_operation_begin(m->lane, m->name, &op);
    }
    group.launched = true;
}

void pk_nccl_group_launch(void)
{
    int saved = errno;
    if (group.depth == 1 && group.count > 0 && is_of_session())
        launch();
    errno = saved;
}

/* What the stream was given has come when each communicator that takes part says so. */
static void wait_for_others(const pki_cuda_member *first)
{
    const pk_comm *last = first->comm;
    for (uint32_t i = first->next; i != PKI_CUDA_ALONE; i = group.list[i].next) {
        const pki_cuda_member *m = &group.list[i];
        if (m->comm && m->comm != last)
            pki_cuda_pending_add(m->comm, first->lane, first->stream, first->name);
        last = m->comm ? m->comm : last;
    }
}

static void land(int32_t result)
{
    for (uint32_t i = 0; i < group.count; i++) {
        const pki_cuda_member *m = &group.list[i];
        if (!m->name || !leads(m))
            continue;
        end_on_lane(m->comm, m->lane, m->stream, m->name, result);
        if (result == IN_PROGRESS)
            wait_for_others(m);
    }
}

void pk_nccl_async(pk_comm *comm, int32_t state)
{
    int saved = errno;
    if (comm && state != IN_PROGRESS)
        pki_cuda_pending_settle(comm, state == 0 ? PKI_CUDA_ARRIVED : PKI_CUDA_FAILED);
    errno = saved;
}

void pk_nccl_group_end(int32_t result)
{
    int saved = errno;
    if (group.depth > 0 && --group.depth == 0) {
        if (group.launched && is_of_session())
            land(result);
        group.launched = false;
        group.count = 0;
    }
    errno = saved;
}

void pk_nccl_abort(pk_comm *comm)
{
    if (comm)
        pki_cuda_pending_settle(comm, PKI_CUDA_NEVER_ASKED);
    for (uint32_t i = 0; comm && i < group.count; i++) {
        pki_cuda_member *m = &group.list[i];
        if (m->comm != comm)
            continue;
        m->comm = NULL;
        if (is_of_session())
            count_skipped(m->lane, &m->lane->counters.skipped);
    }
}
