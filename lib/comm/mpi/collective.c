/* lib/comm/mpi/collective.c - collectives that return when they are done: each call is a region
 * which is that operation. */
#include "comm/mpi/clocks.h"
#include "comm/mpi/collectives.h"

/* Does nobody leave it before all have come? With nothing to move an MPI need not wait; and all
 * ranks have to say the same of the same call. */
#define ALL_WAIT(OP, COUNT)                                                                        \
    ((OP) == PK_COMM_OP_BARRIER || ((OP) == PK_COMM_OP_ALL_REDUCE && (COUNT) > 0))

#define BLOCKING(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                      \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME ARGS;                                                               \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_amount amount = at ? AMOUNT : OF(0, MPI_BYTE);                                     \
        if (ALL_WAIT(OP, amount.count))                                                            \
            pki_mpi_clocks_meet(comm);                                                             \
        pk_region_begin(&region);                                                                  \
        if (at)                                                                                    \
            pk_comm_call(&region, at->collective, OP, amount.type, amount.count,                   \
                         pki_mpi_peer_of(ROOT));                                                   \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

PKI_MPI_COLLECTIVES(BLOCKING)
