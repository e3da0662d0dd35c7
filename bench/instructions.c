/* WHAT N [PATH]: runs something N times and nothing else, for a tool that counts instructions
 * (bench/instructions.sh). */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

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

/* What the collector would do of it is done here, so it counts, too. */
static void run_flushed(uint64_t n)
{
    run_pairs(n);
    pk_flush();
}

enum start { OFF, ON, STATISTICS, HISTORY, TRACE };

static const struct {
    const char *name;
    void (*run)(uint64_t n);
    enum start start;
} subjects[] = {
    {"loop", bench_loop_run, OFF},
    {"floor", bench_floor_run, OFF},
    {"off", run_pairs, OFF},
    {"on", run_pairs, ON},
    {"64", bench_64_run, ON},
    {"next", run_next, ON},
    {"statistics", run_flushed, STATISTICS},
    {"history", run_flushed, HISTORY},
    {"trace", run_flushed, TRACE},
};

static void begin(enum start how, const char *trace)
{
    const pk_options *options =
        how == ON ? NULL
                  : pk_options(.backends = "none", .history_steps = how == HISTORY ? 100 : 0,
                               .trace_path = how == TRACE ? trace : NULL,
                               .tuning = "arena_path=none,flush_ms=3600000");
    if (how != OFF && pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

int main(int argc, char **argv)
{
    uint64_t n = argc >= 3 ? strtoull(argv[2], NULL, 10) : 0;
    const char *trace = argc >= 4 ? argv[3] : "trace.json";
    bench_floor_prepare();
    for (size_t i = 0; n && i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(argv[1], subjects[i].name) == 0) {
            begin(subjects[i].start, trace);
            subjects[i].run(n);
            _Exit(0); /* nothing after it is counted */
        }
    bench_fail("usage: instructions loop|floor|off|on|64|next|statistics|history|trace N [PATH]");
}
