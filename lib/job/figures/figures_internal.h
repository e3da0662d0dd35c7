/* lib/job/figures/figures_internal.h - of what the replay of a job's steps consists. Nobody else
 * includes it */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "job/figures/figures.h"

/* ---- whom a stage waits for ---- */

/* FOR_EITHER: for what comes, or for who has to fetch what was sent. */
typedef enum meeting { FOR_NOBODY, FOR_ALL, FOR_SENDERS, FOR_EITHER, FOR_RECEIVERS } meeting;

/* From its beginning on the other side can go on, or all when all have entered. */
enum { SENDS = 1, RECEIVES = 2, ENTERS = 4, POSTS = 3 };

typedef struct pki_job_way {
    const char *name;
    meeting waits;
    unsigned posts;
} pki_job_way;

/* ---- which ranks meet in a collective ---- */

/* What is passed at once: a stage, or of a collective's calls those on one of a rank's
 * communicators, which are told by their ids. Where a rank has calls on several, the stage's time
 * is divided as that of these calls is over the run, and they are passed one after the other. */
typedef struct pki_job_leg {
    size_t stage;
    pki_job_way way;
    double rate;      /* calls of a rank in a step, at most 1 */
    bool rooted;      /* a collective that some of its ranks may leave before others have come */
    uint32_t *circle; /* by rank, from 1: whom it meets; 0: nobody. NULL: all ranks meet */
    size_t *members, *begins; /* circle c has members[begins[c - 1]] to before begins[c] */
    size_t circle_count;
    double *share; /* by rank, of the stage */
} pki_job_leg;

typedef struct pki_job_legs {
    pki_job_leg *all;
    size_t count, room;
    const char *why_not;
} pki_job_legs;

/* To be finished in any case. False without memory. */
bool pki_job_find_legs(pki_job_legs *to, const pki_job *j);

static inline void pki_job_finish_legs(pki_job_legs *of)
{
    for (size_t i = 0; i < of->count; i++) {
        free(of->all[i].circle);
        free(of->all[i].members);
        free(of->all[i].begins);
        free(of->all[i].share);
    }
    free(of->all);
}

/* ---- why a rank is behind ---- */

/* A cause is a stage of a rank in steps of a kind. Of each rank the largest few are kept. */

#define PKI_JOB_LAGS 8

typedef struct pki_job_lag {
    size_t cause[PKI_JOB_LAGS];
    double ns[PKI_JOB_LAGS]; /* 0: none */
} pki_job_lag;

static inline double pki_job_lag_of(const pki_job_lag *l, size_t cause)
{
    for (size_t i = 0; i < PKI_JOB_LAGS; i++)
        if (l->ns[i] != 0 && l->cause[i] == cause)
            return l->ns[i];
    return 0;
}

static inline void pki_job_lag_add(pki_job_lag *l, size_t cause, double ns)
{
    size_t least = 0;
    for (size_t i = 0; i < PKI_JOB_LAGS; i++) {
        if (l->ns[i] != 0 && l->cause[i] == cause) {
            l->ns[i] += ns;
            return;
        }
        least = fabs(l->ns[i]) < fabs(l->ns[least]) ? i : least;
    }
    if (fabs(ns) > fabs(l->ns[least])) {
        l->cause[least] = cause;
        l->ns[least] = ns;
    }
}
