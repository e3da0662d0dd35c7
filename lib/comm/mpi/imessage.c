/* lib/comm/mpi/imessage.c - messages that go on when the call has returned. */
#include "comm/mpi/sends.h"

/* As in icollective.c, the operation starts outside the call's own region. */
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

#define SEND(NAME, INAME, INIT) AT_ONCE(INAME, PK_COMM_OP_SEND, (PKI_MPI_SEND_PARAMS), dest)

PKI_MPI_SENDS(SEND)
AT_ONCE(Irecv, PK_COMM_OP_RECV, (PKI_MPI_RECV_PARAMS), source)
