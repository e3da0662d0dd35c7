/* bench/cpu.c - CPU time of whole programs, with perfkit and without, in turns:
 *     bench-cpu allin | budget | events
 */
#include <pk/pk.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processors.h"
#include "core/overhead.h"
#include "harness.h"
#include "measure/thinning.h"

/* ---- allin: what a region costs all in ---- */

/* CPU time of the whole process, its threads and the writing included.
 *
 *     bench-cpu allin [--turns N] [--millions N] [--every NS] [--compressed 1]
 *
 * In turns, each in a process of its own: perfkit is off; with statistics; with a history; with a
 * trace; if asked, with one that is compressed. A turn makes N million calls (2) of eight regions,
 * with about NS nanoseconds of work from one to the next (500: two million a second), and a step
 * each thousand. The first row runs the very instructions of the others, its calls included, which
 * are a load and a branch there (bench-regions off: 0.3 ns): the same work in a loop of its own was
 * 30 ns more where the compiler had placed it otherwise. All that the process takes from behind
 * pk_start to behind pk_stop is divided by the calls, and the row with perfkit off is taken off. Of
 * the rest, the program's own thread has the part that is not the collector's; of the collector's,
 * a part is the kernel's: the writing.
 *
 * Where there are two processors the program's thread has the last to itself. Medians over the
 * turns, and the quarter below and above of what is beyond the first row. */

enum { TURNS_MOST = 200, REGIONS = 8, STEP = 1000, CALIBRATION = 1000000 };

static pk_region regions[REGIONS] = {
    PK_REGION("embed"), PK_REGION("attention"), PK_REGION("softmax"), PK_REGION("mlp"),
    PK_REGION("norm"),  PK_REGION("loss"),      PK_REGION("update"),  PK_REGION("copy")};
static uint64_t allin_state = 88172645463325252u;

/* Each waits for the one before. */
static inline void chain(uint64_t n)
{
    uint64_t x = allin_state;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ __volatile__("" : "+r"(x));
    }
    allin_state = x;
}

static uint64_t chain_of(uint64_t ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = bench_thread_ns();
        chain(CALIBRATION);
        uint64_t took = bench_thread_ns() - before;
        best = took < best ? took : best;
    }
    return ns * CALIBRATION / (best ? best : 1);
}

static __attribute__((noinline)) void work(uint64_t calls, uint64_t links)
{
    for (uint64_t i = 0; i < calls; i++) {
        pk_region *r = &regions[i % REGIONS];
        pk_region_begin(r);
        chain(links / 2);
        pk_region_end(r);
        chain(links - links / 2);
        if (i % STEP == STEP - 1)
            pk_step(1);
    }
}

typedef struct turn {
    double own, beside, kernel; /* ns per call: this thread's, the others', of those the kernel's */
    double dropped;             /* share of the calls */
} turn;

enum { WITHOUT, STATISTICS, HISTORY, TRACE, COMPRESSED, WAYS };

static void start(int way)
{
    const pk_options *options[WAYS] = {
        [STATISTICS] = pk_options(.backends = "none"),
        [HISTORY] = pk_options(.backends = "none", .history_steps = 100),
        [TRACE] = pk_options(.backends = "none", .trace_path = bench_scratch("allin.json")),
    };
    static char path[512];
    snprintf(path, sizeof path, "%s", bench_scratch("allin.json.gz"));
    options[COMPRESSED] = pk_options(.backends = "none", .trace_path = path);
    if (way == TRACE)
        bench_scratch("allin.json");
    if (options[way] && pk_start(options[way]) != PK_OK)
        bench_fail(pk_error_message());
}

static double kernel_ns(int who)
{
    struct rusage used;
    if (getrusage(who, &used) != 0)
        bench_fail("getrusage");
    return (double)used.ru_stime.tv_sec * 1e9 + (double)used.ru_stime.tv_usec * 1e3;
}

/* The collector starts where it may, the rest runs on the last processor. */
static void start_apart(int way)
{
    cpu_set_t all, others;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        bench_fail("sched_getaffinity");
    others = all;
    size_t last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &all))
        last--;
    CPU_CLR(last, &others);
    if (CPU_COUNT(&all) > 1)
        sched_setaffinity(0, sizeof others, &others);
    start(way);
    sched_setaffinity(0, sizeof all, &all);
    bench_pin(0);
}

