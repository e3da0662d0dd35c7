/* Twelve chains of fused multiply-adds: enough for two units of a latency of up to six cycles. In
 * assembly, so that no compiler's choice or option comes between the loop and the processor, and
 * the file needs no option for the widths. The values stay near 1: 0.5 x + 0.5. */
#include "machine/kernels.h"

#define REGISTERS                                                                                  \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

#define TURNS(head, body, end)                                                                     \
    __asm__ volatile(head "1:\n" body body "dec %0\njnz 1b\n" end                                  \
                     : "+r"(turns)                                                                 \
                     : "m"(value)                                                                  \
                     : "cc", REGISTERS)

/* ---- fused: AVX2 with FMA, AVX-512 ---- */

#define FUSED(op, r, n) op " %%" r "14, %%" r "14, %%" r #n "\n"
#define FUSED_12(op, r)                                                                            \
    FUSED(op, r, 0)                                                                                \
    FUSED(op, r, 1)                                                                                \
    FUSED(op, r, 2)                                                                                \
    FUSED(op, r, 3)                                                                                \
    FUSED(op, r, 4)                                                                                \
    FUSED(op, r, 5)                                                                                \
    FUSED(op, r, 6)                                                                                \
    FUSED(op, r, 7)                                                                                \
    FUSED(op, r, 8)                                                                                \
    FUSED(op, r, 9)                                                                                \
    FUSED(op, r, 10)                                                                               \
    FUSED(op, r, 11)

#define COPY(r, n) "vmovaps %%" r "14, %%" r #n "\n"
#define COPY_12(r)                                                                                 \
    COPY(r, 0)                                                                                     \
    COPY(r, 1)                                                                                     \
    COPY(r, 2)                                                                                     \
    COPY(r, 3)                                                                                     \
    COPY(r, 4)                                                                                     \
    COPY(r, 5)                                                                                     \
    COPY(r, 6)                                                                                     \
    COPY(r, 7)                                                                                     \
    COPY(r, 8)                                                                                     \
    COPY(r, 9)                                                                                     \
    COPY(r, 10)                                                                                    \
    COPY(r, 11)

#define FUSED_KERNEL(name, type, load, op, r)                                                      \
    static void name(uint64_t turns)                                                               \
    {                                                                                              \
        static const type value = (type)0.5;                                                       \
        TURNS(load " %1, %%" r "14\n" COPY_12(r), FUSED_12(op, r), "vzeroupper\n");                \
    }

FUSED_KERNEL(double_avx2, double, "vbroadcastsd", "vfmadd213pd", "ymm")
FUSED_KERNEL(single_avx2, float, "vbroadcastss", "vfmadd213ps", "ymm")
FUSED_KERNEL(double_avx512, double, "vbroadcastsd", "vfmadd213pd", "zmm")
FUSED_KERNEL(single_avx512, float, "vbroadcastss", "vfmadd213ps", "zmm")

/* ---- before there was FMA: six chains of products beside six of sums ---- */

#define PAIR(mul, add, a, b) mul " %%xmm14, %%xmm" #a "\n" add " %%xmm15, %%xmm" #b "\n"
#define PAIRS(mul, add)                                                                            \
    PAIR(mul, add, 0, 6)                                                                           \
    PAIR(mul, add, 1, 7)                                                                           \
    PAIR(mul, add, 2, 8)                                                                           \
    PAIR(mul, add, 3, 9)                                                                           \
    PAIR(mul, add, 4, 10)                                                                          \
    PAIR(mul, add, 5, 11)

#define WIDE(mul, add, a, b)                                                                       \
    mul " %%ymm14, %%ymm" #a ", %%ymm" #a "\n" add " %%ymm15, %%ymm" #b ", %%ymm" #b "\n"
#define WIDES(mul, add)                                                                            \
    WIDE(mul, add, 0, 6)                                                                           \
    WIDE(mul, add, 1, 7)                                                                           \
    WIDE(mul, add, 2, 8)                                                                           \
    WIDE(mul, add, 3, 9)                                                                           \
    WIDE(mul, add, 4, 10)                                                                          \
    WIDE(mul, add, 5, 11)

/* Products of 1 x 1 and sums of 1 + 0: xmm15 is 0, all others are 1. */
#define SAME(n) "movaps %%xmm14, %%xmm" #n "\n"
#define SAME_6 SAME(0) SAME(1) SAME(2) SAME(3) SAME(4) SAME(5)
#define SAME_12 SAME_6 SAME(6) SAME(7) SAME(8) SAME(9) SAME(10) SAME(11)

#define SSE2_KERNEL(name, type, mul, add)                                                          \
    static void name(uint64_t turns)                                                               \
    {                                                                                              \
        static const type value[4] __attribute__((aligned(16))) = {1, 1, 1, 1};                    \
        TURNS("movaps %1, %%xmm14\nxorps %%xmm15, %%xmm15\n" SAME_12, PAIRS(mul, add), "");        \
    }

SSE2_KERNEL(double_sse2, double, "mulpd", "addpd")
SSE2_KERNEL(single_sse2, float, "mulps", "addps")

#define AVX_KERNEL(name, type, load, mul, add)                                                     \
    static void name(uint64_t turns)                                                               \
    {                                                                                              \
        static const type value = 1;                                                               \
        TURNS(load " %1, %%ymm14\nvxorps %%ymm15, %%ymm15, %%ymm15\n" COPY_12("ymm"),              \
              WIDES(mul, add), "vzeroupper\n");                                                    \
    }

AVX_KERNEL(double_avx, double, "vbroadcastsd", "vmulpd", "vaddpd")
AVX_KERNEL(single_avx, float, "vbroadcastss", "vmulps", "vaddps")

/* ---- which of them there are ---- */

static bool has_sse2(void)
{
    return true;
}

/* With FMA the same width does twice as much. */
static bool has_only_avx(void)
{
    return __builtin_cpu_supports("avx") && !__builtin_cpu_supports("fma");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

/* Two bodies of twelve instructions a turn. */
const flops_kernel flops_kernels[] = {
    {"double-sse2", 24 * 2, has_sse2, double_sse2},
    {"double-avx", 24 * 4, has_only_avx, double_avx},
    {"double-avx2-fma", 48 * 4, has_avx2, double_avx2},
    {"double-avx512-fma", 48 * 8, has_avx512, double_avx512},
    {"single-sse2", 24 * 4, has_sse2, single_sse2},
    {"single-avx", 24 * 8, has_only_avx, single_avx},
    {"single-avx2-fma", 48 * 8, has_avx2, single_avx2},
    {"single-avx512-fma", 48 * 16, has_avx512, single_avx512},
};
const size_t flops_kernel_count = sizeof flops_kernels / sizeof *flops_kernels;

/* Of two registers: some processors have done with additions of constants before they run. */
static void chain(uint64_t additions)
{
    uint64_t sum = 0, one = 1, turns = additions / 16 + 1;
    __asm__ volatile("1:\n.rept 16\nadd %2, %0\n.endr\ndec %1\njnz 1b\n"
                     : "+r"(sum), "+r"(turns)
                     : "r"(one)
                     : "cc");
}

void (*const chain_of_additions)(uint64_t) = chain;
