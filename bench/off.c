/* What perfkit costs that is not started: against the same loop without it. */
#include <pk/pk.h>

#include "harness.h"

enum { PAIRS = 640000 };

static pk_region one = PK_REGION("one"), other = PK_REGION("other");
static uint64_t state = 1;

static void run_one(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        bench_barrier();
        pk_region_end(&one);
    }
}

static void run_next(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_next(&one, &other);
        bench_barrier();
    }
}

/* A few dependent operations, as short as anybody would put into a region. What a region forbids,
 * to keep the state in a register, the loop without it must not do either. */
static inline void work(void)
{
    uint64_t x = state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = x;
    bench_barrier();
}

static void run_work(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        work();
}

static void run_work_in_region(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        work();
        pk_region_end(&one);
    }
}

static bench_case empty[] = {
    {.name = "the loop", .run = bench_loop_run, .n = PAIRS},
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = PAIRS},
    {.name = "next", .run = run_next, .n = PAIRS},
    {.name = "pk::scope", .run = bench_cpp_scope_run, .n = PAIRS},
};

static bench_case working[] = {
    {.name = "a random number", .run = run_work, .n = PAIRS},
    {.name = "a random number in a region", .run = run_work_in_region, .n = PAIRS},
};

int main(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 101);
    bench_pin(0);
    bench_rounds(empty, 5, rounds);
    bench_print("not started", empty, 5);
    bench_rounds(working, 2, rounds);
    bench_print("not started, around work", working, 2);
    return 0;
}
