/* lib/measure/window/sum.h - durations as they can be added up without loss: over the windows of a
 * run, over the ranks of a job. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/stats.h>

#include "stats/tally.h"

/* Of a thinned region: what pki_slot has of it. */
typedef struct pki_window_thinned {
    uint64_t untimed; /* 0: it is not */
    uint64_t spread;
} pki_window_thinned;

/* Durations in ns, in the buckets of times (stats/buckets.h). */
typedef struct pki_window_sum {
    uint64_t count, sum, min, max;
    uint64_t squares_high, squares_low; /* 128 bits */
    pki_tally buckets;                  /* its moments are not used */
    pki_window_thinned thinned;
} pki_window_sum;

/* Of a distribution as pki_stats_add_slot leaves it, before it is finished; of one whose values are
 * durations in ns (its squares as far as a double knows them). `out` is empty before. False without
 * memory. */
bool pki_window_sum_of_stats(const pk_stats *stats, pki_window_sum *out);
bool pki_window_sum_of_tally(const pki_tally *tally, pki_window_sum *out);

/* Joins neighbouring buckets, two, four, eight ... to one, until there are at most so many. Each is
 * then named by the bucket in the middle of its values, so it can still be added to any other. */
void pki_window_sum_narrow(pki_window_sum *sum, size_t most);
