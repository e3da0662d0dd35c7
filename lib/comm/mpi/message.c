/* lib/comm/mpi/message.c - messages whose calls return when the buffer may be used again.
 *
 * A receive is described when it is over: only then is it known how much came, and from whom.
 */
#include "comm/mpi/sends.h"

#define SEND(NAME, INAME, INIT)                                                                    \
    PKI_MPI_CALL(NAME)(PKI_MPI_SEND_PARAMS)                                                        \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(buf, count, type, dest, tag, comm);                                 \
        pki_mpi_operation sent = pki_mpi_message(PK_COMM_OP_SEND, count, type, dest, tag, comm);   \
        pk_region_begin(&region);                                                                  \
        pki_mpi_describe(&region, &sent);                                                          \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME(buf, count, type, dest, tag, comm);                               \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

PKI_MPI_SENDS(SEND)

PKI_MPI_CALL(Recv)(PKI_MPI_RECV_PARAMS, MPI_Status *status)
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
        pki_mpi_describe_received(&region, type, comm, known);
    pk_region_end(&region);
    return result;
}

/* Waiting for a message without taking it. */
PKI_MPI_REGION_ONLY(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
                    (source, tag, comm, status))
