/* tools/job/verdicts/costs.h - of those that are late: in which stage, and what it costs the job.
 */
#pragma once

#include "job/verdicts/late.h"

void job_find_costs(const job *j, const uint32_t *roles, job_lateness *l);
