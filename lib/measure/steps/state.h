/* lib/measure/steps/state.h - what steps.c gathers and steps/fill.c reads. Nobody else includes it.
 * */
#pragma once

#include "measure/steps/steps.h"
#include "measure/steps/series.h"
#include "measure/steps/stages.h"
#include "stats/tally.h"

/* A step with all its parts. */
typedef struct pki_whole_step {
    pki_step step;
    uint64_t kinds[PKI_SHARES]; /* zero if not broken down */
    size_t bit_count;
    pki_step_bit *bits;
} pki_whole_step;

typedef struct pki_step_region {
    uint32_t kind;
    size_t bit;       /* where it is among the current step's bits, if... */
    uint64_t serial;  /* ...this is pki_steps.serial */
    pki_tally self;   /* per step after the head that it was in, since the last cut... */
    pki_tally before; /* ...and before it (steps/cut.h) */
} pki_step_region;

/* Sums over steps; those of the usual kind are without the head. */
typedef struct pki_step_totals {
    pki_tally durations;
    uint64_t items, broken_down;
    uint64_t kinds[PKI_SHARES];
    pki_step_work work;
} pki_step_totals;

/* Steps of a kind of their own, or what lies between steps. */
typedef struct pki_step_others {
    char *kind;
    pki_step_totals totals, before; /* since the last cut, and before it */
    pki_stages stages;
} pki_step_others;

/* What has been added up before the last cut. */
typedef struct pki_steps_before {
    pki_tally late_warmup;
    pki_step_totals tail, between;
    pki_tally tail_untracked;
    size_t slow_count;
    pki_whole_step slow[PKI_STEPS_SLOWEST];
    size_t head_count; /* of the head's steps, so many are in earlier parts */
} pki_steps_before;

struct pki_steps {
    uint64_t count;  /* of the usual kind */
    uint64_t serial; /* of the current step among all that is added, from 1 */
    uint64_t expected_warmup;
    bool no_beginning; /* the run's first steps are not among them: none is warm-up */
    pki_steps_before before;
    pki_steps_span span; /* since the last cut */

    pki_step_bit *bits; /* the current step */
    size_t bit_count, bit_room;
    uint64_t kinds[PKI_KINDS];

    size_t head_count;
    bool head_closed;
    size_t head_bits;
    pki_whole_step head[PKI_STEPS_HEAD];

    pki_tally late_warmup; /* expected warm-up that the head had no room for: durations */
    pki_step_totals tail;
    pki_tally tail_untracked;
    size_t slow_count;
    pki_whole_step slow[PKI_STEPS_SLOWEST]; /* slowest first, of the tail */

    size_t region_room;
    pki_step_region **regions; /* by id */
    pki_step_series series;
    pki_stages stages; /* of the usual kind */
    pki_portions portions;

    size_t other_count;
    pki_step_others others[PKI_STEP_KINDS];
    pki_step_totals between;
};

/* Of that id, made if needed; NULL without memory. */
pki_step_region *pki_steps_region(pki_steps *steps, uint32_t id, uint32_t kind);

/* Those of that kind. The last place is for all kinds that come when there is no other. NULL
 * without memory. */
pki_step_others *pki_steps_of_kind(pki_steps *steps, const char *kind);

/* A copy with bits of its own; with none where there is no memory for them. */
pki_whole_step pki_whole_step_copy(const pki_whole_step *whole);

void pki_step_work_add(pki_step_work *work, const pki_step_work *more);

/* False without memory: the durations are as they were. */
bool pki_step_totals_merge(pki_step_totals *into, const pki_step_totals *from);

/* Into the slowest ones, slowest first, if it is one of them. */
void pki_slowest_keep(pki_whole_step *slow, size_t *count, const pki_whole_step *whole);

/* steps/stages.c: into an empty `out`. False without memory: it is empty then. */
bool pki_steps_fill_stages(const pki_steps *steps, uint64_t warmup, pki_steps_name *name,
                           void *user, pki_stage_summary *out);
