/* What the collector does to a program that is bound to one processor: how much longer computations
 * of 100 us take, at their median and at the rare ends, and what an idle session takes.
 *
 *     bench-neighbour [--seconds N]
 *
 * In turns of a second: perfkit off; with its collector on the same processor; with it elsewhere.
 * Each computation records 100 regions, a million a second. Delays are the wall's, so what else
 * runs on that processor is in them: the row "off" says how much that is.
 */
#include <pk/pk.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"

enum { REGIONS = 100, SAMPLES_MOST = 4000000, TURNS_MOST = 600 };
#define TURN_NS UINT64_C(1000000000)

static pk_region part = PK_REGION("part");
static uint64_t spins; /* of one part, about 1 us */

typedef struct way {
    const char *name, *cpus;
    int off;
    double *samples;
    size_t count;
} way;

static void spin(uint64_t n)
{
    for (volatile uint64_t i = 0; i < n;)
        i = i + 1;
}

static void calibrate(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t before = bench_wall_ns();
        spin(10000);
        uint64_t took = bench_wall_ns() - before;
        best = took < best ? took : best;
    }
    spins = 10000 * 1000 / (best ? best : 1);
}

static double compute(void)
{
    uint64_t before = bench_wall_ns();
    for (int i = 0; i < REGIONS; i++) {
        pk_region_begin(&part);
        spin(spins);
        pk_region_end(&part);
    }
    return (double)(bench_wall_ns() - before) * 1e-3;
}

static void turn(way *w, const char *trace)
{
    if (!w->off &&
        pk_start(pk_options(.trace_path = trace, .backends = "none",
                            .tuning = bench_tuning("collector_cpus=%s", w->cpus ? w->cpus : ""))))
        bench_fail(pk_error_message());
    for (uint64_t until = bench_wall_ns() + TURN_NS; bench_wall_ns() < until;) {
        if (w->count < SAMPLES_MOST)
            w->samples[w->count++] = compute();
    }
    if (!w->off)
        pk_stop();
}

static void print(way *w)
{
    static const double shares[] = {0.5, 0.99, 0.999, 0.9999};
    printf("%-34s", w->name);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        printf(" %9.1f", bench_quantile(w->samples, w->count, shares[i]));
    printf(" %9zu\n", w->count);
}

/* CPU time of the whole process while it sleeps, as a share of one processor. */
static double idle(unsigned long seconds)
{
    if (pk_start(pk_options(.backends = "none")))
        bench_fail(pk_error_message());
    nanosleep(&(struct timespec){1, 0}, NULL); /* the clock's first corrections */
    uint64_t wall = bench_wall_ns(), cpu = bench_process_ns();
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    double share = (double)(bench_process_ns() - cpu) / (double)(bench_wall_ns() - wall);
    pk_stop();
    return share;
}

/* The first processor that is not this one's; NULL: there is none. */
static const char *elsewhere(void)
{
    static char text[16];
    cpu_set_t may;
    sched_getaffinity(0, sizeof may, &may);
    bench_pin(0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && cpu != (unsigned)sched_getcpu()) {
            snprintf(text, sizeof text, "%u", cpu);
            return text;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 10);
    const char *other = elsewhere(), *trace = bench_scratch("neighbour.json");
    way ways[] = {{.name = "off", .off = 1},
                  {.name = "collector on the same processor"},
                  {.name = "collector on another one", .cpus = other}};
    size_t count = sizeof ways / sizeof *ways;
    calibrate();
    for (size_t i = 0; i < count; i++)
        if (!(ways[i].samples = malloc(SAMPLES_MOST * sizeof *ways[i].samples)))
            bench_fail("no memory");
    for (unsigned long s = 0; s < seconds && s < TURNS_MOST; s++)
        for (size_t i = 0; i < count; i++)
            if (!ways[i].cpus || other)
                turn(&ways[i], trace);
    printf("%-34s %9s %9s %9s %9s %9s\n", "a computation of 100 us, in us", "p50", "p99", "p99.9",
           "p99.99", "samples");
    for (size_t i = 0; i < count; i++)
        if (ways[i].count)
            print(&ways[i]);
    printf("nothing recorded: %.4f %% of one processor\n", 100 * idle(seconds));
    for (size_t i = 0; i < count; i++)
        free(ways[i].samples);
    return 0;
}
