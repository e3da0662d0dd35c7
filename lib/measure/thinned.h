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
    double call_error; /* by so much a timed call may be off, ns, beside that */
    double p50[2], p90[2], p95[2], p99[2];
} pki_region_thinned;

/* What overhead_max has done. */
typedef struct pki_thinned {
    uint64_t regions;           /* that are thinned; 0: none */
    uint64_t untimed, untraced; /* calls */
    double overhead_max;
    bool beyond; /* perfkit took more for a while, with nothing left to be saved */
} pki_thinned;

/* A timed call of a thinned region costs so many pairs on the fast path. */
#define PKI_TIMED_PAIRS 2.5

/* Of a finished distribution, and of so many events that the trace goes without. step_ns: the
 * clock's; pair_ns: what begin and end take on the fast path; 0: not known. All zero: the region is
 * not thinned.
 *
 * A timed call is not what an untimed one is: it is longer by a part of what timing takes, and no
 * longer overlaps with the calls beside it. How much that is depends on what the region does; it is
 * no more than what timing takes (call_error), which is in all ranges. */
pki_region_thinned pki_region_thinned_of(const pk_stats *stats, uint64_t untraced, double step_ns,
                                         double pair_ns);

/* What the sum may be off by, 95 times in 100, ns. */
double pki_thinned_sum_range(const pki_region_thinned *thinned, uint64_t count);
