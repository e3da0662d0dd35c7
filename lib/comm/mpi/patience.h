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

/* Briskly. False: it was not complete within so many seconds; also if MPI says that it has failed.
 */
bool pki_mpi_wait(MPI_Request *request, MPI_Status *status, double seconds);

/* After some looks it sleeps in between: for a share of the time it has waited; the bounds in s. */
typedef struct pki_mpi_pace {
    int looks;
    double share, least, most;
} pki_mpi_pace;

/* Others wait for this rank in turn; nobody does. */
extern const pki_mpi_pace pki_mpi_brisk, pki_mpi_idle;

/* A message over MPI_COMM_WORLD. False: none has come in time; there is nothing to call off. */
bool pki_mpi_wait_for(int from, int tag, MPI_Message *message, MPI_Status *status,
                      pki_mpi_pace pace, double seconds);

/* PK_MPI_PATIENCE, how long other ranks are waited for where the program does not wait for them:
 * 10 seconds. */
double pki_mpi_patience(void);
