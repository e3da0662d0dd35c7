/* pk/stats.h - the distribution of a region's durations, while the program runs.
 *
 *     pk_stats s;
 *     if (pk_region_stats(&forward, &s) == PK_OK)
 *         printf("%" PRIu64 " calls, p99 %" PRIu64 " ns\n", s.count, pk_stats_quantile(&s, 0.99));
 *
 * Threads: any thread, any time, also after pk_stop until the next pk_start. A pk_stats is a plain
 *          copy. Every call that has ended before is in it; of those that other threads are ending
 *          at this very moment some may be missing, none is counted twice.
 * Failure: PK_EOFF before the first pk_start; PK_ENOENT for a region that has not ended once in the
 *          session (the pk_stats is then zeroed: count 0). Without memory for a bucket its calls
 *          are missing in the quantiles; count, sum, min and max never miss one.
 * Cost:    walks what the rings hold, some nanoseconds per region recorded since the last walk,
 *          under a lock that no recording thread takes. A pk_stats is 30 KiB: mind small stacks.
 */
#ifndef PK_STATS_H
#define PK_STATS_H

#include <pk/region.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PK_STATS_BUCKETS (59 * 64)

typedef struct pk_stats {
    uint64_t count;
    uint64_t sum; /* ns, as are all that follow. A duration is the distance of both ends, each rounded
                     down to a nanosecond of the session, as the trace has it: count, sum, min and
                     max are exactly those of the trace's durations (and of calls without a record) */
    uint64_t min; /* 0 if count is 0 */
    uint64_t max;
    double mean;
    double stddev;   /* of the population: sqrt(E[x^2] - E[x]^2), from exact 128-bit sums */
    uint64_t self;   /* sum without the time in regions inside this one */
    uint64_t bytes;  /* pk_region_add */
    uint64_t flops;
    double unit_ns;  /* ns per bucket unit: 1 */
    uint64_t reserved[6];
    /* Log-linear: values below 128 exactly, then 64 buckets per octave; a bucket is at most 1/64 of
     * its value wide, so its middle is within 1/128 = 0.8 %. */
    uint64_t buckets[PK_STATS_BUCKETS];
} pk_stats;

/* Merged over all threads, those that have ended included. */
PK_API pk_status pk_region_stats(const pk_region *region, pk_stats *stats);

/* Of the durations of all steps (pk/step.h). */
PK_API pk_status pk_step_stats(pk_stats *stats);

/* The smallest duration that at least q of all samples do not exceed (nearest rank, q clamped to 0
 * .. 1): its bucket's middle, never outside min .. max. 0 if there are no samples, or stats is NULL. */
PK_API uint64_t pk_stats_quantile(const pk_stats *stats, double q);

#ifdef __cplusplus
}
#endif
#endif
