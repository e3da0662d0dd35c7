/* lib/measure/thinning.h - which regions' calls are not all timed, and how sure their figures are
 */
#pragma once

#include <pk/stats.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what is known of thinned regions: how sure their figures are ---- */

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

/* By so many pairs on the fast path the time of a thinned region's call may be off. */
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

/* ---- which regions' calls are not all timed, so that perfkit keeps to its share ---- */

/*
 * This decides from the counts and costs since the last look. It has no clock and no thread, so
 * tests hand in costs that are made up. Each region stands on a rung of a ladder:
 *
 *     all timed | no events in the trace | 2 of 4 timed | of 5 | ... of 16 | of 18 ... of 4096
 *                  ------ too expensive: the region that costs most goes down ------>
 *                  <----- room: the one whose step costs least comes up
 *
 *     share of the bound
 *         1.10   above, at one look: regions go down
 *         1.00   the bound (overhead_max)
 *         0.96   the mean of some looks above: regions go down...
 *         0.92   what comes up may lead up to here
 *         0.86   ...until the forecast is here (0.40 at least, while more was taken than may be)
 *         0.82   the mean below, for some looks in a row: regions come up
 *
 * From 8 on eight rungs make half of the cost, so one that leads from below 0.82 leads no further
 * than 0.92, and nothing goes up and down at each look. After a step up that was soon taken back
 * the next one waits twice as long, after one that stayed half as long. A region whose step down
 * saves next to nothing keeps its times.
 */

/* What a call costs, ns. */
typedef struct pki_thin_costs {
    double pair;                        /* begin and end, recorded on the fast path */
    double timed;                       /* the same for a timed call of a thinned region */
    double counted;                     /* begin and end of an untimed one */
    double pair_hidden, counted_hidden; /* the same two beside work that the processor does
                                           meanwhile: what they take at least */
    double fold;                        /* per record: the collector's... */
    double format;                      /* ...and with an event in the trace so much more */
} pki_thin_costs;

typedef struct pki_thin_region {
    uint32_t id;
    uint32_t thin;           /* as in pki_thin (core/thin.h); the answer is here, too */
    uint64_t timed, untimed; /* calls since the last look */
} pki_thin_region;

/* What a stretch of the run has taken, ns of CPU time. */
typedef struct pki_thin_input {
    double process; /* all of it, perfkit's part included */
    double beside;  /* perfkit's, but for begin and end: the collector and whoever does its work */
} pki_thin_input;

typedef struct pki_thinning {
    double bound; /* share of the process's CPU time */
    bool traced;  /* events are written */
    pki_thin_costs costs;
    double scale; /* what the collector has taken, by what the costs say; begins as 1 */
    double share; /* perfkit's, in the stretch before the last look */
    double mean;  /* of shares since something was changed, of the bound */
    double over;  /* ns taken beyond the bound so far, and not saved since; at most some seconds' */
    double records, forecast, took; /* beside, since `scale` was corrected; ns */
    double counted, apart;          /* calls that were not timed; ns that the timed ones among them
                                       took beyond a pair each */
    uint32_t steady;                /* looks since something was changed */
    uint32_t roomy;                 /* looks in a row with room */
    uint32_t patience;              /* so many before something comes up */
    uint32_t since_up;              /* looks since something did */
    uint32_t spent;   /* looks in a row at which nothing was left to be saved, and what is sure to
                         be taken was more than may be... */
    double sure, cpu; /* ...that, in them, and the process's CPU time; ns */
    bool beyond;      /* it has been so for long enough to be said */
} pki_thinning;

void pki_thinning_init(pki_thinning *thinning, double bound, bool traced, pki_thin_costs costs);

/* What one call that is counted and not timed has cost so far, with its share of what it takes more
 * to time others of its region: whoever adds a pair for each timed call has all of it. */
double pki_thinning_counted_ns(const pki_thinning *thinning);

/* Changes regions[].thin. True: it has changed any. */
bool pki_thinning_adjust(pki_thinning *thinning, const pki_thin_input *input,
                         pki_thin_region *regions, size_t count);
