/* lib/session/job/goodput.h - the state file of the job's life, and the session's account */
#pragma once

#include "core/phase.h"
#include "measure/goodput/goodput.h"
#include "session/session.h"

/* ---- the session's account of goodput (measure/goodput/goodput.h) ---- */

/* The fold hands it each step; before that, and whenever it is read, it takes what has been
 * announced since the last time: phases (core/phase.h), and hangs, which the watchdog finds.
 *
 * All under the drain lock, but for pki_goodput_fill and pki_goodput_hang; those that need the fold
 * lock as well take it, but for pki_goodput_fill, under which it is held. */

/* Of the session up to its moment `now`, ns; last: it ends there. Left as it is where there is no
 * account: no goodput_path, or another rank's. Under the fold lock. */
void pki_goodput_fill(uint64_t now, bool last, pki_goodput_summary *out);

/* Nothing has ended since then, CLOCK_MONOTONIC in ns; 0: the program goes on. The watchdog's. */
void pki_goodput_hang(uint64_t since);
