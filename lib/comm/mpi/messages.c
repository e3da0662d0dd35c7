/* lib/comm/mpi/messages.c - messages: calls that return when the buffer may be used again, calls
 * that return at once, requests to be started later, a send and a receive in one, and those that a
 * probe has found. */
#include "comm/mpi/glue.h"

/* ---- the ways in which MPI sends, all with the same parameters ---- */

/* X(returns when the buffer is free, returns at once, to be started later) */
#define SENDS(X)                                                                                   \
    X(Send, Isend, Send_init)                                                                      \
    X(Bsend, Ibsend, Bsend_init)                                                                   \
    X(Ssend, Issend, Ssend_init)                                                                   \
    X(Rsend, Irsend, Rsend_init)

#define SEND_PARAMS const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm
#define RECV_PARAMS void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm

/* The region that is open is this message. */
static void describe(pk_region *region, const pki_mpi_operation *o)
{
    if (!o->comm)
        return;
    pk_comm_call(region, o->comm, o->op, o->amount.type, o->amount.count, o->peer);
    pk_comm_set_tag(region, o->tag);
}

static void describe_received(pk_region *region, MPI_Datatype type, MPI_Comm comm,
                              const MPI_Status *status)
{
    pki_mpi_operation got =
        pki_mpi_message(PK_COMM_OP_RECV, 1, type, status->MPI_SOURCE, status->MPI_TAG, comm);
    got.amount = pki_mpi_amount_got(status, type);
    describe(region, &got);
}

/* ---- whose calls return when the buffer may be used again ---- */

/* A receive is described when it is over: only then is it known how much came, and from whom. */

#define SEND(NAME, INAME, INIT)                                                                    \
    PKI_MPI_CALL(NAME)(SEND_PARAMS)                                                                \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(buf, count, type, dest, tag, comm);                                 \
        pki_mpi_operation sent = pki_mpi_message(PK_COMM_OP_SEND, count, type, dest, tag, comm);   \
        pk_region_begin(&region);                                                                  \
        describe(&region, &sent);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME(buf, count, type, dest, tag, comm);                               \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

SENDS(SEND)

PKI_MPI_CALL(Recv)(RECV_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Recv");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Recv(buf, count, type, source, tag, comm, status);
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int result = PMPI_Recv(buf, count, type, source, tag, comm, known);
    pki_mpi_end_wait();
    if (result == MPI_SUCCESS)
        describe_received(&region, type, comm, known);
    pk_region_end(&region);
    return result;
}

/* Waiting for a message without taking it. */
PKI_MPI_REGION_ONLY(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
                    (source, tag, comm, status))

/* ---- that go on when the call has returned ---- */

