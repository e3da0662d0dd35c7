/* Does pk_bench measure what is there? Chains of dependent operations, which take a whole number of
 * cycles each, timed by pk_bench and, in turns with it, by the cycle counter around a million
 * operations without a loop. docs/internals/bench.md has the method and the figures. */
#include <pk/bench.h>
#include <pk/pk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/drive.h"

#include "harness.h"

#define TWO(x) x x
#define TEN(x) TWO(x) TWO(x) TWO(x) TWO(x) TWO(x)
#define HUNDRED(x) TEN(TEN(x))

/* One link of a chain: the next one needs its result, and the compiler cannot see through it. */
#define FLIP(x)                                                                                    \
    __asm__ volatile("" : "+r"(x));                                                                \
    x ^= key; /* not an addition: newer processors fold those of constants */
#define MULTIPLY(x)                                                                                \
    __asm__ volatile("" : "+r"(x));                                                                \
    x *= 0x9E3779B97F4A7C15u;
#define DIVIDE(d)                                                                                  \
    d = quotient / d;                                                                              \
    __asm__ volatile("" : KEEP_DOUBLE(d));
#ifdef __aarch64__
#define KEEP_DOUBLE(d) "+w"(d)
#elif defined(__x86_64__)
#define KEEP_DOUBLE(d) "+x"(d)
#else
#define KEEP_DOUBLE(d) "+m"(d)
#endif

enum {
    PIECES = 50,
    PIECE = 20000
}; /* a million, each piece shorter than a turn of the scheduler */

static volatile uint64_t in_integer = 12345, in_key = 0x5DEECE66D;
static volatile double in_double = 1.2345678, in_quotient = 1.9876543;

/* ---- what is there: a million of each, by the cycle counter, in ns ---- */

static double ns_per_tick;

/* The middle one of the pieces: on a machine with others some of them are interrupted. */
static double a_million(uint64_t (*piece)(void))
{
    double ticks[PIECES];
    for (int i = 0; i < PIECES; i++)
        ticks[i] = (double)piece();
    return bench_quantile(ticks, PIECES, 0.5) * ns_per_tick / PIECE;
}

static uint64_t flips(void)
{
    uint64_t x = in_integer, key = in_key, start = pki_cycle_counter();
    for (int i = 0; i < PIECE / 100; i++) {
        HUNDRED(FLIP(x))
    }
    uint64_t ticks = pki_cycle_counter() - start;
    in_integer = x | 1;
    return ticks;
}

static uint64_t multiplications(void)
{
    uint64_t x = in_integer, start = pki_cycle_counter();
    for (int i = 0; i < PIECE / 100; i++) {
        HUNDRED(MULTIPLY(x))
    }
    uint64_t ticks = pki_cycle_counter() - start;
    in_integer = x | 1;
    return ticks;
}

static uint64_t divisions(void)
{
    double d = in_double, quotient = in_quotient;
    uint64_t start = pki_cycle_counter();
    for (int i = 0; i < PIECE / 100; i++) {
        HUNDRED(DIVIDE(d))
    }
    uint64_t ticks = pki_cycle_counter() - start;
    in_double = d;
    return ticks;
}

/* Independent ones fill the processor's width. */
static uint64_t wide_flips(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, key = in_key, start = pki_cycle_counter();
    for (int i = 0; i < PIECE / 100; i++) {
        HUNDRED(FLIP(a) FLIP(b) FLIP(c) FLIP(d))
    }
    uint64_t ticks = pki_cycle_counter() - start;
    in_integer = (a ^ b ^ c ^ d) | 1;
    return ticks;
}

/* ---- the same by pk_bench ---- */

PK_BENCH(multiply_1)
{
    uint64_t x = in_integer;
    PK_BENCH_LOOP {
        MULTIPLY(x)
    }
    in_integer = x | 1;
}

PK_BENCH(multiply_10)
{
    uint64_t x = in_integer;
    PK_BENCH_LOOP {
        TEN(MULTIPLY(x))
    }
    in_integer = x | 1;
}

PK_BENCH(divide_1)
{
    double d = in_double, quotient = in_quotient;
    PK_BENCH_LOOP {
        DIVIDE(d)
    }
    in_double = d;
}

PK_BENCH(divide_10)
{
    double d = in_double, quotient = in_quotient;
    PK_BENCH_LOOP {
        TEN(DIVIDE(d))
    }
    in_double = d;
}

PK_BENCH(empty)
{
    PK_BENCH_LOOP {
        __asm__ volatile("");
    }
}

