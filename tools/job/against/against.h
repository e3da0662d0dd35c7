/* tools/job/against/against.h - a job beside another one, or a part of a run beside another part:
 * what became slower, and whether that is beyond chance.
 *
 * Steps depend on their neighbours, so as many blocks of steps as belong together
 * (pki_samples_block) become one batch, and the means of batches are what is compared: Student's t
 * for two groups of logarithms, decided about all rows at once (Holm; bench/stats/decision.h). Two
 * runs differ by more than their steps do, by hosts, caches, neighbours; the margin is for that.
 */
#pragma once

#include <stdio.h>

#include "bench/stats/decision.h"
#include "job/against/against_events.h"
#include "job/job.h"
#include "out/json_write.h"

#define AGAINST_MARGIN 3   /* %, unless another one is asked for */
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
    double margin; /* 0.03 */
    size_t count;
    against_row *rows;
    against_scaling scaling;
    against_events events; /* of sampled calls */
    bool slower;           /* something is */
} against;

against job_against(const job *now, const job *before, double margin);
void against_finish(against *a);

void against_text(const against *a, const char *other, FILE *to);
/* Of the ranks `most` that have become slower or faster; SIZE_MAX: all of them. */
void against_json(const against *a, const char *other, size_t most, pki_json *j);
