/* lib/session/job/goodput.h - the state file of the job's life (goodput_path): what this run adds.
 *
 * One process writes it at a time: who holds its lock. Another one waits for it in the collector's
 * rounds, and its run begins when it has it. A line is appended by a single write, when the run
 * begins and ends, when a checkpoint is complete, when the training goes on from elsewhere, and at
 * least once in a thousandth of the run's length (100 ms to 60 s), so that what a kill leaves
 * unknown is a thousandth. A line that a full disk refuses is made up for by the next one.
 *
 * What stands in a line is goodput_account.h's. All under the drain lock.
 */
#pragma once

#include "session/session.h"

/* Once the fold is open. Of several ranks with one file (no %r in its name) the first has it. */
pk_status pki_goodput_open(pki_session *session);
void pki_goodput_round(pki_session *session);
void pki_goodput_end(pki_session *session);
void pki_goodput_abandon(void);
void pki_goodput_after_fork(void);
