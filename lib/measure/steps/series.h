/* lib/measure/steps/series.h - how the steps went over the run, in bounded room: one row per step
 * (stats/series.h) until there are PKI_STEP_SERIES_MOST, then rows of two, four, eight ... steps.
 * Not for two threads at once.
 */
#pragma once

#include "measure/summary.h"
#include "stats/series.h"

#define PKI_STEP_SERIES_MOST 4096

/* All zero is an empty one; pki_series_finish in the end. */
typedef struct pki_step_series {
    pki_series rows;
    pki_medians last; /* of the last row */
} pki_step_series;

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
