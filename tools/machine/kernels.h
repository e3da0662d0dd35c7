/* tools/machine/kernels.h - the loops that are measured. What depends on the processor lies in
 * arch/, one folder per family, of which the build takes one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arithmetic ---- */

typedef struct flops_kernel {
    const char *name;    /* of the limit: "double-avx2" */
    unsigned operations; /* floating-point operations of a turn; a fused multiply-add is two */
    bool (*has)(void);   /* can this processor do it? */
    void (*run)(uint64_t turns);
} flops_kernel;

extern const flops_kernel flops_kernels[];
extern const size_t flops_kernel_count;

/* So many additions, each of which needs the one before: a cycle each. NULL: no such loop is known
 * for this processor, and its clock is not either. */
extern void (*const chain_of_additions)(uint64_t additions);

/* ---- memory: a = b, and a = b + q * c, of n doubles; n is a multiple of MEMORY_STEP ---- */

#define MEMORY_STEP 64u

typedef void memory_kernel(double *a, const double *b, const double *c, size_t n);
memory_kernel kernel_copy, kernel_triad;
/* The triad with stores that pass the caches by; NULL where the compiler offers none. */
extern memory_kernel *const kernel_triad_streamed;
