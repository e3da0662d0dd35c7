/* lib/measure/steps/steps.h - a training loop in numbers, whatever its length */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "measure/steps/stages.h"
#include "measure/summary.h"
#include "stats/tally.h"

/* ---- a training loop in numbers, whatever its length ---- */

/* ---- where in time a range of steps lies, for those who record only then ---- */

/* Steps are seen when they are folded, some milliseconds after their ends; what is known of a range
 * that is still ahead is how far, going by how long the last steps took.
 *
 * Threads: under the fold lock (measure/fold/fold.h). */

#define PKI_NOT_YET UINT64_MAX

typedef struct pki_step_watch {
    uint64_t first, last;      /* the range */
    uint64_t begin_ns, end_ns; /* of the range, since the session started, or PKI_NOT_YET */
    uint64_t next, next_ns;    /* the step that runs, and when it began */
    uint64_t usual_ns;         /* what a step takes, lately; 0: none has been seen */
} pki_step_watch;

/* From here on. */
void pki_step_watch_start(uint64_t first, uint64_t last);

/* The fold has come by a step. */
void pki_step_watch_see(uint64_t index, uint64_t start_ns, uint64_t duration_ns);

/* The step that runs has begun later than the last one ended. */
void pki_step_watch_wait(uint64_t begin_ns);

pki_step_watch pki_step_watch_now(void);

/* When the range begins as far as can be told, or PKI_NOT_YET. */
uint64_t pki_step_watch_expect(const pki_step_watch *watch);

/* ---- where a training loop's warm-up ends ---- */

/* The first step is warm-up wherever there is a second one: it holds the program's set-up. The
 * steps that follow it are, as long as each of them is slower than any usual step *soon after*: the
 * threshold is the largest of
 *
 *     1.25 x the median,
 *     the median + 5 standard deviations (estimated from the median absolute deviation),
 *     1.05 x the 90th percentile (loops whose steps come in a fast and a slow sort)
 *
 * of the steps between the last possible warm-up step and the PKI_WARMUP_KNOWN-th. At most
 * PKI_WARMUP_MOST steps, and at most a tenth of all of them, are warm-up. Comparing with the steps
 * soon after, and not with the whole run, keeps a slow drift from being taken for one. */

#define PKI_WARMUP_MOST 32
#define PKI_WARMUP_KNOWN 256

/* durations: of the first `known` of `count` steps; those beyond PKI_WARMUP_KNOWN are not looked
 * at. */
uint64_t pki_warmup_find(const uint64_t *durations, size_t known, uint64_t count);

/* ---- portions ---- */

/* The usual steps in portions of so many, for who compares ranks
 * while they run (PK_MPI_STRAGGLERS).
 *
 * Steps belong to one portion if their numbers, divided by its length, are the same: so the ranks'
 * portions are alike, whenever each of them has begun. Stages keep their places: the first ones
 * that are seen have one each, what comes later is added up in two more, one for what is a rank's
 * own and one for what waits for others.
 *
 * Not for two threads at once. What nobody takes in time goes, the oldest first. */

#define PKI_PORTION_STAGES 16
#define PKI_PORTION_OWN (PKI_PORTION_STAGES - 2)
#define PKI_PORTION_WAITS (PKI_PORTION_STAGES - 1)
#define PKI_PORTIONS_KEPT 16

typedef struct pki_portion {
    uint64_t number; /* of its steps, divided by how many it is of */
    uint64_t steps, time, items, no_processor, told; /* as in pki_stage_block */
    pki_seats seats;
    uint64_t selves[PKI_PORTION_STAGES];
} pki_portion;

/* All zero: none are made. */
typedef struct pki_portions {
    uint64_t every;
    size_t stage_count; /* with a place of their own */
    uint32_t ids[PKI_PORTION_OWN], kinds[PKI_PORTION_OWN];
    bool open; /* `now` has steps, or may have */
    pki_portion now;
    size_t count;
    pki_portion whole[PKI_PORTIONS_KEPT]; /* the oldest first */
} pki_portions;

/* From here on, of so many steps; 0: no more. What there is stays if that is what it was. */
void pki_portions_expect(pki_portions *portions, uint64_t every);

/* A step of this number has come, of whatever kind. If it is one that counts, what it was in
 * follows, and then the step. */
void pki_portions_reach(pki_portions *portions, uint64_t index);
void pki_portions_add_self(pki_portions *portions, uint32_t id, uint32_t kind, uint64_t self);
void pki_portions_add(pki_portions *portions, const pki_stage_block *step);

/* The oldest one that is over. False: there is none. */
bool pki_portions_pop(pki_portions *portions, pki_portion *out);

/* ---- a training loop in numbers, whatever its length ---- */

/* pki_steps *steps = pki_steps_create();
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
 *          steps and the totals per kind stay right. */

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
    uint64_t off;          /* ...and off its processor in its own time, for whatever reason... */
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
 * data. More than were kept apart are cut to those (out->steps.warmup has
 * the number). False without memory: out->steps is empty then. */
typedef const char *pki_steps_name(void *user, uint32_t region_id); /* NULL: unknown */
bool pki_steps_fill(const pki_steps *steps, uint32_t warmup_steps, pki_steps_name *name, void *user,
                    pki_summary *out);

/* The usual steps in portions, and what has a place in them: false: it
 * is one of the two for all others, or empty. */
void pki_steps_expect_portions(pki_steps *steps, uint64_t every);
bool pki_steps_pop_portion(pki_steps *steps, pki_portion *out);
bool pki_steps_portion_stage(const pki_steps *steps, size_t place, uint32_t *id, uint32_t *kind);

/* ---- what steps.c gathers and steps/steps.c reads. Nobody else includes it ---- */

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

void pki_step_work_add(pki_step_work *work, const pki_step_work *more);

/* False without memory: the durations are as they were. */
bool pki_step_totals_merge(pki_step_totals *into, const pki_step_totals *from);
