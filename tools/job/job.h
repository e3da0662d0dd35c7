/* tools/job/job.h - a job of many ranks: what the files of its ranks say, put side by side.
 *
 *     files of any kind --input.c--> a rank each --ranks.c--> the job's ranks, in order
 *     --regions.c--> regions of all ranks  --loops.c--> steps of all ranks, block beside block
 *
 * What is made of that stands in a file each: spread.h, late.h, frontier.h, pop.h, links.h; what is
 * shown of it in text.c, json.c and page.c. All sums are of integers or in the order of the ranks,
 * so the same files say the same, to the last bit, in whatever order they come.
 */
#pragma once

#include "complaint.h"
#include "core/seats.h"
#include "measure/summary.h"
#include "table.h"

#define JOB_OUTSIDE "(outside regions)"
#define JOB_NO_RANK INT32_MIN

enum {
    JOB_MFU,
    JOB_HFU,
    JOB_READ, /* bytes of calls */
    JOB_WRITTEN,
    JOB_DEVICE_READ, /* bytes of devices */
    JOB_DEVICE_WRITTEN,
    JOB_JOULES,
    JOB_RESIDENT, /* bytes, at most */
    JOB_ON_DEVICES,
    JOB_TAKEN, /* of devices, with all that pools have reserved */
    JOB_COSTS
};

/* What a rank cost beside time (spent.h); below 0: not measured. */
typedef struct job_spent {
    double of[JOB_COSTS];
    double model, hardware, possible; /* operations; those that the peak allows in their time */
    double gpu_joules;
    size_t counter_count;
    struct job_joules *counters; /* of processors and memory */
} job_spent;

/* A process of the job. */
typedef struct job_rank {
    int32_t rank;
    uint32_t host; /* of job.hosts */
    char *path;
    size_t part; /* which of the ranks in that file */
    pki_run run;
    pki_stage_summary stages;
    pki_comm_summary comm;
    pki_processor processor; /* of the thread that makes steps, all the run */
    size_t self_count;
    struct job_self *selves; /* of its regions */
    size_t device_count;
    struct job_device *devices; /* devices.h */
    job_spent spent;
    size_t counted_count;
    pki_events_row *counted; /* events of its regions (counted.h) */
} job_rank;

/* A figure of each rank, over all of them. */
typedef struct job_spread {
    size_t have;      /* ranks that have it */
    double min, mean; /* over those that have it */
    double mean_all;  /* over all: of those that do not have it 0 */
    double max;
    int32_t max_rank;
    double imbalance; /* max / mean over all - 1 */
} job_spread;

typedef struct job_region {
    char *name;
    uint32_t kind;
    pki_dist time;     /* of all ranks' calls */
    double self;       /* of all ranks */
    uint32_t number;   /* of its ranks' job_self */
    job_spread spread; /* of its self time */
} job_region;

typedef struct job_stage {
    char *name;
    uint32_t kind; /* PKI_UNTRACKED: what is outside all regions, the last stage */
    bool waits;    /* comm or wait: not a rank's own time */
} job_stage;

/* Self times of a stage. Of thousands of ranks few may have it: of those a row of blocks each. */
typedef struct job_selves {
    size_t count;
    uint32_t *ranks; /* their places, ascending */
    double *rows;    /* [row * block_count + block] */
} job_selves;

/* The steps of a kind: blocks of steps that all ranks have in common, one row of numbers for each.
 * A cell is [block * rank_count + rank]; of a rank that is not there all of them are 0. */
typedef struct job_loop {
    char *name; /* "": the usual kind */
    size_t block_count;
    uint64_t *first; /* the number of a block's first step */
    double *steps, *time, *own, *items;
    double *ready;      /* of own, ns that it was ready to run and had no processor: surely... */
    double *maybe;      /* ...and at most: where it is not told from the time that it waits */
    pki_seat *seats;    /* where it was (core/seats.h); 0: not known */
    double *made;       /* steps, by rank */
    job_selves *selves; /* by stage */
} job_loop;

