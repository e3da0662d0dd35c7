/* lib/stats/tally.h - distributions of any numbers, and of counters' values */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/buckets.h"
#include "stats/moments.h"
#include "stats/slot.h"

/* ---- a distribution of any numbers, on the heap, as small as its values are few ---- */

/* The recording threads have histograms in the arena (stats/slot.h); this one, with
 * the buckets of doubles (stats/buckets.h), is for the thread that gathers: per-step self times,
 * counters, and what is rebuilt from a trace. Buckets are kept sorted and only where there are
 * values: a region whose self time stays within an octave takes about a kilobyte.
 *
 * Not for two threads at once. No room: the sample is refused and nothing has changed. */

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

/* The value of rank pki_rank(q, count) (stats/buckets.h): the first and the last exactly, others
 * as their bucket's middle, never outside min .. max. 0 if empty. */
double pki_tally_quantile(const pki_tally *tally, double q);

/* All zero if empty. */
pki_dist pki_tally_dist(const pki_tally *tally);

/* ---- a counter's distribution: doubles of either sign ---- */

/* The buckets of stats/buckets.h' keys, for magnitudes from 2^-64 to 2^63, beyond which only min
 * and max tell values apart. They lie in the chunks of several slots, its banks. */

#define PKI_VALUE_BANKS 5 /* 5 * 59 octaves hold zero and 128 of each sign */

typedef struct pki_values {
    pki_slot banks[PKI_VALUE_BANKS]; /* buckets alone */
    pki_moments moments;
    double last;
    uint64_t last_ticks;
    /* of the values since the last seal, by the writer alone; none: min is above max */
    double min_since, max_since;
    uint64_t merged; /* of the count, values of other tables: they are in none of these two */
} pki_values;

/* What is known of one counter, over threads. */
typedef struct pki_value_stats {
    pki_tally tally;
    double last;
    uint64_t last_ticks;
} pki_value_stats;

void pki_values_clear(pki_values *values, uint32_t id);
void pki_values_seal(pki_values *values);
void pki_values_add(pki_spans *spans, pki_pool *pool, pki_values *values, double value,
                    uint64_t ticks);

/* Adds one table's part; stats zeroed before the first, their tally finished in the end. Any
 * thread. False without memory. */
bool pki_value_stats_add(pki_value_stats *stats, const pki_values *values);
