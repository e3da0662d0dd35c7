/* lib/measure/whole_run.h - what the time of a run without steps goes to.
 *
 * A program that never calls pk_step (an MPI program that libpk_mpi was preloaded into) is one long
 * step: of its main thread, from the session's start to its end, by the kinds of its regions. What
 * is in none of them is untracked; in a program that has only a library's regions that is its own
 * work.
 */
#pragma once

#include "measure/summary.h"

/* When the threads and the steps are in the summary. Of the threads the main one, which has the
 * process's id; the busiest if that has no regions. Empty if there are steps or no regions. False
 * without memory. */
bool pki_whole_run_fill(pki_summary *summary);

/* A thread's time in regions of any kind. */
uint64_t pki_thread_tracked(const pki_thread_row *thread);
