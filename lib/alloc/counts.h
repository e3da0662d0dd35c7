/* lib/alloc/counts.h - bytes and blocks by region: of those that live, and by whom they are added
 * up */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alloc/interface.h"
#include "base/atomic.h"
#include "base/compiler.h"

/* ---- what a small block carries ---- */

/* Its region and its size, in the last 8 bytes that the allocator has given it. Of large ones, see
 * large.h.
 *
 * Small blocks are asked for with 8 bytes more. So the program's part begins where the allocator
 * says and is aligned as it says, and malloc_usable_size answers 8 bytes less. Whether a block is
 * one of ours, a check of 32 bits over address and tag says: those that come past us (an
 * allocator's own functions, what was there before) have none, and are neither counted nor changed.
 *
 *     check: 32 | unused bytes of the block, the tag's included: 16 | region: 16 */

#define PKI_TAG_BYTES 8u

typedef struct tag {
    uint32_t region;
    size_t size;
} tag;

static inline uint32_t pki_tag_check(const void *block, uint32_t low)
{
    return (uint32_t)(((uintptr_t)block ^ low) * 0x9e3779b97f4a7c15u >> 32);
}

/* usable >= size + PKI_TAG_BYTES. */
static inline void pki_tag_put(void *block, size_t usable, size_t size, uint32_t region)
{
    uint32_t low = (uint32_t)(usable - size) << 16 | region;
    uint64_t word = (uint64_t)pki_tag_check(block, low) << 32 | low;
    memcpy((char *)block + usable - PKI_TAG_BYTES, &word, sizeof word);
}

/* False: it has none. */
static inline bool pki_tag_get(const void *block, size_t usable, tag *out)
{
    uint64_t word;
    if (PKI_UNLIKELY(usable < PKI_TAG_BYTES))
        return false;
    memcpy(&word, (const char *)block + usable - PKI_TAG_BYTES, sizeof word);
    uint32_t low = (uint32_t)word, unused = low >> 16;
    *out = (tag){low & 0xffff, usable - unused};
    return PKI_LIKELY(pki_tag_check(block, low) == word >> 32 && unused <= usable);
}

/* Whoever gets this memory next may not come past us. */
static inline void pki_tag_clear(void *block, size_t usable)
{
    memset((char *)block + usable - PKI_TAG_BYTES, 0, PKI_TAG_BYTES);
}

/* ---- region and size of large blocks, in a table by where a block begins ---- */

/* A large block is asked for as it is: so one whose size is exactly a class of the allocator's
 * stays in that class, and no line at its end is touched that its owner may never touch. Large are
 * those that hold so much that no two of them begin in the same KiB of addresses. Each KiB has a
 * word, which is written by who has the block alone, as the block itself is. It is read by whoever
 * frees a small block of the same KiB, too, which another start, or none, tells from this one:
 *
 *     size: 41 | 1 | start: 6 | region: 16; 0: no large block of ours begins here
 *
 * The words of 512 MiB of addresses lie together, in 4 MiB of which only the pages that are written
 * to take memory: 8 bytes for each KiB, as much as a tag. */

/* As blocks begin at multiples of 16, those of 1017 bytes are 1024 apart. */
#define PKI_LARGE 1017u

#define PKI_LARGE_GRAIN 10     /* log2 of what a word is for */
#define PKI_LARGE_PART 29      /* and of what a part of the table is for */
#define PKI_LARGE_ADDRESSES 48 /* a program's own; above are tags of the processor's (arm64) */
#define PKI_LARGE_SIZES 41     /* log2: of larger ones (2 TiB), none is written down */
#define PKI_LARGE_PARTS (1u << (PKI_LARGE_ADDRESSES - PKI_LARGE_PART))
#define PKI_LARGE_WORDS (1u << (PKI_LARGE_PART - PKI_LARGE_GRAIN))
#define PKI_LARGE_UNASKED 1023u /* blocks that do without room before it is asked for again */

extern uint64_t *pki_large_parts[PKI_LARGE_PARTS];

/* Of the block's part; NULL: there is no room for it. */
PKI_COLD uint64_t *pki_large_make(const void *block);
PKI_COLD bool pki_large_miss(void);
uint64_t pki_large_missed(void);

static inline uint64_t **pki_large_part(const void *block)
{
    return &pki_large_parts[(uintptr_t)block >> PKI_LARGE_PART & (PKI_LARGE_PARTS - 1)];
}

/* Not in the order of addresses: blocks lie at multiples of powers of two, and their words would
 * meet in a few sets of the caches. */
static inline uint64_t *pki_large_word(uint64_t *part, const void *block)
{
    uintptr_t at = (uintptr_t)block >> PKI_LARGE_GRAIN & (PKI_LARGE_WORDS - 1);
    return &part[at ^ at >> 6];
}

static inline uint64_t pki_large_start(const void *block)
{
    return (uintptr_t)block << 12 & 0x3f0000;
}

/* In each word, so that none of a block is 0, not that of one of no bytes either. */
#define PKI_LARGE_ONE (UINT64_C(1) << 22)

/* False: it is not written down, and that is counted. */
static inline bool pki_large_put(const void *block, size_t size, uint32_t region)
{
    /* pairs with the release in pki_large_make */
    uint64_t *part = pki_load_acquire(pki_large_part(block));
    if (PKI_UNLIKELY(!part) && !(part = pki_large_make(block)))
        return pki_large_miss();
    if (PKI_UNLIKELY(size >> PKI_LARGE_SIZES))
        return pki_large_miss();
    uint64_t word = ((uint64_t)size << 23) + region + PKI_LARGE_ONE;
    pki_store(pki_large_word(part, block), word + pki_large_start(block));
    return true;
}

/* Takes it out. False: it is none of ours, or a small one. */
static inline bool pki_large_remove(const void *block, tag *out)
{
    uint64_t *part = pki_load_acquire(pki_large_part(block)); /* as above */
    if (PKI_UNLIKELY(!part))
        return false;
    uint64_t *at = pki_large_word(part, block), word = pki_load(at);
    if (((word - pki_large_start(block)) & 0x7f0000) != PKI_LARGE_ONE)
        return false;
    pki_store(at, UINT64_C(0));
    *out = (tag){(uint32_t)word & 0xffff, word >> 23};
    return true;
}

/* ---- bytes and blocks by region, counted by whoever allocates or frees ---- */

/* Each thread has a shard of its own, with a cell for each region, which it alone writes: no locked
 * instruction. A block that another thread frees is counted as freed in that thread's shard, in the
 * cell of the region that it was allocated in; so sums over shards are exact, and no single cell
 * means anything. A thread that ends leaves its shard, with what is in it, to the next one.
 *
 * What lives at this moment, which peaks need, would take a sum over all shards. So each cell adds
 * what it has collected to the region's common word whenever that reaches the shard's step, and the
 * thread does so for the total. What has not been flushed bounds the error of peaks, so a program
 * of many threads gets shards with smaller steps (counts.c).
 *
 * A shard has room for the first PKI_ALLOC_NEAR regions, and asks for more where there are more. */

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

/* That one: the thread has none yet, or no more. No region is near there. */
extern _Thread_local shard *pki_shard;

extern uint32_t (*pki_region_of)(void); /* never NULL */

static inline uint32_t pki_alloc_region(void)
{
    return pki_load(&pki_region_of)();
}

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
