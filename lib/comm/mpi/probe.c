/* lib/comm/mpi/probe.c - messages that are found first and received then: the receive lasts from
 * the probe that found it. */
#include "comm/mpi/matched.h"
#include "comm/mpi/sends.h"

/* A probe that found nothing, or nobody's message, has begun no receive. */
static void store(pki_mpi_matched *found, MPI_Message message, const MPI_Status *status)
{
    if (!found->receiving.comm)
        return;
    pki_mpi_matched old = pki_mpi_matched_remove(message); /* it was received where nobody saw it */
    if (old.receiving.comm)
        pk_comm_finish(&old.receiving, old.waited);
    pki_mpi_correct(&found->receiving, status);
    if (!pki_mpi_matched_insert(message, found))
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
    pki_mpi_matched found = {.receiving = pki_mpi_start(&wanted)};
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
        pki_mpi_matched found = {.receiving = pki_mpi_start(&wanted)};
        store(&found, *message, known);
    }
    return result;
}

PKI_MPI_CALL(Mrecv)
(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Mrecv");
    pki_mpi_matched found = pki_mpi_matched_remove(*message);
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
    pki_mpi_matched found = pki_mpi_matched_remove(*message);
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
