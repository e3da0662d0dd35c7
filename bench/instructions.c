/* WHAT N: runs something N times and nothing else, for a tool that counts instructions
 * (bench/instructions.sh). */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "floor.h"
#include "harness.h"
#include "many.h"

static pk_region one = PK_REGION("one"), other = PK_REGION("other");

static void run_pairs(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
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

static const struct {
    const char *name;
    void (*run)(uint64_t n);
    int started;
} subjects[] = {
    {"loop", bench_loop_run, 0}, {"floor", bench_floor_run, 0}, {"off", run_pairs, 0},
    {"on", run_pairs, 1},        {"64", bench_64_run, 1},       {"next", run_next, 1},
};

int main(int argc, char **argv)
{
    uint64_t n = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    bench_floor_prepare();
    for (size_t i = 0; n && i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(argv[1], subjects[i].name) == 0) {
            if (subjects[i].started && pk_start(NULL) != PK_OK)
                bench_fail(pk_error_message());
            subjects[i].run(n);
            _Exit(0); /* nothing after it is counted */
        }
    bench_fail("usage: instructions loop|floor|off|on|64|next N");
}
