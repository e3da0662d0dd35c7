/* lib/comm/mpi/wait.c - waiting for requests, and asking for them. The time in here is what the program
 * waited for the operations: exposed. */
#include "comm/mpi/batch.h"

/* ---- all of them: done is everything or nothing ---- */

static void close_all(pki_mpi_batch *b, bool done, const MPI_Request requests[],
                      const MPI_Status *statuses)
{
    pki_mpi_batch_close(b, requests, done ? b->n : 0, NULL, statuses);
}

PKI_MPI_CALL(Wait)(MPI_Request *request, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Wait");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Wait(request, status);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, 1, request);
    MPI_Status *told = pki_mpi_batch_status(&b, status);
    int result = PMPI_Wait(request, told);
    close_all(&b, result == MPI_SUCCESS, request, told);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Test)(MPI_Request *request, int *flag, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Test");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Test(request, flag, status);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, 1, request);
    MPI_Status *told = pki_mpi_batch_status(&b, status);
    int result = PMPI_Test(request, flag, told);
    close_all(&b, result == MPI_SUCCESS && *flag, request, told);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Waitall)(int count, MPI_Request requests[], MPI_Status statuses[])
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Waitall");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Waitall(count, requests, statuses);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, count, requests);
    MPI_Status *told = pki_mpi_batch_statuses(&b, statuses);
    int result = PMPI_Waitall(count, requests, told);
    close_all(&b, result == MPI_SUCCESS, requests, told);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Testall)(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Testall");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Testall(count, requests, flag, statuses);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, count, requests);
    MPI_Status *told = pki_mpi_batch_statuses(&b, statuses);
    int result = PMPI_Testall(count, requests, flag, told);
    close_all(&b, result == MPI_SUCCESS && *flag, requests, told);
    pk_region_end(&region);
    return result;
}

/* ---- one of them ---- */

static void close_any(pki_mpi_batch *b, bool done, const int *index, const MPI_Request requests[],
                      const MPI_Status *status)
{
    bool one = done && *index != MPI_UNDEFINED;
    pki_mpi_batch_close(b, requests, one ? 1 : 0, index, status);
}

PKI_MPI_CALL(Waitany)(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Waitany");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Waitany(count, requests, index, status);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, count, requests);
    MPI_Status *told = pki_mpi_batch_status(&b, status);
    int result = PMPI_Waitany(count, requests, index, told);
    close_any(&b, result == MPI_SUCCESS, index, requests, told);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Testany)(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Testany");
    pki_mpi_batch b;
    if (!pki_mpi_is_on())
        return PMPI_Testany(count, requests, index, flag, status);
    pk_region_begin(&region);
    pki_mpi_batch_open(&b, count, requests);
    MPI_Status *told = pki_mpi_batch_status(&b, status);
    int result = PMPI_Testany(count, requests, index, flag, told);
    close_any(&b, result == MPI_SUCCESS && *flag, index, requests, told);
    pk_region_end(&region);
    return result;
}

/* ---- some of them ---- */

static void close_some(pki_mpi_batch *b, bool done, const int *count, const int indices[],
                       const MPI_Request requests[], const MPI_Status *statuses)
{
    bool some = done && *count != MPI_UNDEFINED;
    pki_mpi_batch_close(b, requests, some ? *count : 0, indices, statuses);
}

#define SOME(NAME)                                                                                 \
    PKI_MPI_CALL(NAME)                                                                             \
    (int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])           \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pki_mpi_batch b;                                                                           \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(count, requests, done, indices, statuses);                          \
        pk_region_begin(&region);                                                                  \
        pki_mpi_batch_open(&b, count, requests);                                                   \
        MPI_Status *told = pki_mpi_batch_statuses(&b, statuses);                                   \
        int result = PMPI_##NAME(count, requests, done, indices, told);                            \
        close_some(&b, result == MPI_SUCCESS, done, indices, requests, told);                      \
        pk_region_end(&region);                                                                    \
        return result;                                                                             \
    }

SOME(Waitsome)
SOME(Testsome)
