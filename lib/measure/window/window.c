#include "measure/window/window.h"

#include <string.h>

#include "stats/slot.h"

void pki_window_finish(pki_window *window)
{
    pki_shape_finish(&pki_window_shape, window);
    *window = (pki_window){0};
}

/* As pki_stats_add_slot leaves them: the squares travel in the spare words. */
pki_dist pki_window_sum_dist(const pki_window_sum *sum, pk_stats *stats)
{
    pki_stats_again(stats);
    stats->count = sum->count;
    stats->sum = sum->sum;
    stats->min = sum->min;
    stats->max = sum->max;
    stats->spare[0] = sum->squares_low;
    stats->spare[1] = sum->squares_high;
    stats->spare[2] = sum->thinned.spread;
    stats->untimed = sum->thinned.untimed;
    for (size_t i = 0; i < sum->buckets.used; i++)
        if (sum->buckets.buckets[i].key < PK_STATS_BUCKETS)
            pki_stats_count(stats, sum->buckets.buckets[i].key, sum->buckets.buckets[i].count);
    pki_stats_finish(stats, 1);
    return pki_stats_dist(stats);
}

/* A bucket may be all there is of a call that was dropped (difference.h). */
static bool has_any(const pki_window_sum *sum)
{
    return sum->count || sum->buckets.used;
}

bool pki_window_sum_add(pki_window_sum *into, const pki_window_sum *from)
{
    bool fits = true;
    if (has_any(from))
        into->min = has_any(into) ? PKI_MIN(into->min, from->min) : from->min;
    uint64_t low = into->squares_low + from->squares_low;
    into->squares_high += from->squares_high + (low < from->squares_low);
    into->squares_low = low;
    into->max = PKI_MAX(into->max, from->max);
    into->count += from->count;
    into->sum += from->sum;
    into->thinned.untimed += from->thinned.untimed;
    into->thinned.spread += from->thinned.spread;
    for (size_t i = 0; fits && i < from->buckets.used; i++)
        fits = pki_tally_count(&into->buckets, from->buckets.buckets[i].key,
                               from->buckets.buckets[i].count);
    return fits;
}

/* Counts of 64 bits, one after the other, behind size and threads. */
#define FIRST offsetof(pk_counts, begun)
#define WORDS ((sizeof(pk_counts) - FIRST) / sizeof(uint64_t))

pk_counts pki_counts_difference(const pk_counts *now, const pk_counts *before)
{
    pk_counts out = {.size = sizeof out, .threads = now->threads - before->threads};
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t a = (&now->begun)[i], b = (&before->begun)[i];
        (&out.begun)[i] = pki_saturating_sub(a, b);
    }
    out.memory_bytes = now->memory_bytes;
    return out;
}

void pki_counts_add(pk_counts *into, const pk_counts *more)
{
    into->size = sizeof *into;
    into->threads += more->threads;
    for (size_t i = 0; i < WORDS; i++)
        (&into->begun)[i] += (&more->begun)[i];
    into->memory_bytes = more->memory_bytes;
}
