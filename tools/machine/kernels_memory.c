/* Vectors of two doubles: memory is what these loops wait for, and every processor has such. The
 * build takes care that no loop becomes a call of memcpy, whose stores may pass the caches by. */
#include "machine/kernels.h"

typedef double pair __attribute__((vector_size(16), may_alias));

#define FACTOR 3.0

void kernel_copy(double *a, const double *b, const double *c, size_t n)
{
    pair *restrict to = (pair *)(void *)a;
    const pair *restrict from = (const pair *)(const void *)b;
    (void)c;
    for (size_t i = 0; i < n / 2; i += 4) {
        to[i] = from[i];
        to[i + 1] = from[i + 1];
        to[i + 2] = from[i + 2];
        to[i + 3] = from[i + 3];
    }
}

void kernel_triad(double *a, const double *b, const double *c, size_t n)
{
    const pair q = {FACTOR, FACTOR};
    pair *restrict to = (pair *)(void *)a;
    const pair *restrict x = (const pair *)(const void *)b, *restrict y = (const void *)c;
    for (size_t i = 0; i < n / 2; i += 4) {
        to[i] = x[i] + q * y[i];
        to[i + 1] = x[i + 1] + q * y[i + 1];
        to[i + 2] = x[i + 2] + q * y[i + 2];
        to[i + 3] = x[i + 3] + q * y[i + 3];
    }
}

#if defined(__SSE2__)
static inline void put_past(pair *to, pair value)
{
    __asm__ volatile("movntpd %1, %0" : "=m"(*to) : "x"(value));
}

/* The last stores have to be there before the round's end is looked at. */
static inline void finish_stores(void)
{
    __asm__ volatile("sfence" ::: "memory");
}

static void triad_streamed(double *a, const double *b, const double *c, size_t n)
{
    const pair q = {FACTOR, FACTOR};
    pair *to = (pair *)(void *)a;
    const pair *x = (const pair *)(const void *)b, *y = (const pair *)(const void *)c;
    for (size_t i = 0; i < n / 2; i += 4) {
        put_past(to + i, x[i] + q * y[i]);
        put_past(to + i + 1, x[i + 1] + q * y[i + 1]);
        put_past(to + i + 2, x[i + 2] + q * y[i + 2]);
        put_past(to + i + 3, x[i + 3] + q * y[i + 3]);
    }
    finish_stores();
}

memory_kernel *const kernel_triad_streamed = triad_streamed;
#else
memory_kernel *const kernel_triad_streamed = NULL;
#endif
