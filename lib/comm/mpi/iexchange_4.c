/* lib/comm/mpi/iexchange_4.c - a send and a receive in one request, of MPI 4: two operations that
 * are over when MPI reports to the program that both are. */
#include "comm/mpi/glue.h"

#ifdef PKI_MPI_MAY_LACK_4
#pragma weak PMPI_Isendrecv
#pragma weak PMPI_Isendrecv_replace
#endif

#define EXCHANGE(NAME, PARAMS, ARGS, WHAT)                                                         \
    PKI_MPI_CALL(NAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                 \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME(PKI_MPI_LIST ARGS, request);                                        \
        pki_mpi_exchange what = WHAT;                                                              \
        pk_comm_request receiving = pki_mpi_start(&what.received); /* first, as in messages.c */   \
        pk_comm_request sending = pki_mpi_start(&what.sent);                                       \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME(PKI_MPI_LIST ARGS, request);                                      \
        pki_mpi_end_wait();                                                                        \
        pki_mpi_follow_both(status, request, &sending, &what.received, &receiving);                \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

EXCHANGE(Isendrecv, (PKI_MPI_EXCHANGE_PARAMS), (PKI_MPI_EXCHANGE_ARGS),
         pki_mpi_exchange_of(sendcount, sendtype, dest, sendtag, recvcount, recvtype, source,
                             recvtag, comm))
EXCHANGE(Isendrecv_replace, (PKI_MPI_REPLACE_PARAMS), (PKI_MPI_REPLACE_ARGS),
         pki_mpi_exchange_of(count, type, dest, sendtag, count, type, source, recvtag, comm))
