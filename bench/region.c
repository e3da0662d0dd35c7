/* What a recorded region costs, and everything else that a program calls while it records.
 * Statistics and trace are both on unless a table says otherwise; the rings are emptied between
 * the batches, on this thread, outside the timing. */
#include <pk/pk.h>

#include <stdio.h>

#include "harness.h"

enum { PAIRS = 9984, STEPS = 512 }; /* PAIRS is a multiple of 64 */

static pk_region one = PK_REGION("one"), other = PK_REGION("other");
static pk_counter counter = PK_COUNTER("counter", "things");

static void run_one(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void run_c_scope(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        PK_REGION_SCOPE(one);
    }
}

static void run_next(uint64_t n)
{
    pk_region_begin(&one);
    for (uint64_t i = 0; i < n; i += 2) {
        pk_region_next(&one, &other);
        pk_region_next(&other, &one);
    }
    pk_region_end(&one);
}

static void run_add(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_add(&one, 64, 2);
        pk_region_end(&one);
    }
}

static void run_counter(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk_counter_set(&counter, (double)i);
}

static void run_mark(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk_region_mark(&one);
}

static void run_named(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region *region = pk_region_named("known by name");
        pk_region_begin(region);
        pk_region_end(region);
    }
}

static void run_regions(uint64_t n, unsigned regions)
{
    for (uint64_t i = 0; i < n; i++)
        bench_many_pairs(regions);
}

static void run_steps(uint64_t n, unsigned regions)
{
    for (uint64_t i = 0; i < n; i++) {
        bench_many_pairs(regions);
        pk_step(1);
    }
}

static void run_20(uint64_t n)
{
    run_regions(n, 20);
}

static void run_20_steps(uint64_t n)
{
    run_steps(n, 20);
}

static void run_200(uint64_t n)
{
    run_regions(n, 200);
}

static void run_200_steps(uint64_t n)
{
    run_steps(n, 200);
}

static void empty_rings(void)
{
    pk_flush();
}

static bench_case regions[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = PAIRS},
    {.name = "next", .run = run_next, .n = PAIRS},
    {.name = "PK_REGION_SCOPE", .run = run_c_scope, .n = PAIRS},
    {.name = "pk::scope", .run = bench_cpp_scope_run, .n = PAIRS},
};

static bench_case next_alone[] = {
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "next", .run = run_next, .n = PAIRS},
};

static bench_case others[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + add + end", .run = run_add, .n = PAIRS},
    {.name = "pk_region_named + begin + end", .run = run_named, .n = PAIRS},
    {.name = "pk_counter_set", .run = run_counter, .n = PAIRS},
    {.name = "pk_region_mark", .run = run_mark, .n = PAIRS},
};

static bench_case steps_20[] = {
    {.name = "20 regions", .run = run_20, .n = STEPS},
    {.name = "20 regions + pk_step", .run = run_20_steps, .n = STEPS},
};

static bench_case steps_200[] = {
    {.name = "200 regions", .run = run_200, .n = STEPS / 8},
    {.name = "200 regions + pk_step", .run = run_200_steps, .n = STEPS / 8},
};

static bench_case light[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = PAIRS},
};

#define SIZE(cases) (sizeof(cases) / sizeof *(cases))

static void measure(const char *title, bench_case *cases, size_t count, unsigned long rounds)
{
    for (size_t i = 0; i < count; i++)
        cases[i].after = empty_rings;
    bench_rounds(cases, count, rounds);
    bench_print(title, cases, count);
}

/* A session of its own for each table: a trace file does not grow beyond half a gigabyte. */
static void session(const pk_options *options)
{
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

static void end_session(void)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    if (counts.dropped || counts.points_dropped)
        bench_fail("a ring was full: the figures above are not of recorded regions");
    bench_scratch_empty();
}

static void with_trace(const char *title, bench_case *cases, size_t count, unsigned long rounds)
{
    session(pk_options(.trace_path = bench_scratch("region.json")));
    measure(title, cases, count, rounds);
    end_session();
}

static void full_ring(unsigned long rounds)
{
    session(pk_options(.tuning = "ring_records=64"));
    bench_rounds(light, 2, rounds);
    pk_stop();
    bench_print("ring full: dropped and counted", light, 2);
}

int main(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 51);
    bench_pin(0);
    bench_floor_prepare();
    with_trace("statistics and trace", regions, SIZE(regions), rounds);
    with_trace("next, against begin + end", next_alone, SIZE(next_alone), rounds);
    with_trace("other calls", others, SIZE(others), rounds);
    with_trace("a step of 20 regions", steps_20, SIZE(steps_20), rounds);
    with_trace("a step of 200 regions", steps_200, SIZE(steps_200), rounds);
    session(NULL);
    measure("statistics only", light, SIZE(light), rounds);
    end_session();
    full_ring(rounds);
    return 0;
}