static turn measure(int way, uint64_t calls, uint64_t links)
{
    pk_counts counts = {.size = sizeof counts};
    start_apart(way);
    double all = (double)bench_process_ns(), own = (double)bench_thread_ns();
    double kernel = kernel_ns(RUSAGE_SELF) - kernel_ns(RUSAGE_THREAD);
    work(calls, links);
    if (way != WITHOUT && (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK))
        bench_fail(pk_error_message());
    kernel = kernel_ns(RUSAGE_SELF) - kernel_ns(RUSAGE_THREAD) - kernel;
    own = (double)bench_thread_ns() - own;
    all = (double)bench_process_ns() - all;
    double n = (double)calls;
    return (turn){own / n, (all - own) / n, kernel / n, (double)counts.dropped / n};
}

/* In a process of its own: what a session leaves is not the next one's. */
static turn in_a_child(int way, uint64_t calls, uint64_t links)
{
    turn t;
    int ends[2];
    if (pipe(ends) != 0)
        bench_fail("pipe");
    pid_t pid = bench_fork();
    if (pid == 0) {
        t = measure(way, calls, links);
        bench_leave(write(ends[1], &t, sizeof t) == sizeof t);
    }
    bench_join(pid, "a turn", NULL);
    if (read(ends[0], &t, sizeof t) != sizeof t)
        bench_fail("a turn");
    close(ends[0]);
    close(ends[1]);
    return t;
}

static double median_of(turn *turns, unsigned long n, const turn *without_it, int what, double q)
{
    double values[TURNS_MOST];
    for (unsigned long i = 0; i < n; i++) {
        double more = turns[i].own - without_it[i].own;
        values[i] = what == 0   ? more + turns[i].beside
                    : what == 1 ? more
                    : what == 2 ? turns[i].beside
                                : turns[i].kernel;
    }
    return bench_quantile(values, n, q);
}

static int allin_bench(int argc, char **argv)
{
    static const char *const names[WAYS] = {"perfkit is off", "statistics", "history of 100 steps",
                                            "trace", "trace, compressed"};
    static turn turns[WAYS][TURNS_MOST];
    unsigned long n = bench_number(argc, argv, "--turns", 11), every;
    uint64_t calls = bench_number(argc, argv, "--millions", 2) * 1000000u;
    every = bench_number(argc, argv, "--every", 500);
    int ways = bench_number(argc, argv, "--compressed", 9) == 9 ? COMPRESSED : WAYS;
    uint64_t links = chain_of(every > 40 ? every - 20 : every);
    n = n < TURNS_MOST ? n : TURNS_MOST;
    for (unsigned long t = 0; t < n; t++)
        for (int way = 0; way < ways; way++)
            turns[way][t] = in_a_child(way, calls, links);
    printf(
        "CPU time per region of the whole process, ns; one each %lu ns, %.0f million a turn, %lu "
        "turns\n",
        every, (double)calls / 1e6, n);
    printf("%-24s %8s   %-16s %8s %10s %10s %9s\n", "", "all in", "quartiles", "program",
           "collector", "its kernel", "dropped");
    for (int way = WITHOUT + 1; way < ways; way++) {
        const turn *zero = turns[WITHOUT];
        printf("%-24s %8.1f   %6.1f .. %6.1f %8.1f %10.1f %10.1f %8.3f%%\n", names[way],
               median_of(turns[way], n, zero, 0, 0.5), median_of(turns[way], n, zero, 0, 0.25),
               median_of(turns[way], n, zero, 0, 0.75), median_of(turns[way], n, zero, 1, 0.5),
               median_of(turns[way], n, zero, 2, 0.5), median_of(turns[way], n, zero, 3, 0.5),
               100 * turns[way][n - 1].dropped);
    }
    return 0;
}

/* ---- budget: does overhead_max hold? ---- */

/* A loop in which regions of 20 ns take a tenth of the time, with perfkit off (its calls are a load
 * and a branch then), unbounded and with a bound, in turns; CPU time of the whole process, its
 * start, its collector and the writing of its trace included.
 *
 *     bench-cpu budget [--turns N] [--percent N] [--millions N]
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
 * program. */

enum { BUDGET_TURNS_MOST = 200, QUANTILES = 3, AROUND = 150 };

