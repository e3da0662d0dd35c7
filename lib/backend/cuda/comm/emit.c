#include "backend/cuda/comm/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/comm/operation.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "session/activity.h"

/* ---- parts beyond the first ---- */

#define BATCH 64u
#define BATCHES 1024u

typedef struct kept_part {
    pki_cuda_operation operation;
    uint32_t next; /* while free */
} kept_part;

static pki_free_list free_ones PKI_ALIGNED;
static uint32_t batches;
static kept_part *chunks[BATCHES];

static kept_part *at(uint32_t index)
{
    kept_part *chunk =
        pki_load_acquire(&chunks[(index - 1) / BATCH]); /* pairs with the release in grow */
    return &chunk[(index - 1) % BATCH];
}

pki_cuda_operation *pki_cuda_part_at(uint32_t index)
{
    return &at(index)->operation;
}

static uint32_t *link_of(void *none, uint32_t index)
{
    (void)none;
    return &at(index)->next;
}

static void release(uint32_t index)
{
    pki_free_list_push(&free_ones, link_of, NULL, index);
}

/* One of a new batch. */
static PKI_COLD uint32_t grow(void)
{
    kept_part *chunk = pki_load(&batches) < BATCHES ? calloc(BATCH, sizeof *chunk) : NULL;
    if (!chunk)
        return 0;
    uint32_t batch = pki_fetch_add(&batches, 1u);
    if (batch >= BATCHES) {
        free(chunk);
        return 0;
    }
    pki_store_release(&chunks[batch], chunk); /* pairs with the acquire in at */
    for (uint32_t i = BATCH; i > 1; i--)
        release(batch * BATCH + i);
    return batch * BATCH + 1;
}

uint32_t pki_cuda_part_allocate(void)
{
    uint32_t index = pki_free_list_pop(&free_ones, link_of, NULL);
    return PKI_LIKELY(index) ? index : grow();
}

/* The parts of the parent's operations are not used again. */
void pki_cuda_operations_after_fork(void)
{
    free_ones = 0;
}

/* ---- operations ---- */

static pk_comm *comm_of(const pki_cuda_operation *o)
{
    return pki_comm_of_name(pki_comm_unpack(o->what, o->extra).comm);
}

static pki_comm_payload enqueue(const pki_cuda_operation *o)
{
    uint64_t sequence;
    pki_comm_fields f = pki_comm_unpack(o->what, o->extra);
    pk_comm *comm = pki_comm_of_name(f.comm);
    pki_comm_payload payload = {o->what, o->extra};
    for (uint32_t i = 0; comm && i < o->calls; i++)
        payload = pki_comm_enqueue(comm, (pk_comm_op)f.op, (pk_comm_type)f.type, f.peer, f.parent,
                                   &sequence);
    return payload;
}

void pki_cuda_operation_enqueue(pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pki_comm_payload payload = enqueue(o);
        o->what = payload.what;
        o->extra = payload.extra;
    }
}

/* Its parts go back, and it is none any more. */
static void clear(pki_cuda_operation *o)
{
    uint32_t left = o->more;
    o->what = 0;
    o->more = 0;
    while (left) {
        uint32_t next = pki_cuda_part_at(left)->more;
        release(left);
        left = next;
    }
}

static void complete(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o))
        for (uint32_t i = o->calls; i > 0; i--)
            pki_comm_complete(o->what, pki_comm_extra_before(o->extra, i - 1));
}

void pki_cuda_operation_unseen(pki_cuda_operation *o)
{
    pki_cuda_operation_enqueue(o);
    pki_cuda_operation_complete(o);
}

void pki_cuda_operation_begun(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pk_comm *comm = o->calls ? comm_of(o) : NULL;
        if (comm)
            pki_comm_begun(comm, pki_comm_whole(comm, (uint32_t)o->extra));
    }
}

void pki_cuda_operation_complete(pki_cuda_operation *o)
{
    complete(o);
    clear(o);
}

static void abandon(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pk_comm *comm = comm_of(o);
        for (uint32_t i = 0; comm && i < o->calls; i++)
            pki_comm_abandon(comm);
    }
}

void pki_cuda_operation_abandon(pki_cuda_operation *o)
{
    if (!o->what)
        return;
    if (pki_cuda_operation_is_numbered(o))
        abandon(o);
    clear(o);
}

