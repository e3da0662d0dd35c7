/* lib/comm/mpi/matched.h - messages that were found by a matching probe and are not received yet.
 *
 * Who receives one gives MPI no communicator, and has waited for the message in the probe. So the
 * receive begins with the probe that finds it, and is kept until then, under MPI's handle, in a
 * table without a lock, as requests are (request.h). Of a message that finds no room there, the
 * calls are regions and no more.
 */
#pragma once

#include "comm/mpi/request.h"

#define PKI_MPI_MATCHED 1024

/* None: receiving.comm is NULL. */
typedef struct pki_mpi_matched {
    pk_comm_request receiving;
    uint64_t waited; /* ns, in the probe */
} pki_mpi_matched;

/* False: there is no room for it. */
bool pki_mpi_matched_insert(MPI_Message message, const pki_mpi_matched *found);

/* Before MPI is asked to receive it: then the handle may be another one's. */
pki_mpi_matched pki_mpi_matched_remove(MPI_Message message);
