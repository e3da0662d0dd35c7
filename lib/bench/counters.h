/* lib/bench/counters.h - what is counted, not timed: hardware counters and allocations */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/processors.h"

/* ---- allocations of the whole process while they are counted ---- */

/* They are told us by whoever stands in front of malloc: PK_BENCH_COUNT_ALLOCATIONS in pk/bench.h.
 */

/* Does anybody stand there? Tries it with one allocation. */
bool pki_bench_allocations_seen(void);

void pki_bench_allocations_start(void); /* from zero */
void pki_bench_allocations_stop(void);
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
                                                 counters, they take turns; none: not counted */
} pki_bench_counters;

/* What was counted; negative: it could not be. */
typedef struct pki_bench_counts {
    double value[PKI_BENCH_COUNTERS];
} pki_bench_counts;

/* False if not one of them can be had. They count from start to stop. */
bool pki_bench_counters_open(pki_bench_counters *counters);
void pki_bench_counters_start(pki_bench_counters *counters);
void pki_bench_counters_stop(pki_bench_counters *counters);
/* Scaled up where the processor had to share its counters. */
void pki_bench_counters_read(pki_bench_counters *counters, pki_bench_counts *counts);
void pki_bench_counters_close(pki_bench_counters *counters);

/* Can they be had here? If not, why, in words; if only some, which not. "" if all. */
void pki_bench_counters_explain(char *text, size_t size);
