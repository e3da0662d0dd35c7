/* lib/alloc/malloc.c - the functions of malloc, in front of whatever allocator is there.
 *
 * They lock nothing and allocate nothing themselves, so they may be called wherever the allocator
 * beneath may. errno is the allocator's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "alloc/counts.h"
#include "alloc/next.h"

#define EXPORT __attribute__((visibility("default")))

static PKI_COLD void *flush_after(void *block, uint32_t region)
{
    pki_living_flush(region);
    return block;
}

/* ---- which blocks are counted, where some stand for all (next.h) ---- */

static inline bool samples(void)
{
    /* pairs with the release in start_counting */
    return PKI_UNLIKELY(pki_load_acquire(&pki_sample_bytes) != 0);
}

/* From 1 to 2^64 - 1 (splitmix64). Seeds differ by thread and by process. */
static uint64_t draw(void)
{
    static _Thread_local uint64_t state;
    if (!state) {
        static uint64_t threads;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uintptr_t)&state;
        state ^= pki_fetch_add(&threads, 1) * UINT64_C(0xd1342543de82ef95);
    }
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) | 1;
}

/* -log2(n / 2^64), with 24 bits behind the point: a bit for each squaring. In integers, since a
 * program may watch what becomes inexact. */
static uint64_t minus_log2(uint64_t n)
{
    unsigned zeros = (unsigned)__builtin_clzll(n);
    uint64_t log = 63 - zeros, part = n << zeros >> 32; /* from 1 to 2, with 31 bits */
    for (int i = 0; i < 24; i++) {
        part = part * part >> 31;
        unsigned twice = part >> 32 != 0;
        log = log << 1 | twice;
        part >>= twice;
    }
    return (UINT64_C(64) << 24) - log;
}

/* How many bytes lie between two drawn ones: -ln(u) times the mean. */
static uint64_t draw_distance(void)
{
    const uint64_t ln2 = 11629080; /* with 24 bits */
    return (minus_log2(draw()) * ln2 >> 24) * pki_load(&pki_sample_bytes) >> 24;
}

/* The program asks for the byte that was drawn, or this thread asks for its first. */
static PKI_COLD bool is_due(size_t size)
{
    if (size >= PKI_NEXT_BELOW)
        return false;
    bool known = pki_sample_drawn;
    pki_sample_drawn = true;
    pki_sample_left = known ? pki_sample_left : draw_distance();
    if (pki_sample_skips(size))
        return false;
    pki_sample_left = draw_distance();
    return true;
}

