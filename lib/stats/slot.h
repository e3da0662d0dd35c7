/* lib/stats/slot.h - one region's distribution: a slot and its chunks of buckets.
 *
 * Log-linear in two levels: a value's chunk is its octave, 64 buckets of 32 bits each, and only the
 * octaves that a region touches have one. Values below 128 have buckets of their own, above that a
 * bucket is 1/64 of its octave's start wide; taking the middle, a quantile is within 1/128 = 0.8 %.
 * A bucket that overflows carries into a second table, so 2^32 calls are nothing special.
 *
 * One writer at a time (lib/stats/table.h); anybody may read meanwhile and sees, at worst, the last
 * call half entered.
 */
#ifndef PKI_STATS_SLOT_H
#define PKI_STATS_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <pk/stats.h>

#include "base/atomic.h"
#include "base/compiler.h"

#define PKI_CHUNKS 59
#define PKI_CHUNK_BUCKETS 64

_Static_assert(PKI_CHUNKS *PKI_CHUNK_BUCKETS == PK_STATS_BUCKETS,
               "public and internal buckets are the same");

/* A reference from a slot to memory of the same arena, in units of 64 bytes from the slot itself; 0
 * is none. Valid wherever the arena is mapped. */
typedef int32_t pki_link;

/* What every call writes is in the first line; what only some read comes behind. */
typedef struct pki_slot {
    uint64_t count;
    uint64_t sum;
    uint64_t min;
    uint64_t max;
    uint64_t squares_low; /* sum of squares, 128 bits */
    uint64_t squares_high;
    uint64_t self;      /* own time; unlike the rest not deferred */
    uint64_t self_mark; /* own time at the last step */

    uint32_t id;
    uint32_t kind; /* its name's */
    uint64_t bytes;
    uint64_t flops;
    pki_link next;  /* of this table's slots */
    pki_link carry; /* PK_STATS_BUCKETS words: how often each bucket has overflowed */
    pki_link chunks[PKI_CHUNKS];
} PKI_ALIGNED pki_slot;

_Static_assert(sizeof(pki_slot) == 6 * PKI_LINE,
               "with five chunks of 256 bytes a region takes 1664 bytes per thread");

typedef uint32_t pki_chunk[PKI_CHUNK_BUCKETS];

/* Which bucket a value belongs to; chunk = bucket / 64. */
static inline uint32_t pki_bucket(uint64_t value)
{
    int shift = 57 - __builtin_clzll(value | 64);
    return ((uint32_t)shift << 6) + (uint32_t)(value >> shift);
}

/* The middle of a bucket, in the unit of the values. */
static inline double pki_bucket_middle(uint32_t bucket)
{
    if (bucket < 128)
        return bucket;
    uint32_t shift = (bucket >> 6) - 1;
    uint64_t first = (uint64_t)(64 + (bucket & 63)) << shift;
    return (double)first + ((double)((uint64_t)1 << shift) - 1) / 2;
}

/* The smallest value of a bucket; that of the one behind the last is its end. */
static inline double pki_bucket_begin(uint32_t bucket)
{
    if (bucket < 128)
        return bucket;
    return (double)(64 + (bucket & 63)) * (double)((uint64_t)1 << ((bucket >> 6) - 1));
}

static inline void *pki_follow(const pki_slot *slot, pki_link link)
{
    return (char *)(uintptr_t)slot + (int64_t)link * PKI_LINE;
}

static inline pki_link pki_link_to(const pki_slot *slot, const void *to)
{
    return (pki_link)(((const char *)to - (const char *)slot) / PKI_LINE);
}

/* count, sum, min, max and squares, without the bucket. */
static inline void pki_slot_add_moments(pki_slot *slot, uint64_t value)
{
    pki_u128 square = (pki_u128)value * value;
    uint64_t low = pki_load(&slot->squares_low) + (uint64_t)square;
    uint64_t carry = low < (uint64_t)square;
    pki_store(&slot->squares_high,
              pki_load(&slot->squares_high) + (uint64_t)(square >> 64) + carry);
    pki_store(&slot->squares_low, low);
    pki_bump(&slot->sum, value);
    pki_store(&slot->min, PKI_MIN(pki_load(&slot->min), value));
    pki_store(&slot->max, PKI_MAX(pki_load(&slot->max), value));
}

/* Which of n samples in order, counted from 1, is the q-quantile: the first whose share, rank / n
 * as a double, is q or more. (q * n rounded up is too much for 0.9 of 10 in long double, 0.07 of
 * 100 in double.) */
uint64_t pki_rank(double q, uint64_t n);

void pki_slot_clear(pki_slot *slot, uint32_t id);

/* Adds the slot's content to stats, in ticks: count, sum, min, max, squares (into reserved[0..1]),
 * self, bytes, flops, buckets. pki_stats_begin before the first, pki_stats_finish behind the last.
 */
void pki_stats_begin(pk_stats *stats);
void pki_stats_add_slot(pk_stats *stats, const pki_slot *slot);
void pki_slot_add_buckets(uint64_t buckets[PK_STATS_BUCKETS], const pki_slot *slot);
void pki_stats_finish(pk_stats *stats, double unit_ns);

#endif
