/* tests/tools/job_forge.h - jobs whose truth is known: what the ranks of a data-parallel trainer
 * would leave, without running one.
 *
 * Each step a rank loads, computes forward and backward, waits in an all-reduce for the one that
 * comes last, and updates. Machines differ harmlessly by 0.7 %, each step by 2 %, and two steps in
 * a thousand have a hiccup of 30 %. Of a hundred times 1,024 machines one is drawn that is more
 * than 3 % slower: it is late, if nobody meant it to be.
 */
#pragma once

#include "measure/summary.h"

enum forge_stage {
    FORGE_LOAD,
    FORGE_FORWARD,
    FORGE_BACKWARD,
    FORGE_REDUCE,
    FORGE_UPDATE,
    FORGE_STAGES
};

extern const char *const forge_stages[FORGE_STAGES];

/* Ranks that want more processors than there are: for steps on end one of them has none for up to
 * three times as long as it computes. The ranks' files tell that of each block, of the run as a
 * whole, or not at all. */
enum forge_crowd { FORGE_ALONE, FORGE_CROWD_TOLD, FORGE_CROWD_OF_RUN, FORGE_CROWD_UNTOLD };

/* In which part of the run culprits are slow: for good, for so many steps on end, in a share of the
 * steps that is drawn or each so many steps, slowly more and more, or once for so long. */
enum forge_when {
    FORGE_ALWAYS,
    FORGE_FOR_GOOD,
    FORGE_STRETCH,
    FORGE_SPORADIC,
    FORGE_PERIODIC,
    FORGE_RAMP,
    FORGE_STOP
};

/* What healthy ranks differ by, in place of steps that differ by 2 %. */
enum forge_noise {
    FORGE_PLAIN,
    FORGE_LASTING,     /* AR(1) of 3 %, phi 0.95 */
    FORGE_TAILS,       /* Student's t with two degrees of freedom, upwards */
    FORGE_DRIFT,       /* all ranks become 20 % slower */
    FORGE_UNEVEN,      /* each rank has its own share of the work, +- 15 %, and tells it */
    FORGE_WARM,        /* three to eight steps at first take up to twice as long */
    FORGE_CHECKPOINTS, /* rank 0 writes one each 50 steps, in a stage of its own */
    FORGE_CHANGING,    /* all ranks have 30 % more work for a third of the run */
    FORGE_TWO_KINDS,   /* each fourth step is twice as long */
    FORGE_ALIKE,       /* all hosts are held down by 10 % from the middle on */
    FORGE_NOISES
};

typedef struct forge {
    uint64_t seed;
    size_t ranks, steps, per_host; /* per_host 0: all on one */
    bool varying;                  /* the work of a step and rank: +- 15 % */
    double slow;                   /* by how much culprits are slower: 0.05 */
    size_t culprits;               /* the first so many of a drawn order of ranks */
    enum forge_stage stage;        /* where they are; all of the slow-down lies there */
    bool host;                     /* the ranks of the last host are the culprits */
    double link;                   /* the all-reduce takes so many times as long for everybody */
    size_t regions;                /* besides the stages, for files of realistic size */
    size_t calls;                  /* of each region: how many buckets there are */
    enum forge_crowd crowd;        /* ranks share processors */
    double uneven;                 /* half of the ranks sit on a processor that takes so much
                                      longer for steps on end; now and then two change places */
    bool seated;                   /* all the time, and none changes places */
    bool told;                     /* the files tell where ranks sit: in one step of five a rank is
                                      on both processors, and in one of fifty it is told wrongly */
    bool pairs;                    /* two ranks on each of as many processors as it takes, told
                                      exactly; each second processor is the one that takes longer */
    bool pinned;                   /* a processor for each rank, told; `uneven` is of rank 0's */
    bool quiet;                    /* without any noise: figures can be told by hand */
    enum forge_when when;          /* culprits are slow */
    size_t length;                 /* of a stretch, steps */
    double share;                  /* of steps, sporadic or periodic */
    enum forge_noise noise;
    bool joined;      /* steps in blocks, 128 at most, as ranks keep them */
    double *machines; /* NULL, or room for one of each rank: by how much longer its machine takes
                         than the one in the middle, 0.03: 3 % */
} forge;

/* `forge.ranks` summaries; those are the ranks that are slow (a flag of each rank). */
void forge_make(const forge *f, pki_summary *ranks, bool *culprit);

/* The first step in which they are, of a stretch, for good, or once: drawn between 10 and 80 % of
 * the run. */
size_t forge_first(const forge *f);

/* ---- what pk job's verdicts are worth, over many forged jobs ---- */

typedef struct job_score {
    size_t jobs;
    size_t culprits, found;  /* recall: found / culprits */
    size_t accused, rightly; /* precision: rightly / accused */
    size_t drawn;            /* not among these: called late all along, and the machine is so */
    size_t with_false;       /* jobs in which somebody is accused wrongly */
    size_t stages;           /* of those found, with the right stage */
    size_t communication;    /* jobs that are said to be bound by it */
    size_t processors;       /* that are called slow */
    size_t since, since_off; /* of those found, with a beginning; the sum of how far that is off */
    size_t since_near;       /* ...with one within five steps, or a block if that is longer */
} job_score;

/* So many jobs, with seeds from f->seed on. */
job_score score_jobs(const forge *f, size_t jobs);

/* ---- ...and those of windows of so many steps, as they come ---- */

enum { FORGE_LIVE = 1000, FORGE_NEAR = 20 };

typedef struct live_score {
    size_t verdicts, with_false; /* in which somebody is named wrongly */
    size_t named, near;       /* ...at most so many steps after the first window with a slow step */
    double after[FORGE_LIVE]; /* steps since the first slow one, of the first so many jobs */
} live_score;

/* Adds so many jobs with a culprit at most, with seeds from f->seed on. */
void score_live(const forge *f, size_t steps, size_t jobs, live_score *s);
