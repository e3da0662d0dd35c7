/* lib/comm/mpi/wait.c - waiting for requests, and asking for them. The time in here is what the
 * program waited for the operations: exposed. */
#include "comm/mpi/batch.h"

/* MPI has completed all of them, or none; any one; some. */
static void close_all(pki_mpi_batch *b, bool done, const MPI_Request requests[],
                      const MPI_Status *statuses)
{
    pki_mpi_batch_close(b, requests, done ? b->n : 0, NULL, statuses);
}

static void close_any(pki_mpi_batch *b, bool done, const int *index, const MPI_Request requests[],
                      const MPI_Status *status)
{
    bool one = done && *index != MPI_UNDEFINED;
    pki_mpi_batch_close(b, requests, one ? 1 : 0, index, status);
}

static void close_some(pki_mpi_batch *b, bool done, const int *count, const int indices[],
                       const MPI_Request requests[], const MPI_Status *statuses)
{
    bool some = done && *count != MPI_UNDEFINED;
    pki_mpi_batch_close(b, requests, some ? *count : 0, indices, statuses);
}

/* RECEIVED has MPI write its statuses where we can read them; CLOSE may ask whether it is `done`.
 */
#define WAITING(NAME, PARAMS, ARGS, COUNT, REQUESTS, RECEIVED, CLOSE)                              \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pki_mpi_batch b;                                                                           \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME ARGS;                                                               \
        pk_region_begin(&region);                                                                  \
        pki_mpi_batch_open(&b, COUNT, REQUESTS);                                                   \
        RECEIVED;                                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int result = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        bool done = result == MPI_SUCCESS;                                                         \
        CLOSE;                                                                                     \
        pk_region_end(&region);                                                                    \
        return result;                                                                             \
    }

#define ONE_STATUS status = pki_mpi_batch_status(&b, status)
#define STATUSES statuses = pki_mpi_batch_statuses(&b, statuses)

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
