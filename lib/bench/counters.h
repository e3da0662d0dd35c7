/* lib/bench/counters.h - clocks that benchmarks are timed by, and what is counted beside */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/processors.h"

/* ---- the clocks that benchmarks are timed by ---- */

/* The engine reads time through a table, so that tests run it on a clock of their own making. */

typedef struct pki_bench_clock {
    uint64_t (*now)(void *self); /* ns */
    uint64_t (*cpu)(void *self); /* ns of the calling thread's CPU time */
    void *self;
} pki_bench_clock;

/* CLOCK_MONOTONIC, whose reading is ordered with the work around it, and
 * CLOCK_THREAD_CPUTIME_ID. */
extern const pki_bench_clock pki_bench_system_clock;

/* ---- a device's own clock while it is measured ---- */

/* An idle device clocks down and takes some time under load to come up again, so a benchmark is
 * warm when the clock does not rise any more; where it is unknown, after PKI_BENCH_CLOCKS_BLIND.
 * While it is measured, the clock and what holds it down are read between samples, every
 * PKI_BENCH_CLOCKS_EVERY, and each sample has the clock of the stretch that it lies in. A stretch
 * between two readings counts as throttled if either of them says that something held the clock
 * down. In the end samples are left out that were throttled, whose stretch had two clocks, or
 * another one than the median of all: what remains was measured at one clock. If that would leave
 * less than half of them, all are kept, and marked. A clock that nobody tells leaves none out.
 * Nothing is ever set. */

#define PKI_BENCH_CLOCKS_EVERY 10000000u  /* ns */
#define PKI_BENCH_CLOCKS_STILL 100000000u /* ns for which it must not have risen... */
#define PKI_BENCH_CLOCKS_RISE 0.01        /* ...by more than this */
#define PKI_BENCH_CLOCKS_BLIND 200000000u /* ns of warm-up if the clock is not known */
#define PKI_BENCH_CLOCKS_SAME 0.02        /* clocks no further apart are one */

#define PKI_BENCH_CLOCK_UNKNOWN 0.0
#define PKI_BENCH_CLOCK_CHANGED (-1.0) /* it was not the same at both ends */

struct pki_bench_case;

typedef struct pki_bench_clocks {
    bool looked, held;       /* ever; at the last reading */
    uint64_t read, rose;     /* when it was read last, when it rose last */
    unsigned top, low, high; /* MHz: of the warm-up; of all readings of the measurement */
    unsigned last;           /* at the last of them */
    size_t first;            /* sample behind the last reading */
    size_t next;             /* samples at which it is counted again how many will be kept */
    char why[128];
} pki_bench_clocks;

/* ---- what is counted, not timed: hardware counters and allocations ---- */

/* ---- allocations of the whole process while they are counted ---- */

/* They are told us by whoever stands in front of malloc: PK_BENCH_COUNT_ALLOCATIONS in pk/bench.h.
 */

void pki_bench_allocations_read(uint64_t *count, uint64_t *bytes);

/* ---- counters ---- */

/* Instructions, cycles, cache and branch misses of the calling
 * thread, in user mode, where the kernel lets us (perf_event_open). */

enum {
    PKI_BENCH_INSTRUCTIONS,
    PKI_BENCH_CYCLES,
    PKI_BENCH_CACHE_MISSES,
    PKI_BENCH_BRANCH_MISSES,
    PKI_BENCH_COUNTERS
};

_Static_assert(PKI_BENCH_COUNTERS == PKI_PERF_EVENTS, "those of pki_perf_hardware, in its order");

typedef struct pki_bench_counters {
    pki_perf_group event[PKI_BENCH_COUNTERS]; /* one in each: where the processor has too few
                                                 counters, they alternate; none: not counted */
} pki_bench_counters;

/* What was counted; negative: it could not be. */
typedef struct pki_bench_counts {
    double value[PKI_BENCH_COUNTERS];
} pki_bench_counts;
