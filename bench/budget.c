/* Does overhead_max hold? A loop in which regions of 20 ns take a tenth of the time, with perfkit
 * off (its calls are a load and a branch then), unbounded and with a bound, in turns; CPU time of
 * the whole process, its start, its collector and the writing of its trace included.
 *
 *     bench-budget [--turns N] [--percent N] [--millions N]
 *
 * And with what else may be asked for in the same budget: events of calls, memory, files. The bound
 * is N percent (2); a turn makes N million calls (10). Beside it: whether counts are exact.
 *
 * And are the quantiles of a thinned region where the report says they are, by those of unbounded
 * turns of the same run? (It is right 95 times in 100.) For that the region's edges have to be
 * where the program has them: a processor that executes out of order reads a clock before the work
 * in front of it is done, by as much as it can hold (20 ns here and there), and by less for a call
 * that takes longer to record, as the timed one of a thinned region does. So these turns have a
 * barrier on each side of begin and end, and what perfkit takes there is not what it takes of a
 * program.
 */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "core/overhead.h"
#include "measure/thinning.h"

#include "harness.h"

enum { TURNS_MOST = 200, QUANTILES = 3, AROUND = 150 };

static pk_region part = PK_REGION_OF(PK_COMPUTE, "part");
static uint64_t state = 88172645463325252u;
static const double shares[QUANTILES] = {0.5, 0.9, 0.99};

/* Each waits for the one before: about 1.2 ns. */
static inline void chain(unsigned n)
{
    uint64_t x = state;
    for (unsigned i = 0; i < n; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    state = x;
}

/* Nothing behind it begins before all in front of it is done. */
static inline void barrier(void)
{
#if defined __x86_64__
    __builtin_ia32_lfence();
#elif defined __aarch64__
    __asm__ __volatile__("dsb ish\n\tisb" ::: "memory");
#else
    __sync_synchronize();
#endif
}

/* 20 ns on average, and one of 64 calls three times as long. */
static inline void inside(void)
{
    chain(10 + (unsigned)(state >> 60) / 2 + (state >> 58 == 0 ? 32 : 0));
}

static __attribute__((noinline)) void without(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        inside();
        chain(AROUND);
    }
}

static __attribute__((noinline)) void with(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        pk_region_begin(&part);
        inside();
        pk_region_end(&part);
        chain(AROUND);
    }
}

static __attribute__((noinline)) void ordered(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        barrier();
        pk_region_begin(&part);
        barrier();
        inside();
        barrier();
        pk_region_end(&part);
        barrier();
        chain(AROUND);
    }
}

typedef struct way {
    const char *name;
    double bound;                /* negative: without perfkit */
    void (*run)(uint64_t calls); /* `ordered`: for its quantiles */
    int trace;
    const char *costs;
    double ratios[TURNS_MOST], took[TURNS_MOST];
    uint64_t wrong; /* turns with another count */
    double untimed; /* share of calls, last turn */
    double said;    /* by the report of the last turn */
    double quantiles[QUANTILES];
    double error; /* sampling_error */
    unsigned outside, stated;
} way;

static pk_stats stats;
static double clock_step_ns, pair_ns;

/* As a session has it. */
static double measure_clock_step(void)
{
    static pki_clock_map map;
    const char *why;
    uint32_t monotonic = !pki_cycle_counter_trusted(&why);
    pki_clock_sample a = pki_clock_read(monotonic), b = a;
    while (b.ns - a.ns < 10000000)
        b = pki_clock_read(monotonic);
    pki_clock_map_init(&map, monotonic, a, b);
    pair_ns = pki_measure_region_ns(monotonic);
    return (double)pki_clock_step(monotonic) * pki_clock_unit_ns(&map);
}

static void look(way *w, uint64_t calls, const way *truth)
{
    if (pk_region_stats(&part, &stats))
        bench_fail(pk_error_message());
    w->wrong += stats.count != calls;
    w->untimed = (double)stats.untimed / (double)stats.count;
    w->error = stats.sampling_error;
    const pki_region_thinned said = pki_region_thinned_of(&stats, 0, clock_step_ns, pair_ns);
    const double *ranges[QUANTILES] = {said.p50, said.p90, said.p99};
    for (int i = 0; i < QUANTILES; i++) {
        w->quantiles[i] = (double)pk_stats_quantile(&stats, shares[i]);
        if (!truth || truth == w)
            continue;
        w->stated++;
        w->outside += truth->quantiles[i] < ranges[i][0] || truth->quantiles[i] > ranges[i][1];
    }
}

