/* lib/comm/mpi/persistent.c - requests that are made once and started again and again, and giving
 * requests back. */
#include "comm/mpi/sends.h"

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

#define SEND(NAME, INAME, INIT) INIT_OF(INIT, PK_COMM_OP_SEND, (PKI_MPI_SEND_PARAMS), dest)

PKI_MPI_SENDS(SEND)
INIT_OF(Recv_init, PK_COMM_OP_RECV, (PKI_MPI_RECV_PARAMS), source)

PKI_MPI_CALL(Start)(MPI_Request *request)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Start");
    if (!pki_mpi_is_on())
        return PMPI_Start(request);
    pki_mpi_restart(pki_mpi_claim(*request));
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
        pki_mpi_restart(pki_mpi_claim(requests[i]));
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
    uint32_t entry = pki_mpi_claim(*request);
    int status = PMPI_Request_free(request);
    if (status == MPI_SUCCESS)
        pki_mpi_drop(entry);
    else
        pki_mpi_release(entry, 0);
    return status;
}

PKI_MPI_REGION_ONLY(Cancel, (MPI_Request * request), (request))
