/* lib/measure/steps/stages.h - what each stage of the loop took, and how its steps went */
#pragma once

#include "core/seats.h"
#include "measure/summary.h"
#include "stats/series.h"

/* ---- what each stage of the loop took, step by step, in bounded room ---- */

/* What a job of many ranks is compared by.
 *
 * A stage is a region with self time of the stepping thread in a step; stages stand in the order in
 * which their regions first began. Steps come in blocks: one of each at first, and when there are
 * too many blocks, each two become one. Another rank that has made as many steps has the same
 * blocks.
 *
 * Not for two threads at once. Failure: without memory, a stage's time misses in its blocks, as if
 * it had been outside all regions. */

#define PKI_STAGE_BLOCKS 128 /* of a kind of steps: a power of two */

typedef struct pki_step_bit {
    uint32_t id;
    uint64_t self;
} pki_step_bit;

typedef struct pki_stage_block {
    uint64_t index, steps, time, items;
    uint64_t start; /* of the first one, ns since the session's; UINT64_MAX: not known */
    uint64_t no_processor, told; /* ns, of so many of the steps */
    pki_seats seats;
} pki_stage_block;

/* All zero is an empty one, too. */
typedef struct pki_stages {
    uint64_t stride; /* what is added to a block before the next one begins */
    uint64_t inside; /* the last block, so far */
    size_t used, kept;
    pki_stage_block *blocks;
    size_t room;
    uint64_t **selves; /* by region id, then by block */
} pki_stages;

/* The region of an id. False: unknown. */
typedef bool pki_stage_name(void *user, uint32_t id, const char **name, uint32_t *kind);

/* ---- how the steps went over the run, in bounded room ---- */

/* One row per step (stats/series.h) until there are PKI_STEP_SERIES_MOST, then rows of two, four,
 * eight ... steps. Not for two threads at once. */

#define PKI_STEP_SERIES_MOST 4096

/* All zero is an empty one; pki_series_finish in the end. */
typedef struct pki_step_series {
    pki_series rows;
    pki_medians last; /* of the last row */
} pki_step_series;

/* Of the steps behind it, too; but their median. */
void pki_series_row_join(pki_series_row *row, const pki_series_row *next);

/* Adds the step that follows. A row of one step. False only if there is no room at all for a first
 * one. */
bool pki_step_series_add(pki_step_series *series, const pki_series_row *step);

/* `rows.used` rows with their medians. */
void pki_step_series_rows(const pki_step_series *series, pki_series_row *rows);

/* Median step times of the first and of the last third, without the first `skip` steps. False if
 * fewer than PKI_THIRDS_LEAST entries are left. */
#define PKI_THIRDS_LEAST 12
bool pki_step_series_thirds(const pki_step_series *series, uint64_t skip, double *first,
                            double *last);
