#include "measure/window/sum.h"

#include "measure/shape_words.h"
#include "stats/buckets.h"
#include "stats/slot.h"

#include "base/memory.h"

static const pki_member bucket_members[] = {
    PLAINS(pki_tally_bucket, key, count),
};
static const pki_shape bucket = {SHAPE(pki_tally_bucket, bucket_members)};

static const pki_member thinned_members[] = {
    PLAINS(pki_window_thinned, untimed, spread),
};
static const pki_shape thinned = {SHAPE(pki_window_thinned, thinned_members)};

static const pki_member sum_members[] = {
    PLAINS(pki_window_sum, count, sum, min, max),
    {HEX(pki_window_sum, squares_high)},
    {HEX(pki_window_sum, squares_low)},
    {OPTIONAL(pki_window_sum, thinned, thinned)},
    {TABLE("buckets", pki_window_sum, buckets.buckets, buckets.used, bucket)},
};
const pki_shape pki_window_sum_shape = {SHAPE(pki_window_sum, sum_members)};

static bool make_room(pki_window_sum *sum, size_t count)
{
    return pki_array_fit(&sum->buckets.buckets, &sum->buckets.room, count + 1,
                         sizeof *sum->buckets.buckets);
}

bool pki_window_sum_of_stats(const pk_stats *stats, pki_window_sum *out)
{
    *out = (pki_window_sum){.count = stats->count,
                            .sum = stats->sum,
                            .min = stats->min,
                            .max = stats->max,
                            .squares_low = stats->spare[0],
                            .squares_high = stats->spare[1],
                            .thinned = {stats->untimed, stats->spare[2]}};
    uint16_t used[PK_STATS_BUCKETS];
    size_t count = pki_stats_used(stats, used);
    if (!make_room(out, count))
        return false;
    for (size_t i = 0; i < count; i++)
        out->buckets.buckets[i] = (pki_tally_bucket){stats->buckets[used[i]], used[i]};
    out->buckets.used = count;
    return true;
}

/* A duration that a file may have made anything of. */
static uint64_t ns_of(double ns)
{
    return ns > 0 && ns < 0x1p63 ? (uint64_t)ns : 0;
}

bool pki_window_sum_of_tally(const pki_tally *tally, pki_window_sum *out)
{
    const pki_moments *m = &tally->moments;
    double squares = (double)m->count * (pki_moments_mean(m) * pki_moments_mean(m) +
                                         pki_moments_deviation(m, 0) * pki_moments_deviation(m, 0));
    *out = (pki_window_sum){.count = m->count,
                            .sum = ns_of(pki_moments_sum(m)),
                            .min = ns_of(m->min),
                            .max = ns_of(m->max)};
    if (squares >= 0 && squares < 0x1p127) {
        out->squares_high = (uint64_t)(squares / 0x1p64);
        out->squares_low = (uint64_t)(squares - (double)out->squares_high * 0x1p64);
    }
    bool fits = make_room(out, tally->used);
    /* From 128 on both numberings have the same bounds, and below each value is its own bucket. */
    for (size_t i = 0; fits && i < tally->used; i++)
        fits =
            pki_tally_count(&out->buckets, pki_bucket(ns_of(pki_key_begin(tally->buckets[i].key))),
                            tally->buckets[i].count);
    return fits;
}

static uint32_t joined(uint32_t key, unsigned shift)
{
    return ((key >> shift) << shift) + (shift ? 1u << (shift - 1) : 0);
}

static size_t used_with(const pki_tally *t, unsigned shift)
{
    size_t used = 0;
    for (size_t i = 0; i < t->used; i++)
        used += !i || joined(t->buckets[i].key, shift) != joined(t->buckets[i - 1].key, shift);
    return used;
}

void pki_window_sum_narrow(pki_window_sum *sum, size_t most)
{
    pki_tally *t = &sum->buckets;
    unsigned shift = 0;
    size_t used = 0;
    while (shift < 16 && used_with(t, shift) > most)
        shift++;
    if (!shift)
        return;
    for (size_t i = 0; i < t->used; i++) {
        pki_tally_bucket next = {t->buckets[i].count, joined(t->buckets[i].key, shift)};
        if (used && t->buckets[used - 1].key == next.key)
            t->buckets[used - 1].count += next.count;
        else
            t->buckets[used++] = next;
    }
    t->used = used;
}
