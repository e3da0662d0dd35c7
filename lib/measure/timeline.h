/* lib/measure/timeline.h - how a counter's value went over the run, in bounded room.
 *
 * The run is cut into equal parts (stats/series.h), PKI_TIMELINE_MOST at most. A part has the
 * number of its samples, their smallest, largest and sum. So samples may come in any order, as
 * those of several threads do.
 *
 * Not for two threads at once.
 */
#pragma once

#include "measure/summary.h"
#include "stats/series.h"

#define PKI_TIMELINE_MOST 256

/* All zero is an empty one; pki_series_finish in the end. */
typedef struct pki_timeline {
    pki_series parts;
} pki_timeline;

/* So that no call of pki_timeline_add asks for memory. False without. */
bool pki_timeline_reserve(pki_timeline *timeline);

/* False without memory, and if the value is not finite: it is not in it then. */
bool pki_timeline_add(pki_timeline *timeline, uint64_t ns, double value);

/* The parts that hold any. False without memory. */
bool pki_timeline_fill(const pki_timeline *timeline, pki_counter_row *row);
