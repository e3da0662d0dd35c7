/* lib/comm/mpi/exchange.h - a send and a receive in one call: two messages, two operations.
 *
 * The call's region is the send. The receive is beside it, as a request that begins and ends with
 * the call, so that it has its own partner, tag, bytes and number, and is found by whoever sent it.
 * Where there is nobody to send to (MPI_PROC_NULL), the region is the receive.
 */
#pragma once

#include "comm/mpi/sends.h"

#define PKI_MPI_EXCHANGE_PARAMS                                                                    \
    const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,              \
        void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,              \
        MPI_Comm comm
#define PKI_MPI_EXCHANGE_ARGS                                                                      \
    sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
#define PKI_MPI_REPLACE_PARAMS                                                                     \
    void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,       \
        MPI_Comm comm
#define PKI_MPI_REPLACE_ARGS buf, count, type, dest, sendtag, source, recvtag, comm

/* Either has no communicator if there is nobody on its side. */
typedef struct pki_mpi_exchange {
    pki_mpi_operation sent, received;
} pki_mpi_exchange;

static inline pki_mpi_exchange pki_mpi_exchange_of(int sendcount, MPI_Datatype sendtype, int dest,
                                                   int sendtag, int recvcount,
                                                   MPI_Datatype recvtype, int source, int recvtag,
                                                   MPI_Comm comm)
{
    pk_comm_op op = source == MPI_PROC_NULL ? PK_OP_SEND : PK_OP_SEND_RECV;
    return (pki_mpi_exchange){
        pki_mpi_message(op, sendcount, sendtype, dest, sendtag, comm),
        pki_mpi_message(PK_OP_RECV, recvcount, recvtype, source, recvtag, comm)};
}