/* CPU time, ns. */
static double turn(way *w, uint64_t calls, const way *truth)
{
    uint64_t before = bench_process_ns();
    if (w->bound < 0) {
        w->run(calls);
        return (double)(bench_process_ns() - before);
    }
    if (pk_start(pk_options(.trace_path = w->trace ? bench_scratch("budget.json") : NULL,
                            .backends = "none", .overhead_max = w->bound, .costs = w->costs)))
        bench_fail(pk_error_message());
    w->run(calls);
    pk_stop();
    double took = (double)(bench_process_ns() - before);
    look(w, calls, truth);
    bench_scratch_empty();
    return took;
}

static void print_cost(way *w, unsigned long turns)
{
    printf("%-34s %8.2f %%", w->name, 100 * (bench_quantile(w->ratios, turns, 0.5) - 1));
    printf("   %6.2f .. %6.2f", 100 * (bench_quantile(w->ratios, turns, 0.25) - 1),
           100 * (bench_quantile(w->ratios, turns, 0.75) - 1));
    printf("   %7.3f %%   %s\n", 100 * (1 - w->untimed), w->wrong ? "WRONG" : "exact");
}

static void print_quantiles(const way *w)
{
    printf("%-34s %7.3f %%   %s", w->name, 100 * (1 - w->untimed), w->wrong ? "WRONG" : "exact");
    printf("   %3.0f %3.0f %3.0f", w->quantiles[0], w->quantiles[1], w->quantiles[2]);
    if (w->stated)
        printf("   %u of %u", w->stated - w->outside, w->stated);
    putchar('\n');
}

/* The first one is what the others are compared with. */
static way costs[] = {
    {.name = "perfkit is off", .run = with, .bound = -1},
    {.name = "without perfkit's calls", .run = without, .bound = -1}, /* another loop */
    {.name = "statistics, no bound", .run = with},
    {.name = "statistics, bound", .run = with},
    {.name = "with a trace, bound", .run = with, .trace = 1},
    {.name = "statistics, bound, costs", .run = with, .costs = "software,memory,io"},
    {.name = "with a trace, bound, costs", .run = with, .trace = 1, .costs = "software,memory,io"}};
static way quantiles[] = {{.name = "statistics, no bound", .run = ordered},
                          {.name = "statistics, bound", .run = ordered},
                          {.name = "with a trace, bound", .run = ordered, .trace = 1}};

enum {
    COSTS = sizeof costs / sizeof *costs,
    WITH_QUANTILES = sizeof quantiles / sizeof *quantiles
};

static void run(unsigned long turns, uint64_t calls)
{
    for (unsigned long t = 0; t < turns; t++) {
        for (size_t i = 0; i < COSTS; i++) {
            costs[i].took[t] = turn(&costs[i], calls, NULL);
            costs[i].ratios[t] = costs[i].took[t] / costs[0].took[t];
        }
        for (size_t i = 0; i < WITH_QUANTILES; i++)
            turn(&quantiles[i], calls, &quantiles[0]);
    }
}

int main(int argc, char **argv)
{
    unsigned long turns = bench_number(argc, argv, "--turns", 11);
    double bound = (double)bench_number(argc, argv, "--percent", 2) / 100;
    uint64_t calls = bench_number(argc, argv, "--millions", 10) * 1000000u;
    clock_step_ns = measure_clock_step();
    for (size_t i = 3; i < COSTS; i++)
        costs[i].bound = bound;
    for (size_t i = 1; i < WITH_QUANTILES; i++)
        quantiles[i].bound = bound;
    turns = turns < TURNS_MOST ? turns : TURNS_MOST;
    run(turns, calls);
    printf("a call: %.0f ns, bound %.0f %%, %.0f million calls a turn, %lu turns\n",
           bench_quantile(costs[0].took, turns, 0.5) / (double)calls, 100 * bound,
           (double)calls / 1e6, turns);
    printf("%-34s %10s   %-16s   %9s   %-5s\n", "CPU time beyond the first row's", "median",
           "   quartiles", "timed", "count");
    for (size_t i = 0; i < COSTS; i++)
        print_cost(&costs[i], turns);
    printf("%-34s %9s   %-5s   %-11s   %s\n", "with barriers at begin and end", "timed", "count",
           "p50 p90 p99", "quantiles as stated");
    for (size_t i = 0; i < WITH_QUANTILES; i++)
        print_quantiles(&quantiles[i]);
    return 0;
}
