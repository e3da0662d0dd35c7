/* lib/comm/mpi/messages.c - requests, and messages: calls that return when the buffer may be used
 * again, calls that return at once, requests to be started later, a send and a receive in one, and
 * those that a probe has found. */
#include <pk/counter.h>

#include <stddef.h>
#include <stdlib.h>

#include "comm/mpi/glue.h"

/* ---- the table ---- */

/* A table of REQUESTS places, without a lock: a handle's place is found by its hash, and whoever
 * changes an entry has claimed its key with one compare-and-swap. MPI forbids two threads to
 * complete one request, so nobody waits for anybody.
 *
 * A wait claims its requests before it asks MPI, since a handle may be another request's as soon as
 * MPI has answered; what is not complete then is let go of. Some MPIs give one handle to all
 * operations that are complete from the start: when a handle comes again, the earlier operation is
 * over.
 *
 * Beyond the table's room an operation counts as over when the call that started it returns, and as
 * one more of the counter "MPI requests not followed". */

#define REQUESTS 32768
#define WINDOW 64 /* places that are looked at, from the hash on: eight cache lines of keys */
#define EMPTY UINT64_C(0)
#define BUSY UINT64_C(1) /* being written */
#define CLAIMED (UINT64_C(1) << 63)

typedef struct entry {
    pk_comm_request request;
    pki_mpi_operation operation;
    uint64_t waited;
    bool is_persistent;
    bool is_exchange, sends; /* a send and a receive; the send is not to nobody */
    pk_comm_request sending; /* beside the receive above */
} entry;

static uint64_t keys[REQUESTS + WINDOW];
static entry entries[REQUESTS + WINDOW];
static uint64_t not_followed;
static pk_counter too_many = PK_COUNTER("MPI requests not followed", "");

/* A handle is a pointer in one MPI and a number of 32 bits in the other: never 0 or 1, and the
 * highest bit is free. */
static uint64_t key_of(MPI_Request request)
{
    uint64_t key = (uint64_t)(uintptr_t)request & ~CLAIMED;
    return key > BUSY ? key : key + 2;
}

static uint32_t slot_of(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % REQUESTS;
}

static bool swap(uint32_t i, uint64_t from, uint64_t to)
{
    return __atomic_load_n(&keys[i], __ATOMIC_RELAXED) == from &&
           __atomic_compare_exchange_n(&keys[i], &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static void set_key(uint32_t i, uint64_t key)
{
    __atomic_store_n(&keys[i], key, __ATOMIC_RELEASE); /* pairs with swap */
}

/* The first place in the window whose key it could change, or PKI_MPI_UNKNOWN. */
static uint32_t swap_first(uint64_t key, uint64_t from, uint64_t to)
{
    uint32_t first = slot_of(key);
    for (uint32_t i = first; i < first + WINDOW; i++)
        if (swap(i, from, to))
            return i;
    return PKI_MPI_UNKNOWN;
}

/* The entry of a request, for this thread alone until it is released or finished; PKI_MPI_UNKNOWN
 * for one that is not followed. */
static uint32_t pki_mpi_claim(MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return PKI_MPI_UNKNOWN;
    uint64_t key = key_of(request);
    return swap_first(key, key, key | CLAIMED);
}

static void finish(uint32_t i, uint64_t waited_ns)
{
    pk_comm_finish(&entries[i].request, entries[i].waited + waited_ns);
    if (entries[i].sends)
        pk_comm_finish(&entries[i].sending, entries[i].waited + waited_ns);
    entries[i].waited = 0;
}

/* The program gives the handle back. */
static void drop(uint32_t i)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    finish(i, 0);
    set_key(i, EMPTY);
}

static bool enter(MPI_Request request, const entry *e)
{
    uint64_t key = key_of(request);
    uint32_t old = swap_first(key, key, key | CLAIMED);
    if (old != PKI_MPI_UNKNOWN)
        drop(old);
    uint32_t i = swap_first(key, EMPTY, BUSY);
    if (i == PKI_MPI_UNKNOWN)
        return false;
    entries[i] = *e;
    set_key(i, key);
    return true;
}

static void refuse(pk_comm_request *started)
{
    uint64_t n = __atomic_add_fetch(&not_followed, 1, __ATOMIC_RELAXED);
    pk_counter_set(&too_many, (double)n);
    pk_comm_finish(started, 0);
}

void pki_mpi_follow(int status, const MPI_Request *request, const pki_mpi_operation *operation,
                    pk_comm_request *started)
{
    if (!started->comm)
        return;
    if (status != MPI_SUCCESS || *request == MPI_REQUEST_NULL)
        pk_comm_finish(started, 0);
    else if (!enter(*request, &(entry){.request = *started, .operation = *operation}))
        refuse(started);
}

void pki_mpi_follow_both(int status, const MPI_Request *request, pk_comm_request *sending,
                         const pki_mpi_operation *receive, pk_comm_request *receiving)
{
    const entry both = {.request = *receiving,
                        .operation = *receive,
                        .is_exchange = true,
                        .sends = sending->comm != NULL,
                        .sending = *sending};
    bool over = status != MPI_SUCCESS || *request == MPI_REQUEST_NULL;
    if (!sending->comm && !receiving->comm)
        return;
    if (!over && enter(*request, &both))
        return;
    pk_comm_finish(sending, 0);
    if (over)
        pk_comm_finish(receiving, 0);
    else
        refuse(receiving);
}

/* A persistent request: not started yet. */
static void pki_mpi_insert(const MPI_Request *request, const pki_mpi_operation *operation)
{
    pk_comm_request none = {0};
    if (*request == MPI_REQUEST_NULL || !operation->comm)
        return;
    if (!enter(*request, &(entry){.operation = *operation, .is_persistent = true}))
        refuse(&none);
}

/* Is it a receive that has been started? Its status says what came. */
static bool is_receive(uint32_t i)
{
    return i != PKI_MPI_UNKNOWN && entries[i].request.comm &&
           entries[i].operation.op == PK_COMM_OP_RECV;
}

static void release(uint32_t i)
{
    set_key(i, __atomic_load_n(&keys[i], __ATOMIC_RELAXED) & ~CLAIMED);
}

/* A persistent one is started. */
static void restart(uint32_t i)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    entries[i].request = pki_mpi_start(&entries[i].operation);
    entries[i].waited = 0;
    release(i);
}

