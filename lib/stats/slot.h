/* lib/stats/slot.h - distributions of regions: slots, the table of them, and their memory */
#pragma once

#include <pk/stats.h>

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "stats/buckets.h"

/* ---- what a name is of, and its distribution ---- */

/* 0 .. 5: a region of that pk_kind. */
#define PKI_KIND_COUNTER 100u
#define PKI_KIND_INTERNAL 101u

/* ---- memory for a table's distributions, in 64 KiB spans of a mapping ---- */

/* Nothing is given back by itself: a reset takes all of it again, from the start. */

/* All zero is an empty one. */
typedef struct pki_pool {
    char *spare; /* memory left in the current span, up to spare_end */
    char *spare_end;
    uint64_t spans;    /* offset of the first span; each starts with the next one's offset */
    uint64_t span_now; /* the one in use */
} pki_pool;

/* Zeroed, by the cache line; NULL without room. */
void *pki_pool_claim(pki_spans *spans, pki_pool *pool, size_t bytes);

/* ---- one region's distribution: a slot and its chunks of buckets ---- */

/* A chunk has the 64 buckets of an octave (stats/buckets.h), of 32 bits each, and only the octaves
 * that a region touches have one. A bucket that overflows carries into a second table, so 2^32
 * calls are nothing special. Slots and chunks come from a pool (below).
 *
 * One writer at a time; anybody may read meanwhile and sees, at worst, the last
 * call half entered. */

#define PKI_CHUNKS 59
#define PKI_CHUNK_BUCKETS PKI_OCTAVE_BUCKETS

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
    uint64_t self;      /* self time; unlike the rest not deferred */
    uint64_t self_mark; /* self time at the last step */

    uint32_t id;
    uint32_t kind; /* PK_COMPUTE ... PK_OTHER */
    uint64_t bytes;
    uint64_t flops;
    pki_link next;  /* of this table's slots */
    pki_link carry; /* PK_STATS_BUCKETS words: how often each bucket has overflowed */
    pki_link chunks[PKI_CHUNKS];
    uint64_t min_before; /* smallest and largest up to the last pki_slot_seal; min and max are */
    uint64_t max_before; /* since then */
    /* of thinned regions (pk/stats.h); else 0 */
    uint64_t untimed; /* of count, calls that others stand for */
    uint64_t spread;  /* sum of w * (w - 1) over timed calls that stand for w */
    uint64_t debt;    /* self time that was claimed for calls inside and has not been had yet, ns */
    uint64_t merged;  /* of count, calls of other slots: their extremes are among those before */
} PKI_ALIGNED pki_slot;

_Static_assert(sizeof(pki_slot) == 6 * PKI_LINE,
               "with five chunks of 256 bytes a region takes 1664 bytes per thread");

typedef uint32_t pki_chunk[PKI_CHUNK_BUCKETS];

