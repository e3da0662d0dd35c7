/* lib/comm/mpi/clocks.h - messages between nodes by which `pk merge` bounds their clocks.
 *
 * With PK_MPI_CLOCKS=1 one rank of each node sends messages of a byte to and fro, over a binomial
 * tree of the nodes, on a communicator of our own: behind MPI_Init, before the end of the session
 * in MPI_Finalize, and about every PK_MPI_CLOCKS_SECONDS (600; 0: never) between. They are recorded
 * as any message is, and that is all: a message that was received before a moment had been sent
 * before it. PK_MPI_CLOCKS=all: each rank counts as a node (tests).
 *
 * All processes of the job have to have this library, and the variable, since the communicator is
 * made by all of them; if its values differ nothing is measured. The first and the last moment are
 * the job's own: nobody waits elsewhere. Between them it is measured before a collective of
 * MPI_COMM_WORLD in which all wait for all, and which all know beforehand: a partner that is not
 * there within 50 ms is left alone.
 */
#pragma once

#include <mpi.h>

/* Behind MPI_Init, with the session that it may have started; in MPI_Finalize, while there is one.
 */
void pki_mpi_clocks_begin(void);
void pki_mpi_clocks_end(void);

/* Before a collective that nobody leaves before all have come. */
extern int pki_mpi_clocks_live;
void pki_mpi_clocks_meet_(void);
static inline void pki_mpi_clocks_meet(MPI_Comm comm)
{
    if (__builtin_expect(pki_mpi_clocks_live, 0) && comm == MPI_COMM_WORLD)
        pki_mpi_clocks_meet_();
}
