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

#define EXPORT __attribute__((visibility("default")))

static PKI_COLD void *flush_after(void *block, uint32_t region)
{
    pki_living_flush(region);
    return block;
}

/* Writes down whose it is; false: that cannot be. */
static inline bool mark(void *block, size_t usable, size_t size, uint32_t region)
{
    if (usable >= PKI_LARGE)
        return PKI_LIKELY(pki_large_put(block, size, region));
    pki_tag_put(block, usable, size, region);
    return true;
}

static inline void *counted_as(void *block, size_t usable, size_t size)
{
    uint32_t region = pki_alloc_region();
    bool flush_is_due =
        mark(block, usable, size, region) && PKI_UNLIKELY(pki_count_allocated(region, size));
    return PKI_UNLIKELY(flush_is_due) ? flush_after(block, region) : block;
}

/* What the allocator is asked for. */
static inline size_t with_tag(size_t size)
{
    return size < PKI_LARGE ? size + PKI_TAG_BYTES : size;
}

/* Of a block that was asked for with its tag. A large one need not tell what it holds. */
static inline void *counted(void *block, size_t size)
{
    if (PKI_UNLIKELY(!block))
        return NULL;
    return counted_as(block, size < PKI_LARGE ? pki_next.usable(block) : size, size);
}

/* As of one of malloc's and calloc's, neither aligned nor resized: what it holds may be known. */
static inline void *counted_new(void *block, size_t size)
{
    if (PKI_UNLIKELY(!block))
        return NULL;
    if (size >= PKI_LARGE)
        return counted_as(block, size, size);
    return counted_as(block, pki_next_usable(block, size + PKI_TAG_BYTES), size);
}

static inline bool is_counted(size_t size)
{
    /* pairs with the release in publish, as pki_next_ready */
    return PKI_LIKELY(size < pki_load_acquire(&pki_next_below));
}

/* After pki_next_ready. */
static inline bool is_passed_on(size_t size)
{
    return PKI_UNLIKELY(!is_counted(size)) && !pki_next_is_counted_otherwise(size);
}

/* The call beneath may call us: see pki_next_within. */
#define WITHIN(call)                                                                               \
    __extension__({                                                                                \
        pki_next_within = true;                                                                    \
        __typeof__(call) answer = call;                                                            \
        pki_next_within = false;                                                                   \
        answer;                                                                                    \
    })

static inline void *malloc_counted(size_t size)
{
    return counted_new(pki_next.malloc(with_tag(size)), size);
}

static PKI_COLD void *malloc_otherwise(size_t size)
{
    if (!pki_next_ready())
        return pki_early_malloc(size);
    return is_passed_on(size) ? pki_next.malloc(size) : malloc_counted(size);
}

EXPORT void *malloc(size_t size)
{
    return PKI_UNLIKELY(!is_counted(size)) ? malloc_otherwise(size) : malloc_counted(size);
}

static inline bool remove_small(void *block, size_t usable, tag *t)
{
    if (usable >= PKI_LARGE || !pki_tag_get(block, usable, t))
        return false;
    pki_tag_clear(block, usable);
    return true;
}

static PKI_COLD void free_telling_large(void *block, uint32_t region)
{
    pki_living_flush(region);
    pki_next.free(block);
}

static PKI_COLD void free_telling_small(void *block, size_t usable, uint32_t region)
{
    pki_living_flush(region);
    pki_next_free(block, usable);
}

/* Takes it out of the figures, if it is in them. */
static inline void free_counted(void *block)
{
    tag t;
    if (pki_large_remove(block, &t)) {
        if (PKI_UNLIKELY(pki_count_freed(t.region, t.size)))
            free_telling_large(block, t.region);
        else
            pki_next.free(block);
        return;
    }
    size_t usable = pki_next.usable(block);
    if (PKI_LIKELY(remove_small(block, usable, &t)) &&
        PKI_UNLIKELY(pki_count_freed(t.region, t.size)))
        free_telling_small(block, usable, t.region);
    else
        pki_next_free(block, usable);
}

