/* lib/measure/memory/growth.h - how something in bytes went over the steps, and whether it grows
 * without end.
 *
 * What counts is the floor: the least that was seen in some consecutive steps. A program that takes
 * memory and gives it back leaves its floor where it is; one that forgets to raises it. At most
 * PKI_GROWTH_ROWS rows are kept; then each two become one, with the lower of their floors, so the
 * rows are the same however long it took to know them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stats/series.h"

#define PKI_GROWTH_ROWS 128
#define PKI_GROWTH_LEAST_ROWS 24 /* ...in the part that is judged: the last three quarters */
#define PKI_GROWTH_Z 4.5         /* standard deviations above no trend */
#define PKI_GROWTH_THIRD 0.25    /* of the slope, in each third of that part */
#define PKI_GROWTH_FALL 0.10     /* of what it has grown: it never fell by more */

typedef struct pki_growth {
    uint64_t steps;  /* that are judged; first: 0 leaves it out of the report file */
    double per_step; /* bytes; 0: it does not grow */
    double z;
} pki_growth;

/* All zero is one that has seen nothing. */
typedef struct pki_growth_series {
    pki_series floors;
    uint64_t last; /* step */
} pki_growth_series;

void pki_growth_finish(pki_growth_series *series);

/* So many bytes were seen in that step (from 0; never less than before). */
void pki_growth_see(pki_growth_series *series, uint64_t step, uint64_t bytes);

/* Does it grow, by `least` bytes in the part that is judged? */
pki_growth pki_growth_of(const pki_growth_series *series, double least);