static pk_region part = PK_REGION_OF(PK_COMPUTE, "part");
static uint64_t budget_state = 88172645463325252u;
static const double shares[QUANTILES] = {0.5, 0.9, 0.99};

/* Each waits for the one before: about 1.2 ns. */
static inline void budget_chain(unsigned n)
{
    uint64_t x = budget_state;
    for (unsigned i = 0; i < n; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    budget_state = x;
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
    budget_chain(10 + (unsigned)(budget_state >> 60) / 2 + (budget_state >> 58 == 0 ? 32 : 0));
}

static __attribute__((noinline)) void without(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        inside();
        budget_chain(AROUND);
    }
}

static __attribute__((noinline)) void with(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        pk_region_begin(&part);
        inside();
        pk_region_end(&part);
        budget_chain(AROUND);
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
        budget_chain(AROUND);
    }
}

typedef struct way {
    const char *name;
    double bound;                /* negative: without perfkit */
    void (*run)(uint64_t calls); /* `ordered`: for its quantiles */
    int trace;
    const char *costs;
    double ratios[BUDGET_TURNS_MOST], took[BUDGET_TURNS_MOST];
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
static double budget_turn(way *w, uint64_t calls, const way *truth)
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
static way cost_ways[] = {
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
    COSTS = sizeof cost_ways / sizeof *cost_ways,
    WITH_QUANTILES = sizeof quantiles / sizeof *quantiles
};

static void run(unsigned long turns, uint64_t calls)
{
    for (unsigned long t = 0; t < turns; t++) {
        for (size_t i = 0; i < COSTS; i++) {
            cost_ways[i].took[t] = budget_turn(&cost_ways[i], calls, NULL);
            cost_ways[i].ratios[t] = cost_ways[i].took[t] / cost_ways[0].took[t];
        }
        for (size_t i = 0; i < WITH_QUANTILES; i++)
            budget_turn(&quantiles[i], calls, &quantiles[0]);
    }
}

static int budget_bench(int argc, char **argv)
{
    unsigned long turns = bench_number(argc, argv, "--turns", 11);
    double bound = (double)bench_number(argc, argv, "--percent", 2) / 100;
    uint64_t calls = bench_number(argc, argv, "--millions", 10) * 1000000u;
    clock_step_ns = measure_clock_step();
    for (size_t i = 3; i < COSTS; i++)
        cost_ways[i].bound = bound;
    for (size_t i = 1; i < WITH_QUANTILES; i++)
        quantiles[i].bound = bound;
    turns = turns < BUDGET_TURNS_MOST ? turns : BUDGET_TURNS_MOST;
    run(turns, calls);
    printf("a call: %.0f ns, bound %.0f %%, %.0f million calls a turn, %lu turns\n",
           bench_quantile(cost_ways[0].took, turns, 0.5) / (double)calls, 100 * bound,
           (double)calls / 1e6, turns);
    printf("%-34s %10s   %-16s   %9s   %-5s\n", "CPU time beyond the first row's", "median",
           "   quartiles", "timed", "count");
    for (size_t i = 0; i < COSTS; i++)
        print_cost(&cost_ways[i], turns);
    printf("%-34s %9s   %-5s   %-11s   %s\n", "with barriers at begin and end", "timed", "count",
           "p50 p90 p99", "quantiles as stated");
    for (size_t i = 0; i < WITH_QUANTILES; i++)
        print_quantiles(&quantiles[i]);
    return 0;
}

/* ---- events: what events of regions cost (costs=hardware, software, topdown) ---- */

/* CPU time of a loop of calls, without them and with them, in turns, and how many calls were
 * sampled for it.
 *
 *     bench-cpu events [--turns N] [--millions N]
 *
 * Calls of 20 ns each 200, and of 20 us; and a sampled call by itself, as it is in a row. */

enum { EVENTS_TURNS_MOST = 100, PAIRS = 2000 };

static pk_region small = PK_REGION_OF(PK_COMPUTE, "small"),
                 large = PK_REGION_OF(PK_COMPUTE, "large");
static uint64_t state = 88172645463325252u;

/* Each waits for the one before: about 1.2 ns. */
static void events_chain(uint64_t n)
{
    uint64_t x = state;
    for (uint64_t i = 0; i < n; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    state = x;
}

static void call(pk_region *region, uint64_t inside, uint64_t around, uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        pk_region_begin(region);
        events_chain(inside);
        pk_region_end(region);
        events_chain(around);
    }
}

/* Of the report that lies there. */
static double number(const char *key)
{
    static char text[1 << 20];
    FILE *file = fopen(bench_scratch("report.json"), "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = 0;
    const char *at = strstr(text, "\"events\":");
    at = at ? strstr(at, key) : NULL;
    return at ? strtod(at + strlen(key), NULL) : 0;
}

typedef struct loop {
    const char *name;
    pk_region *region;
    uint64_t inside, around, calls;
} loop;

static double cpu_of(const loop *l, const char *costs, uint64_t *dropped)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_start(pk_options(.costs = costs, .backends = "none",
                            .report_path = bench_scratch("report.json"))))
        bench_fail("no session");
    uint64_t before = bench_process_ns();
    call(l->region, l->inside, l->around, l->calls);
    double took = (double)(bench_process_ns() - before);
    pk_stop();
    if (pk_get_counts(&counts) == PK_OK)
        *dropped += counts.dropped;
    return took;
}

