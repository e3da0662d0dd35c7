/* What events of regions cost (costs=hardware, software, topdown): CPU time of a loop of calls,
 * without them and with them, in turns, and how many calls were sampled for it.
 *
 *     bench-events [--turns N] [--millions N]
 *
 * Calls of 20 ns each 200, and of 20 us; and a sampled call by itself, as it is in a row.
 */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"

#include "harness.h"

enum { TURNS_MOST = 100, PAIRS = 2000 };

static pk_region small = PK_REGION_OF(PK_COMPUTE, "small"),
                 large = PK_REGION_OF(PK_COMPUTE, "large");
static uint64_t state = 88172645463325252u;

/* Each waits for the one before: about 1.2 ns. */
static void chain(uint64_t n)
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
        chain(inside);
        pk_region_end(region);
        chain(around);
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

static void measure(const loop *l, const char *costs, unsigned long turns)
{
    double ratio[TURNS_MOST], sampled = 0, spent = 0, all = 0;
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

int main(int argc, char **argv)
{
    pki_topdown topdown;
    char why_not[256];
    unsigned long turns = bench_number(argc, argv, "--turns", 15);
    uint64_t millions = bench_number(argc, argv, "--millions", 5);
    const loop loops[] = {{"calls of 20 ns, each 200 ns", &small, 16, 150, millions * 1000000},
                          {"calls of 20 us", &large, 16000, 16, millions * 10000}};
    turns = turns < TURNS_MOST ? turns : TURNS_MOST;
    pki_topdown_find(&topdown, why_not, sizeof why_not);
    measure_pairs("hardware", pki_perf_hardware, PKI_PERF_EVENTS);
    measure_pairs("software", pki_perf_software, PKI_PERF_EVENTS);
    measure_pairs("topdown", topdown.event, topdown.count);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        measure(&loops[i], "software", turns);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        measure(&loops[i], "software,hardware", turns);
    bench_scratch_empty();
    return 0;
}
