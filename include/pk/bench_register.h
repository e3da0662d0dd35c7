/* pk/bench_register.h - how pk/bench.h's macros do it: tables that constructors hand to the
 * library, and functions in front of malloc. Nothing in here is for direct use. */
#ifndef PK_BENCH_REGISTER_H
#define PK_BENCH_REGISTER_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pk_bench_run;
struct pk_bench_options;

/* A run of values: `count` of them at `values`, or from, to and by in the first three. */
typedef struct pk_bench_axis {
    const char *key;
    uint32_t kind;
    uint32_t count;
    const int64_t *values;
    struct pk_bench_axis *next;
    uint64_t spare[2]; /* 0; for later versions */
} pk_bench_axis;

enum {
    PK_BENCH_AXIS_LIST_ = 0,
    PK_BENCH_AXIS_TIMES_ = 1,
    PK_BENCH_AXIS_STEPS_ = 2,
    PK_BENCH_AXIS_THREADS_ = 3
};

typedef struct pk_bench_entry {
    const char *name;
    void (*body)(struct pk_bench_run *bench);
    const char *compiler, *flags; /* what it was compiled by, and how */
    int optimized;
    void (*options)(struct pk_bench_options *options);
    const struct pk_bench_options *fixed;
    struct pk_bench_axis *axes;
    struct pk_bench_entry *next;
    uint64_t spare[2]; /* 0; for later versions */
} pk_bench_entry;

PK_API void pk_bench_register_(pk_bench_entry *entry);
PK_API void pk_bench_attach_(pk_bench_entry *entry, pk_bench_axis *axis);

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_BENCH_REGISTER_
#include <pk/disable_bench.h>
#define PK_BENCH_AT_LOAD_ __attribute__((unused))
#else
#define PK_BENCH_AT_LOAD_ __attribute__((constructor))
#endif

#ifdef __clang__
#define PK_BENCH_COMPILER_ __VERSION__
#else
#define PK_BENCH_COMPILER_ "gcc " __VERSION__
#endif
#ifdef __OPTIMIZE__
#define PK_BENCH_OPTIMIZED_ 1
#else
#define PK_BENCH_OPTIMIZED_ 0
#endif

/* Asks the compiler for that many copies of a loop's body. */
#define PK_BENCH_PRAGMA_(text) _Pragma(#text)
#ifdef __clang__
#define PK_BENCH_COPIES_(n) PK_BENCH_PRAGMA_(clang loop unroll_count(n))
#elif __GNUC__ >= 8
#define PK_BENCH_COPIES_(n) PK_BENCH_PRAGMA_(GCC unroll n)
#else
#define PK_BENCH_COPIES_(n)
#endif
#define PK_BENCH_UNROLLED_ PK_BENCH_COPIES_(PK_BENCH_UNROLL)

#define PK_BENCH_JOIN_(a, b) PK_BENCH_JOIN2_(a, b)
#define PK_BENCH_JOIN2_(a, b) a##b
#define PK_BENCH_AXIS_(name, key, kind, n, ...)                                                    \
    PK_BENCH_AXIS_AT_(name, key, kind, PK_BENCH_JOIN_(pk_bench_values_, n),                        \
                      PK_BENCH_JOIN_(pk_bench_axis_, n), PK_BENCH_JOIN_(pk_bench_attach_axis_, n), \
                      __VA_ARGS__)
#define PK_BENCH_AXIS_AT_(name, key, kind, values, axis, attach, ...)                              \
    static const int64_t values[] = {__VA_ARGS__};                                                 \
    static pk_bench_axis axis = {key,    kind, (uint32_t)(sizeof values / sizeof *values),         \
                                 values, 0,    {0, 0}};                                            \
    PK_BENCH_AT_LOAD_ static void attach(void)                                                     \
    {                                                                                              \
        pk_bench_attach_(&pk_bench_entry_##name, &axis);                                           \
    }

#ifdef __cplusplus
#define PK_BENCH_NOTHROW_ noexcept
#define PK_BENCH_C_BEGIN_ extern "C" {
#define PK_BENCH_C_END_ }
#else
#define PK_BENCH_NOTHROW_
#define PK_BENCH_C_BEGIN_
#define PK_BENCH_C_END_
#endif

/* The heap stays glibc's, so free needs no stand-in. */
#define PK_BENCH_INTERPOSE_                                                                        \
    PK_BENCH_C_BEGIN_                                                                              \
    void *__libc_malloc(size_t size);                                                              \
    void *__libc_calloc(size_t count, size_t size);                                                \
    void *__libc_realloc(void *block, size_t size);                                                \
    void *__libc_memalign(size_t alignment, size_t size);                                          \
    void *malloc(size_t size) PK_BENCH_NOTHROW_;                                                   \
    void *calloc(size_t count, size_t size) PK_BENCH_NOTHROW_;                                     \
    void *realloc(void *block, size_t size) PK_BENCH_NOTHROW_;                                     \
    void *memalign(size_t alignment, size_t size) PK_BENCH_NOTHROW_;                               \
    void *aligned_alloc(size_t alignment, size_t size) PK_BENCH_NOTHROW_;                          \
    int posix_memalign(void **block, size_t alignment, size_t size) PK_BENCH_NOTHROW_;             \
    PK_BENCH_STAND_IN_(malloc, (size_t size), size, __libc_malloc(size))                           \
    PK_BENCH_STAND_IN_(calloc, (size_t count, size_t size), count *size,                           \
                       __libc_calloc(count, size))                                                 \
    PK_BENCH_STAND_IN_(realloc, (void *block, size_t size), size, __libc_realloc(block, size))     \
    PK_BENCH_STAND_IN_(memalign, (size_t alignment, size_t size), size,                            \
                       __libc_memalign(alignment, size))                                           \
    PK_BENCH_STAND_IN_(aligned_alloc, (size_t alignment, size_t size), size,                       \
                       __libc_memalign(alignment, size))                                           \
    int posix_memalign(void **block, size_t alignment, size_t size) PK_BENCH_NOTHROW_              \
    {                                                                                              \
        void *made;                                                                                \
        if (alignment < sizeof(void *) || (alignment & (alignment - 1)))                           \
            return 22; /* EINVAL */                                                                \
        made = __libc_memalign(alignment, size);                                                   \
        pk_bench_note_allocation(size);                                                            \
        if (!made)                                                                                 \
            return 12; /* ENOMEM */                                                                \
        *block = made;                                                                             \
        return 0;                                                                                  \
    }                                                                                              \
    PK_BENCH_C_END_

#define PK_BENCH_STAND_IN_(name, parameters, bytes, call)                                          \
    void *name parameters PK_BENCH_NOTHROW_                                                        \
    {                                                                                              \
        pk_bench_note_allocation(bytes);                                                           \
        return call;                                                                               \
    }

/* ---- in front of malloc ---- */

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define PK_BENCH_SANITIZED_
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PK_BENCH_SANITIZED_
#endif
#if defined(__GLIBC__) && !defined(PK_BENCH_SANITIZED_) && !defined(PK_DISABLE)
#define PK_BENCH_STAND_IN_FRONT_ PK_BENCH_INTERPOSE_
#else
#define PK_BENCH_STAND_IN_FRONT_
#endif

#endif
