/* lib/measure/timeline.h - how a counter's value went over the run, in bounded room.
 *
 * The run is cut into equal parts, PKI_TIMELINE_MOST at most; when it becomes too long for these,
 * each two become one. A part has the number of its samples, their smallest, largest and sum. So
 * samples may come in any order, as those of several threads do.
 *
 * Not for two threads at once.
 */
#ifndef PKI_MEASURE_TIMELINE_H
#define PKI_MEASURE_TIMELINE_H

#include "measure/summary.h"

#define PKI_TIMELINE_MOST 256
#define PKI_TIMELINE_SHIFT 10 /* parts of a microsecond, at first */

typedef struct pki_timeline_part {
    uint64_t first, samples; /* start of the first one */
    double min, max, sum;
} pki_timeline_part;

typedef struct pki_timeline {
    unsigned shift; /* a part is 2^shift ns long */
    size_t room;
    pki_timeline_part *parts;
} pki_timeline;

/* All zero is an empty timeline, too. */
void pki_timeline_finish(pki_timeline *timeline);

/* False without memory, and if the value is not finite: it is not in it then. */
bool pki_timeline_add(pki_timeline *timeline, uint64_t ns, double value);

/* The parts that hold any. False without memory. */
bool pki_timeline_fill(const pki_timeline *timeline, pki_counter_row *row);

#endif
