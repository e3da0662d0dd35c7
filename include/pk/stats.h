/* pk/stats.h - the distribution of a region's durations, while the program runs.
 *
 *     pk_stats s;
 *     if (pk_region_stats(&forward, &s) == PK_OK)
 *         printf("%" PRIu64 " calls, p99 %" PRIu64 " ns\n", s.count, pk_stats_quantile(&s, 0.99));
 *
 * Threads: any thread, any time, also after pk_stop until the next pk_start. A pk_stats is a plain
 *          copy. It holds every call that ended before. Calls that other threads end at that very
 *          moment may be missing; none is counted twice.
 * Failure: PK_EOFF before the first pk_start. PK_ENOENT for a region that has not ended once in the
 *          session; the pk_stats is then zeroed. PK_EINVAL for an invalid size. If there is no
 *          memory for a bucket, its calls are missing from the quantiles, but never from count,
 *          sum, min and max.
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
    uint32_t size;     /* sizeof(pk_stats); the macros below set it */
    uint32_t reserved; /* 0 */
    uint64_t count;
    /* From here on in ns. A duration is the distance between both ends, each rounded down to a
     * nanosecond of the session, as in the trace: count, sum, min and max are exactly those of the
     * trace's durations (and of calls without a record). */
    uint64_t sum;
    uint64_t min; /* 0 if count is 0 */
    uint64_t max;
    double mean;
    double stddev;  /* of the population: sqrt(E[x^2] - E[x]^2), from exact 128-bit sums */
    uint64_t self;  /* sum without the time in regions inside this one */
    uint64_t bytes; /* pk_region_add */
    uint64_t flops;
    double unit_ns; /* ns per bucket unit: 1 */
    /* Where overhead_max has had calls counted and not timed (docs/production.md), each timed call
     * stands for w: itself and the untimed ones before it. count, bytes and flops are exact then;
     * all else is an estimate, from which the truth is off by as much as calls differ. One standard
     * error of the sum is count * stddev * sampling_error, of the mean stddev * sampling_error, of
     * the rank of quantile q sqrt(q * (1 - q)) * sampling_error: sampling_error^2 is the sum of
     * w * (w - 1), divided by count^2. (Of a total estimated by weights, as Horvitz and Thompson
     * do, JASA 47, 1952; each timed call is right about itself and a guess about w - 1 others,
     * hence (w - 1)^2 + (w - 1). It assumes that calls are independent of their neighbours.) min
     * and max are those of timed calls. */
    uint64_t untimed; /* of count; 0: the error is 0 */
    double sampling_error;
    uint64_t spare[4]; /* 0; for later versions */
    /* Log-linear: values below 128 exactly, then 64 buckets per octave. A bucket is at most 1/64 of
     * its value wide, so its middle is within 1/128 = 0.8 %. */
    uint64_t buckets[PK_STATS_BUCKETS];
} pk_stats;

/* In C and C++ the calls that fill in a pk_stats are macros that set its size first, so a caller
 * need not. Whoever calls the function itself, from another language or as (pk_region_stats)(...),
 * sets size: sizeof(pk_stats), or less for its first members alone. offsetof(pk_stats, buckets) is
 * 136 bytes instead of 30 KiB, without quantiles. 0, and more than this library knows, are
 * PK_EINVAL. */

/* Merged over all threads, those that have ended included. */
PK_API pk_status pk_region_stats(const pk_region *region, pk_stats *stats);

/* Of the durations of all steps (pk/step.h). */
PK_API pk_status pk_step_stats(pk_stats *stats);

/* The smallest duration that at least q of all samples do not exceed (nearest rank; q is clamped to
 * 0 .. 1): the middle of its bucket, never outside min .. max. 0 if there are no samples or no
 * buckets, or if stats is NULL. */
PK_API uint64_t pk_stats_quantile(const pk_stats *stats, double q);

/* Both in one, for small stacks: the region's quantile in ns, and no pk_stats of the caller's. The
 * statuses are those of pk_region_stats, and unless it is PK_OK, *ns is 0. It costs what that
 * does, and 8 KiB of stack. */
PK_API pk_status pk_region_quantile(const pk_region *region, double q, uint64_t *ns);

/* ---- below: how it is done ---- */

#define pk_region_stats(region, stats) (pk_region_stats)((region), pk_stats_sized_(stats))
#define pk_step_stats(stats) (pk_step_stats)(pk_stats_sized_(stats))

static inline pk_stats *pk_stats_sized_(pk_stats *stats)
{
    if (stats)
        stats->size = sizeof *stats;
    return stats;
}

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_STATS_
#include <pk/disable.h>
#endif
#endif
