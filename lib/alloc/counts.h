/* lib/alloc/counts.h - bytes and blocks by region, counted by whoever allocates or frees.
 *
 * Each thread has a shard of its own, with a cell for each region, which it alone writes: no locked
 * instruction. A block that another thread frees is counted as freed in that thread's shard, in the
 * cell of the region that it was allocated in; so sums over shards are exact, and no single cell
 * means anything. A thread that ends leaves its shard, with what is in it, to the next one.
 *
 * What lives at this moment, which peaks need, would take a sum over all shards. So each cell tells
 * the region's common word whenever PKI_ALLOC_STEP bytes have come together that it has not told
 * of, and the thread does so for the total.
 */
#pragma once

#include <stdbool.h>

#include "alloc/interface.h"
#include "base/atomic.h"
#include "base/compiler.h"

#define PKI_ALLOC_STEP 65536

typedef struct cell {
    uint64_t allocations, bytes, frees, freed;
    int64_t untold; /* of bytes - freed */
} cell;

typedef struct shard {
    struct shard *next;
    uint32_t taken;   /* by a thread that lives */
    uint32_t regions; /* ids below have been counted here */
    int64_t untold;   /* of all regions together */
    cell cells[PKI_ALLOC_REGIONS];
} shard;

extern _Thread_local shard *pki_shard; /* NULL: none yet, or no more */
extern uint32_t (*pki_region_of)(void);

static inline uint32_t pki_alloc_region(void)
{
    uint32_t (*ask)(void) = pki_load(&pki_region_of);
    return ask ? ask() : 0;
}

PKI_COLD void pki_tell_region(cell *c, uint32_t region);
PKI_COLD void pki_tell_total(shard *s);
/* Of the calling thread's shard, which it has. */
PKI_COLD void pki_tell(uint32_t region);

/* For a thread without a shard: it gets one, if that can be. As the two below. */
PKI_COLD bool pki_count_allocated_first(uint32_t region, uint64_t bytes);
PKI_COLD bool pki_count_freed_first(uint32_t region, uint64_t bytes);

static inline bool pki_is_much(int64_t untold)
{
    return (uint64_t)untold + PKI_ALLOC_STEP > 2u * PKI_ALLOC_STEP;
}

static inline bool pki_count_in(shard *s, cell *c, uint32_t region, int64_t bytes)
{
    int64_t untold = c->untold + bytes, total = s->untold + bytes;
    if (PKI_UNLIKELY(region >= s->regions))
        pki_store(&s->regions, region + 1);
    pki_store(&c->untold, untold);
    pki_store(&s->untold, total);
    return PKI_UNLIKELY(pki_is_much(total)) || PKI_UNLIKELY(pki_is_much(untold));
}

static inline bool pki_count_allocated_in(shard *s, uint32_t region, uint64_t bytes)
{
    cell *c = &s->cells[region];
    pki_bump(&c->allocations, 1);
    pki_bump(&c->bytes, bytes);
    return pki_count_in(s, c, region, (int64_t)bytes);
}

static inline bool pki_count_freed_in(shard *s, uint32_t region, uint64_t bytes)
{
    cell *c = &s->cells[region];
    pki_bump(&c->frees, 1);
    pki_bump(&c->freed, bytes);
    return pki_count_in(s, c, region, -(int64_t)bytes);
}

/* True: the caller tells (pki_tell), as the last that it does: so the usual way saves nothing. */
static inline bool pki_count_allocated(uint32_t region, uint64_t bytes)
{
    shard *s = pki_shard;
    return PKI_LIKELY(s) ? pki_count_allocated_in(s, region, bytes)
                         : pki_count_allocated_first(region, bytes);
}

static inline bool pki_count_freed(uint32_t region, uint64_t bytes)
{
    shard *s = pki_shard;
    return PKI_LIKELY(s) ? pki_count_freed_in(s, region, bytes)
                         : pki_count_freed_first(region, bytes);
}
