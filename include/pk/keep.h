/* pk/keep.h - barriers that keep the compiler from optimising away what is measured.
 *
 *     PK_BENCH_LOOP {
 *         pk_keep(sum(x, n));                  // the result has to be computed
 *     }
 *     fill(buffer, n);
 *     pk_clobber();                            // the stores have to happen
 *
 * Threads: these are no fences between threads.
 * Failure: none.
 * Cost:    no instruction of its own, only what it takes to have the value in a register or in
 *          memory.
 */
#ifndef PK_KEEP_H
#define PK_KEEP_H

#include <pk/status.h>

/* Everything stored so far is in memory, and everything read next is read from memory. This holds
 * for memory that other code could reach; for local memory, first pass a pointer to it to pk_keep.
 */
static inline void pk_clobber(void)
{
    __asm__ volatile("" : : : "memory");
}

/* pk_keep(value): the compiler has to compute the value, whatever its type. gcc takes the register
 * that it is in. clang would store it if it had the choice, so it is offered a register first. */
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
