/* tools/job/figures/spent.h - what the ranks cost beside time, and the job: MFU, I/O, energy,
 * memory.
 *
 *     MFU of the job = sum of the model's operations / sum of (peak x time of the steps that tell
 * them)
 *
 * Bytes are added up over the ranks. So is the energy of GPUs, which a node's ranks share out. The
 * ranks of a host read the same counters of its processors, so of these each host counts once, by
 * the rank that has seen most of each; "package-0 core" is part of "package-0" and is left out,
 * "package-0 dram" is not and counts, "psys" has the whole machine and is left out. A rank's own
 * figure is what its counters have seen.
 */
#pragma once

#include "job/job.h"
#include "out/json_write.h"

job_spent job_spent_of(const pki_summary *rank);
void job_spent_finish(job_spent *spent);

typedef struct job_costs {
    job_spread by[JOB_COSTS]; /* over the ranks */
    double sum[JOB_COSTS];    /* of MFU and HFU the job's; of memory all ranks'. -1: not measured */
} job_costs;

job_costs job_costs_of(const job *j);

/* A section, and a member of that key; nothing if nothing was measured. */
void job_costs_text(const job *j, FILE *to);
void job_costs_json(const job *j, pki_json *to);

/* Members of a rank's object. */
void job_costs_rank_json(const job_rank *rank, pki_json *to);
