/* lib/stats/values.h - a counter's distribution: doubles of either sign.
 *
 * The buckets of stats/buckets.h' keys, for magnitudes from 2^-64 to 2^63, beyond which only min
 * and max tell values apart. They lie in the chunks of several slots, its banks.
 */
#pragma once

#include "stats/slot.h"
#include "stats/tally.h"

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
void pki_values_merge(pki_spans *spans, pki_pool *pool, pki_values *to, const pki_values *from);

/* Adds one table's part; stats zeroed before the first, their tally finished in the end. Any
 * thread. False without memory. */
bool pki_value_stats_add(pki_value_stats *stats, const pki_values *values);
