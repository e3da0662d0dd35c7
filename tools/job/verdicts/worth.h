/* tools/job/verdicts/worth.h - is it worth while to say of a rank that it is late?
 *
 * No mending can make a step shorter by more than what the rank takes longer, its excess: own time
 * x by / (1 + by). With the lower end of the interval for by,
 *
 *     excess >= JOB_LATE_WORTH x the rank's step
 *
 * Where ranks share processors, steps are as long as the others make them. There what counts is
 * what a rank takes from the others, and its cost: by how much its own time, as late.h has it, is
 * longer than that of any rank that is not late, in the mean over the steps; of that the part that
 * it is at the lower end:
 *
 *     cost   >= JOB_LATE_COST x the job's step
 *
 * The two shares are chosen, not derived. A share of the processor time that a rank takes is no
 * measure of what it is late by: ranks that wait by asking (MPICH) run four times as long as they
 * compute.
 */
#pragma once

#include "job/job.h"
#include "job/verdicts/judge.h"

#define JOB_LATE_WORTH 0.005 /* of a step */
#define JOB_LATE_COST 0.001  /* of a step */

typedef struct job_worth {
    const job *of;
    bool by_work;
    const double *values;
    double *longest; /* by block: own time for a piece of work of who is not late */
    double time;     /* of the job's steps */
} job_worth;

/* values: late.h's, which stay the caller's. may_be: by rank, whether it may be late. */
job_worth job_worth_begin(const job *j, const double *values, bool by_work, const bool *may_be);
void job_worth_end(job_worth *w);
bool job_is_worth_while(const job_worth *w, size_t rank, const job_judgement *of);
