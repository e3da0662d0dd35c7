#include "stats/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/slot.h"

/* Sign, exponent and the first six bits of the mantissa: what is left of a double's 64 bits. */
#define KEY_SHIFT 46
#define KEY_SIGN (1u << 17)
#define KEY_MASK (2 * KEY_SIGN - 1)

static uint32_t key_of(double value)
{
    uint64_t bits;
    value += 0.0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    uint32_t key = (uint32_t)(bits >> KEY_SHIFT);
    return key & KEY_SIGN ? ~key & KEY_MASK : key | KEY_SIGN;
}

static double middle_of(uint32_t key)
{
    bool negative = !(key & KEY_SIGN);
    uint64_t magnitude = (negative ? ~key : key) & (KEY_SIGN - 1);
    if (magnitude == 0)
        return 0;
    /* Half a bucket up: one more bit of the mantissa. */
    uint64_t bits = magnitude << KEY_SHIFT | UINT64_C(1) << (KEY_SHIFT - 1);
    double middle;
    memcpy(&middle, &bits, sizeof middle);
    return negative ? -middle : middle;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double pki_tally_bucket_begin(uint32_t key)
{
    if (key & KEY_SIGN)
        return as_double((uint64_t)(key & (KEY_SIGN - 1)) << KEY_SHIFT);
    return -as_double((uint64_t)((~key & (KEY_SIGN - 1)) + 1) << KEY_SHIFT);
}

void pki_tally_finish(pki_tally *tally)
{
    free(tally->buckets);
    *tally = (pki_tally){0};
}

/* The first bucket whose key is not below this one. */
static size_t place_of(const pki_tally *tally, uint32_t key)
{
    size_t low = 0, high = tally->used;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tally->buckets[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(pki_tally *tally, size_t wanted)
{
    if (wanted <= tally->room)
        return true;
    size_t room = tally->room ? 2 * tally->room : 4;
    if (room < wanted)
        room = wanted;
    pki_tally_bucket *grown = realloc(tally->buckets, room * sizeof *grown);
    if (!grown)
        return false;
    tally->buckets = grown;
    tally->room = room;
    return true;
}

static bool count_in(pki_tally *tally, uint32_t key, uint64_t times)
{
    size_t place = place_of(tally, key);
    if (place == tally->used || tally->buckets[place].key != key) {
        if (!make_room(tally, tally->used + 1))
            return false;
        pki_tally_bucket *at = tally->buckets + place;
        memmove(at + 1, at, (tally->used - place) * sizeof *at);
        *at = (pki_tally_bucket){.key = key};
        tally->used++;
    }
    tally->buckets[place].count += times;
    return true;
}

bool pki_tally_add(pki_tally *tally, double value, uint64_t times)
{
    if (!isfinite(value))
        return false;
    if (times == 0)
        return true;
    if (!count_in(tally, key_of(value), times))
        return false;
    pki_moments_add(&tally->moments, value, times);
    return true;
}

bool pki_tally_merge(pki_tally *into, const pki_tally *from)
{
    if (from->moments.count == 0)
        return true;
    /* Room for all first, so that a refusal leaves nothing half done. */
    if (!make_room(into, into->used + from->used))
        return false;
    for (size_t i = 0; i < from->used; i++)
        count_in(into, from->buckets[i].key, from->buckets[i].count);
    pki_moments_merge(&into->moments, &from->moments);
    return true;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double pki_tally_quantile(const pki_tally *tally, double q)
{
    const pki_moments *m = &tally->moments;
    uint64_t rank = pki_rank(q, m->count), seen = 0;
    if (rank <= 1 || rank >= m->count)
        return rank <= 1 ? m->min : m->max;
    for (size_t i = 0; i < tally->used; i++) {
        seen += tally->buckets[i].count;
        if (seen >= rank)
            return clamp(middle_of(tally->buckets[i].key), m->min, m->max);
    }
    return m->max;
}

static pki_dist dist_of(const pki_moments *m)
{
    return (pki_dist){.count = m->count,
                      .sum = pki_moments_sum(m),
                      .min = m->min,
                      .max = m->max,
                      .mean = pki_moments_mean(m),
                      .stddev = pki_moments_deviation(m, 0)};
}

pki_dist pki_value_stats_dist(const pki_value_stats *stats)
{
    pki_dist dist = dist_of(&stats->moments);
    dist.p50 = pki_value_stats_quantile(stats, 0.50);
    dist.p90 = pki_value_stats_quantile(stats, 0.90);
    dist.p95 = pki_value_stats_quantile(stats, 0.95);
    dist.p99 = pki_value_stats_quantile(stats, 0.99);
    return dist;
}

pki_dist pki_tally_dist(const pki_tally *tally)
{
    pki_dist dist = dist_of(&tally->moments);
    dist.p50 = pki_tally_quantile(tally, 0.50);
    dist.p90 = pki_tally_quantile(tally, 0.90);
    dist.p95 = pki_tally_quantile(tally, 0.95);
    dist.p99 = pki_tally_quantile(tally, 0.99);
    return dist;
}
