/* lib/measure/steps/cut.h - the steps of a run in parts: what each adds to the run's figures.
 *
 *     pki_steps_part part;
 *     if (pki_steps_cut(steps, &part)) {           // the steps since the last cut
 *         ... write it ...
 *         pki_steps_part_finish(&part);
 *     }
 *     pki_steps_join(others, &part);               // somewhere else, part by part, in their order
 *
 * Steps that have been joined of all parts say the same as those that were cut, to the last digit
 * (pki_steps_fill), but for the series: a part does not know its steps one by one.
 *
 * Threads: as measure/steps/steps.h.
 */
#pragma once

#include "measure/steps/steps.h"

typedef struct pki_steps_part_region {
    uint32_t id, kind;
    pki_tally self; /* per step of the tail that it was in */
} pki_steps_part_region;

/* Steps of a kind of their own. */
typedef struct pki_steps_part_kind {
    char *kind;
    pki_step_totals totals;
} pki_steps_part_kind;

typedef struct pki_steps_part {
    pki_steps_span span;
    size_t head_count; /* of the run's first PKI_STEPS_HEAD steps: whole */
    pki_whole_step *head;
    pki_tally late_warmup; /* all others */
    pki_step_totals tail, between;
    pki_tally untracked;
    size_t slow_count;
    pki_whole_step *slow; /* of the tail, slowest first */
    size_t region_count;
    pki_steps_part_region *regions;
    size_t other_count;
    pki_steps_part_kind *others;
} pki_steps_part;

/* False without memory: nothing has been cut. */
bool pki_steps_cut(pki_steps *steps, pki_steps_part *part);
void pki_steps_part_finish(pki_steps_part *part);

/* Adds a part. Of ids that are these steps' own. False without memory. */
bool pki_steps_join(pki_steps *steps, const pki_steps_part *part);

/* The parts that are joined do not begin with the run's first step. Before the first one. */
void pki_steps_without_beginning(pki_steps *steps);

/* Of all steps so far, of whatever kind. */
void pki_steps_so_far(const pki_steps *steps, uint64_t *items, uint64_t kinds[PKI_SHARES]);

/* What those of the usual kind have told of their operations. */
pki_step_work pki_steps_work_so_far(const pki_steps *steps);

/* Durations of all steps of a part: what is shown of it. False without memory. */
bool pki_steps_part_durations(const pki_steps_part *part, pki_tally *out);