static inline void *pki_follow(const pki_slot *slot, pki_link link)
{
    return (char *)(uintptr_t)slot + (int64_t)link * PKI_LINE;
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

void pki_slot_clear(pki_slot *slot, uint32_t id);

/* From here on min and max are those of the calls to come; what they were so far is kept, and
 * pki_stats_add_slot knows both. By the writer. */
void pki_slot_seal(pki_slot *slot);

/* One more in that bucket. Without room it is not in any. */
void pki_slot_count_bucket(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint32_t bucket);

/* One call of so many ticks. Its bucket is last, and a reader's first (pki_stats_add_slot): whoever
 * finds it there finds it in the sums, too. */
static inline void pki_slot_count(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint64_t ticks)
{
    uint32_t bucket = pki_bucket(ticks), calls = 0;
    pki_link chunk = slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    uint32_t *counter = (uint32_t *)pki_follow(slot, chunk) + bucket % PKI_CHUNK_BUCKETS;
    pki_bump(&slot->count, 1);
    pki_slot_add_moments(slot, ticks);
    if (PKI_LIKELY(chunk))
        calls = pki_load(counter) + 1;
    if (PKI_LIKELY(calls))
        pki_store_release(counter, calls);
    else /* there is none yet, or it overflows */
        pki_slot_count_bucket(spans, pool, slot, bucket);
}

/* A call that stands for `times` of them, itself among them. */
void pki_slot_count_times(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint64_t ticks,
                          uint32_t times);

/* Adds slot `from` to slot `to`, whose pool this is. */
void pki_slot_merge(pki_spans *spans, pki_pool *pool, pki_slot *to, const pki_slot *from);

/* How many calls are in that bucket. Any thread. */
uint64_t pki_slot_bucket(const pki_slot *slot, uint32_t bucket);

/* The q-quantile of its values, by their buckets; 0 if it has none. Any thread. */
uint64_t pki_slot_quantile(const pki_slot *slot, double q);

/* Adds the slot's content to stats, in ticks: count, sum, min, max, squares (into spare[0..1]),
 * spread (into spare[2]), untimed, self, bytes, flops, buckets. pki_stats_begin before the first,
 * pki_stats_finish behind the last.
 *
 * A region uses a few of the 59 octaves, and who goes through 10,000 regions cannot look at 30 KiB
 * of buckets for each. So a word that users find 0 (pki_stats_hand_out) has a bit for each octave
 * in which there may be calls; without any, nobody has kept account, and all are looked at.
 */
#define PKI_STATS_OCTAVES 3 /* of spare */

void pki_stats_begin(pk_stats *stats);
void pki_stats_add_slot(pk_stats *stats, const pki_slot *slot);
void pki_stats_finish(pk_stats *stats, double unit_ns);

/* As pki_stats_begin, of stats that are all zero or were filled in by the functions here alone. */
void pki_stats_again(pk_stats *stats);

/* To the user, who knows nothing of octaves. */
void pki_stats_hand_out(pk_stats *stats);

/* So many calls more in a bucket. */
static inline void pki_stats_count(pk_stats *stats, uint32_t bucket, uint64_t calls)
{
    stats->buckets[bucket] += calls;
    stats->spare[PKI_STATS_OCTAVES] |= (uint64_t)1 << bucket / PKI_CHUNK_BUCKETS;
}

/* The buckets with calls, in order, and how many they are. */
size_t pki_stats_used(const pk_stats *stats, uint16_t used[PK_STATS_BUCKETS]);

/* Of finished ones. */
pki_dist pki_stats_dist(const pk_stats *stats);

/* ---- a table of distributions by name id ---- */

/* A table has one writer at a time. Readers of somebody else's table take the registry's lock,
 * under which slots are added and tables grow; buckets are added without it. */

typedef struct pki_table {
    pki_slot **slots; /* by name id; NULL where there is none */
    pki_slot *first;  /* all of them, linked */
    pki_pool pool;
    uint32_t count; /* of the array */
    uint32_t used;  /* slots */
} pki_table;

static inline pki_slot *pki_table_slot(const pki_table *t, uint32_t id)
{
    return id < t->count ? t->slots[id] : NULL;
}

static inline pki_slot *pki_table_next(const pki_slot *slot)
{
    return slot->next ? pki_follow(slot, slot->next) : NULL;
}

/* The slot of name id, made if needed: of a counter a pki_values (stats/tally.h). NULL without
 * room. */
pki_slot *pki_table_add(pki_spans *spans, pki_table *table, uint32_t id, uint32_t kind);

/* One call of so many ticks, in a slot of this table. */
static inline void pki_table_count(pki_spans *spans, pki_table *t, pki_slot *slot, uint64_t ticks)
{
    pki_slot_count(spans, &t->pool, slot, ticks);
}

/* Adds a whole table; what finds no room is left out. */
void pki_table_merge(pki_spans *spans, pki_table *to, const pki_table *from);

/* Forgets all slots; their memory is used again. */
void pki_table_reset(const pki_spans *spans, pki_table *table);
