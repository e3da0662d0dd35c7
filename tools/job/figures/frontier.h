/* tools/job/figures/frontier.h - which stage of which rank the job's steps wait for
 * (arXiv 2606.06751).
 *
 * Each rank gives its stages' times of a block in their order: no clocks are compared. With
 *
 *     F(k) = the maximum over ranks of the time of its stages up to k
 *
 * F(k) - F(k - 1) is what stage k adds to the job's step, beyond what some rank has been at anyway;
 * the rank with the maximum is the one that adds it. These increments add up to F(last), the
 * exposed step: the longest one of all ranks.
 */
#pragma once

#include "job/job.h"

typedef struct job_increment {
    double time;    /* added up over the blocks, ns */
    size_t rank;    /* the place of the one that added most of it... */
    double of_rank; /* ...and how much, ns */
} job_increment;

typedef struct job_frontier {
    double exposed, steps; /* of the job: ns of all steps, and how many */
    job_increment *stages; /* by stage; NULL: there are no steps */
} job_frontier;

job_frontier job_find_frontier(const job *j, const job_loop *loop);
void job_frontier_finish(job_frontier *f);
