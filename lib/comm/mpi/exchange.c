/* lib/comm/mpi/exchange.c - a send and a receive in one call, which returns when both are done. */
#include "comm/mpi/exchange.h"

typedef struct under_way {
    pki_mpi_exchange what;
    pk_comm_request receiving;
    uint64_t since;
} under_way;

/* The receive starts outside the call's own region, as in imessage.c. */
static under_way begin(pk_region *region, pki_mpi_exchange what)
{
    under_way u = {.what = what};
    if (what.sent.comm)
        u.receiving = pki_mpi_start(&what.received);
    pk_region_begin(region);
    pki_mpi_describe(region, &what.sent);
    u.since = u.receiving.comm ? pki_mpi_now_ns() : 0;
    pki_mpi_begin_wait();
    return u;
}

/* It ends within the call, where arrows in a trace go to. */
static void end(pk_region *region, under_way *u, int result, MPI_Datatype type, MPI_Comm comm,
                const MPI_Status *status)
{
    bool done = result == MPI_SUCCESS;
    pki_mpi_end_wait();
    if (u->receiving.comm) {
        if (done)
            pki_mpi_correct(&u->receiving, status);
        pk_comm_finish(&u->receiving, pki_mpi_now_ns() - u->since);
    } else if (done && !u->what.sent.comm && u->what.received.comm) {
        pki_mpi_describe_received(region, type, comm, status);
    }
    pk_region_end(region);
}

PKI_MPI_CALL(Sendrecv)(PKI_MPI_EXCHANGE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, status);
    under_way u = begin(&region, pki_mpi_exchange_of(sendcount, sendtype, dest, sendtag, recvcount,
                                                     recvtype, source, recvtag, comm));
    int result = PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, known);
    end(&region, &u, result, recvtype, comm, known);
    return result;
}

PKI_MPI_CALL(Sendrecv_replace)(PKI_MPI_REPLACE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv_replace");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, status);
    under_way u = begin(&region, pki_mpi_exchange_of(count, type, dest, sendtag, count, type,
                                                     source, recvtag, comm));
    int result = PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, known);
    end(&region, &u, result, type, comm, known);
    return result;
}
