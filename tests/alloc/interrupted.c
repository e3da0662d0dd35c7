/* An allocator that may be called wherever one is: it gives what has not been given, and takes
 * nothing back. So what locks up on it is whoever stands in front. It calls `interrupted_by` amid
 * each of its calls.
 *
 * NESTING: one that nobody interrupts, and that is built as musl's is, and more so: calloc, realloc
 * and the aligned functions call the program's malloc, free and aligned_alloc. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BYTES (UINT64_C(1) << 28) /* of address space */
#define EXPORT __attribute__((visibility("default")))

#ifdef NESTING
static void (*interrupted_by)(void);
#else
EXPORT void (*interrupted_by)(void);
#endif

static char room[BYTES] __attribute__((aligned(4096)));
static size_t used;

static void interrupt(void)
{
    if (interrupted_by)
        interrupted_by();
}

static size_t *size_of(void *block)
{
    return (size_t *)block - 1;
}

static void *take(size_t alignment, size_t size)
{
    size_t by = alignment < 16 ? 16 : alignment, most = BYTES / 2;
    if (size > most || by > most) {
        errno = ENOMEM;
        return NULL;
    }
    size_t at = __atomic_fetch_add(&used, size + 2 * by, __ATOMIC_RELAXED);
    interrupt();
    if (at > BYTES - size - 2 * by) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = ((uintptr_t)(room + at) + 16 + by - 1) & ~(uintptr_t)(by - 1);
    *size_of((void *)block) = (size + 7) & ~(size_t)7;
    return (void *)block;
}

EXPORT void *malloc(size_t size);
EXPORT void free(void *block);
EXPORT void *calloc(size_t count, size_t each);
EXPORT void *realloc(void *block, size_t size);
EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT int posix_memalign(void **block, size_t alignment, size_t size);
EXPORT size_t malloc_usable_size(void *block);

void *malloc(size_t size)
{
    return take(16, size);
}

void free(void *block)
{
    (void)block;
    interrupt();
}

#ifdef NESTING
#define MALLOC malloc
#define FREE free
#define ALIGNED aligned_alloc
#else
#define MALLOC(size) take(16, size)
#define FREE(block) (void)(block)
#define ALIGNED take
#endif

void *calloc(size_t count, size_t each)
{
    size_t size;
    if (__builtin_mul_overflow(count, each, &size))
        size = SIZE_MAX;
    void *block = MALLOC(size);
    return block ? memset(block, 0, size) : NULL;
}

void *realloc(void *block, size_t size)
{
    void *moved = MALLOC(size);
    if (block && moved) {
        memcpy(moved, block, *size_of(block) < size ? *size_of(block) : size);
        FREE(block);
    }
    return moved;
}

void *memalign(size_t alignment, size_t size)
{
    return ALIGNED(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || (alignment & (alignment - 1)) || !alignment)
        return EINVAL;
    *block = ALIGNED(alignment, size);
    return *block ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block)
{
    interrupt();
    return block ? *size_of(block) : 0;
}
