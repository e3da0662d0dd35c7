/* lib/comm/mpi/message.c - messages whose calls return when the buffer may be used again.
 *
 * A receive is described when it is over: only then is it known how much came, and from whom.
 */
#include "comm/mpi/sends.h"

static void describe(pk_region *region, const pki_mpi_operation *o)
{
    if (!o->comm)
        return;
    pk_comm_call(region, o->comm, o->op, o->amount.type, o->amount.count, o->peer);
    pk_comm_tag(region, o->tag);
}

#define SEND(NAME, INAME, INIT)                                                                    \
    PKI_MPI_CALL(NAME)(PKI_MPI_SEND_PARAMS)                                                        \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(buf, count, type, dest, tag, comm);                                 \
        pki_mpi_operation sent = pki_mpi_message(PK_OP_SEND, count, type, dest, tag, comm);        \
        pk_region_begin(&region);                                                                  \
        describe(&region, &sent);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME(buf, count, type, dest, tag, comm);                               \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

PKI_MPI_SENDS(SEND)

/* ---- receives ---- */

static void describe_received(pk_region *region, MPI_Datatype type, MPI_Comm comm,
                              const MPI_Status *status)
{
    pki_mpi_operation got =
        pki_mpi_message(PK_OP_RECV, 1, type, status->MPI_SOURCE, status->MPI_TAG, comm);
    got.amount = pki_mpi_amount_got(status, type);
    describe(region, &got);
}

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
        describe_received(&region, type, comm, known);
    pk_region_end(&region);
    return result;
}

/* ---- both at once: what is sent counts, and where nothing is, what came ---- */

static void describe_exchange(pk_region *region, const pki_mpi_operation *sent, int source,
                              MPI_Datatype type, MPI_Comm comm, const MPI_Status *status)
{
    if (sent->comm)
        describe(region, sent);
    else if (source != MPI_PROC_NULL)
        describe_received(region, type, comm, status);
}

static pk_comm_op op_of(int source)
{
    return source == MPI_PROC_NULL ? PK_OP_SEND : PK_OP_SEND_RECV;
}

PKI_MPI_CALL(Sendrecv)
(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                             recvtype, source, recvtag, comm, status);
    pki_mpi_operation sent =
        pki_mpi_message(op_of(source), sendcount, sendtype, dest, sendtag, comm);
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int result = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                               recvtype, source, recvtag, comm, known);
    pki_mpi_end_wait();
    if (result == MPI_SUCCESS)
        describe_exchange(&region, &sent, source, recvtype, comm, known);
    pk_region_end(&region);
    return result;
}

PKI_MPI_CALL(Sendrecv_replace)
(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,
 MPI_Comm comm, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv_replace");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm,
                                     status);
    pki_mpi_operation sent = pki_mpi_message(op_of(source), count, type, dest, sendtag, comm);
    pk_region_begin(&region);
    pki_mpi_begin_wait();
    int result =
        PMPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm, known);
    pki_mpi_end_wait();
    if (result == MPI_SUCCESS)
        describe_exchange(&region, &sent, source, type, comm, known);
    pk_region_end(&region);
    return result;
}

/* ---- waiting for a message without taking it, and taking one that was found ---- */

PKI_MPI_REGION_ONLY(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
                    (source, tag, comm, status))
PKI_MPI_REGION_ONLY(Mprobe,
                    (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
                    (source, tag, comm, message, status))
PKI_MPI_REGION_ONLY(Mrecv,
                    (void *buf, int count, MPI_Datatype type, MPI_Message *message,
                     MPI_Status *status),
                    (buf, count, type, message, status))
