/* lib/session/job/goodput_account.h - the session's account of goodput (measure/goodput/account.h).
 *
 * The fold hands it each step; before that, and whenever it is read, it takes what has been
 * announced since the last time: phases (core/phase.h), and hangs, which the watchdog finds.
 *
 * All under the drain lock, but for pki_goodput_fill and pki_goodput_hang; those that need the fold
 * lock as well take it, but for pki_goodput_fill, under which it is held.
 */
#pragma once

#include "core/phase.h"
#include "measure/goodput/line.h"
#include "session/session.h"

/* Once the fold is open. before: how long the process has been there, ns. */
void pki_goodput_account_begin(const pki_session *session, uint64_t before);
void pki_goodput_account_furthest(int64_t steps); /* behind the training in earlier runs */

/* Its figures as they are now; last: the run ends here. What is known of phases with them. */
pki_phases pki_goodput_account_line(bool last, pki_life_line *line);
pki_phases pki_goodput_account_phases(void); /* of the last time that they were known */
void pki_goodput_account_hang(void);         /* between steps */

void pki_goodput_account_stop(void);   /* no further steps; what there is can still be read */
void pki_goodput_account_forget(void); /* nothing can be read any more */
void pki_goodput_account_after_fork(void);

/* Of the session up to its moment `now`, ns; last: it ends there. Left as it is where there is no
 * account: no goodput_path, or another rank's. Under the fold lock. */
void pki_goodput_fill(uint64_t now, bool last, pki_goodput_summary *out);

/* Nothing has ended since then, CLOCK_MONOTONIC in ns; 0: the program goes on. The watchdog's. */
void pki_goodput_hang(uint64_t since);
