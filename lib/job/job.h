/* lib/job/job.h - a job of many ranks: what the files of its ranks say, put side by side.
 *
 *     summaries --ranks.c--> the job's ranks, in order, and regions of all of them
 *               --steps.c--> steps of all ranks, block beside block
 *
 * What is made of that are figures (figures/) and verdicts (verdicts/); what is shown of it, forms
 * (forms/). All sums are of integers or in the order of the ranks, so the same files say the same,
 * to the last bit, in whatever order they come.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/text.h"
#include "core/seats.h"
#include "measure/summary.h"
#include "measure/goodput/goodput.h"

#define PKI_JOB_OUTSIDE "(outside regions)"
#define PKI_JOB_NO_RANK INT32_MIN

enum {
    PKI_JOB_MFU,
    PKI_JOB_HFU,
    PKI_JOB_READ, /* bytes of calls */
    PKI_JOB_WRITTEN,
    PKI_JOB_DEVICE_READ, /* bytes of devices */
    PKI_JOB_DEVICE_WRITTEN,
    PKI_JOB_JOULES,
    PKI_JOB_RESIDENT, /* bytes, at most */
    PKI_JOB_ON_DEVICES,
    PKI_JOB_TAKEN, /* of devices, with all that pools have reserved */
    PKI_JOB_COSTS
};

/* What a rank cost beside time below 0: not measured. */
typedef struct pki_job_spent {
    double of[PKI_JOB_COSTS];
    double model, hardware, possible; /* operations; those that the peak allows in their time */
    double gpu_joules;
    size_t counter_count;
    struct pki_job_joules *counters; /* of processors and memory */
} pki_job_spent;

/* A process of the job. */
typedef struct pki_job_rank {
    int32_t rank;
    uint32_t host; /* of job.hosts */
    char *path;
    size_t part; /* which of the ranks in that file */
    pki_run run;
    pki_stage_summary stages;
    pki_comm_summary comm;
    pki_processor processor; /* of the thread that makes steps, all the run */
    size_t slowest_count;
    pki_step_row *slowest; /* of its steps, without their parts */
    size_t region_count;
    size_t self_count;
    struct pki_job_self *selves; /* of its regions */
    size_t device_count;
    struct pki_job_device *devices;
    pki_job_spent spent;
    size_t counted_count;
    pki_events_row *counted; /* events of its regions */
} pki_job_rank;

/* A figure of each rank, over all of them. */
typedef struct pki_job_spread {
    size_t have;      /* ranks that have it */
    double min, mean; /* over those that have it */
    double mean_all;  /* over all: of those that do not have it 0 */
    double max;
    int32_t max_rank;
    double imbalance; /* max / mean over all - 1 */
} pki_job_spread;

typedef struct pki_job_region {
    char *name;
    uint32_t kind;
    pki_dist time;         /* of all ranks' calls */
    double self;           /* of all ranks */
    uint32_t number;       /* of its ranks' pki_job_self */
    pki_job_spread spread; /* of its self time */
} pki_job_region;

typedef struct pki_job_stage {
    char *name;
    uint32_t kind; /* PKI_UNTRACKED: what is outside all regions, the last stage */
    bool waits;    /* comm or wait: not a rank's own time */
} pki_job_stage;

/* Self times of a stage. Of thousands of ranks few may have it: of those a row of blocks each. */
typedef struct pki_job_selves {
    size_t count;
    uint32_t *ranks; /* their places, ascending */
    double *rows;    /* [row * block_count + block] */
} pki_job_selves;

/* The steps of a kind: blocks of steps that all ranks have in common, one row of numbers for each.
 * A cell is [block * rank_count + rank]; of a rank that is not there all of them are 0. */
typedef struct pki_job_loop {
    char *name; /* "": the usual kind */
    size_t block_count;
    uint64_t *first; /* the number of a block's first step */
    double *steps, *time, *own, *items;
    double *ready;   /* of own, ns that it was ready to run and had no processor: surely... */
    double *maybe;   /* ...and at most: where it is not told from the time that it waits */
    pki_seat *seats; /* where it was (core/seats.h); 0: not known */
    double *begins;  /* ns after the rank's session began; below 0: not known */
    double *made;    /* steps, by rank */
    pki_job_selves *selves; /* by stage */
} pki_job_loop;

typedef struct pki_job {
    size_t rank_count;
    pki_job_rank *ranks; /* by rank */
    int32_t world;       /* how many there should be */
    pki_texts hosts;
    size_t region_count;
    pki_job_region *regions; /* by self time, most first */
    size_t stage_count;
    pki_job_stage *stages;
    size_t loop_count;
    pki_job_loop *loops; /* the usual kind first */
    size_t file_count;
    size_t life_count;
    struct pki_job_life *lives; /* goodput state files */
    pki_texts notes;            /* what is wrong with files: a line each */
    double warmup;              /* steps that are left out at the beginning */
    bool live;                  /* of steps that go on: who is late now counts */
    double late_least;          /* from which share on a rank is late; 0: the usual one */
    bool outside_waits;         /* no stage waits: what is outside all regions counts as waiting */
} pki_job;

typedef struct pki_job_steps {
    bool given;
    uint64_t first, last;
} pki_job_steps;

/* ---- reading ---- */

/* All that allocates here and in what this folder has besides answers false, or NULL, without
 * memory; what there is then is given back as if it were whole. */

typedef enum pki_job_made {
    PKI_JOB_MADE,
    PKI_JOB_NO_MEMORY,
    PKI_JOB_NO_RANKS, /* there is none in what was read; job.notes may say why */
    PKI_JOB_NO_STEPS  /* no rank has any of those that are asked for */
} pki_job_made;

