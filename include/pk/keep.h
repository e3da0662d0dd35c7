/* pk/keep.h - barriers against a compiler that would rather not do what is measured.
 *
 *     PK_BENCH_LOOP {
 *         pk_keep(sum(x, n));                  // the result has to be computed
 *     }
 *     fill(buffer, n);
 *     pk_clobber();                            // the stores have to happen
 *
 * Threads: these are not for talking between threads.
 * Failure: none.
 * Cost:    no instruction, but what it takes to have the value in a register or in memory.
 */
#ifndef PK_KEEP_H
#define PK_KEEP_H

#include <pk/status.h>

/* What was stored so far is in memory, what is read next is read from there: of all memory that
 * somebody else could know of (pk_keep a pointer to what is local). */
static PK_INLINE void pk_clobber(void)
{
    __asm__ volatile("" : : : "memory");
}

/* pk_keep(value): the compiler has to compute it, of whatever type it is. gcc takes the register
 * that it is in; clang, which would rather store it given the choice, an integer's register first.
 */
#if defined(__clang__)
#define PK_KEEP_IN_ "r,m"
#elif defined(__x86_64__)
#define PK_KEEP_IN_ "rxm"
#elif defined(__aarch64__)
#define PK_KEEP_IN_ "rwm"
#else
#define PK_KEEP_IN_ "rm"
#endif

#ifdef __cplusplus
extern "C++" { /* also if somebody includes it in extern "C" */
template <class T> inline void pk_keep(const T &value) noexcept
{
    __asm__ volatile("" : : PK_KEEP_IN_(value));
}
}
#else
#define pk_keep(value)                                                                             \
    do {                                                                                           \
        __typeof__((void)0, (value)) pk_kept_ = ((void)0, (value));                                \
        __asm__ volatile("" : : PK_KEEP_IN_(pk_kept_));                                            \
    } while (0)
#endif

#endif