/* As in collectives.c, the operation starts outside the call's own region. */
#define AT_ONCE(NAME, OP, PARAMS, PEER)                                                            \
    PKI_MPI_CALL(NAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                 \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(buf, count, type, PEER, tag, comm, request);                        \
        pki_mpi_operation operation = pki_mpi_message(OP, count, type, PEER, tag, comm);           \
        pk_comm_request started = pki_mpi_start(&operation);                                       \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME(buf, count, type, PEER, tag, comm, request);                      \
        pki_mpi_end_wait();                                                                        \
        pki_mpi_follow(status, request, &operation, &started);                                     \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

#define ISEND(NAME, INAME, INIT) AT_ONCE(INAME, PK_COMM_OP_SEND, (SEND_PARAMS), dest)

SENDS(ISEND)
AT_ONCE(Irecv, PK_COMM_OP_RECV, (RECV_PARAMS), source)

/* ---- to be started again and again ---- */

/* Kept even while perfkit is off: it may be on when they are started. */
#define INIT_OF(NAME, OP, PARAMS, PEER)                                                            \
    PKI_MPI_CALL(NAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                 \
    {                                                                                              \
        int status = PMPI_##NAME(buf, count, type, PEER, tag, comm, request);                      \
        if (status == MPI_SUCCESS) {                                                               \
            pki_mpi_operation operation = pki_mpi_message(OP, count, type, PEER, tag, comm);       \
            pki_mpi_insert(request, &operation);                                                   \
        }                                                                                          \
        return status;                                                                             \
    }

#define SEND_INIT(NAME, INAME, INIT) INIT_OF(INIT, PK_COMM_OP_SEND, (SEND_PARAMS), dest)

SENDS(SEND_INIT)
INIT_OF(Recv_init, PK_COMM_OP_RECV, (RECV_PARAMS), source)

/* ---- a send and a receive in one call, which returns when both are done ---- */

typedef struct under_way {
    pki_mpi_exchange what;
    pk_comm_request receiving;
    uint64_t since;
} under_way;

/* The receive starts outside the call's own region, as above. */
static under_way exchange_begin(pk_region *region, pki_mpi_exchange what)
{
    under_way u = {.what = what};
    if (what.sent.comm)
        u.receiving = pki_mpi_start(&what.received);
    pk_region_begin(region);
    describe(region, &what.sent);
    u.since = u.receiving.comm ? pki_mpi_now_ns() : 0;
    pki_mpi_begin_wait();
    return u;
}

/* It ends within the call, where arrows in a trace go to. */
static void exchange_end(pk_region *region, under_way *u, int result, MPI_Datatype type,
                         MPI_Comm comm, const MPI_Status *status)
{
    bool done = result == MPI_SUCCESS;
    pki_mpi_end_wait();
    if (u->receiving.comm) {
        if (done)
            pki_mpi_correct(&u->receiving, status);
        pk_comm_finish(&u->receiving, pki_mpi_now_ns() - u->since);
    } else if (done && !u->what.sent.comm && u->what.received.comm) {
        describe_received(region, type, comm, status);
    }
    pk_region_end(region);
}

PKI_MPI_CALL(Sendrecv)(PKI_MPI_EXCHANGE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, status);
    under_way u =
        exchange_begin(&region, pki_mpi_exchange_of(sendcount, sendtype, dest, sendtag, recvcount,
                                                    recvtype, source, recvtag, comm));
    int result = PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, known);
    exchange_end(&region, &u, result, recvtype, comm, known);
    return result;
}

PKI_MPI_CALL(Sendrecv_replace)(PKI_MPI_REPLACE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv_replace");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, status);
    under_way u = exchange_begin(&region, pki_mpi_exchange_of(count, type, dest, sendtag, count,
                                                              type, source, recvtag, comm));
    int result = PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, known);
    exchange_end(&region, &u, result, type, comm, known);
    return result;
}

/* ---- found by a matching probe, and not received yet ---- */

/* Who receives one gives MPI no communicator, and has waited for the message in the probe. So the
 * receive begins with the probe that finds it, and is kept until then, under MPI's handle, in a
 * table without a lock, as requests are (request.c). Of a message that finds no room there, the
 * calls are regions and no more. */

#define MATCHED 1024

/* None: receiving.comm is NULL. */
typedef struct matched {
    pk_comm_request receiving;
    uint64_t waited; /* ns, in the probe */
} matched;

#define WINDOW 16 /* places that are looked at, from the hash on */
#define EMPTY UINT64_C(0)
#define BUSY UINT64_C(1) /* being read or written */

static uint64_t keys[MATCHED + WINDOW];
static matched kept[MATCHED + WINDOW];
static uint32_t kept_count;

/* Is any kept? Also while perfkit is off they have to be taken. */
static bool is_any_kept(void)
{
    return __atomic_load_n(&kept_count, __ATOMIC_RELAXED) != 0;
}

static uint64_t key_of(MPI_Message message)
{
    uint64_t key = (uint64_t)(uintptr_t)message;
    return key > BUSY ? key : key + 2;
}

static uint32_t slot_of(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % MATCHED;
}

