/* lib/comm/mpi/patience.h - waiting for other ranks, but not for ever.
 *
 * Who waits sleeps between looks, so ranks that share a processor get on. A request that is given
 * up stays with MPI: what it writes to must stay, too.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

/* CLOCK_MONOTONIC. */
double pki_mpi_seconds(void);

/* False: it was not complete within so many seconds; also if MPI says that it has failed. */
bool pki_mpi_wait(MPI_Request *request, MPI_Status *status, double seconds);

/* PK_MPI_PATIENCE, how long other ranks are waited for where the program does not wait for them:
 * 10 seconds. */
double pki_mpi_patience(void);
