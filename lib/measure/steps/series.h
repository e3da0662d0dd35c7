/* lib/measure/steps/series.h - how the steps went over the run, in bounded room.
 *
 * One entry per step until there are PKI_SERIES_MOST; then neighbours are added up in pairs, and
 * each entry stands for twice as many steps, as often as it takes. Not for two threads at once.
 */
#ifndef PKI_MEASURE_SERIES_H
#define PKI_MEASURE_SERIES_H

#include "stats/medians.h"
#include "measure/summary.h"

#define PKI_SERIES_MOST 4096

typedef struct pki_series {
    uint64_t stride; /* steps per entry; 0 is 1 */
    size_t used, room;
    pki_series_row *rows; /* but for their medians, see pki_series_rows */
    pki_some *some;       /* of each row that is full */
    pki_medians last;     /* of the last row */
} pki_series;

/* All zero is an empty series, too. */
void pki_series_finish(pki_series *series);

/* Adds the step that follows. A row of one step. False only if there is no room at all for a first
 * one. */
bool pki_series_add(pki_series *series, const pki_series_row *step);

/* `used` rows with their medians. */
void pki_series_rows(const pki_series *series, pki_series_row *rows);

/* Median step times of the first and of the last third, without the first `skip` steps. False if
 * fewer than PKI_THIRDS_LEAST entries are left. */
#define PKI_THIRDS_LEAST 12
bool pki_series_thirds(const pki_series *series, uint64_t skip, double *first, double *last);

#endif
