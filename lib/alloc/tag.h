/* lib/alloc/tag.h - what a block carries: its region and its size, in the last 8 bytes that the
 * allocator has given it.
 *
 * Blocks are asked for with 8 bytes more. So the program's part begins where the allocator says and
 * is aligned as it says, and malloc_usable_size answers 8 bytes less. Whether a block is one of
 * ours, a check of 32 bits over address and tag says: those that come past us (an allocator's own
 * functions, what was there before) have none, and are neither counted nor changed.
 *
 *     check: 32 | unused bytes of the block, the tag's included: 16 | region: 16
 *
 * A block with more unused bytes than that has its size in the 8 bytes before the tag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#define PKI_TAG_BYTES 8u
#define PKI_TAG_FAR 0xffffu

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
    char *end = (char *)block + usable;
    size_t unused = usable - size;
    if (PKI_UNLIKELY(unused >= PKI_TAG_FAR)) {
        uint64_t whole = size;
        memcpy(end - 2 * PKI_TAG_BYTES, &whole, sizeof whole);
        unused = PKI_TAG_FAR;
    }
    uint32_t low = (uint32_t)unused << 16 | region;
    uint64_t word = (uint64_t)pki_tag_check(block, low) << 32 | low;
    memcpy(end - PKI_TAG_BYTES, &word, sizeof word);
}

/* False: it has none. */
static inline bool pki_tag_get(const void *block, size_t usable, tag *out)
{
    const char *end = (const char *)block + usable;
    uint64_t word, whole;
    if (PKI_UNLIKELY(usable < PKI_TAG_BYTES))
        return false;
    memcpy(&word, end - PKI_TAG_BYTES, sizeof word);
    uint32_t low = (uint32_t)word, unused = low >> 16;
    if (PKI_UNLIKELY(pki_tag_check(block, low) != word >> 32 || unused > usable))
        return false;
    *out = (tag){low & 0xffff, usable - unused};
    if (PKI_UNLIKELY(unused == PKI_TAG_FAR)) {
        memcpy(&whole, end - 2 * PKI_TAG_BYTES, sizeof whole);
        out->size = whole;
    }
    return true;
}

/* Whoever gets this memory next may not come past us. */
static inline void pki_tag_clear(void *block, size_t usable)
{
    memset((char *)block + usable - PKI_TAG_BYTES, 0, PKI_TAG_BYTES);
}

/* How much of it is the program's. */
static inline size_t pki_tag_usable(size_t usable, const tag *t)
{
    bool far = usable - t->size >= PKI_TAG_FAR;
    return usable - (far ? 2 * PKI_TAG_BYTES : PKI_TAG_BYTES);
}