/* ---- replays ---- */

void pki_cuda_replay_enqueue(const pki_cuda_operation *pattern)
{
    for (const pki_cuda_operation *o = pattern->what ? pattern : NULL; o;
         o = pki_cuda_operation_next(o))
        enqueue(o);
}

static pki_comm_payload pki_cuda_replay_payload(const pki_cuda_operation *pattern)
{
    pki_comm_fields f = pki_comm_unpack(pattern->what, pattern->extra);
    const pk_comm *comm = comm_of(pattern);
    if (comm && pattern->calls)
        f.sequence = (uint32_t)(pki_comm_oldest(comm) + pattern->calls - 1);
    return pki_comm_pack(&f);
}

void pki_cuda_replay_abandon(const pki_cuda_operation *pattern)
{
    if (pattern->what)
        abandon(pattern);
}

/* Of the tracks of communicators: beyond those of lanes, one for each lane and communicator. */
#define TRACK_FIRST (1u << 24)
#define TRACKS_KEPT 64u
#define MOST_ARGS 8
#define MEMBERS_TEXT 300

typedef struct timed {
    const pki_cuda_lane *lane;
    uint64_t start, end;
    uint32_t communicators; /* whose time it is */
    bool replayed;
} timed;

/* ---- the track ---- */

static struct {
    uint32_t tid, session, track;
} kept[TRACKS_KEPT];

static uint32_t add_track(const pki_cuda_lane *l, const pk_comm *c, uint32_t tid)
{
    char process[32], thread[160], what[2 * PKI_COMM_TEXT];
    snprintf(process, sizeof process, "GPU %u", l->context->device);
    snprintf(what, sizeof what, "%s %s", c->library, c->title);
    pki_cuda_lane_name(l, what, thread, sizeof thread);
    return pki_track_add(&(pki_track){pki_track_device_pid(l->context->device), tid, process,
                                      thread, (uint32_t)l->stream_id * 2 + 1});
}

static uint32_t track_of(const pki_cuda_lane *l, const pk_comm *c)
{
    uint32_t tid = TRACK_FIRST + l->number * PKI_COMMS_MAX + c->index;
    uint32_t at = (l->number * 7 + c->index) % TRACKS_KEPT, session = pki_load(&pki_cuda_session);
    if (kept[at].tid != tid || kept[at].session != session || !kept[at].track) {
        kept[at].tid = tid;
        kept[at].session = session;
        kept[at].track = add_track(l, c, tid);
    }
    return kept[at].track;
}

/* ---- members ---- */

static bool is_alike(const pki_cuda_operation *a, const pki_cuda_operation *b)
{
    pki_comm_fields x = pki_comm_unpack(a->what, a->extra), y = pki_comm_unpack(b->what, b->extra);
    return x.op == y.op && x.type == y.type && a->count == b->count;
}

static uint64_t bytes_of(const pki_cuda_operation *o)
{
    pki_comm_fields f = pki_comm_unpack(o->what, o->extra);
    return o->count * pki_comm_type_bytes(f.type);
}

static size_t put_member(char *text, size_t size, const pki_cuda_operation *o, uint32_t times)
{
    char repeated[16] = "";
    if (times > 1)
        snprintf(repeated, sizeof repeated, " x%" PRIu32, times);
    int n = snprintf(text, size, "%s %" PRIu64 " B%s",
                     pki_comm_op_name((uint32_t)(o->what >> 8) & 0xFF), bytes_of(o), repeated);
    return PKI_MIN((size_t)n, size - 1);
}

/* "all_reduce 4096 B, broadcast 16 B x2": what follows the part, as long as there is room. */
static void put_members(char text[MEMBERS_TEXT], const pki_cuda_operation *part)
{
    size_t n = 0, left = 0;
    const pki_cuda_operation *o = pki_cuda_operation_next(part);
    text[0] = 0;
    while (o && o->calls == 0) {
        const pki_cuda_operation *first = o;
        uint32_t times = 0;
        for (; o && o->calls == 0 && is_alike(first, o); o = pki_cuda_operation_next(o))
            times++;
        if (n + 64 > MEMBERS_TEXT - 32) {
            left += times;
            continue;
        }
        n += (size_t)snprintf(text + n, MEMBERS_TEXT - n, "%s", n ? ", " : "");
        n += put_member(text + n, MEMBERS_TEXT - n, first, times);
    }
    if (left)
        snprintf(text + n, MEMBERS_TEXT - n, ", and %zu more", left);
}

