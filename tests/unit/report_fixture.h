/* tests/unit/report_fixture.h - a summary as a training run leaves it, the same on every machine.
 */
#ifndef REPORT_FIXTURE_H
#define REPORT_FIXTURE_H

#include "measure/summary.h"

/* So many steps (16 at least) of about 40 ms, input-bound, with a slow first step, a checkpoint now
 * and then, a loader thread, counters, work done, losses, and names that nobody should have given.
 */
void fixture_train(pki_summary *summary, uint64_t steps);

/* So many steps of 10 ms with two GPUs: 0 as CUPTI has measured it, with many short kernels, copies
 * and waits; 1 by stream spans. */
void fixture_gpu(pki_summary *summary, uint64_t steps);

/* The training run with two communicators, one of which has not completed all.
 * The hostile one's part. */
void fixture_comm(pki_summary *summary);
void fixture_hostile_comm(pki_summary *summary, const char *hostile, pki_dist wild);

/* Of both; hostile NULL: the usual one. */
void fixture_costs(pki_summary *summary, const char *hostile);
void fixture_machine(pki_summary *summary, const char *hostile);

/* Nothing but zeros and NULLs. */
void fixture_empty(pki_summary *summary);

/* Every number at an end of its range, not finite where it can be; every string hostile. */
void fixture_hostile(pki_summary *summary);

#endif
