/* lib/stats/histogram.h - the shape of a distribution, in few buckets.
 *
 * Distributions are kept in 64 buckets per octave (stats/buckets.h). A report has neighbours added
 * up, two, four, eight ... at a time, until there are PKI_HISTOGRAM_MOST at most. Their bounds are
 * those of the buckets that were kept, so nothing is counted where it was not; rounded to
 * nanoseconds from 1 us on, else to picoseconds.
 *
 * False without memory; the histogram is empty then.
 */
#pragma once

#include "stats/tally.h"

#define PKI_HISTOGRAM_MOST 64

/* How many values were at least `from` and less than `to`. */
typedef struct pki_histogram_bucket {
    double from, to;
    uint64_t count;
} pki_histogram_bucket;

/* Buckets that hold anything, in order. */
typedef struct pki_histogram {
    size_t count;
    pki_histogram_bucket *buckets;
} pki_histogram;

void pki_histogram_finish(pki_histogram *histogram);

/* Of a tally of doubles, and of one of whole nanoseconds, whose keys are pki_bucket's. */
bool pki_histogram_of_tally(const pki_tally *tally, pki_histogram *out);
bool pki_histogram_of_times(const pki_tally *times, pki_histogram *out);
