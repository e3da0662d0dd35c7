/* tools/job/verdicts/crowd.h - hosts whose ranks want more processors than there are.
 *
 * Of a rank's own time in the steps, the share in which it was ready to run and had no processor,
 * where that is told apart from the time that it waits for others (core/ready.h: libpk_mpi does);
 * else of all the run. It is nobody's lateness: late.h leaves it out.
 */
#pragma once

#include "job/job.h"

#define JOB_CROWDED_FROM 0.05

typedef struct job_crowd {
    uint32_t host;
    size_t ranks;       /* of it here */
    double least, most; /* shares, over these */
    size_t most_rank;   /* its place */
} job_crowd;

/* Of all the run; 0 where it was watched for too short a time (measure/overhead.h). */
double job_crowd_share(const pki_processor *p);

/* Is its run delay, ready but without a processor, known of each block of steps (job_loop.ready)?
 */
bool job_has_run_delay(const job_rank *rank);

/* Has the rank lacked a processor for as much of the run, waiting included? */
bool job_is_crowded(const job *j, size_t rank);

/* The largest share of a rank. */
double job_crowd_most(const job *j);

/* One for each host on which a rank's share is JOB_CROWDED_FROM or more; to be freed. */
job_crowd *job_find_crowds(const job *j, size_t *count);
