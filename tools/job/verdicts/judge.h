/* tools/job/verdicts/judge.h - is one of several units (ranks, or hosts) later than the others, and
 * surely?
 *
 * A unit has a value in each block: the logarithm of its time for a piece of work. There are two
 * looks at how late it is:
 *
 *     in the middle    of a block its value less the median of the units; of all blocks the
 *                      pseudo-median (Hodges and Lehmann's), with the interval of Wilcoxon's signed
 *                      ranks (bench/stats/evidence.h). Sharp where noise is small and of both signs
 *     in better steps  the same with lower quartiles (Tukey's hinges) in both places, and the
 *                      interval between order statistics (binomial, of 1/4: Hollander, Wolfe,
 *                      Chicken: Nonparametric Statistical Methods, 3rd ed., 3.6). What disturbs a
 *                      step makes it longer, never shorter, and on a busy machine it does so for
 *                      steps on end: who is late by himself is so in his better steps, too, beside
 *                      those of the units that are not disturbed; and 0 is where the unit in the
 *                      middle of all is
 *
 * Blocks that depend on their neighbours count as fewer. Where that leaves too few for signed
 * ranks, the interval is Student's of so many. A unit is late if either look finds it above
 * JOB_LATE_LEAST, and surely above JOB_LATE_SURELY.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/stats/samples.h"

#define JOB_LATE_LEAST 0.03
#define JOB_LATE_SURELY 0.02

typedef enum job_look { JOB_IN_THE_MIDDLE, JOB_IN_BETTER_STEPS, JOB_LOOKS } job_look;

typedef struct job_field {
    size_t units, blocks;
    double *values; /* [block * units + unit], at most; NAN: not there */
    double *low;    /* the same, at least: what counts of the unit that is judged */
    const uint32_t *roles;
    size_t role_count;
    double level;            /* of an interval's end: how likely it is beyond the truth */
    double *late[JOB_LOOKS]; /* [unit * blocks + block], as many as there are... */
    size_t *counts;          /* ...by unit */
    double *room;            /* for what is sorted */
} job_field;

typedef struct job_judgement {
    double by; /* as a logarithm; NAN: nothing is known */
    pki_interval interval;
    bool late;
} job_judgement;

/* From values and low. */
void job_field_begin(job_field *f);

/* Values and low are the caller's. */
void job_field_end(job_field *f);

/* What that look sees of it, without an interval: all that is asked of a healthy one. */
double job_field_quick(const job_field *f, job_look look, size_t unit);

job_judgement job_field_judge(const job_field *f, job_look look, size_t unit);
