/* lib/comm/mpi/agree.h - do all processes of MPI_COMM_WORLD want the same, before any of them
 * begins a call that would wait for the others?
 *
 * No message and no collective of MPI's can find that out: a process without this library would
 * leave the others waiting, or find what was meant for another. So they ask the launcher, which
 * keeps names (MPI_Publish_name, MPI_Lookup_name: calls that wait for no other rank). Over a
 * binomial tree each rank looks for the names of those below it and then publishes its own; what
 * rank 0 finds it publishes as the decision. Who has waited for PK_MPI_PATIENCE publishes "no" as
 * the decision. The first decision counts for all: launchers refuse a second one, or keep it behind
 * the first; so no rank begins what another one has given up.
 */
#pragma once

/* Behind MPI_Init. `mine` above 0 if all processes have called this with the same variable and
 * number; else 0, and a warning is logged that says why. Waits for others, but not longer than
 * PK_MPI_PATIENCE, and only where some were not asked. */
long pki_mpi_agree(const char *variable, long mine);
