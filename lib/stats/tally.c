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

/* ---- a counter's distribution: doubles of either sign ---- */

/* Magnitudes of keys: those of 2^-64 and just below 2^64. */
#define LOWEST ((1023u - 64) * PKI_OCTAVE_BUCKETS)
#define HIGHEST ((1023u + 64) * PKI_OCTAVE_BUCKETS - 1)

/* Buckets in order of value, over all banks: the negative octaves, zero's, the positive ones. */
#define ZERO (HIGHEST - LOWEST + 1)
#define POSITIVE (ZERO + PKI_OCTAVE_BUCKETS)
#define BUCKETS (PKI_VALUE_BANKS * PK_STATS_BUCKETS)

_Static_assert(POSITIVE + ZERO <= BUCKETS, "the banks hold all octaves");

static uint32_t bucket_of(double value)
{
    if (value == 0)
        return ZERO;
    uint32_t key = pki_key(fabs(value)) - PKI_KEY_SIGN;
    uint32_t above = PKI_MIN(PKI_MAX(key, LOWEST), HIGHEST) - LOWEST;
    return value > 0 ? POSITIVE + above : ZERO - 1 - above;
}

static uint32_t key_of(uint32_t bucket)
{
    if (bucket >= POSITIVE)
        return PKI_KEY_SIGN + LOWEST + (bucket - POSITIVE);
    return bucket == ZERO ? PKI_KEY_SIGN : PKI_KEY_SIGN - LOWEST - (ZERO - bucket);
}

/* Read by others meanwhile, who see the last value half entered at worst: the count, which says
 * whether there are any, is the last word to be stored and the first to be read. */
typedef uint64_t __attribute__((may_alias)) word;
#define WORDS (sizeof(pki_moments) / sizeof(word))
_Static_assert(offsetof(pki_moments, count) == (WORDS - 1) * sizeof(word), "the last word");

static void store_moments(pki_moments *to, const pki_moments *from)
{
    for (size_t i = 0; i < WORDS - 1; i++)
        pki_store((word *)to + i, ((const word *)from)[i]);
    pki_store_release(&to->count, from->count);
}

static pki_moments load_moments(const pki_moments *from)
{
    pki_moments m = {.count = pki_load_acquire(&from->count)}; /* pairs with store_moments */
    for (size_t i = 0; i < WORDS - 1; i++)
        ((word *)&m)[i] = pki_load((const word *)from + i);
    return m;
}

static void store_double(double *at, double value)
{
    __atomic_store(at, &value, __ATOMIC_RELAXED);
}

static double load_double(const double *at)
{
    double value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

void pki_values_clear(pki_values *values, uint32_t id)
{
    memset(values, 0, sizeof *values);
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_slot_clear(&values->banks[i], i ? 0 : id);
    pki_values_seal(values);
}

void pki_values_seal(pki_values *values)
{
    values->min_since = INFINITY;
    values->max_since = -INFINITY;
}

void pki_values_add(pki_spans *spans, pki_pool *pool, pki_values *v, double value, uint64_t ticks)
{
    uint32_t bucket = bucket_of(value);
    pki_moments moments = v->moments;
    pki_moments_add(&moments, value, 1);
    store_double(&v->last, value);
    pki_store(&v->last_ticks, ticks);
    v->min_since = PKI_MIN(v->min_since, value);
    v->max_since = PKI_MAX(v->max_since, value);
    store_moments(&v->moments, &moments);
    pki_slot_count_bucket(spans, pool, &v->banks[bucket / PK_STATS_BUCKETS],
                          bucket % PK_STATS_BUCKETS);
}

void pki_values_merge(pki_spans *spans, pki_pool *pool, pki_values *to, const pki_values *from)
{
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_slot_merge(spans, pool, &to->banks[i], &from->banks[i]);
    pki_moments_merge(&to->moments, &from->moments);
    to->merged += from->moments.count;
    if (from->last_ticks >= to->last_ticks) {
        to->last = from->last;
        to->last_ticks = from->last_ticks;
    }
}

bool pki_value_stats_add(pki_value_stats *stats, const pki_values *v)
{
    bool fits = true;
    if (!pki_load(&v->moments.count))
        return true;
    /* The buckets first, as a value is entered there last (slot.h). */
    for (uint32_t i = 0; fits && i < BUCKETS; i++) {
        uint64_t n = pki_slot_bucket(&v->banks[i / PK_STATS_BUCKETS], i % PK_STATS_BUCKETS);
        fits = n == 0 || pki_tally_count(&stats->tally, key_of(i), n);
    }
    pki_moments moments = load_moments(&v->moments);
    pki_moments_merge(&stats->tally.moments, &moments);
    if (pki_load(&v->last_ticks) >= stats->last_ticks) {
        stats->last = load_double(&v->last);
        stats->last_ticks = pki_load(&v->last_ticks);
    }
    return fits;
}
