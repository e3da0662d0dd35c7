/* What the compiler makes of chains in C: a lower bound of what the processor can do. */
#include "machine/kernels.h"

#define CHAINS 32u

#define KERNEL(name, type)                                                                         \
    static void name(uint64_t turns)                                                               \
    {                                                                                              \
        static volatile type value = (type)0.5;                                                    \
        type chains[CHAINS], half = value, sum = 0;                                                \
        for (unsigned k = 0; k < CHAINS; k++)                                                      \
            chains[k] = half;                                                                      \
        for (uint64_t i = 0; i < turns; i++)                                                       \
            for (unsigned k = 0; k < CHAINS; k++)                                                  \
                chains[k] = half * chains[k] + half;                                               \
        for (unsigned k = 0; k < CHAINS; k++)                                                      \
            sum += chains[k];                                                                      \
        if (sum < 0) /* never, and nobody knows */                                                 \
            value = sum;                                                                           \
    }

KERNEL(double_compiled, double)
KERNEL(single_compiled, float)

static bool has_c(void)
{
    return true;
}

const flops_kernel flops_kernels[] = {
    {"double-compiled", 2 * CHAINS, has_c, double_compiled},
    {"single-compiled", 2 * CHAINS, has_c, single_compiled},
};
const size_t flops_kernel_count = sizeof flops_kernels / sizeof *flops_kernels;

void (*const chain_of_additions)(uint64_t) = NULL;
