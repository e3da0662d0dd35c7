/* tools/job/verdicts/link_ends.h - a rank at the end of a slow link is not late for that.
 *
 * While it waits in each step, other ranks have its processor and its caches, and what it computes
 * behind that does take longer. Whoever mends the link mends that, so it belongs to the link where
 * it is little beside it: of a rank at either end, with by as late.h has it,
 *
 *     own time x by / (1 + by)  <  JOB_LINK_PART x (transfer - usual) x messages
 *
 * both over the run. On 8 ranks that shared 2 processors, and waited 20 ms a step, the left side
 * was 1 to 4 % of the link's. The share is chosen, not derived.
 */
#pragma once

#include "job/verdicts/late.h"
#include "job/figures/waits.h"

#define JOB_LINK_PART 0.1

/* Takes them off l->late, and notes them in l->at_link. */
void job_excuse_link_ends(const job *j, const job_waits *waits, job_lateness *l);
