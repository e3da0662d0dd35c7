/* lib/bench/clocks.h - the clocks that benchmarks are timed by, and a device's own */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * PKI_BENCH_CLOCKS_EVERY. A stretch between two readings counts as throttled if either of them says
 * that something held the clock down; its samples are marked, and kept. Nothing is ever set. */

#define PKI_BENCH_CLOCKS_EVERY 10000000u  /* ns */
#define PKI_BENCH_CLOCKS_STILL 100000000u /* ns for which it must not have risen... */
#define PKI_BENCH_CLOCKS_RISE 0.01        /* ...by more than this */
#define PKI_BENCH_CLOCKS_BLIND 200000000u /* ns of warm-up if the clock is not known */

struct pki_bench_case;

typedef struct pki_bench_clocks {
    bool looked, held;       /* ever; at the last reading */
    uint64_t read, rose;     /* when it was read last, when it rose last */
    unsigned top, low, high; /* MHz: of the warm-up; of the measurement */
    size_t first;            /* sample behind the last reading */
    char why[128];
} pki_bench_clocks;

/* During the warm-up that began then: does the clock rise no more? */
bool pki_bench_clocks_risen(struct pki_bench_case *c, uint64_t began);

/* Around the measurement, and after each of its samples. */
void pki_bench_clocks_start(struct pki_bench_case *c);
void pki_bench_clocks_check(struct pki_bench_case *c);
void pki_bench_clocks_finish(struct pki_bench_case *c);