/* The loop has to share the processor's width. */
PK_BENCH(wide)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, key = in_key;
    PK_BENCH_LOOP {
        TEN(FLIP(a) FLIP(b) FLIP(c) FLIP(d))
    }
    in_integer = (a ^ b ^ c ^ d) | 1;
}

/* ---- rounds ---- */

typedef struct check {
    const char *name, *benchmark;
    uint64_t (*piece)(void); /* ticks of so many operations */
    unsigned operations;     /* in an iteration of the benchmark */
    double bar;              /* a share */
    bool whole;              /* of a whole number of cycles */
} check;

static const check checks[] = {
    {"chain of 10 multiplications", "multiply_10", multiplications, 10, 0.01, true},
    {"chain of 10 divisions", "divide_10", divisions, 10, 0.01, true},
    {"one multiplication (about 1 ns)", "multiply_1", multiplications, 1, 0.03, true},
    {"one division", "divide_1", divisions, 1, 0.03, true},
    {"40 independent operations", "wide", wide_flips, 10, 0.03, false},
};

static pki_bench_handle *open_named(const char *name)
{
    pki_bench_handle *handle = NULL;
    for (size_t i = 0; i < pk_bench_instance_count_(); i++)
        if (strcmp(pk_bench_instance_name_(i), name) == 0 && pk_bench_open_(i, &handle) != PK_OK)
            bench_fail(pk_error_message());
    if (!handle)
        bench_fail(name);
    return handle;
}

/* Per iteration, in ns. */
static double take(pki_bench_handle *handle)
{
    pki_bench_sample sample;
    if (pk_bench_take_(handle, 0, &sample) != PK_OK)
        bench_fail(pk_error_message());
    return sample.time / (double)sample.iterations;
}

static bool run(const check *c, unsigned long rounds)
{
    double errors[1000], cycles[1000], times[1000];
    pki_bench_handle *handle = open_named(c->benchmark);
    for (unsigned long i = 0; i < rounds; i++) {
        double cycle = a_million(flips), truth = a_million(c->piece);
        double measured = take(handle) / c->operations;
        errors[i] = measured / truth - 1;
        cycles[i] = measured / cycle;
        times[i] = measured;
    }
    pk_bench_close_(handle);
    double error = bench_quantile(errors, rounds, 0.5);
    double in_cycles = bench_quantile(cycles, rounds, 0.5);
    bool fine = fabs(error) <= c->bar;
    printf("%-34s %8.3f ns %+8.3f %%  bar %2.0f %%  %7.3f cycles", c->name,
           bench_quantile(times, rounds, 0.5), 100 * error, 100 * c->bar, in_cycles);
    if (c->whole) {
        double off = in_cycles / floor(in_cycles + 0.5) - 1;
        fine &= fabs(off) <= c->bar;
        printf(" (%+.3f %% of %.0f)", 100 * off, floor(in_cycles + 0.5));
    }
    printf("  %s\n", fine ? "held" : "MISSED");
    return fine;
}

/* ---- the loop itself ---- */

static bool run_loop(unsigned long rounds)
{
    double left[1000], beside[1000];
    pki_bench_handle *empty = open_named("empty"), *one = open_named("multiply_1");
    for (unsigned long i = 0; i < rounds; i++) {
        left[i] = take(empty);
        beside[i] = take(one) - a_million(multiplications);
    }
    pk_bench_close_(empty);
    pk_bench_close_(one);
    double adds = bench_quantile(beside, rounds, 0.5);
    printf("%-34s %8.3f ns added per iteration, bar 0.3 ns  %s\n", "the loop beside 1 ns of work",
           adds, adds <= 0.3 ? "held" : "MISSED");
    printf("%-34s %8.3f ns left after subtraction\n", "the empty loop",
           bench_quantile(left, rounds, 0.5));
    return adds <= 0.3;
}

static double tick_length(void)
{
    pki_clock_sample a = pki_clock_read(0), b;
    while (pki_monotonic_ns() - a.ns < 200000000)
        ;
    b = pki_clock_read(0);
    return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

int main(int argc, char **argv)
{
    const char *why_not = "";
    unsigned long rounds = bench_number(argc, argv, "--rounds", 101);
    if (rounds > 1000)
        bench_fail("at most 1000 rounds");
    if (!pki_cycle_counter_trusted(&why_not))
        bench_fail(why_not);
    bench_pin(0);
    ns_per_tick = tick_length();
    printf("pk_bench against the cycle counter, medians of %lu rounds\n", rounds);
    bool fine = true;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        fine &= run(&checks[i], rounds);
    fine &= run_loop(rounds);
    return fine ? 0 : 1;
}
