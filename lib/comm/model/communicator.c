#include "comm/model/communicator.h"

#include <pk/private.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "core/names.h"
#include "core/thread.h"

/* ---- an operation on a communicator ---- */

uint32_t pki_comm_type_bytes(uint32_t type)
{
    static const uint8_t bytes[] = {
#define TYPE_BYTES(code, value, n, name) [value] = (n),
        PK_COMM_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
    };
    return type < PKI_COUNT_OF(bytes) ? bytes[type] : 1;
}

const char *pki_comm_type_name(uint32_t type)
{
    static const char *const names[] = {
#define TYPE_NAME(code, value, n, name) [value] = (name),
        PK_COMM_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
    };
    return type < PKI_COUNT_OF(names) ? names[type] : "Byte";
}

const char *pki_comm_op_name(uint32_t op)
{
    static const char *const names[] = {
#define OP_NAME(code, value, name) [value] = (name),
        PK_COMM_OP_LIST(OP_NAME)
#undef OP_NAME
    };
    return op < PKI_COUNT_OF(names) ? names[op] : "other";
}

pk_comm_op pki_comm_op_named(const char *name)
{
#define OP_NAMED(code, value, text)                                                                \
    if (strcmp(name, text) == 0)                                                                   \
        return code;
    PK_COMM_OP_LIST(OP_NAMED)
#undef OP_NAMED
    return PK_COMM_OP_OTHER;
}

uint64_t pki_comm_elements_in(uint32_t op, uint64_t n, uint64_t ranks)
{
    bool all =
        op == PK_COMM_OP_REDUCE_SCATTER || op == PK_COMM_OP_ALL_TO_ALL || op == PK_COMM_OP_SCATTER;
    return op == PK_COMM_OP_RECV ? 0 : all ? n * ranks : n;
}

uint64_t pki_comm_elements_out(uint32_t op, uint64_t n, uint64_t ranks)
{
    bool all =
        op == PK_COMM_OP_ALL_GATHER || op == PK_COMM_OP_ALL_TO_ALL || op == PK_COMM_OP_GATHER;
    return op == PK_COMM_OP_SEND ? 0 : all ? n * ranks : n;
}

bool pki_operation_has_peer(uint32_t op)
{
    return op == PK_COMM_OP_BROADCAST || op == PK_COMM_OP_REDUCE || op == PK_COMM_OP_GATHER ||
           op == PK_COMM_OP_SCATTER || op == PK_COMM_OP_SEND || op == PK_COMM_OP_RECV ||
           op == PK_COMM_OP_SEND_RECV;
}

/* ---- communicators, for the process's life, and how far each has come ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pk_comm *comms[PKI_COMMS_MAX];
uint32_t pki_comms_wrapped;
static uint32_t made;                   /* grows under the lock */
static uint16_t by_name[PKI_NAMES_MAX]; /* index + 1 */
static pk_comm too_many = {.index = PKI_COMMS_MAX - 1,
                           .name = PKI_NAME_TOO_MANY,
                           .rank = -1,
                           .library = "",
                           .title = "(too many communicators)"};

pk_comm *pki_comm_at(uint32_t index)
{
    return index < PKI_COMMS_MAX ? pki_load_acquire(&comms[index]) : NULL;
}

pk_comm *pki_comm_of_name(uint32_t name)
{
    uint32_t index = name < PKI_NAMES_MAX ? pki_load_acquire(&by_name[name]) : 0;
    return index ? pki_comm_at(index - 1) : NULL;
}

/* ---- making one ---- */

static void copy_text(char *to, const char *from, const char *otherwise)
{
    snprintf(to, PKI_COMM_TEXT, "%s", from && *from ? from : otherwise);
}

static bool is_like(const pk_comm *a, const pk_comm *b)
{
    return a->id == b->id && a->rank == b->rank && a->size == b->size &&
           strcmp(a->library, b->library) == 0 && strcmp(a->title, b->title) == 0;
}

/* A loop that makes and frees communicators makes one row of the report, not thousands. */
static pk_comm *find_freed(const pk_comm *wanted)
{
    for (uint32_t i = 0; i < made; i++)
        if (comms[i]->gone && is_like(comms[i], wanted))
            return comms[i];
    return NULL;
}

static uint32_t count_titles(const pk_comm *wanted)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < made; i++)
        n += strcmp(comms[i]->title, wanted->title) == 0;
    return n;
}