static double share(const loop *l, unsigned long turns, uint64_t dropped)
{
    return 100 * (double)dropped / ((double)turns * (double)l->calls);
}

static void events_measure(const loop *l, const char *costs, unsigned long turns)
{
    double ratio[EVENTS_TURNS_MOST], sampled = 0, spent = 0, all = 0;
    uint64_t dropped[2] = {0};
    for (unsigned long i = 0; i < turns; i++) {
        double without = cpu_of(l, NULL, &dropped[0]), with = cpu_of(l, costs, &dropped[1]);
        ratio[i] = with / without;
        sampled += number("\"sampled\":");
        spent += number("\"spent\":");
        all += with;
    }
    double half = bench_quantile(ratio, turns, 0.5);
    printf("%-10s %-30s %+6.2f %% of CPU time (%+.2f to %+.2f); its own figure %.2f %%; %.0f calls "
           "a second sampled; dropped without %.4f %%, with %.4f %%\n",
           costs, l->name, 100 * (half - 1), 100 * (bench_quantile(ratio, turns, 0.1) - 1),
           100 * (bench_quantile(ratio, turns, 0.9) - 1), 100 * spent / all, sampled * 1e9 / all,
           share(l, turns, dropped[0]), share(l, turns, dropped[1]));
}

static void measure_pairs(const char *name, const pki_perf_event *events, unsigned count)
{
    double took[PAIRS];
    pki_perf_group group;
    pki_perf_reading one, other;
    if (!count || !pki_perf_open(&group, events, count, true)) {
        printf("%-10s cannot be had here\n", name);
        return;
    }
    for (int i = 0; i < PAIRS; i++) {
        uint64_t before = bench_wall_ns();
        pki_perf_read(&group, &one);
        pki_perf_read(&group, &other);
        took[i] = (double)(bench_wall_ns() - before);
    }
    printf("%-10s two readings in a row: %.0f ns (p10 %.0f, p90 %.0f)%s\n", name,
           bench_quantile(took, PAIRS, 0.5), bench_quantile(took, PAIRS, 0.1),
           bench_quantile(took, PAIRS, 0.9), one.direct ? ", without the kernel" : "");
    pki_perf_close(&group);
}

static int events_bench(int argc, char **argv)
{
    pki_topdown topdown;
    char why_not[256];
    unsigned long turns = bench_number(argc, argv, "--turns", 15);
    uint64_t millions = bench_number(argc, argv, "--millions", 5);
    const loop loops[] = {{"calls of 20 ns, each 200 ns", &small, 16, 150, millions * 1000000},
                          {"calls of 20 us", &large, 16000, 16, millions * 10000}};
    turns = turns < EVENTS_TURNS_MOST ? turns : EVENTS_TURNS_MOST;
    pki_topdown_find(&topdown, why_not, sizeof why_not);
    measure_pairs("hardware", pki_perf_hardware, PKI_PERF_EVENTS);
    measure_pairs("software", pki_perf_software, PKI_PERF_EVENTS);
    measure_pairs("topdown", topdown.event, topdown.count);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        events_measure(&loops[i], "software", turns);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        events_measure(&loops[i], "software,hardware", turns);
    bench_scratch_empty();
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {
        {"allin", allin_bench}, {"budget", budget_bench}, {"events", events_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
