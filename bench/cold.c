/* A region in a program whose caches are its own: between two regions other memory is walked. Timed
 * one by one, on the wall, since a batch would be warm; medians, less what timing nothing takes. */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { LINE = 64, REPETITIONS_MAX = 100000, BETWEEN_FLUSHES = 1000 };

static pk_region one = PK_REGION("one");
static pki_record *ring;
static uint64_t ring_at;
static unsigned char *memory;
static size_t bytes;

/* All of it is written when the clock starts: what it has under way is not the region's. */
static inline void walk(void)
{
    for (size_t i = 0; i < bytes; i += LINE)
        memory[i]++;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Each with its code where its caller's is, as in a program. */
#define TIMED(name, what)                                                                          \
    static __attribute__((noinline)) double name(void)                                             \
    {                                                                                              \
        walk();                                                                                    \
        uint64_t start = pki_cycle_counter();                                                      \
        what;                                                                                      \
        bench_barrier();                                                                           \
        return (double)(pki_cycle_counter() - start);                                              \
    }

TIMED(time_nothing, (void)0)
TIMED(time_floor, bench_floor_pair(ring, ring_at))
TIMED(time_pair, (pk_region_begin(&one), pk_region_end(&one)))

typedef struct candidate {
    const char *name;
    double (*time)(void);
    double ticks[REPETITIONS_MAX];
} candidate;

static candidate candidates[] = {
    {.name = "nothing", .time = time_nothing},
    {.name = "floor", .time = time_floor},
    {.name = "begin + end", .time = time_pair},
};

enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static void repeat(unsigned long repetitions)
{
    for (unsigned long i = 0; i < repetitions; i++) {
        for (size_t c = 0; c < CANDIDATES; c++)
            candidates[c].ticks[i] = candidates[c].time();
        ring_at++;
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
    static const double shares[] = {0.25, 0.5, 0.75, 0.9};
    double unit = tick_ns();
    double nothing = bench_quantile(candidates[0].ticks, repetitions, 0.5) * unit;
    printf("%-38s %8s %8s %8s %8s\n", "one region, caches cold: net ns", "25 %", "median", "75 %",
           "90 %");
    for (size_t c = 1; c < CANDIDATES; c++) {
        printf("  %-36s", candidates[c].name);
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            printf(" %8.1f",
                   bench_quantile(candidates[c].ticks, repetitions, shares[i]) * unit - nothing);
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    unsigned long repetitions = bench_number(argc, argv, "--repetitions", 5000);
    bytes = bench_number(argc, argv, "--bytes", 3 << 20);
    if (repetitions > REPETITIONS_MAX)
        repetitions = REPETITIONS_MAX;
    memory = malloc(bytes);
    if (!memory)
        bench_fail("no memory");
    memset(memory, 1, bytes);
    bench_pin(0);
    ring = bench_floor_prepare();
    if (pk_start(pk_options(.trace_path = bench_scratch("cold.json"))) != PK_OK)
        bench_fail(pk_error_message());
    repeat(repetitions);
    print(repetitions);
    free(memory);
    return pk_stop() == PK_OK ? 0 : 1;
}
