/* Twenty-four chains of fused multiply-adds on vectors of 128 bits (NEON): enough for four units of
 * a latency of up to six cycles. In assembly, so that no compiler's choice comes between the loop
 * and the processor. SVE's wider vectors, where a processor has them, are not measured. */
#include "machine/kernels.h"

#define REGISTERS                                                                                  \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v31"

#define FUSED(n, lanes) "fmla v" #n "." lanes ", v31." lanes ", v31." lanes "\n"
#define FUSED_8(a, b, c, d, e, f, g, h, l)                                                         \
    FUSED(a, l)                                                                                    \
    FUSED(b, l)                                                                                    \
    FUSED(c, l)                                                                                    \
    FUSED(d, l)                                                                                    \
    FUSED(e, l)                                                                                    \
    FUSED(f, l)                                                                                    \
    FUSED(g, l)                                                                                    \
    FUSED(h, l)
#define FUSED_24(l)                                                                                \
    FUSED_8(0, 1, 2, 3, 4, 5, 6, 7, l)                                                             \
    FUSED_8(8, 9, 10, 11, 12, 13, 14, 15, l)                                                       \
    FUSED_8(16, 17, 18, 19, 20, 21, 22, 23, l)

#define CLEAR(n) "movi v" #n ".2d, #0\n"
#define CLEAR_8(a, b, c, d, e, f, g, h)                                                            \
    CLEAR(a) CLEAR(b) CLEAR(c) CLEAR(d) CLEAR(e) CLEAR(f) CLEAR(g) CLEAR(h)
#define CLEAR_24                                                                                   \
    CLEAR_8(0, 1, 2, 3, 4, 5, 6, 7)                                                                \
    CLEAR_8(8, 9, 10, 11, 12, 13, 14, 15)                                                          \
    CLEAR_8(16, 17, 18, 19, 20, 21, 22, 23)

/* Sums of 1/16 each: they never overflow, nor come near zero. */
#define KERNEL(name, lanes)                                                                        \
    static void name(uint64_t turns)                                                               \
    {                                                                                              \
        __asm__ volatile("fmov v31." lanes ", #0.25\n" CLEAR_24                                    \
                         "1:\n" FUSED_24(lanes) "subs %0, %0, #1\nb.ne 1b\n"                       \
                         : "+r"(turns)                                                             \
                         :                                                                         \
                         : "cc", REGISTERS);                                                       \
    }

KERNEL(double_neon, "2d")
KERNEL(single_neon, "4s")

static bool has_neon(void)
{
    return true;
}

const flops_kernel flops_kernels[] = {
    {"double-neon-fma", 48 * 2, has_neon, double_neon},
    {"single-neon-fma", 48 * 4, has_neon, single_neon},
};
const size_t flops_kernel_count = sizeof flops_kernels / sizeof *flops_kernels;

static void chain(uint64_t additions)
{
    uint64_t sum = 0, one = 1, turns = additions / 16 + 1;
    __asm__ volatile("1:\n.rept 16\nadd %0, %0, %2\n.endr\nsubs %1, %1, #1\nb.ne 1b\n"
                     : "+r"(sum), "+r"(turns)
                     : "r"(one)
                     : "cc");
}

void (*const chain_of_additions)(uint64_t) = chain;