/* The first place whose key was this one, which is busy now; PKI_MPI_UNKNOWN: there is none. */
static uint32_t seize(uint64_t key, uint64_t from)
{
    for (uint32_t i = slot_of(key), end = i + WINDOW; i < end; i++) {
        uint64_t found = from;
        if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == from &&
            __atomic_compare_exchange_n(&keys[i], &found, BUSY, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return i;
    }
    return PKI_MPI_UNKNOWN;
}

static void release(uint32_t i, uint64_t key)
{
    __atomic_store_n(&keys[i], key, __ATOMIC_RELEASE); /* pairs with seize */
}

/* False: there is no room for it. */
static bool matched_insert(MPI_Message message, const matched *found)
{
    uint64_t key = key_of(message);
    uint32_t i = seize(key, EMPTY);
    if (i == PKI_MPI_UNKNOWN)
        return false;
    kept[i] = *found;
    __atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    release(i, key);
    return true;
}

/* Before MPI is asked to receive it: then the handle may be another one's. */
static matched matched_remove(MPI_Message message)
{
    matched taken = {.waited = 0};
    uint64_t key = key_of(message);
    uint32_t i = is_any_kept() ? seize(key, key) : PKI_MPI_UNKNOWN;
    if (i == PKI_MPI_UNKNOWN)
        return taken;
    taken = kept[i];
    release(i, EMPTY);
    __atomic_sub_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    return taken;
}

/* ---- found first and received then: the receive lasts from the probe ---- */

/* A probe that found nothing, or nobody's message, has begun no receive. */
static void store(matched *found, MPI_Message message, const MPI_Status *status)
{
    if (!found->receiving.comm)
        return;
    matched old = matched_remove(message); /* it was received where nobody saw it */
    if (old.receiving.comm)
        pk_comm_finish(&old.receiving, old.waited);
    pki_mpi_correct(&found->receiving, status);
    if (!matched_insert(message, found))
        pk_comm_finish(&found->receiving, found->waited);
}

PKI_MPI_CALL(Mprobe)
(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Mprobe");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Mprobe(source, tag, comm, message, status);
    pki_mpi_operation wanted = pki_mpi_message(PK_COMM_OP_RECV, 0, MPI_BYTE, source, tag, comm);
    matched found = {.receiving = pki_mpi_start(&wanted)};
    pk_region_begin(&region);
    uint64_t since = found.receiving.comm ? pki_mpi_now_ns() : 0;
    pki_mpi_begin_wait();
    int result = PMPI_Mprobe(source, tag, comm, message, known);
    pki_mpi_end_wait();
    found.waited = found.receiving.comm ? pki_mpi_now_ns() - since : 0;
    if (result == MPI_SUCCESS)
        store(&found, *message, known);
    else
        pk_comm_finish(&found.receiving, found.waited);
    pk_region_end(&region);
    return result;
}

/* Programs ask again and again: only what is found is worth a word. */
PKI_MPI_CALL(Improbe)
(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    int result = PMPI_Improbe(source, tag, comm, flag, message, known);
    if (result == MPI_SUCCESS && *flag) {
        pki_mpi_operation wanted = pki_mpi_message(PK_COMM_OP_RECV, 0, MPI_BYTE, source, tag, comm);
        matched found = {.receiving = pki_mpi_start(&wanted)};
        store(&found, *message, known);
    }
    return result;
}

PKI_MPI_CALL(Mrecv)
(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Mrecv");
    matched found = matched_remove(*message);
    pk_region_begin(&region);
    uint64_t since = found.receiving.comm ? pki_mpi_now_ns() : 0;
    pki_mpi_begin_wait();
    int result = PMPI_Mrecv(buf, count, type, message, status);
    pki_mpi_end_wait();
    if (found.receiving.comm)
        pk_comm_finish(&found.receiving, found.waited + pki_mpi_now_ns() - since);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Imrecv)
(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Imrecv");
    matched found = matched_remove(*message);
    pki_mpi_operation operation = {.comm = found.receiving.comm, .op = PK_COMM_OP_RECV};
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int status = PMPI_Imrecv(buf, count, type, message, request);
    pki_mpi_end_wait();
    pki_mpi_follow(status, request, &operation, &found.receiving);
    if (status == MPI_SUCCESS && found.waited)
        pki_mpi_release(pki_mpi_claim(*request), found.waited);
    pk_region_end(&region);
    return status;
}