/* Not complete yet; the program has waited for it once more. */
static void pki_mpi_release(uint32_t i, uint64_t waited_ns)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    entries[i].waited += waited_ns;
    release(i);
}

/* ---- the end of one ---- */

/* Of a receive that was not cancelled: only by its status is it known who sent it, and how much. */
static void pki_mpi_correct(pk_comm_request *started, const MPI_Status *status)
{
    pk_comm_correct(started, pki_mpi_bytes_got(status), status->MPI_SOURCE);
    pk_comm_set_request_tag(started, status->MPI_TAG);
}

/* MPICH 4.0 gives an MPI_Isendrecv the status of whatever had its request before: also one that
 * fits, of other bytes. Which of its later versions and relatives do not is not known. */
#ifdef MPICH_VERSION
#define HAS_STATUS(E) (!(E)->is_exchange)
#else
#define HAS_STATUS(E) true
#endif

static void apply_status(entry *e, const MPI_Status *status)
{
    int cancelled = 0;
    if (!HAS_STATUS(e))
        return;
    PMPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        pk_comm_correct(&e->request, 0, e->operation.peer);
    else
        pki_mpi_correct(&e->request, status);
}

/* Complete. status: of a receive, else NULL. A persistent one stays. */
static void complete(uint32_t i, const MPI_Status *status, uint64_t waited_ns)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    if (status && is_receive(i))
        apply_status(&entries[i], status);
    finish(i, waited_ns);
    if (entries[i].is_persistent)
        release(i);
    else
        set_key(i, EMPTY);
}

/* ---- the requests of one wait or test ---- */

/* Claimed before MPI is asked, and each completed or let go of when it has answered. */

#define FEW 32 /* without an allocation */

typedef struct batch {
    int n;             /* 0: none of them is followed, or no memory; then all else is nothing */
    bool receives;     /* one is a receive: statuses are needed */
    uint32_t *entries; /* by index, PKI_MPI_UNKNOWN for those that are not followed */
    MPI_Status *own;   /* where the program wants none */
    uint64_t start;
    uint32_t few[FEW];
    MPI_Status few_own[FEW];
} batch;

static void batch_release(batch *b)
{
    if (b->entries != b->few)
        free(b->entries);
    if (b->own != b->few_own)
        free(b->own);
    b->n = 0;
}

