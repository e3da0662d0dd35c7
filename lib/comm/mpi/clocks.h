/* lib/comm/mpi/clocks.h - messages between nodes by which `pk merge` bounds their clocks.
 *
 * With PK_MPI_CLOCKS=1 one rank of each node sends messages of a byte to and fro, over a binomial
 * tree of the nodes, on a communicator of our own: behind MPI_Init and before the end of the
 * session in MPI_Finalize. They are recorded as any message is, and that is all: a message that was
 * received before a moment had been sent before it. PK_MPI_CLOCKS=all: each rank counts as a node
 * (tests).
 *
 * All processes of the job have to have this library, with the same setting, since the communicator
 * is made by all of them. Both moments are the job's own: nobody waits elsewhere.
 */
#pragma once

/* Behind MPI_Init, with the session that it may have started; in MPI_Finalize, while there is one.
 */
void pki_mpi_clocks_begin(void);
void pki_mpi_clocks_end(void);
