/* tools/job/against/against.h - a job beside another one, or a part of a run beside another part:
 * what became slower, and whether that is beyond chance.
 *
 * Steps depend on their neighbours, so as many blocks of steps as belong together
 * (pki_samples_block) become one batch, and the means of batches are what is compared: Student's t
 * for two groups of logarithms, decided about all rows at once (Holm; bench/stats/decision.h).
 * There are AGAINST_PARTS batches at most: what comes and goes within a run is in their spread
 * then.
 *
 * Two runs of one program differ by more than their steps tell: by where code and pages lie, by
 * hosts, caches, neighbours. So each interval is wider by AGAINST_RUNS of the step, which of a part
 * of the step is the more the smaller it is: a stage is slower if it makes the step longer by that.
 * And it is wider by the time in which either run was ready and had no processor, which may all
 * have been in what is compared. Where that is JOB_CROWDED_FROM or more nothing is called slower or
 * faster.
 */
#pragma once

#include <stdio.h>

#include "bench/stats/decision.h"
#include "job/against/against_events.h"
#include "job/job.h"
#include "out/json_write.h"

#define AGAINST_MARGIN 1    /* %, unless another one is asked for */
#define AGAINST_RUNS 0.005  /* of a step: what two runs of one program differ by */
#define AGAINST_PLACES 0.02 /* of a rank: that it sits elsewhere */
#define AGAINST_PARTS 10
#define AGAINST_LEVEL 0.05 /* probability of one wrong verdict among all */
#define AGAINST_LEAST 0.01 /* stages with less of the step in both are not compared */
#define AGAINST_BATCHES_LEAST 4

typedef enum against_sort {
    AGAINST_STEP,  /* the job's step: the longest one of all ranks */
    AGAINST_STAGE, /* a stage, per step, the mean over ranks */
    AGAINST_RANK   /* a rank's own time, per step; of jobs of as many ranks */
} against_sort;

typedef struct against_row {
    against_sort sort;
    const char *name, *step_kind, *kind; /* borrowed from the jobs */
    int32_t rank;
    double before, now; /* ns per step */
    size_t batches;     /* of the two, the fewer */
    pki_decision decision;
} against_row;

/* Of two jobs with other numbers of ranks. */
typedef struct against_scaling {
    bool known;
    bool strong;       /* the job's work per step is the same; else each rank's is */
    double efficiency; /* strong: T N before / T N now; weak: T before / T now */
    double speedup;    /* items per second now / before; without items: steps per second */
} against_scaling;

typedef struct against {
    const job *now, *before;
    double margin; /* 0.01 */
    size_t count;
    against_row *rows;
    against_scaling scaling;
    against_events events; /* of sampled calls */
    double without[2];     /* shares of time without a processor, before and now */
    bool is_short;         /* of processors: nothing is decided */
    bool slower;           /* something is */
} against;

against job_against(const job *now, const job *before, double margin);
void against_finish(against *a);

/* What is called slower, or that processors were short; "-3.1 %..+2.2 %". */
void against_put_rules(const against *a, FILE *to);
void against_interval_text(const against_row *r, char text[100]);

void against_text(const against *a, const char *other, FILE *to);
/* Of the ranks `most` that have become slower or faster; SIZE_MAX: all of them. */
void against_json(const against *a, const char *other, size_t most, pki_json *j);
