/* lib/comm/mpi/icollective.c - collectives that go on when the call has returned: a request that is
 * complete when MPI reports so to the program. */
#include "comm/mpi/collectives.h"
#include "comm/mpi/request.h"

/* The operation starts outside the call's own region: it belongs to the program's around it. */
#define AT_ONCE(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                       \
    PKI_MPI_CALL(INAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #INAME);                            \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                       \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_operation operation = {0};                                                         \
        if (at)                                                                                    \
            operation =                                                                            \
                (pki_mpi_operation){at->collective, OP, AMOUNT, pki_mpi_peer_of(ROOT), -1};        \
        pk_comm_request started = pki_mpi_start(&operation);                                       \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                     \
        pki_mpi_end_wait();                                                                        \
        pki_mpi_follow(status, request, &operation, &started);                                     \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

PKI_MPI_COLLECTIVES(AT_ONCE)
