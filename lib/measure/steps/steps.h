/* lib/measure/steps/steps.h - a training loop in numbers, whatever its length.
 *
 *     pki_steps *steps = pki_steps_create();
 *     ... for each step, in order:
 *         pki_steps_add_self(steps, id, PK_DATA, self_ns);  // each region of the stepping thread
 *         pki_steps_add(steps, &step);                      // closes it
 *     pki_steps_fill(steps, 0, name_of, user, &summary);
 *
 * Only what is fed counts, and only the stepping thread's self times are to be fed. What of a step
 * is in no region's self time is untracked. Kept, in bounded room: totals per kind (always exact),
 * the distributions of the durations and of each region's self time per step, the first
 * PKI_STEPS_HEAD steps whole, so that the warm-up can be found and taken out later, the slowest of
 * the others whole, and a series.
 *
 * Threads: one at a time (the collector, under the session's lock).
 * Failure: without memory, distributions miss samples and slow steps lack parts; the number of
 *          steps and the totals per kind stay right.
 */
#pragma once

#include "measure/summary.h"
#include "measure/steps/portions.h"
#include "measure/steps/warmup.h"

#define PKI_STEPS_HEAD PKI_WARMUP_KNOWN /* kept whole */
#define PKI_STEPS_SLOWEST 10
#define PKI_STEP_PARTS 5         /* at most so many reasons per slow step */
#define PKI_STEPS_IDS (1u << 20) /* region ids beyond count for their kind only */

typedef struct pki_steps pki_steps;

#define PKI_STEP_KINDS 16 /* told apart; what has no room is "(other kinds)" */

/* Of steps that have told their operations. Each term has 24 bits, so sums are the same in whatever
 * order. */
typedef struct pki_step_work {
    uint64_t steps, time; /* ns */
    double model, hardware;
} pki_step_work;

typedef struct pki_step {
    uint64_t index, start, duration, items;
    uint64_t no_processor; /* ns of it (core/ready.h)... */
    pki_seat seat;         /* where its thread was */
    pki_step_work work;    /* steps 0: it has told none */
    const char *kind;      /* NULL: the usual one; the others have figures of their own */
    bool between;          /* no step, but the time before one: of no kind, without items */
    bool borders_told;     /* ...if they were: else that is not known */
    bool broken_down; /* false: what was fed as self time is not this thread's, and is dropped */
} pki_step;

/* Steps on end, `all` of them, `count` of the usual kind: the first and the last one's numbers,
 * from the first one's beginning to the last one's end, ns. */
typedef struct pki_steps_span {
    uint64_t all, count, first, last, start, end;
} pki_steps_span;

/* Of one step that has told so many operations; of none without. */
pki_step_work pki_step_work_of(uint64_t duration, double model, double hardware);

/* NULL without memory. Everything below takes NULL for steps, and then does nothing. */
pki_steps *pki_steps_create(void);
void pki_steps_destroy(pki_steps *steps);

/* For a given number of warm-up steps beyond PKI_STEPS_HEAD, which cannot be taken out later: call
 * it before the first step. Not needed otherwise. */
void pki_steps_expect_warmup(pki_steps *steps, uint32_t warmup_steps);

/* Part of the step that the next pki_steps_add closes. Several parts of one region add up. */
void pki_steps_add_self(pki_steps *steps, uint32_t region_id, uint32_t kind, uint64_t self_ns);
void pki_steps_add(pki_steps *steps, const pki_step *step);

/* Replaces out->steps and out->stages, and sets step_share and step_self of the rows of
 * out->regions that have the name and the kind of a region in it. warmup_steps 0: found from the
 * data (measure/steps/warmup.h). More than were kept apart are cut to those (out->steps.warmup has
 * the number). False without memory: out->steps is empty then. */
typedef const char *pki_steps_name(void *user, uint32_t region_id); /* NULL: unknown */
bool pki_steps_fill(const pki_steps *steps, uint32_t warmup_steps, pki_steps_name *name, void *user,
                    pki_summary *out);

/* The usual steps in portions (measure/steps/portions.h), and what has a place in them: false: it
 * is one of the two for all others, or empty. */
void pki_steps_expect_portions(pki_steps *steps, uint64_t every);
bool pki_steps_pop_portion(pki_steps *steps, pki_portion *out);
bool pki_steps_portion_stage(const pki_steps *steps, size_t place, uint32_t *id, uint32_t *kind);
