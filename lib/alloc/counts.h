/* lib/alloc/counts.h - bytes and blocks by region, counted by whoever allocates or frees.
 *
 * Each thread has a shard of its own, with a cell for each region, which it alone writes: no locked
 * instruction. A block that another thread frees is counted as freed in that thread's shard, in the
 * cell of the region that it was allocated in; so sums over shards are exact, and no single cell
 * means anything. A thread that ends leaves its shard, with what is in it, to the next one.
 *
 * What lives at this moment, which peaks need, would take a sum over all shards. So each cell adds
 * what it has collected to the region's common word whenever that reaches the shard's step, and the
 * thread does so for the total. What has not been flushed bounds the error of peaks, so a program
 * of many threads gets shards with smaller steps (shards.c).
 *
 * A shard has room for the first PKI_ALLOC_NEAR regions, and asks for more where there are more.
 */
#pragma once

#include <stdbool.h>

#include "alloc/interface.h"
#include "base/atomic.h"
#include "base/compiler.h"

#define PKI_ALLOC_NEAR 4096u

typedef struct cell {
    uint64_t allocations, bytes, frees, freed;
    int64_t unflushed; /* of bytes - freed */
} cell;

typedef struct shard {
    uint32_t near;     /* ids below have been counted here, of the first PKI_ALLOC_NEAR ones */
    uint32_t regions;  /* and of all */
    int64_t unflushed; /* of all regions together */
    uint64_t step, twice;
    struct shard *next;
    uint32_t taken; /* by a thread that lives */
    cell *far[PKI_ALLOC_REGIONS / PKI_ALLOC_NEAR - 1];
    cell cells[PKI_ALLOC_NEAR];
} shard;

/* Of threads for which there was no room, and of what threads do on their last way out. Several
 * write it at once. */
extern shard pki_shard_of_others;

/* That one: the thread has none yet, or no more. No region is near there. */
extern _Thread_local shard *pki_shard;

extern uint32_t (*pki_region_of)(void); /* never NULL */

static inline uint32_t pki_alloc_region(void)
{
    return pki_load(&pki_region_of)();
}

PKI_COLD void pki_living_flush_region(cell *c, uint32_t region);
PKI_COLD void pki_living_flush_total(shard *s);
/* Of the calling thread's shard, which it has. */
PKI_COLD void pki_living_flush(uint32_t region);

/* For a thread without a shard, which gets one if that can be, and for a region that its shard does
 * not know. As the two below. */
PKI_COLD bool pki_count_allocated_first(uint32_t region, uint64_t bytes);
PKI_COLD bool pki_count_freed_first(uint32_t region, uint64_t bytes);

static inline bool pki_is_much(const shard *s, int64_t unflushed)
{
    return (uint64_t)unflushed + s->step > s->twice;
}

static inline bool pki_count_in(shard *s, cell *c, int64_t bytes)
{
    int64_t unflushed = c->unflushed + bytes, total = s->unflushed + bytes;
    pki_store(&c->unflushed, unflushed);
    pki_store(&s->unflushed, total);
    return PKI_UNLIKELY(pki_is_much(s, total)) || PKI_UNLIKELY(pki_is_much(s, unflushed));
}

static inline bool pki_count_allocated_in(shard *s, cell *c, uint64_t bytes)
{
    pki_bump(&c->allocations, 1);
    pki_bump(&c->bytes, bytes);
    return pki_count_in(s, c, (int64_t)bytes);
}

static inline bool pki_count_freed_in(shard *s, cell *c, uint64_t bytes)
{
    pki_bump(&c->frees, 1);
    pki_bump(&c->freed, bytes);
    return pki_count_in(s, c, -(int64_t)bytes);
}

/* True: the caller flushes (pki_living_flush), as the last that it does: so the usual way saves
 * nothing. */
static inline bool pki_count_allocated(uint32_t region, uint64_t bytes)
{
    shard *s = pki_shard;
    return PKI_LIKELY(region < s->near) ? pki_count_allocated_in(s, &s->cells[region], bytes)
                                        : pki_count_allocated_first(region, bytes);
}

static inline bool pki_count_freed(uint32_t region, uint64_t bytes)
{
    shard *s = pki_shard;
    return PKI_LIKELY(region < s->near) ? pki_count_freed_in(s, &s->cells[region], bytes)
                                        : pki_count_freed_first(region, bytes);
}
