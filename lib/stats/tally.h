/* lib/stats/tally.h - a distribution of any numbers, on the heap, as small as its values are few.
 *
 * The recording threads have histograms in the arena (stats/slot.h, stats/values.h); this one, with
 * the buckets of doubles (stats/buckets.h), is for the thread that gathers: per-step self times,
 * counters, and what is rebuilt from a trace. Buckets are kept sorted and only where there are
 * values: a region whose self time stays within an octave takes about a kilobyte.
 *
 * Not for two threads at once. No room: the sample is refused and nothing has changed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/dist.h"
#include "stats/moments.h"

typedef struct pki_tally_bucket {
    uint64_t count;
    uint32_t key; /* stats/buckets.h */
} pki_tally_bucket;

typedef struct pki_tally {
    pki_moments moments;
    size_t used, room;
    pki_tally_bucket *buckets;
} pki_tally;

/* All zero is an empty tally, too. */
void pki_tally_finish(pki_tally *tally);

/* The value, so many times. False if it is not finite or there is no room. */
bool pki_tally_add(pki_tally *tally, double value, uint64_t times);

bool pki_tally_merge(pki_tally *into, const pki_tally *from);

/* What is in `now` and was not yet in `before`, into an empty tally; its min and max are now's.
 * False without memory: it is empty then. */
bool pki_tally_difference(const pki_tally *now, const pki_tally *before, pki_tally *out);

/* So many values of that key, whose moments are added by somebody else. */
bool pki_tally_count(pki_tally *tally, uint32_t key, uint64_t times);

/* The value of rank pki_rank(q, count) (stats/quantile.h): the first and the last exactly, others
 * as their bucket's middle, never outside min .. max. 0 if empty. */
double pki_tally_quantile(const pki_tally *tally, double q);

/* All zero if empty. */
pki_dist pki_tally_dist(const pki_tally *tally);
