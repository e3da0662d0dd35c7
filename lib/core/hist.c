#include "core/hist.h"

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

/* Var = E[x^2] - E[x]^2 as (n * sum(x^2) - sum(x)^2) / n^2. Both products can pass 128 bits, so
 * they are taken in long double, around the mean's integer part, where the difference has lost
 * nothing. */
static double deviation(const pk_stats *stats)
{
    long double n = (long double)stats->count;
    long double squares = (long double)stats->reserved[HIGH] * 18446744073709551616.0L +
                          (long double)stats->reserved[LOW];
    long double mean = (long double)stats->sum / n;
    long double variance = squares / n - mean * mean;
    return variance > 0 ? (double)sqrtl(variance) : 0;
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

/* Nearest rank: sample number ceil(q * n), counted from 1. */
static uint64_t rank_of(double q, uint64_t n)
{
    if (!(q > 0))
        return 1;
    if (q >= 1)
        return n;
    uint64_t rank = (uint64_t)ceill((long double)q * (long double)n);
    return PKI_MIN(PKI_MAX(rank, 1), n);
}

uint64_t pk_stats_quantile(const pk_stats *stats, double q)
{
    uint64_t total = 0, seen = 0;
    for (unsigned i = 0; i < PK_STATS_BUCKETS; i++)
        total += stats->buckets[i];
    if (total == 0)
        return 0;
    uint64_t rank = rank_of(q, total);
    if (rank == 1 || rank == total)
        return rank == 1 ? stats->min : stats->max;
    unsigned bucket = 0;
    while (bucket < PK_STATS_BUCKETS && seen + stats->buckets[bucket] < rank)
        seen += stats->buckets[bucket++];
    uint64_t ns = (uint64_t)llround(pki_bucket_middle(bucket) * stats->unit_ns);
    return PKI_MIN(PKI_MAX(ns, stats->min), stats->max);
}
