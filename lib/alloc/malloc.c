/* lib/alloc/malloc.c - the functions of malloc, in front of whatever allocator is there.
 *
 * They lock nothing and allocate nothing themselves, so they may be called wherever the allocator
 * beneath may. errno is the allocator's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc/counts.h"
#include "alloc/next.h"
#include "alloc/tag.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST ((size_t)PTRDIFF_MAX - 65536) /* what is larger, the allocator may refuse itself */

static PKI_COLD void *telling(void *block, uint32_t region)
{
    pki_tell(region);
    return block;
}

static inline void *tagged_in(void *block, size_t usable, size_t size)
{
    uint32_t region = pki_alloc_region();
    pki_tag_put(block, usable, size, region);
    return PKI_UNLIKELY(pki_count_allocated(region, size)) ? telling(block, region) : block;
}

static inline void *tagged(void *block, size_t size)
{
    return PKI_LIKELY(block) ? tagged_in(block, pki_next.usable(block), size) : NULL;
}

/* Of malloc and calloc, neither aligned nor resized: what it holds may be known. */
static inline void *tagged_new(void *block, size_t size)
{
    if (PKI_UNLIKELY(!block))
        return NULL;
    return tagged_in(block, pki_next_usable(block, size + PKI_TAG_BYTES), size);
}

static inline bool is_counted(size_t size)
{
    /* acquires the table, as pki_next_ready */
    return PKI_LIKELY(pki_load_acquire(&pki_next_state) == PKI_NEXT_COUNTED && size <= MOST);
}

static PKI_COLD void *malloc_otherwise(size_t size)
{
    if (!pki_next_ready())
        return pki_early_malloc(size);
    return is_counted(size) ? malloc(size) : pki_next.malloc(size);
}

EXPORT void *malloc(size_t size)
{
    if (PKI_UNLIKELY(!is_counted(size)))
        return malloc_otherwise(size);
    return tagged_new(pki_next.malloc(size + PKI_TAG_BYTES), size);
}

/* Takes it out of the figures, if it is in them. */
static inline bool take(void *block, size_t usable, tag *t)
{
    if (!pki_tag_get(block, usable, t))
        return false;
    pki_tag_clear(block, usable);
    return true;
}

/* Amid the search nobody can have given it but the search itself. */
static PKI_COLD void free_otherwise(void *block)
{
    if (!pki_is_early(block) && pki_next_ready())
        pki_next.free(block);
}

static PKI_COLD void free_telling(void *block, size_t usable, uint32_t region)
{
    pki_tell(region);
    pki_next_free(block, usable);
}

EXPORT void free(void *block)
{
    tag t;
    if (PKI_UNLIKELY(!block))
        return;
    if (PKI_UNLIKELY(!is_counted(0) || pki_is_early(block))) {
        free_otherwise(block);
        return;
    }
    size_t usable = pki_next.usable(block);
    if (PKI_LIKELY(take(block, usable, &t)) && PKI_UNLIKELY(pki_count_freed(t.region, t.size)))
        free_telling(block, usable, t.region);
    else
        pki_next_free(block, usable);
}

EXPORT void *calloc(size_t count, size_t each)
{
    size_t size;
    if (PKI_UNLIKELY(!pki_next_ready()))
        return __builtin_mul_overflow(count, each, &size) ? NULL : pki_early_malloc(size);
    if (__builtin_mul_overflow(count, each, &size) || !is_counted(size))
        return pki_next.calloc(count, each);
    return tagged_new(pki_next.calloc(1, size + PKI_TAG_BYTES), size);
}

static void *move_early(const void *block, size_t size)
{
    void *moved = malloc(size);
    size_t before = pki_early_size(block);
    if (moved)
        memcpy(moved, block, PKI_MIN(before, size));
    return moved;
}

/* A block that has been moved or resized is a new one: it belongs to the region that asked. */
static void *resize(void *block, size_t size)
{
    tag t;
    size_t usable = pki_next.usable(block);
    bool ours = take(block, usable, &t);
    void *moved = pki_next.realloc(block, size + PKI_TAG_BYTES);
    if (!moved) {
        if (ours)
            pki_tag_put(block, usable, t.size, t.region);
        return NULL;
    }
    if (ours && pki_count_freed(t.region, t.size))
        pki_tell(t.region);
    return tagged(moved, size);
}

/* To 0 bytes: some allocators free it, others do not. */
static void *resize_to_nothing(void *block)
{
    tag t;
    if (take(block, pki_next.usable(block), &t) && pki_count_freed(t.region, t.size))
        pki_tell(t.region);
    return pki_next.realloc(block, 0);
}

EXPORT void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    if (PKI_UNLIKELY(pki_is_early(block)))
        return move_early(block, size);
    if (PKI_UNLIKELY(!pki_next_ready()))
        return NULL;
    if (!is_counted(size))
        return pki_next.realloc(block, size);
    return size ? resize(block, size) : resize_to_nothing(block);
}

EXPORT void *reallocarray(void *block, size_t count, size_t each)
{
    size_t size;
    if (__builtin_mul_overflow(count, each, &size)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, size);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (PKI_UNLIKELY(!pki_next_ready()))
        return ENOMEM;
    bool counted = is_counted(size);
    int error = pki_next.posix_memalign(block, alignment, size + (counted ? PKI_TAG_BYTES : 0));
    if (!error && counted)
        tagged(*block, size);
    return error;
}

static void *aligned(void *(*by)(size_t, size_t), size_t alignment, size_t size)
{
    if (!is_counted(size))
        return by(alignment, size);
    return tagged(by(alignment, size + PKI_TAG_BYTES), size);
}

/* C11's wants a multiple of the alignment, which a size with a tag is not. */
EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!pki_next_ready())
        return NULL;
    bool whole = alignment && (alignment & (alignment - 1)) == 0 && size % alignment == 0;
    return aligned(whole ? pki_next.memalign : pki_next.aligned_alloc, alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return pki_next_ready() ? aligned(pki_next.memalign, alignment, size) : NULL;
}

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

EXPORT void *valloc(size_t size)
{
    return memalign(page(), size);
}

void *pvalloc(size_t size); /* musl has none, and declares none */

EXPORT void *pvalloc(size_t size)
{
    size_t whole = (size + page() - 1) & ~(page() - 1);
    return memalign(page(), size > MOST ? size : whole);
}

EXPORT size_t malloc_usable_size(void *block)
{
    tag t;
    if (!block || !pki_next_ready())
        return 0;
    if (pki_is_early(block))
        return pki_early_size(block);
    size_t usable = pki_next.usable(block);
    bool ours = is_counted(0) && pki_tag_get(block, usable, &t);
    return ours ? pki_tag_usable(usable, &t) : usable;
}

/* ---- who says the size would say ours less the tag ---- */

EXPORT void sdallocx(void *block, size_t size, int flags);
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);

void sdallocx(void *block, size_t size, int flags)
{
    (void)size, (void)flags;
    free(block);
}

void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    free(block);
}
