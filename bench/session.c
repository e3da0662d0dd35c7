/* How long pk_start and pk_stop take, on the wall and of the processor. */
#include <pk/pk.h>

#include <stdio.h>

#include "harness.h"

enum { REPETITIONS = 31, REGIONS = 10000 };

static pk_region one = PK_REGION("one");

typedef struct times {
    double start_wall[REPETITIONS], start_cpu[REPETITIONS];
    double stop_wall[REPETITIONS], stop_cpu[REPETITIONS];
} times;

static void record(void)
{
    for (int i = 0; i < REGIONS; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void once(const pk_options *options, times *t, int i)
{
    uint64_t wall = bench_wall_ns(), cpu = bench_process_ns();
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
    t->start_wall[i] = (double)(bench_wall_ns() - wall) * 1e-6;
    t->start_cpu[i] = (double)(bench_process_ns() - cpu) * 1e-6;
    record();
    wall = bench_wall_ns();
    cpu = bench_process_ns();
    if (pk_stop() != PK_OK)
        bench_fail(pk_error_message());
    t->stop_wall[i] = (double)(bench_wall_ns() - wall) * 1e-6;
    t->stop_cpu[i] = (double)(bench_process_ns() - cpu) * 1e-6;
}

static void measure(const char *title, const pk_options *options)
{
    static times t;
    for (int i = 0; i < REPETITIONS; i++)
        once(options, &t, i);
    printf("%-38s %10s %10s\n", title, "ms", "ms of CPU");
    printf("  %-36s %10.2f %10.2f\n", "pk_start", bench_quantile(t.start_wall, REPETITIONS, 0.5),
           bench_quantile(t.start_cpu, REPETITIONS, 0.5));
    printf("  %-36s %10.2f %10.2f\n\n", "pk_stop, 10,000 regions recorded",
           bench_quantile(t.stop_wall, REPETITIONS, 0.5),
           bench_quantile(t.stop_cpu, REPETITIONS, 0.5));
}

int main(void)
{
    static char trace[512];
    snprintf(trace, sizeof trace, "%s", bench_scratch("session.json"));
    measure("statistics only", NULL);
    measure("with a trace", pk_options(.trace_path = trace));
    measure("with a trace and a JSON report",
            pk_options(.trace_path = trace, .report_path = bench_scratch("report.json")));
    return 0;
}
