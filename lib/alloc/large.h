/* lib/alloc/large.h - region and size of large blocks, in a table by where a block begins.
 *
 * A large block is asked for as it is: so one whose size is exactly a class of the allocator's
 * stays in that class, and no line at its end is touched that its owner may never touch. Large are
 * those that hold so much that no two of them begin in the same KiB of addresses. Each KiB has a
 * word, which is written by who has the block alone, as the block itself is. It is read by whoever
 * frees a small block of the same KiB, too, which another start, or none, tells from this one:
 *
 *     size: 41 | 1 | start: 6 | region: 16; 0: no large block of ours begins here
 *
 * The words of 512 MiB of addresses lie together, in 4 MiB of which only the pages that are written
 * to take memory: 8 bytes for each KiB, as much as a tag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/tag.h"
#include "base/atomic.h"
#include "base/compiler.h"

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
