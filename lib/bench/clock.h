/* lib/bench/clock.h - the clocks that benchmarks are timed by.
 *
 * The engine reads time through a table, so that tests run it on a clock of their own making.
 */
#pragma once

#include <stdint.h>

typedef struct pki_bench_clock {
    uint64_t (*now)(void *self); /* ns */
    uint64_t (*cpu)(void *self); /* ns of the calling thread's CPU time */
    void *self;
} pki_bench_clock;

/* CLOCK_MONOTONIC, whose reading is ordered with the work around it, and
 * CLOCK_THREAD_CPUTIME_ID. */
extern const pki_bench_clock pki_bench_system_clock;
