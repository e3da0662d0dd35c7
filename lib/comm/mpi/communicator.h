/* lib/comm/mpi/communicator.h - communicators of MPI, by their handles */
#pragma once

#include "comm/mpi/glue.h"

/* ---- which communicator it is, the same on all its ranks, and who they are ---- */

/* Nothing is sent for it. All members know the group, as ranks of MPI_COMM_WORLD; and all of them
 * make and free the communicators of a group in the same order, since each of these calls is
 * collective. So a communicator is its group, and the smallest number that no other living one of
 * the same group has when it is made. What is made and freed in a loop is one and the same.
 *
 * Two cases are beyond that: several communicators of one group that were made while perfkit was
 * off, or by threads at the same time, and that ranks use first in different orders.
 *
 * Threads: any. Of a group with members outside MPI_COMM_WORLD (MPI_Comm_spawn) nothing is known.
 */

typedef struct pki_mpi_identity {
    uint64_t group;  /* hash of its ranks; 0: unknown */
    uint32_t number; /* among those of the same group; 0: MPI_COMM_WORLD and MPI_COMM_SELF */
} pki_mpi_identity;

/* ---- what perfkit knows of a communicator of MPI's ---- */

/* It is made when the communicator is first used while perfkit is on, hangs on it as an attribute,
 * and goes with it. So it does not matter how a communicator came into being.
 *
 * Threads: any. The look-up takes no lock, and MPI is asked once per thread and communicator. */

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