static void batch_open(batch *b, int n, const MPI_Request requests[])
{
    bool any = false;
    b->n = 0;
    b->receives = false;
    b->own = b->few_own;
    b->entries = n > FEW ? malloc((size_t)n * sizeof *b->entries) : b->few;
    if (!b->entries)
        return;
    for (int i = 0; i < n; i++) {
        b->entries[i] = pki_mpi_claim(requests[i]);
        any = any || b->entries[i] != PKI_MPI_UNKNOWN;
        b->receives = b->receives || is_receive(b->entries[i]);
    }
    if (!any) {
        batch_release(b);
        return;
    }
    b->n = n;
    b->start = pki_mpi_now_ns();
}

/* What to give to MPI for statuses: the program's, or room of one's own if they are needed. */
static MPI_Status *batch_statuses(batch *b, MPI_Status *wanted)
{
    if (wanted != MPI_STATUSES_IGNORE || !b->n || !b->receives)
        return wanted;
    if (b->n > FEW)
        b->own = malloc((size_t)b->n * sizeof *b->own);
    return b->own ? b->own : wanted;
}

/* The same for calls that have one status, whatever the number of requests. */
static MPI_Status *batch_status(batch *b, MPI_Status *wanted)
{
    if (wanted != MPI_STATUS_IGNORE || !b->n || !b->receives)
        return wanted;
    return b->few_own;
}

/* MPI has answered: the requests of these indices (NULL: the first done) are complete, with
 * statuses in that order. What MPI has taken back besides is complete too, the rest is let go of.
 */
static void batch_close(batch *b, const MPI_Request requests[], int done, const int indices[],
                        const MPI_Status *statuses)
{
    if (!b->n)
        return;
    uint64_t waited = pki_mpi_now_ns() - b->start;
    for (int k = 0; k < done; k++) {
        int i = indices ? indices[k] : k;
        bool known = statuses != MPI_STATUSES_IGNORE;
        complete(b->entries[i], known ? &statuses[k] : NULL, waited);
        b->entries[i] = PKI_MPI_UNKNOWN;
    }
    for (int i = 0; i < b->n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            complete(b->entries[i], NULL, waited);
        else
            pki_mpi_release(b->entries[i], waited);
    }
    batch_release(b);
}

/* ---- waiting for requests, and asking for them ---- */

/* The time in here is what the program waited for the operations: exposed. */

/* MPI has completed all of them, or none; any one; some. */
static void close_all(batch *b, bool done, const MPI_Request requests[], const MPI_Status *statuses)
{
    batch_close(b, requests, done ? b->n : 0, NULL, statuses);
}

static void close_any(batch *b, bool done, const int *index, const MPI_Request requests[],
                      const MPI_Status *status)
{
    bool one = done && *index != MPI_UNDEFINED;
    batch_close(b, requests, one ? 1 : 0, index, status);
}

static void close_some(batch *b, bool done, const int *count, const int indices[],
                       const MPI_Request requests[], const MPI_Status *statuses)
{
    bool some = done && *count != MPI_UNDEFINED;
    batch_close(b, requests, some ? *count : 0, indices, statuses);
}

/* RECEIVED has MPI write its statuses where we can read them; CLOSE may ask whether it is `done`.
 */
#define WAITING(NAME, PARAMS, ARGS, COUNT, REQUESTS, RECEIVED, CLOSE)                              \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        batch b;                                                                                   \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME ARGS;                                                               \
        pk_region_begin(&region);                                                                  \
        batch_open(&b, COUNT, REQUESTS);                                                           \
        RECEIVED;                                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int result = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        bool done = result == MPI_SUCCESS;                                                         \
        CLOSE;                                                                                     \
        pk_region_end(&region);                                                                    \
        return result;                                                                             \
    }

#define ONE_STATUS status = batch_status(&b, status)
#define STATUSES statuses = batch_statuses(&b, statuses)

WAITING(Wait, (MPI_Request * request, MPI_Status *status), (request, status), 1, request,
        ONE_STATUS, close_all(&b, done, request, status))
WAITING(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), 1,
        request, ONE_STATUS, close_all(&b, done &&*flag, request, status))
WAITING(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
        (count, requests, statuses), count, requests, STATUSES,
        close_all(&b, done, requests, statuses))
WAITING(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
        (count, requests, flag, statuses), count, requests, STATUSES,
        close_all(&b, done &&*flag, requests, statuses))
WAITING(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
        (count, requests, index, status), count, requests, ONE_STATUS,
        close_any(&b, done, index, requests, status))
