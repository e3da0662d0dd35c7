/* A region in a program whose caches are its own: between two regions other memory is walked.
 * Timed one by one, on the wall, since a batch would be warm; medians, less what timing nothing
 * takes. */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#include "floor.h"
#include "harness.h"
#include "scratch.h"

enum { LINE = 64, REPETITIONS_MAX = 100000, BETWEEN_FLUSHES = 1000 };

static pk_region one = PK_REGION("one");
static unsigned char *memory;
static size_t bytes;

static void walk(void)
{
    for (size_t i = 0; i < bytes; i += LINE)
        memory[i]++;
    bench_barrier();
}

static void run_nothing(uint64_t n)
{
    (void)n;
    bench_barrier();
}

static void run_pair(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

typedef struct candidate {
    const char *name;
    void (*run)(uint64_t n);
    double ticks[REPETITIONS_MAX];
} candidate;

static candidate candidates[] = {
    {.name = "nothing", .run = run_nothing},
    {.name = "floor", .run = bench_floor_run},
    {.name = "begin + end", .run = run_pair},
};

enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static double once(void (*volatile run)(uint64_t n))
{
    walk();
    uint64_t start = pki_cycle_counter();
    run(1);
    uint64_t end = pki_cycle_counter();
    return (double)(end - start);
}

static void repeat(unsigned long repetitions)
{
    for (unsigned long i = 0; i < repetitions; i++) {
        for (size_t c = 0; c < CANDIDATES; c++)
            candidates[c].ticks[i] = once(candidates[c].run);
        if (i % BETWEEN_FLUSHES == 0)
            pk_flush();
    }
}

static double tick_ns(void)
{
    uint64_t ns = bench_wall_ns(), ticks = pki_cycle_counter();
    while (bench_wall_ns() - ns < 50000000)
        ;
    return (double)(bench_wall_ns() - ns) / (double)(pki_cycle_counter() - ticks);
}

static void print(unsigned long repetitions)
{
    double unit = tick_ns();
    double nothing = bench_quantile(candidates[0].ticks, repetitions, 0.5) * unit;
    printf("%-38s %8s %8s\n", "one region, caches cold", "net ns", "90 %");
    for (size_t c = 1; c < CANDIDATES; c++)
        printf("  %-36s %8.1f %8.1f\n", candidates[c].name,
               bench_quantile(candidates[c].ticks, repetitions, 0.5) * unit - nothing,
               bench_quantile(candidates[c].ticks, repetitions, 0.9) * unit - nothing);
}

int main(int argc, char **argv)
{
    unsigned long repetitions = bench_number(argc, argv, "--repetitions", 5000);
    bytes = bench_number(argc, argv, "--bytes", 3 << 20);
    if (repetitions > REPETITIONS_MAX)
        repetitions = REPETITIONS_MAX;
    memory = calloc(bytes, 1);
    if (!memory)
        bench_fail("no memory");
    bench_pin(0);
    bench_floor_prepare();
    if (pk_start(pk_options(.trace_path = bench_scratch("cold.json"))) != PK_OK)
        bench_fail(pk_error_message());
    repeat(repetitions);
    print(repetitions);
    free(memory);
    return pk_stop() == PK_OK ? 0 : 1;
}
