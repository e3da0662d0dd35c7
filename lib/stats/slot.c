#include "stats/slot.h"

#include <math.h>
#include <string.h>

/* Between pki_stats_begin and pki_stats_finish the sum of squares travels in the reserved words. */
enum { LOW, HIGH };

void pki_slot_clear(pki_slot *slot, uint32_t id)
{
    memset(slot, 0, sizeof *slot);
    slot->min = UINT64_MAX;
    slot->id = id;
}

void pki_stats_begin(pk_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->min = UINT64_MAX;
}

static void add_square(pk_stats *stats, uint64_t low, uint64_t high)
{
    uint64_t sum = stats->reserved[LOW] + low;
    stats->reserved[HIGH] += high + (sum < low);
    stats->reserved[LOW] = sum;
}

static void add_chunk(uint64_t *buckets, const pki_slot *slot, pki_link link, unsigned first)
{
    const uint32_t *chunk = pki_follow(slot, link);
    for (unsigned i = 0; i < PKI_CHUNK_BUCKETS; i++)
        buckets[first + i] += pki_load(&chunk[i]);
}

static void add_carries(uint64_t *buckets, const pki_slot *slot, pki_link link)
{
    const uint32_t *carry = pki_follow(slot, link);
    for (unsigned i = 0; i < PK_STATS_BUCKETS; i++)
        buckets[i] += (uint64_t)pki_load(&carry[i]) << 32;
}

void pki_slot_add_buckets(uint64_t buckets[PK_STATS_BUCKETS], const pki_slot *slot)
{
    for (unsigned c = 0; c < PKI_CHUNKS; c++) {
        pki_link link =
            pki_load_acquire(&slot->chunks[c]); /* pairs with the release in bucket_of */
        if (link)
            add_chunk(buckets, slot, link, c * PKI_CHUNK_BUCKETS);
    }
    pki_link carry = pki_load_acquire(&slot->carry); /* pairs with the release in carry */
    if (carry)
        add_carries(buckets, slot, carry);
}

void pki_stats_add_slot(pk_stats *stats, const pki_slot *slot)
{
    stats->count += pki_load(&slot->count);
    stats->sum += pki_load(&slot->sum);
    stats->min = PKI_MIN(stats->min, pki_load(&slot->min));
    stats->max = PKI_MAX(stats->max, pki_load(&slot->max));
    stats->self += pki_load(&slot->self);
    stats->bytes += pki_load(&slot->bytes);
    stats->flops += pki_load(&slot->flops);
    add_square(stats, pki_load(&slot->squares_low), pki_load(&slot->squares_high));
    pki_slot_add_buckets(stats->buckets, slot);
}

/* A number of 192 bits: high * 2^64 + low. */
typedef struct wide {
    pki_u128 high;
    uint64_t low;
} wide;

static wide product(pki_u128 a, uint64_t b)
{
    pki_u128 low = (pki_u128)(uint64_t)a * b;
    return (wide){(a >> 64) * b + (low >> 64), (uint64_t)low};
}

static wide difference(wide a, wide b)
{
    return (wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

/* Var = E[x^2] - E[x]^2 = (n * sum(x^2) - sum(x)^2) / n^2, whose difference is taken in integers:
 * in floating point it would be lost where all samples are alike. Negative only where a sample is
 * half entered. */
static double deviation(const pk_stats *stats)
{
    pki_u128 squares = (pki_u128)stats->reserved[HIGH] << 64 | stats->reserved[LOW];
    wide apart = difference(product(squares, stats->count), product(stats->sum, stats->sum));
    if (apart.high >> 127)
        return 0;
    long double square = (long double)apart.high * 18446744073709551616.0L + (long double)apart.low;
    return (double)(sqrtl(square) / (long double)stats->count);
}

static uint64_t to_ns(uint64_t ticks, double unit_ns)
{
    return unit_ns == 1.0 ? ticks : (uint64_t)llroundl((long double)ticks * (long double)unit_ns);
}

void pki_stats_finish(pk_stats *stats, double unit_ns)
{
    stats->unit_ns = unit_ns;
    if (stats->count == 0) {
        stats->min = 0;
    } else {
        stats->stddev = deviation(stats) * unit_ns;
        stats->mean =
            (double)((long double)stats->sum / (long double)stats->count * (long double)unit_ns);
    }
    stats->sum = to_ns(stats->sum, unit_ns);
    stats->min = to_ns(stats->min, unit_ns);
    stats->max = to_ns(stats->max, unit_ns);
    stats->self = to_ns(stats->self, unit_ns);
    memset(stats->reserved, 0, sizeof stats->reserved);
}

uint64_t pki_rank(double q, uint64_t n)
{
    if (!(q > 0))
        return 1;
    if (q >= 1)
        return n;
    uint64_t below = (uint64_t)(q * (double)n), rank = below > 1 ? below - 1 : 1;
    while (rank < n && (double)rank / (double)n < q)
        rank++;
    return rank;
}

uint64_t pk_stats_quantile(const pk_stats *stats, double q)
{
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; stats && i < PK_STATS_BUCKETS; i++)
        total += stats->buckets[i];
    if (total == 0)
        return 0;
    uint64_t rank = pki_rank(q, total);
    if (rank == 1 || rank == total)
        return rank == 1 ? stats->min : stats->max;
    unsigned bucket = 0;
    while (bucket < PK_STATS_BUCKETS && seen + stats->buckets[bucket] < rank)
        seen += stats->buckets[bucket++];
    uint64_t ns = (uint64_t)llround(pki_bucket_middle(bucket) * stats->unit_ns);
    return PKI_MIN(PKI_MAX(ns, stats->min), stats->max);
}