/* ---- one part ---- */

static void number_if(pki_activity_arg *args, size_t *n, const char *key, uint64_t value,
                      bool wanted)
{
    if (wanted)
        args[(*n)++] = (pki_activity_arg){key, NULL, (int64_t)value};
}

static void write_part(const timed *t, const pki_cuda_operation *part, const pk_comm *comm,
                       const pki_operation *o, uint32_t region)
{
    char name[64], members[MEMBERS_TEXT];
    pki_activity_arg args[MOST_ARGS];
    size_t n = 0;
    put_members(members, part);
    args[n++] = (pki_activity_arg){PKI_COMM_TIMED, PKI_COMM_BY_STREAM, 0};
    number_if(args, &n, PKI_COMM_CALLS, part->calls, part->calls > 1);
    number_if(args, &n, PKI_COMM_SHARERS, t->communicators, t->communicators > 1);
    number_if(args, &n, "graph", t->lane->graph, t->lane->graph);
    if (members[0])
        args[n++] = (pki_activity_arg){"members", members, 0};
    args[n++] = (pki_activity_arg){"uncertainty_ns", NULL, pki_cuda_lane_doubt_ns(t->lane)};
    snprintf(name, sizeof name, "%.40s %s", comm->library, pki_comm_op_name(o->op));
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_OPERATION,
                                     .track = track_of(t->lane, comm),
                                     .name = name,
                                     .name_length = strlen(name),
                                     .start = t->start,
                                     .end = PKI_MAX(t->start, t->end),
                                     .region = region,
                                     .device = t->lane->context->device,
                                     .context = t->lane->context->number,
                                     .stream = (uint32_t)t->lane->stream_id,
                                     .stream_hidden = 1,
                                     .bytes = bytes_of(part),
                                     .operation = o,
                                     .args = args,
                                     .arg_count = n});
}

static void count_part(const timed *t, const pki_cuda_operation *part, const pk_comm *comm,
                       const pki_operation *o, uint32_t region)
{
    pki_activity_count_operation(&(pki_timed_operation){.comm = comm->index,
                                                        .ranks = (uint32_t)PKI_MAX(comm->size, 0),
                                                        .op = (pk_comm_op)o->op,
                                                        .region = region,
                                                        .bytes = bytes_of(part),
                                                        .sequence = o->sequence,
                                                        .start = t->start,
                                                        .end = t->end,
                                                        .in_flight = o->in_flight,
                                                        .sharers = part->calls * t->communicators,
                                                        .on_stream = 1},
                                 part->calls);
}

static void emit_part(const timed *t, const pki_cuda_operation *part)
{
    pki_comm_payload payload = {part->what, part->extra};
    if (t->replayed)
        payload = pki_cuda_replay_payload(part);
    pki_comm_fields f = pki_comm_unpack(payload.what, payload.extra);
    pk_comm *comm = pki_comm_of_name(f.comm);
    if (!comm)
        return;
    pki_operation o = pki_operation_on(comm);
    o.op = f.op;
    o.type = f.type;
    o.count = part->count;
    o.sequence = pki_comm_whole(comm, f.sequence);
    o.peer = f.peer;
    o.in_flight = pki_comm_count_overlap(comm, t->start, t->end);
    write_part(t, part, comm, &o, f.parent);
    count_part(t, part, comm, &o, f.parent);
    for (uint32_t i = t->replayed ? part->calls : 0; i > 0; i--)
        pki_comm_complete(payload.what, pki_comm_extra_before(payload.extra, i - 1));
}

void pki_cuda_emit_parts(const pki_cuda_lane *l, uint64_t start, uint64_t end,
                         const pki_cuda_operation *op, bool replayed)
{
    timed t = {l, start, end, 0, replayed};
    for (const pki_cuda_operation *o = op; o; o = pki_cuda_operation_next(o))
        t.communicators += o->calls > 0;
    for (const pki_cuda_operation *o = op; o; o = pki_cuda_operation_next(o))
        if (o->calls)
            emit_part(&t, o);
}