typedef struct job {
    size_t rank_count;
    job_rank *ranks; /* by rank */
    int32_t world;   /* how many there should be */
    table hosts;
    size_t region_count;
    job_region *regions; /* by self time, most first */
    size_t stage_count;
    job_stage *stages;
    size_t loop_count;
    job_loop *loops; /* the usual kind first */
    size_t file_count;
    size_t life_count;
    struct job_life *lives; /* goodput state files (life.h) */
    table notes;            /* what is wrong with files: a line each */
    double warmup;          /* steps that are left out at the beginning */
    bool outside_waits;     /* no stage waits: what is outside all regions counts as waiting */
} job;

typedef struct job_steps {
    bool given;
    uint64_t first, last;
} job_steps;

/* Paths of files and folders. False if there is nothing in them, and why. */
bool job_read(job *j, char **paths, size_t count, const job_steps *steps, complaint *why);
void job_finish(job *j);

/* The same of summaries, one of each rank, which are finished then. What is kept of one is a small
 * part of it, so of many ranks each is added as soon as it is read. job_reading_end frees what
 * job_reading_begin has made. */
typedef struct job_reading job_reading;
job_reading *job_reading_begin(job *j);
void job_reading_add(job_reading *all, pki_summary *rank);
bool job_reading_end(job_reading *all, const job_steps *steps, complaint *why);
bool job_of(job *j, pki_summary *ranks, size_t count, const job_steps *steps, complaint *why);

/* input.c: one file. Each rank that is in it is given to `take`, which finishes it, and hears of so
 * many before it; it holds run, stages, comm and regions at least. False, and why: it, or what
 * would have come behind those that were given, cannot be read. */
typedef void job_take(void *user, size_t part, pki_summary *rank);
bool job_load(const char *path, job_take *take, void *user, complaint *why);

/* files.c: what there is to be read, by name; notes for what cannot be looked into. */
void job_files(char **paths, size_t count, table *files, table *notes);

/* regions.c: regions are added up file by file, since of all ranks they would not fit into memory.
 */
typedef struct job_regions job_regions;
job_regions *job_regions_begin(void);
void job_regions_add(job_regions *all, job_rank *rank, const pki_summary *from);
void job_regions_end(job_regions *all, job *j); /* j NULL: they are not needed */

/* Its self time of that rank; -1: the rank does not have it. */
double job_self_of_rank(const job_rank *rank, const job_region *region);

/* loops.c: of the ranks. False, and why: no rank has any of these steps. */
bool job_make_loops(job *j, const job_steps *steps, complaint *why);
void job_loop_finish(job_loop *loop, size_t stages);

/* stages.c: the stages of all ranks, in an order, and behind them what is outside of all. Where in
 * it those of each rank stand: by rank, then by its own stage; to be freed with the next one. */
uint32_t **job_index_stages(job *j);
void job_stage_index_free(const job *j, uint32_t **places);
bool job_stages_are_sane(const pki_stage_summary *s);

/* selves.c: rows for the ranks that are noted, in order; then the one of a rank, NULL: it has none.
 */
void job_selves_note(job_selves *of, size_t rank);
void job_selves_make(job_selves *of, size_t blocks);
void job_selves_finish(job_selves *of);
double *job_selves_row(const job_loop *loop, size_t stage, size_t rank);

/* The line is kept once. */
void job_note(table *notes, const char *path, const char *what);

/* spread.c: of one number per rank; those below 0 are not there. */
job_spread job_spread_of(const job *j, const double *values);

/* Of a stage's time per step, ns; of one rank: -1 if it does not have it. */
double job_stage_of_rank(const job_loop *loop, size_t stage, size_t rank);
job_spread job_spread_of_stage(const job *j, const job_loop *loop, size_t stage);

static inline size_t job_cell(const job *j, size_t block, size_t rank)
{
    return block * j->rank_count + rank;
}

static inline const job_loop *job_usual(const job *j)
{
    return j->loop_count && j->loops[0].block_count ? &j->loops[0] : NULL;
}
