/* lib/comm/mpi/identity.h - which communicator it is, the same on all its ranks, and who they are.
 *
 * Nothing is sent for it. All members know the group, as ranks of MPI_COMM_WORLD; and all of them
 * make and free the communicators of a group in the same order, since each of these calls is
 * collective. So a communicator is its group, and the smallest number that no other living one of
 * the same group has when it is made. What is made and freed in a loop is one and the same.
 *
 * Two cases are beyond that: several communicators of one group that were made while perfkit was
 * off, or by threads at the same time, and that ranks use first in different orders.
 *
 * Threads: any. Of a group with members outside MPI_COMM_WORLD (MPI_Comm_spawn) nothing is known.
 */
#pragma once

#include "comm/mpi/glue.h"

typedef struct pki_mpi_identity {
    uint64_t group;  /* hash of its ranks; 0: unknown */
    uint32_t number; /* among those of the same group; 0: MPI_COMM_WORLD and MPI_COMM_SELF */
} pki_mpi_identity;

/* Of a communicator that has none yet: from now on its number is taken. */
pki_mpi_identity pki_mpi_identify(MPI_Comm comm);

/* It is freed: its number is the next one's. */
void pki_mpi_identity_release(const pki_mpi_identity *identity);

/* For pk_comm_create; 0: unknown. */
uint64_t pki_mpi_identity_id(const pki_mpi_identity *identity);

/* Who the peers of its messages are, as ranks of MPI_COMM_WORLD: *count of them, of the remote
 * group if it is an inter-communicator. To be freed; NULL: unknown. */
int *pki_mpi_peers(MPI_Comm comm, int *count);
