/* tools/job/figures/pop.h - efficiency as the POP centre defines it (co-design.pop-coe.eu/metrics).
 *
 *     useful          a rank's own time in the steps: without the stages that wait (comm, wait)
 *     runtime         the steps of the rank that took longest for them
 *     load balance                LB   = mean(useful) / max(useful)
 *     communication efficiency    CommE = max(useful) / runtime
 *     parallel efficiency         PE   = LB x CommE
 *     serialisation efficiency    SerE = max(useful) / runtime on an ideal network
 *     transfer efficiency         TE   = runtime on an ideal network / runtime;  CommE = SerE x TE
 *
 * The runtime on an ideal network is not simulated. What is taken off the runtime for it is, in
 * each block, the waiting of the rank that waits least: who arrives last at a collective waits for
 * nobody, so all that it waits is transfer. That is exact where a step has one collective over all
 * ranks, and no more than a bound where it has several with a different last rank each.
 */
#pragma once

#include "job/job.h"

#define JOB_ACCEPTABLE 0.8 /* of each of them, as POP says */

typedef struct job_pop {
    bool known;
    double runtime, useful_mean, useful_max, transfer; /* ns */
    int32_t useful_max_rank;
    double parallel, load_balance, communication;
    const char *why_no_transfer; /* NULL: the next two are known */
    double serialisation, transfer_efficiency;
} job_pop;

job_pop job_find_pop(const job *j, const job_loop *loop);
