/* lib/comm/mpi/meet.h - have all ranks come to MPI_Finalize?
 *
 * Only then may a rank send another one a message over MPI_COMM_WORLD: one that is still in the
 * program may receive with MPI_ANY_SOURCE and MPI_ANY_TAG. The answer goes by collectives, which
 * no receive of the program's can match. Ranks that were asked for a report of the job call this,
 * others do not, so it may be that some never come.
 */
#pragma once

#include <stdbool.h>

typedef enum pki_mpi_met {
    PKI_MPI_NOT_ALL, /* or not in time */
    PKI_MPI_NOBODY,  /* all are there, but rank 0 has nothing to write */
    PKI_MPI_ALL,
} pki_mpi_met;

/* On rank 0, and all that it reaches in time, the same. writes: matters on rank 0. It takes no
 * longer than pki_mpi_meet_most(seconds); who has waited for a second saves its part
 * (pk_job_save_). */
pki_mpi_met pki_mpi_meet(int rank, int ranks, bool writes, double seconds);
double pki_mpi_meet_most(double seconds);