/* Summaries, one of each rank, which are finished then. What is kept of one is a small part of it,
 * so of many ranks each is added as soon as it is read: from the file at `path`, in which it was so
 * many ranks behind the first. pki_job_reading_end frees what pki_job_reading_begin has made; the
 * job is to be finished in any case. */
typedef struct pki_job_reading pki_job_reading;

/* Gives the ranks that are in a file to `take`, once more: where one has been left out of what is
 * added up. */
typedef void pki_job_take(void *user, size_t part, pki_summary *rank);
typedef void pki_job_again(const char *path, pki_job_take *take, void *user);

pki_job_reading *pki_job_reading_begin(pki_job *j, pki_job_again *again);
bool pki_job_reading_add(pki_job_reading *all, const char *path, size_t part, pki_summary *rank);
pki_job_made pki_job_reading_end(pki_job_reading *all, const pki_job_steps *steps);

/* What is wrong with a file; a line is kept once. */
bool pki_job_note(pki_job_reading *all, const char *path, const char *what);

/* Adds a state file (goodput), if it is one. */
bool pki_job_life_add(pki_job *j, const char *path, bool *is);

/* Of summaries that are there. */
pki_job_made pki_job_of(pki_job *j, pki_summary *ranks, size_t count, const pki_job_steps *steps);
void pki_job_finish(pki_job *j);

/* Its self time of that rank; -1: the rank does not have it. */
double pki_job_self_of_rank(const pki_job_rank *rank, const pki_job_region *region);

/* steps.c: the stages and the steps of the ranks, which are there. */
pki_job_made pki_job_make_loops(pki_job *j, const pki_job_steps *steps);
void pki_job_free_loops(pki_job *j);

/* Self times of a stage of a rank, by block; NULL: it does not have the stage. */
double *pki_job_selves_row(const pki_job_loop *loop, size_t stage, size_t rank);

/* efficiency.c: of one number per rank; those below 0 are not there. */
pki_job_spread pki_job_spread_of(const pki_job *j, const double *values);

/* Of a stage's time per step, ns; of one rank: -1 if it does not have it. */
double pki_job_stage_of_rank(const pki_job_loop *loop, size_t stage, size_t rank);
pki_job_spread pki_job_spread_of_stage(const pki_job *j, const pki_job_loop *loop, size_t stage);

static inline size_t pki_job_cell(const pki_job *j, size_t block, size_t rank)
{
    return block * j->rank_count + rank;
}

static inline const pki_job_loop *pki_job_usual(const pki_job *j)
{
    return j->loop_count && j->loops[0].block_count ? &j->loops[0] : NULL;
}

/* ---- what is kept of a rank's summary: devices, costs, events ---- */

enum {
    PKI_JOB_DEVICE_COMPUTE,
    PKI_JOB_DEVICE_COMMUNICATION,
    PKI_JOB_DEVICE_MEMORY,
    PKI_JOB_DEVICE_IDLE,
    PKI_JOB_DEVICE_SYNC_GAPS,
    PKI_JOB_DEVICE_LAUNCH_GAPS,
    PKI_JOB_DEVICE_PARTS
};

/* ns per step; -1: not known. */
typedef struct pki_job_device {
    uint32_t number;
    bool measured; /* by CUPTI; else by stream spans, where memory and the gaps are not known */
    uint64_t steps;
    double step, parts[PKI_JOB_DEVICE_PARTS];
    double hidden, communicated; /* of collectives: what was hidden, and all of it */
} pki_job_device;

typedef struct pki_job_joules {
    char name[48];
    double joules;
} pki_job_joules;

/* Those of which it is known when they were busy. */
bool pki_job_devices_copy(pki_job_rank *to, const pki_summary *from);

bool pki_job_spent_of(pki_job_spent *out, const pki_summary *rank);
void pki_job_spent_finish(pki_job_spent *spent);

/* ---- goodput: a state file of the job's life ---- */

typedef struct pki_job_life {
    char *path;
    bool runs; /* a process holds the file */
    pki_life_sum sum;
} pki_job_life;

/* ---- in which share of its time a rank was ready to run and had no processor ---- */

#define PKI_JOB_CROWDED_FROM 0.05

/* Of all the run; 0 where it was watched for too short a time (measure/overhead.h). */
double pki_job_crowd_share(const pki_processor *p);

/* Is its run delay, ready but without a processor, known of each block of steps
 * (pki_job_loop.ready)?
 */
bool pki_job_has_run_delay(const pki_job_rank *rank);

/* Has the rank lacked a processor for as much of the run, waiting included? */
bool pki_job_is_crowded(const pki_job *j, size_t rank);

/* ---- which ranks do the same work ---- */

/* Those that have the same stages of their own; and which are of a host. A stage that some rank may
 * have among those for which it had no room, since these take half as long as it or longer, makes
 * no role. */

/* By place of a rank its role, from 0; how many there are in *count. A rank that nobody is like is
 * among the most. To be freed; NULL without memory. */
uint32_t *pki_job_roles(const pki_job *j, size_t *count);

/* Places of ranks by host: those of host h stand from begins[h] to before begins[h + 1]. */
typedef struct pki_job_hosts {
    size_t *ranks, *begins;
} pki_job_hosts;

/* To be finished in any case. */
bool pki_job_by_host(pki_job_hosts *h, const pki_job *j);
void pki_job_hosts_finish(pki_job_hosts *h);
