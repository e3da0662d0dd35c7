/* lib/base/compiler.h - what C11 does not say: expectations, cold code, cache lines. */
#pragma once

#include <stdint.h>

#define PKI_LIKELY(x) __builtin_expect(!!(x), 1)
#define PKI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PKI_COLD __attribute__((cold, noinline))
#define PKI_HOT __attribute__((noinline, hot)) /* though only cold code calls it */
#define PKI_NOINLINE __attribute__((noinline))
#define PKI_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))

/* Functions that are called in turn stay neighbours, as clang leaves them anyway. */
#if __has_attribute(no_reorder)
#define PKI_IN_ORDER __attribute__((no_reorder))
#else
#define PKI_IN_ORDER
#endif

__extension__ typedef unsigned __int128 pki_u128;

#define PKI_LINE 64
#define PKI_ALIGNED __attribute__((aligned(PKI_LINE)))

#define PKI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PKI_MAX(a, b) ((a) > (b) ? (a) : (b))
#define PKI_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* a - b, and 0 where b is the larger: of counts and times that another thread has moved meanwhile.
 */
static inline uint64_t pki_saturating_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}
