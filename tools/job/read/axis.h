/* tools/job/read/axis.h - the ranks' moments on one time axis.
 *
 * Ranks that share a clock need nothing. Clocks of different nodes are bounded by the collectives
 * that were found at several ranks, as in `pk merge` (merge/clocks.h). Messages bound nothing here:
 * they are known by their number, and one side may have counted some that the other did not.
 */
#pragma once

#include "job/job.h"
#include "merge/clocks.h"

typedef struct job_axis {
    merge_sources sources; /* by rank; its paths and names are the job's */
    merge_clocks clocks;
    double *own; /* by rank: uncertainty of its moments on its own clock, ns */
} job_axis;

/* Of a file anything may be said: times beyond 4 years, in ns, are not believed. */
#define JOB_AXIS_MOST ((uint64_t)1 << 57)
bool job_axis_believes(const pki_sequence_row *row);

/* False: no two ranks can be compared. */
bool job_axis_make(job_axis *a, const job *j);
void job_axis_finish(job_axis *a);

/* A moment of a rank. */
int64_t job_axis_at(const job_axis *a, size_t rank, uint64_t ns);

/* How far moments of two ranks may be wrong against each other; negative: not known. */
int64_t job_axis_doubt(const job_axis *a, size_t one, size_t other);
