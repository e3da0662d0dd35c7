/* lib/measure/thinned.h - what is known of thinned regions: how sure their figures are. */
#pragma once

#include <stdbool.h>

#include <pk/stats.h>

/* Of a region that overhead_max has thinned. Ranges hold the figure 95 times in
 * 100, as far as calls do not depend on those near them; the clock's step and the width of a bucket
 * are in them. */
typedef struct pki_region_thinned {
    uint64_t calls;    /* not timed, or not in the trace; 0: it is not thinned */
    uint64_t untimed;  /* counted alone */
    uint64_t untraced; /* timed, and not in the trace */
    double error;      /* as pk_stats.sampling_error */
    double sum_error;  /* one standard error of the sum, ns */
    double p50[2], p90[2], p95[2], p99[2];
} pki_region_thinned;

/* What overhead_max has done. */
typedef struct pki_thinned {
    uint64_t regions;           /* that are thinned; 0: none */
    uint64_t untimed, untraced; /* calls */
    double overhead_max;
    bool beyond; /* perfkit took more for a while, with nothing left to be saved */
} pki_thinned;

/* Of a finished distribution, and of so many events that the trace goes without. step_ns: the
 * clock's; 0: not known. All zero: the region is not thinned. */
pki_region_thinned pki_region_thinned_of(const pk_stats *stats, uint64_t untraced, double step_ns);
