/* What a clock read hides. On some processors it runs beside the instructions around it, and what
 * a recorder adds to two clock reads is lost in them; on others it waits for those before it, and
 * nearly everything is added. */
#include <stdio.h>

#include "base/clock.h"

#include "harness.h"

enum { BATCH = 20000 };

#define SIX(x) x x x x x x
#define TIMES_24(x) SIX(x) SIX(x) SIX(x) SIX(x)

#define HIDE(x) __asm__ volatile("" : "+r"(x)) /* the compiler does not know what is in x */

static uint64_t cell;
static volatile uint64_t sink;

static __attribute__((noinline)) void call(void)
{
    __asm__ volatile("");
}

static inline void nothing(void) {}

static inline void add(void)
{
    uint64_t a = 0;
    TIMES_24(a++; HIDE(a);)
}

static inline void test(void)
{
    uint64_t zero = 0;
    TIMES_24(HIDE(zero); if (__builtin_expect(zero != 0, 0)) sink = 1;)
}

static inline void load(void)
{
    TIMES_24((void)*(volatile uint64_t *)&cell;)
}

static inline void store(void)
{
    TIMES_24(*(volatile uint64_t *)&cell = 1;)
}

static inline void multiply(void)
{
    uint64_t a = 3;
    TIMES_24(a *= 3; HIDE(a);)
}

static inline void call_6(void)
{
    SIX(call();)
}

#define ALONE_AND_WITH(what)                                                                       \
    static void what##_alone(uint64_t n)                                                           \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                           \
            what();                                                                                \
    }                                                                                              \
    static void what##_with(uint64_t n)                                                            \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            uint64_t now = pki_cycle_counter();                                                    \
            HIDE(now);                                                                             \
            what();                                                                                \
        }                                                                                          \
    }

ALONE_AND_WITH(nothing)
ALONE_AND_WITH(add)
ALONE_AND_WITH(test)
ALONE_AND_WITH(load)
ALONE_AND_WITH(store)
ALONE_AND_WITH(multiply)
ALONE_AND_WITH(call_6)

#define ALONE(what, text)                                                                          \
    {                                                                                              \
        .name = (text), .run = what##_alone, .n = BATCH                                            \
    }
#define WITH(what)                                                                                 \
    {                                                                                              \
        .run = what##_with, .n = BATCH                                                             \
    }

/* In pairs: alone, and with a clock read. */
static bench_case cases[] = {
    ALONE(nothing, "nothing"),
    WITH(nothing),
    ALONE(add, "24 additions"),
    WITH(add),
    ALONE(load, "24 loads"),
    WITH(load),
    ALONE(store, "24 stores"),
    WITH(store),
    ALONE(test, "24 branches not taken"),
    WITH(test),
    ALONE(call_6, "6 calls"),
    WITH(call_6),
    ALONE(multiply, "a chain of 24 multiplications"),
    WITH(multiply),
};

enum { CASES = sizeof cases / sizeof *cases };

int main(int argc, char **argv)
{
    bench_pin(0);
    bench_rounds(cases, CASES, bench_number(argc, argv, "--rounds", 101));
    const bench_case *clock = &cases[1];
    printf("%-38s %10s %22s\n", "beside a clock read", "alone, ns", "added to the clock, ns");
    printf("  %-36s %10.2f\n", "the clock read", clock->ns);
    for (const bench_case *c = cases + 2; c < cases + CASES; c += 2)
        printf("  %-36s %10.2f %22.2f\n", c[0].name, c[0].ns, c[1].ns - clock->ns);
    return 0;
}