const char *pk_comm_name_(const pk_comm *comm)
{
    const char *name = pk_region_name_(comm->name);
    return name ? name : comm->title;
}

/* Two of the same name are told apart by a number. */
static uint32_t name_of(const pk_comm *c)
{
    char text[2 * PKI_COMM_TEXT];
    uint32_t same = count_titles(c);
    int64_t value = (int64_t)((uint64_t)(uint32_t)c->size << 32 | (uint32_t)c->rank);
    if (same)
        snprintf(text, sizeof text, "%s #%u", c->title, same + 1);
    else
        snprintf(text, sizeof text, "%s", c->title);
    return pki_name_internal(text, c->library, value);
}

static pk_comm *make(const pk_comm *wanted)
{
    if (made >= PKI_COMMS_MAX - 1)
        return NULL;
    pk_comm *c = malloc(sizeof *c);
    if (!c)
        return NULL;
    *c = *wanted;
    c->name = name_of(c);
    c->index = made;
    if (c->name == PKI_NAME_TOO_MANY) {
        free(c);
        return NULL;
    }
    pki_store_release(&comms[made], c); /* pairs with the acquire in pki_comm_at */
    pki_store_release(&by_name[c->name], (uint16_t)(made + 1));
    made++;
    return c;
}

static pk_comm *share(void)
{
    pki_store_release(&comms[too_many.index], &too_many);
    pki_store_release(&by_name[too_many.name], (uint16_t)PKI_COMMS_MAX);
    return &too_many;
}

pk_comm *pk_comm_create(const char *library, const char *name, uint64_t id, int32_t rank,
                        int32_t size)
{
    pk_comm wanted = {.id = id, .rank = rank, .size = size};
    copy_text(wanted.library, library, "");
    copy_text(wanted.title, name, "(unnamed)");
    if (!pki_enter()) /* a handler, amid a call of ours */
        return share();
    pthread_mutex_lock(&lock);
    pk_comm *c = find_freed(&wanted);
    c = c ? c : make(&wanted);
    c = c ? c : share();
    c->gone = 0;
    pthread_mutex_unlock(&lock);
    pki_leave();
    return c;
}

void pk_comm_destroy(pk_comm *comm)
{
    if (!comm || !pki_enter())
        return;
    pthread_mutex_lock(&lock);
    comm->gone = comm != &too_many;
    pthread_mutex_unlock(&lock);
    pki_leave();
}

/* One that was freed and made again, without a number, may have other peers now: those that differ
 * are nobody's any more, neither in what is recorded from here on nor in what nobody has read yet.
 */
static void compare_peers(pk_comm *comm, const int32_t *ranks, uint32_t peers)
{
    for (uint32_t i = 0; i < comm->peer_count; i++)
        if (i >= peers || comm->peers[i] != ranks[i])
            pki_store(&comm->peers[i], -1);
}

static void copy_peers(pk_comm *comm, const int32_t *ranks, uint32_t peers)
{
    int32_t *copy = malloc(peers * sizeof *copy);
    if (!copy)
        return;
    memcpy(copy, ranks, peers * sizeof *copy);
    comm->peers = copy;
    pki_store_release(&comm->peer_count, peers); /* pairs with pki_comm_job_rank */
}

void pk_comm_set_peers(pk_comm *comm, const int32_t *ranks, int32_t peers)
{
    if (!comm || comm == &too_many || !ranks || peers <= 0 || !pki_enter())
        return;
    pthread_mutex_lock(&lock);
    if (comm->peer_count)
        compare_peers(comm, ranks, (uint32_t)peers);
    else
        copy_peers(comm, ranks, (uint32_t)peers);
    pthread_mutex_unlock(&lock);
    pki_leave();
}

int32_t pki_comm_job_rank(const pk_comm *comm, int32_t peer, int32_t rank, int32_t world)
{
    uint32_t known = pki_load_acquire(&comm->peer_count);
    if (known)
        return peer >= 0 && (uint32_t)peer < known ? pki_load(&comm->peers[peer]) : -1;
    return comm->size == world && comm->rank == rank && peer >= 0 && peer < world ? peer : -1;
}

void pki_comms_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pk_comm *c;
    for (uint32_t i = 0; (c = pki_comm_at(i)); i++)
        c->flow %= PKI_COMM_FLYING; /* what is in flight is the parent's */
    too_many.flow %= PKI_COMM_FLYING;
}

/* ---- operations ---- */

