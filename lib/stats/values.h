/* lib/stats/values.h - a counter's distribution: doubles of either sign.
 *
 * The same buckets as for times, 64 to an octave, in several banks of octaves: magnitudes from
 * 2^-64 to 2^63, beyond which only min and max tell values apart. Octave 0 is zero.
 */
#ifndef PKI_STATS_VALUES_H
#define PKI_STATS_VALUES_H

#include "stats/moments.h"
#include "stats/table.h"

#define PKI_VALUE_EXPONENTS 128
#define PKI_VALUE_BANKS 5 /* 5 * 59 octaves hold zero and 128 of each sign */

typedef struct pki_values {
    pki_slot banks[PKI_VALUE_BANKS]; /* buckets alone */
    pki_moments moments;
    double last;
    uint64_t last_ticks;
} pki_values;

/* What is known of one counter, over threads. */
typedef struct pki_value_stats {
    pki_moments moments;
    double last;
    uint64_t last_ticks;
    uint64_t buckets[PKI_VALUE_BANKS][PK_STATS_BUCKETS];
} pki_value_stats;

void pki_values_clear(pki_values *values, uint32_t id);
void pki_values_add(pki_arena *arena, pki_table *table, pki_values *values, double value,
                    uint64_t ticks);
void pki_values_merge(pki_arena *arena, pki_table *table, pki_values *to, const pki_values *from);

/* Adds one table's part; stats zeroed before the first. */
void pki_value_stats_add(pki_value_stats *stats, const pki_values *values);
double pki_value_stats_quantile(const pki_value_stats *stats, double q);

#endif
