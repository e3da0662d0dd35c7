#include "stats/tally.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "stats/buckets.h"
#include "stats/moments.h"

/* ---- a distribution of any numbers, on the heap, as small as its values are few ---- */

void pki_tally_finish(pki_tally *tally)
{
    free(tally->buckets);
    *tally = (pki_tally){0};
}

/* The first bucket whose key is not below this one. */
static size_t index_of(const pki_tally *tally, uint32_t key)
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

static bool fit(pki_tally *tally, size_t wanted)
{
    return pki_array_fit(&tally->buckets, &tally->room, wanted, sizeof *tally->buckets);
}

bool pki_tally_count(pki_tally *tally, uint32_t key, uint64_t times)
{
    size_t place = index_of(tally, key);
    if (place == tally->used || tally->buckets[place].key != key) {
        if (!fit(tally, tally->used + 1))
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
    if (!pki_tally_count(tally, pki_key(value), times))
        return false;
    pki_moments_add(&tally->moments, value, times);
    return true;
}

bool pki_tally_merge(pki_tally *into, const pki_tally *from)
{
    if (from->moments.count == 0 && from->used == 0)
        return true;
    /* Room for all first, so that a refusal leaves nothing half done. */
    if (!fit(into, into->used + from->used))
        return false;
    for (size_t i = 0; i < from->used; i++)
        pki_tally_count(into, from->buckets[i].key, from->buckets[i].count);
    pki_moments_merge(&into->moments, &from->moments);
    return true;
}

bool pki_tally_difference(const pki_tally *now, const pki_tally *before, pki_tally *out)
{
    size_t at = 0;
    *out = (pki_tally){0};
    if (!fit(out, now->used))
        return false;
    for (size_t i = 0; i < now->used; i++) {
        const pki_tally_bucket *b = &now->buckets[i];
        while (at < before->used && before->buckets[at].key < b->key)
            at++;
        bool was = at < before->used && before->buckets[at].key == b->key;
        uint64_t count = b->count - (was ? before->buckets[at].count : 0);
        if (count)
            out->buckets[out->used++] = (pki_tally_bucket){count, b->key};
    }
    out->moments = pki_moments_difference(&now->moments, &before->moments);
    return true;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double pki_tally_quantile(const pki_tally *tally, double q)
{
    const pki_moments *m = &tally->moments;
    uint64_t rank = pki_rank(q, m->count);
    if (rank <= 1 || rank >= m->count || tally->used == 0)
        return rank <= 1 ? m->min : m->max;
    size_t bucket =
        pki_rank_bucket(&tally->buckets->count, tally->used, sizeof *tally->buckets, rank);
    return clamp(pki_key_middle(tally->buckets[bucket].key), m->min, m->max);
}

pki_dist pki_tally_dist(const pki_tally *tally)
{
    const pki_moments *m = &tally->moments;
    return (pki_dist){.count = m->count,
                      .sum = pki_moments_sum(m),
                      .min = m->min,
                      .max = m->max,
                      .mean = pki_moments_mean(m),
                      .stddev = pki_moments_deviation(m, 0),
                      .p50 = pki_tally_quantile(tally, 0.50),
                      .p90 = pki_tally_quantile(tally, 0.90),
                      .p95 = pki_tally_quantile(tally, 0.95),
                      .p99 = pki_tally_quantile(tally, 0.99)};
}