/* What not all ranks take part in: they need not count alike then. */
static bool is_not_of_all(pk_comm_op op)
{
    return pki_comm_op_is_message(op) || op == PK_COMM_OP_GROUP;
}

pki_comm_payload pki_comm_enqueue(pk_comm *comm, pk_comm_op op, pk_comm_type type, int32_t peer,
                                  uint32_t parent, uint64_t *sequence)
{
    uint64_t flow = __atomic_add_fetch(&comm->flow, PKI_COMM_FLYING + 1, __ATOMIC_RELAXED);
    uint64_t n = flow % PKI_COMM_FLYING;
    uint32_t flying = (uint32_t)(flow / PKI_COMM_FLYING);
    if (flying == 1 && !pki_load(&comm->given_up))
        pki_store(&comm->completed, n - 1); /* nobody has kept it meanwhile */
    pki_comm_fields fields = {comm->name, parent, (uint32_t)op, (uint32_t)type,
                              flying,     peer,   (uint32_t)n};
    if (is_not_of_all(op) && !pki_load(&comm->messages))
        pki_store(&comm->messages, 1u);
    *sequence = n;
    return pki_comm_pack(&fields);
}

uint32_t pki_comm_count_overlap(pk_comm *comm, uint64_t start, uint64_t end)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < PKI_MIN(comm->end_count, (uint32_t)PKI_COMM_ENDS); i++)
        n += comm->ends[i] > start;
    comm->ends[comm->end_count++ % PKI_COMM_ENDS] = end;
    return n;
}

void pki_comms_forget_ends(void)
{
    pk_comm *c; /* without the lock, which in the child of a fork nobody may give back any more */
    for (uint32_t i = 0; (c = pki_comm_at(i)); i++)
        c->end_count = 0;
    too_many.end_count = 0;
}

pki_operation pki_operation_on(const pk_comm *comm)
{
    return (pki_operation){.comm = comm->title,
                           .comm_length = strlen(comm->title),
                           .library = comm->library,
                           .library_length = strlen(comm->library),
                           .rank = comm->rank,
                           .size = comm->size,
                           .id = comm->id,
                           .peer = -1};
}

/* The sequence's upper half is that of the last one enqueued, or one less. */
uint64_t pki_comm_whole(const pk_comm *comm, uint32_t low)
{
    uint64_t last = pki_comm_enqueued(comm);
    uint64_t n = (last & ~(uint64_t)UINT32_MAX) | low;
    return n > last ? n - ((uint64_t)1 << 32) : n;
}

static void raise_to(uint64_t *count, uint64_t n)
{
    uint64_t before = pki_load(count);
    while (before < n && !__atomic_compare_exchange_n(count, &before, n, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
}

void pki_comm_complete(uint64_t what, uint64_t extra)
{
    pki_comm_fields f = pki_comm_unpack(what, extra);
    pk_comm *comm = pki_comm_of_name(f.comm);
    if (!comm)
        return;
    if (pki_comm_in_flight(comm) > 1 || pki_load(&comm->given_up))
        raise_to(&comm->completed, pki_comm_whole(comm, f.sequence));
    __atomic_sub_fetch(&comm->flow, PKI_COMM_FLYING, __ATOMIC_RELAXED);
}

uint64_t pki_comm_oldest(const pk_comm *comm)
{
    uint64_t flow = pki_load(&comm->flow);
    uint64_t n = flow % PKI_COMM_FLYING, flying = flow / PKI_COMM_FLYING;
    return n - PKI_MIN(flying, n) + (flying > 0);
}

void pki_comm_begun(pk_comm *comm, uint64_t sequence)
{
    raise_to(&comm->started, sequence);
}

pki_comms_entry pki_comm_progress(const pk_comm *c)
{
    uint64_t completed = pki_comm_completed(c), started = pki_load(&c->started);
    uint64_t enqueued = pki_comm_enqueued(c); /* after what it bounds */
    return (pki_comms_entry){.name = c->name,
                             .under_way = pki_comm_in_flight(c),
                             .enqueued = enqueued,
                             .started = started ? PKI_MAX(started, completed) : enqueued,
                             .completed = PKI_MIN(completed, enqueued),
                             .messages = pki_load(&c->messages)};
}

void pki_comm_abandon(pk_comm *comm)
{
    pki_store(&comm->given_up, 1u);
    __atomic_sub_fetch(&comm->flow, PKI_COMM_FLYING, __ATOMIC_RELAXED);
}
