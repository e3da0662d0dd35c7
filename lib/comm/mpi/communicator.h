/* lib/comm/mpi/communicator.h - what perfkit knows of a communicator of MPI's.
 *
 * It is made when the communicator is first used while perfkit is on, hangs on it as an attribute,
 * and goes with it. So it does not matter how a communicator came into being.
 *
 * Threads: any. The look-up takes no lock, and MPI is asked once per thread and communicator.
 */
#pragma once

#include "comm/mpi/identity.h"

typedef struct pki_mpi_comm {
    pk_comm *collective; /* what all ranks do in the same order: sequence numbers mean the same */
    pk_comm *messages;   /* point to point */
    int rank, size;      /* of an inter-communicator: in the own group */
    int others;          /* whom a collective goes to: size, or that of the remote group */
    bool is_inter;
    pki_mpi_identity identity;
} pki_mpi_comm;

/* NULL for MPI_COMM_NULL and for what MPI does not know. */
const pki_mpi_comm *pki_mpi_comm_of(MPI_Comm comm);

/* A communicator has been made: now is when all its ranks number it alike. */
void pki_mpi_comm_made(int status, const MPI_Comm *made);
