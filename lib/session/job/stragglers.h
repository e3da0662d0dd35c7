/* lib/session/job/stragglers.h - ranks that are late, while they run: this rank's steps for
 * libpk_mpi, which compares them with the others', and what comes of it (pk/job.h).
 *
 *     fold -> portions of steps -> box -> libpk_mpi, in a call of MPI's
 *     libpk_mpi -> word -> a round later: log, arena, a capture of this rank
 *
 * The program's threads take from the box and leave the word without a lock.
 */
#pragma once

#include "session/session.h"

/* In each round, behind folding; under the drain lock. */
void pki_stragglers_round(pki_session *session);

/* In each round of perfkit's own thread, without a lock. */
void pki_stragglers_judge(void);

void pki_stragglers_after_fork(void);