static PKI_COLD void note_page(const void *block, int by)
{
    uint8_t *at = pki_sample_page(block), count = pki_load(at);
    while (count < UINT8_MAX &&
           !__atomic_compare_exchange_n(at, &count, (uint8_t)(count + by), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

/* False: it is none of those that were counted. */
static bool remove_sampled(const void *block, tag *t)
{
    if (!pki_load(pki_sample_page(block)) || !pki_large_remove(block, t))
        return false;
    note_page(block, -1);
    return true;
}

/* ---- counting ---- */

/* Writes down whose it is; false: that cannot be. */
static inline bool mark(void *block, size_t usable, size_t size, uint32_t region)
{
    if (usable >= PKI_LARGE) {
        bool done = PKI_LIKELY(pki_large_put(block, size, region));
        if (samples() && done)
            note_page(block, 1);
        return done;
    }
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

/* What the allocator is asked for where all are counted, and in general. */
static inline size_t with_tag(size_t size)
{
    return size < PKI_LARGE ? size + PKI_TAG_BYTES : size;
}

static inline size_t asked_for(size_t size)
{
    return samples() ? PKI_MAX(size, PKI_LARGE) : with_tag(size);
}

/* Of a block that was asked for with its tag. A large one need not tell what it holds. */
static inline void *counted(void *block, size_t size)
{
    if (PKI_UNLIKELY(!block))
        return NULL;
    return counted_as(block, size < PKI_LARGE ? pki_next.usable(block) : size, size);
}

/* As of one of malloc's and calloc's, neither aligned nor resized: what it holds may be known. */
static inline void *counted_new(void *block, size_t asked, size_t size)
{
    if (PKI_UNLIKELY(!block))
        return NULL;
    if (size >= PKI_LARGE)
        return counted_as(block, size, size);
    return counted_as(block, pki_next_usable(block, asked), size);
}

static inline bool is_counted(size_t size)
{
    /* pairs with the release in publish, as pki_next_ready */
    return PKI_LIKELY(size < pki_load_acquire(&pki_next_below));
}

static bool is_counted_otherwise(size_t size)
{
    return samples() ? is_due(size) : pki_next_is_counted_otherwise(size);
}

/* After pki_next_ready. */
static inline bool is_passed_on(size_t size)
{
    return PKI_UNLIKELY(!is_counted(size)) &&
           (pki_sample_skips(size) || !is_counted_otherwise(size));
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
    return counted_new(pki_next.malloc(with_tag(size)), with_tag(size), size);
}

static PKI_COLD void *malloc_otherwise(size_t size)
{
    if (!pki_next_ready())
        return pki_early_malloc(size);
    if (is_passed_on(size))
        return pki_next.malloc(size);
    return counted(pki_next.malloc(asked_for(size)), size);
}

/* Apart, so that who is skipped saves no register. */
static PKI_NOINLINE void *malloc_exactly(size_t size)
{
    return malloc_counted(size);
}

EXPORT void *malloc(size_t size)
{
    if (is_counted(size))
        return malloc_exactly(size);
    return pki_sample_skips(size) ? pki_next.malloc(size) : malloc_otherwise(size);
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

/* One of those that were counted begins in the same page. */
static PKI_COLD void free_perhaps_sampled(void *block)
{
    tag t;
    if (!block || pki_is_early(block))
        return;
    if (remove_sampled(block, &t) && pki_count_freed(t.region, t.size))
        pki_living_flush(t.region);
    pki_next.free(block);
}

static inline void free_sampled(void *block)
{
    if (PKI_LIKELY(!pki_load(pki_sample_page(block))))
        pki_next.free(block);
    else
        free_perhaps_sampled(block);
}

/* Amid the search nobody can have given it but the search itself. */
static PKI_COLD void free_otherwise(void *block)
{
    if (!block || pki_is_early(block) || !pki_next_ready())
        return;
    if (samples())
        free_perhaps_sampled(block);
    else if (pki_next_state == PKI_NEXT_COUNTED)
        free_counted(block);
    else
        pki_next.free(block);
}

EXPORT void free(void *block)
{
    int gave = pki_load_acquire(&pki_next_gave); /* pairs with the release in publish */
    if (PKI_LIKELY(gave == PKI_NEXT_GAVE_ALL && block))
        free_counted(block);
    else if (PKI_LIKELY(gave == PKI_NEXT_GAVE_SAMPLED))
        free_sampled(block);
    else
        free_otherwise(block);
}

EXPORT void *calloc(size_t count, size_t each)
{
    size_t size;
    if (PKI_UNLIKELY(!pki_next_ready()))
        return __builtin_mul_overflow(count, each, &size) ? NULL : pki_early_malloc(size);
    if (__builtin_mul_overflow(count, each, &size) || is_passed_on(size))
        return pki_next.calloc(count, each);
    return counted_new(WITHIN(pki_next.calloc(1, asked_for(size))), asked_for(size), size);
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

/* To 0 bytes: some allocators free it; others answer a block of none, which is in no figure. */
static void *resize_sampled(void *block, size_t size)
{
    tag t;
    bool ours = remove_sampled(block, &t), due = size && !is_passed_on(size);
    void *moved = pki_next.realloc(block, due ? asked_for(size) : size);
    if (!moved && size) {
        if (ours)
            mark(block, PKI_LARGE, t.size, t.region);
        return NULL;
    }
    if (ours && pki_count_freed(t.region, t.size))
        pki_living_flush(t.region);
    return due ? counted(moved, size) : moved;
}

EXPORT void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    if (PKI_UNLIKELY(pki_is_early(block)))
        return move_early(block, size);
    if (PKI_UNLIKELY(!pki_next_ready()))
        return NULL;
    if (samples())
        return resize_sampled(block, size);
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
    int error = WITHIN(pki_next.posix_memalign(block, alignment, asked_for(size)));
    if (!error)
        counted(*block, size);
    return error;
}

/* C11's wants a multiple of the alignment, which a size with a tag need not be. One that was none
 * before is left to the allocator. */
static size_t with_tag_in_whole(size_t alignment, size_t size)
{
    bool whole = alignment && (alignment & (alignment - 1)) == 0 && size % alignment == 0;
    return whole ? (asked_for(size) + alignment - 1) & ~(alignment - 1) : asked_for(size);
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
    return counted(WITHIN(pki_next.memalign(alignment, asked_for(size))), size);
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
    bool has_tag = !samples() && pki_next_state == PKI_NEXT_COUNTED && usable < PKI_LARGE &&
                   pki_tag_get(block, usable, &t);
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
