/* lib/alloc/tag.h - what a small block carries: its region and its size, in the last 8 bytes that
 * the allocator has given it. Of large ones, see large.h.
 *
 * Small blocks are asked for with 8 bytes more. So the program's part begins where the allocator
 * says and is aligned as it says, and malloc_usable_size answers 8 bytes less. Whether a block is
 * one of ours, a check of 32 bits over address and tag says: those that come past us (an
 * allocator's own functions, what was there before) have none, and are neither counted nor changed.
 *
 *     check: 32 | unused bytes of the block, the tag's included: 16 | region: 16
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

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
