/* lib/comm/mpi/request.h - which of MPI's requests is which operation of perfkit's.
 *
 * A table of PKI_MPI_REQUESTS places, without a lock: a handle's place is found by its hash, and
 * whoever changes an entry has claimed its key with one compare-and-swap. MPI forbids two threads
 * to complete one request, so nobody waits for anybody.
 *
 * A wait claims its requests before it asks MPI, since a handle may be another request's as soon as
 * MPI has answered; what is not complete then is let go of. Some MPIs give one handle to all
 * operations that are complete from the start: when a handle comes again, the earlier operation is
 * over.
 *
 * Beyond the table's room an operation counts as over when the call that started it returns, and as
 * one more of the counter "MPI requests not followed".
 */
#pragma once

#include <time.h>

#include "comm/mpi/amount.h"

#define PKI_MPI_REQUESTS 32768
#define PKI_MPI_UNKNOWN UINT32_MAX

/* What is started, perhaps again and again. comm NULL: nothing that perfkit knows of. */
typedef struct pki_mpi_operation {
    pk_comm *comm;
    pk_comm_op op;
    pki_mpi_amount amount;
    int32_t peer;
    int32_t tag; /* of a message; -1: none, or not known yet */
} pki_mpi_operation;

static inline pk_comm_request pki_mpi_start(const pki_mpi_operation *o)
{
    pk_comm_request started =
        pk_comm_start(o->comm, o->op, o->amount.type, o->amount.count, o->peer);
    pk_comm_set_request_tag(&started, o->tag);
    return started;
}

/* Of a receive that was not cancelled: only by its status is it known who sent it, and how much. */
void pki_mpi_correct(pk_comm_request *started, const MPI_Status *status);

/* For how long the program waits. */
static inline uint64_t pki_mpi_now_ns(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* MPI has answered the call that started it with this status: from now on the request is followed,
 * or, if that went wrong, over. */
void pki_mpi_follow(int status, const MPI_Request *request, const pki_mpi_operation *operation,
                    pk_comm_request *started);

/* A request that is a send and a receive, whose status is that of the receive. Either may be none.
 */
void pki_mpi_follow_both(int status, const MPI_Request *request, pk_comm_request *sending,
                         const pki_mpi_operation *receive, pk_comm_request *receiving);

/* A persistent request: not started yet. */
void pki_mpi_insert(const MPI_Request *request, const pki_mpi_operation *operation);

/* The entry of a request, for this thread alone until it is released or finished; PKI_MPI_UNKNOWN
 * for one that is not followed. */
uint32_t pki_mpi_claim(MPI_Request request);

/* Is it a receive that has been started? Its status says what came. */
bool pki_mpi_receives(uint32_t entry);

/* A persistent one is started. */
void pki_mpi_restart(uint32_t entry);

/* Not complete yet; the program has waited for it once more. */
void pki_mpi_release(uint32_t entry, uint64_t waited_ns);

/* Complete. status: of a receive, else NULL. A persistent one stays. */
void pki_mpi_complete(uint32_t entry, const MPI_Status *status, uint64_t waited_ns);

/* The program gives the handle back. */
void pki_mpi_drop(uint32_t entry);
