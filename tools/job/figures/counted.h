/* tools/job/figures/counted.h - events of calls (costs=hardware,software) over the ranks.
 *
 * A figure of the job is that of all ranks' calls as if they were one run's: with n calls of a
 * rank, instructions i and cycles c of one of them, and e the error of the rank's own figure,
 *
 *     IPC    = sum(n i) / sum(n c)
 *     error  = sqrt(sum((w e)^2)), w = n c / sum(n c)
 *
 * since each rank has drawn its samples by itself; likewise misses, by instructions, and means of a
 * call, by calls. Where a rank's error is not known, the job's is not.
 */
#pragma once

#include "job/job.h"
#include "measure/costs/events.h"
#include "out/json_write.h"

typedef struct job_counted {
    const char *region; /* a rank's */
    uint64_t calls, sampled;
    double time;                                               /* ns, of all calls */
    double value[PKI_EVENT_FIGURES], error[PKI_EVENT_FIGURES]; /* -1: not known */
    job_spread by[PKI_EVENT_FIGURES];
} job_counted;

/* Takes the rows out of the summary. */
void job_counted_move(job_rank *rank, pki_summary *from);
void job_counted_forget(job_rank *rank);

/* By time, most first; to be freed. */
job_counted *job_counted_of(const job *j, size_t *count);

/* A section, and a member; nothing where no rank has counted any. */
void job_counted_text(const job *j, FILE *to);
void job_counted_json(const job *j, size_t most, pki_json *to);
