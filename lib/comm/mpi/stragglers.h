/* lib/comm/mpi/stragglers.h - who is late, while the job runs: PK_MPI_STRAGGLERS=N, off by default.
 *
 * Every N steps each rank gives its stages' times to rank 0, and hears what rank 0 has made of all
 * ranks' times before (pk/private.h: 584 bytes there, 2.9 KB back). An exchange is a message of
 * each rank to rank 0 and, when it has all, one back, on a communicator of our own. A rank begins
 * it at the end of a call of MPI's that the program makes, when it has a portion of steps and has
 * heard the word of the exchange before; it asks for it there, 200 us apart at least. Nobody ever
 * waits: a rank that has nothing to give lets the exchange lie, and the others go on without a
 * verdict. Rank 0's verdicts are made by perfkit's own thread.
 *
 *     rank 0's MPI thread  --all ranks' steps-->  its collector  --word-->  the next exchange
 *
 * The end. Who comes to MPI_Finalize gives "ended" in its next exchange, and rank 0's word of that
 * exchange is the last: all have given theirs, and nobody begins another one. Whoever is not heard
 * of within END_SECONDS is not waited for: receives are cancelled.
 *
 * The communicator is made behind MPI_Init by all processes of MPI_COMM_WORLD, once they know that
 * all of them want the same (clocks.h).
 */
#pragma once

#include <mpi.h>

/* Behind MPI_Init; in MPI_Finalize, while there is a session. */
void pki_mpi_stragglers_begin(void);
void pki_mpi_stragglers_end(void);

/* At the end of a call of MPI's. */
extern int pki_mpi_stragglers_live;
void pki_mpi_stragglers_turn_(void);
static inline void pki_mpi_stragglers_turn(void)
{
    if (__builtin_expect(__atomic_load_n(&pki_mpi_stragglers_live, __ATOMIC_RELAXED), 0))
        pki_mpi_stragglers_turn_();
}
