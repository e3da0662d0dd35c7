/* lib/stats/histogram.h - the shape of a distribution, in few buckets.
 *
 * Distributions are kept in 64 buckets per octave, those of the recording threads in clock ticks
 * (lib/stats/slot.h), others as doubles (stats/tally.h). A report has neighbours added up, two,
 * four, eight ... at a time, until there are PKI_HISTOGRAM_MOST at most. Their bounds are those of
 * the buckets that were kept, so nothing is counted where it was not; rounded to nanoseconds from
 * 1 us on, else to picoseconds.
 *
 * False without memory; the histogram is empty then.
 */
#ifndef PKI_STATS_HISTOGRAM_H
#define PKI_STATS_HISTOGRAM_H

#include "stats/tally.h"

#define PKI_HISTOGRAM_MOST 64

bool pki_histogram_of_stats(const pk_stats *stats, pki_histogram *out);
bool pki_histogram_of_tally(const pki_tally *tally, pki_histogram *out);

#endif