/* Amid the search nobody can have given it but the search itself. */
static PKI_COLD void free_otherwise(void *block)
{
    if (!block || pki_is_early(block) || !pki_next_ready())
        return;
    if (pki_next_state == PKI_NEXT_COUNTED)
        free_counted(block);
    else
        pki_next.free(block);
}

EXPORT void free(void *block)
{
    /* pairs with the release in publish */
    if (PKI_UNLIKELY(!block || !pki_load_acquire(&pki_next_gave_all)))
        free_otherwise(block);
    else
        free_counted(block);
}

EXPORT void *calloc(size_t count, size_t each)
{
    size_t size;
    if (PKI_UNLIKELY(!pki_next_ready()))
        return __builtin_mul_overflow(count, each, &size) ? NULL : pki_early_malloc(size);
    if (__builtin_mul_overflow(count, each, &size) || is_passed_on(size))
        return pki_next.calloc(count, each);
    return counted_new(WITHIN(pki_next.calloc(1, with_tag(size))), size);
}

static void *move_early(const void *block, size_t size)
{
    void *moved = malloc(size);
    size_t before = pki_early_size(block);
    if (moved)
        memcpy(moved, block, PKI_MIN(before, size));
    return moved;
}

static bool remove_tag(void *block, size_t usable, tag *t)
{
    return pki_large_remove(block, t) || remove_small(block, usable, t);
}

/* A block that has been moved or resized is a new one: it belongs to the region that asked. */
static void *resize(void *block, size_t size)
{
    tag t;
    size_t usable = pki_next.usable(block);
    bool ours = remove_tag(block, usable, &t);
    void *moved = WITHIN(pki_next.realloc(block, with_tag(size)));
    if (!moved) {
        if (ours)
            mark(block, usable, t.size, t.region);
        return NULL;
    }
    if (ours && pki_count_freed(t.region, t.size))
        pki_living_flush(t.region);
    return counted(moved, size);
}

/* To 0 bytes: some allocators free it, others do not. */
static void *resize_to_nothing(void *block)
{
    tag t;
    if (remove_tag(block, pki_next.usable(block), &t) && pki_count_freed(t.region, t.size))
        pki_living_flush(t.region);
    return WITHIN(pki_next.realloc(block, 0));
}

EXPORT void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    if (PKI_UNLIKELY(pki_is_early(block)))
        return move_early(block, size);
    if (PKI_UNLIKELY(!pki_next_ready()))
        return NULL;
    if (is_passed_on(size))
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
    if (is_passed_on(size))
        return pki_next.posix_memalign(block, alignment, size);
    int error = WITHIN(pki_next.posix_memalign(block, alignment, with_tag(size)));
    if (!error)
        counted(*block, size);
    return error;
}

/* C11's wants a multiple of the alignment, which a size with a tag need not be. One that was none
 * before is left to the allocator. */
static size_t with_tag_in_whole(size_t alignment, size_t size)
{
    bool whole = alignment && (alignment & (alignment - 1)) == 0 && size % alignment == 0;
    return whole ? (with_tag(size) + alignment - 1) & ~(alignment - 1) : with_tag(size);
}

/* Not by memalign: musl's memalign calls aligned_alloc, that is this one. */
EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!pki_next_ready())
        return NULL;
    if (is_passed_on(size))
        return pki_next.aligned_alloc(alignment, size);
    size_t asked = with_tag_in_whole(alignment, size);
    return counted(WITHIN(pki_next.aligned_alloc(alignment, asked)), size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (!pki_next_ready())
        return NULL;
    if (is_passed_on(size))
        return pki_next.memalign(alignment, size);
    return counted(WITHIN(pki_next.memalign(alignment, with_tag(size))), size);
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
    return memalign(page(), size >= PKI_NEXT_BELOW ? size : whole);
}

EXPORT size_t malloc_usable_size(void *block)
{
    tag t;
    if (!block || !pki_next_ready())
        return 0;
    if (pki_is_early(block))
        return pki_early_size(block);
    size_t usable = pki_next.usable(block);
    bool has_tag =
        pki_next_state == PKI_NEXT_COUNTED && usable < PKI_LARGE && pki_tag_get(block, usable, &t);
    return has_tag ? usable - PKI_TAG_BYTES : usable;
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