WAITING(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
        (count, requests, index, flag, status), count, requests, ONE_STATUS,
        close_any(&b, done &&*flag, index, requests, status))
WAITING(Waitsome, (int count, MPI_Request requests[], int *n, int indices[], MPI_Status statuses[]),
        (count, requests, n, indices, statuses), count, requests, STATUSES,
        close_some(&b, done, n, indices, requests, statuses))
WAITING(Testsome, (int count, MPI_Request requests[], int *n, int indices[], MPI_Status statuses[]),
        (count, requests, n, indices, statuses), count, requests, STATUSES,
        close_some(&b, done, n, indices, requests, statuses))

/* ---- starting them again, and giving them back ---- */

PKI_MPI_CALL(Start)(MPI_Request *request)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Start");
    if (!pki_mpi_is_on())
        return PMPI_Start(request);
    restart(pki_mpi_claim(*request));
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int status = PMPI_Start(request);
    pki_mpi_end_wait();
    pk_region_end(&region);
    return status;
}

PKI_MPI_CALL(Startall)(int count, MPI_Request requests[])
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Startall");
    if (!pki_mpi_is_on())
        return PMPI_Startall(count, requests);
    for (int i = 0; i < count; i++)
        restart(pki_mpi_claim(requests[i]));
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int status = PMPI_Startall(count, requests);
    pki_mpi_end_wait();
    pk_region_end(&region);
    return status;
}

/* MPI will not report when it is complete, so it is over as far as this process knows. Also while
 * perfkit is off: the handle may be another one's next. */
PKI_MPI_CALL(Request_free)(MPI_Request *request)
{
    uint32_t i = pki_mpi_claim(*request);
    int status = PMPI_Request_free(request);
    if (status == MPI_SUCCESS)
        drop(i);
    else
        pki_mpi_release(i, 0);
    return status;
}

PKI_MPI_REGION_ONLY(Cancel, (MPI_Request * request), (request))

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

/* As in communicator.c, the operation starts outside the call's own region. */
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
 * table without a lock, as requests are. Of a message that finds no room there, the calls are
 * regions and no more. */

#define MATCHED 1024

/* None: receiving.comm is NULL. */
typedef struct matched {
    pk_comm_request receiving;
    uint64_t waited; /* ns, in the probe */
} matched;

#define MESSAGE_WINDOW 16 /* places that are looked at, from the hash on */

static uint64_t message_keys[MATCHED + MESSAGE_WINDOW];
static matched kept[MATCHED + MESSAGE_WINDOW];
static uint32_t kept_count;

/* Is any kept? Also while perfkit is off they have to be taken. */
static bool is_any_kept(void)
{
    return __atomic_load_n(&kept_count, __ATOMIC_RELAXED) != 0;
}

static uint64_t message_key(MPI_Message message)
{
    uint64_t key = (uint64_t)(uintptr_t)message;
    return key > BUSY ? key : key + 2;
}

static uint32_t message_slot(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % MATCHED;
}

/* The first place whose key was this one, which is busy now; PKI_MPI_UNKNOWN: there is none. */
static uint32_t seize(uint64_t key, uint64_t from)
{
    for (uint32_t i = message_slot(key), end = i + MESSAGE_WINDOW; i < end; i++) {
        uint64_t found = from;
        if (__atomic_load_n(&message_keys[i], __ATOMIC_RELAXED) == from &&
            __atomic_compare_exchange_n(&message_keys[i], &found, BUSY, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return i;
    }
    return PKI_MPI_UNKNOWN;
}

static void release_message(uint32_t i, uint64_t key)
{
    __atomic_store_n(&message_keys[i], key, __ATOMIC_RELEASE); /* pairs with seize */
}

/* False: there is no room for it. */
static bool matched_insert(MPI_Message message, const matched *found)
{
    uint64_t key = message_key(message);
    uint32_t i = seize(key, EMPTY);
    if (i == PKI_MPI_UNKNOWN)
        return false;
    kept[i] = *found;
    __atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    release_message(i, key);
    return true;
}

/* Before MPI is asked to receive it: then the handle may be another one's. */
static matched matched_remove(MPI_Message message)
{
    matched taken = {.waited = 0};
    uint64_t key = message_key(message);
    uint32_t i = is_any_kept() ? seize(key, key) : PKI_MPI_UNKNOWN;
    if (i == PKI_MPI_UNKNOWN)
        return taken;
    taken = kept[i];
    release_message(i, EMPTY);
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
