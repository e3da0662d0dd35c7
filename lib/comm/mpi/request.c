#include "comm/mpi/request.h"

#include <stddef.h>

#include <pk/counter.h>

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

static uint64_t keys[PKI_MPI_REQUESTS + WINDOW];
static entry entries[PKI_MPI_REQUESTS + WINDOW];
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
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % PKI_MPI_REQUESTS;
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

uint32_t pki_mpi_claim(MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return PKI_MPI_UNKNOWN;
    uint64_t key = key_of(request);
    return swap_first(key, key, key | CLAIMED);
}

static bool enter(MPI_Request request, const entry *e)
{
    uint64_t key = key_of(request);
    uint32_t old = swap_first(key, key, key | CLAIMED);
    if (old != PKI_MPI_UNKNOWN)
        pki_mpi_drop(old);
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

void pki_mpi_insert(const MPI_Request *request, const pki_mpi_operation *operation)
{
    pk_comm_request none = {0};
    if (*request == MPI_REQUEST_NULL || !operation->comm)
        return;
    if (!enter(*request, &(entry){.operation = *operation, .is_persistent = true}))
        refuse(&none);
}

bool pki_mpi_receives(uint32_t i)
{
    return i != PKI_MPI_UNKNOWN && entries[i].request.comm &&
           entries[i].operation.op == PK_COMM_OP_RECV;
}

static void release(uint32_t i)
{
    set_key(i, __atomic_load_n(&keys[i], __ATOMIC_RELAXED) & ~CLAIMED);
}

void pki_mpi_restart(uint32_t i)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    entries[i].request = pki_mpi_start(&entries[i].operation);
    entries[i].waited = 0;
    release(i);
}

void pki_mpi_release(uint32_t i, uint64_t waited_ns)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    entries[i].waited += waited_ns;
    release(i);
}

/* ---- the end of one ---- */

void pki_mpi_correct(pk_comm_request *started, const MPI_Status *status)
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

static void finish(uint32_t i, uint64_t waited_ns)
{
    pk_comm_finish(&entries[i].request, entries[i].waited + waited_ns);
    if (entries[i].sends)
        pk_comm_finish(&entries[i].sending, entries[i].waited + waited_ns);
    entries[i].waited = 0;
}

void pki_mpi_complete(uint32_t i, const MPI_Status *status, uint64_t waited_ns)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    if (status && pki_mpi_receives(i))
        apply_status(&entries[i], status);
    finish(i, waited_ns);
    if (entries[i].is_persistent)
        release(i);
    else
        set_key(i, EMPTY);
}

void pki_mpi_drop(uint32_t i)
{
    if (i == PKI_MPI_UNKNOWN)
        return;
    finish(i, 0);
    set_key(i, EMPTY);
}
