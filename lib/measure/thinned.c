#include "measure/thinned.h"

#include <math.h>

#include "base/compiler.h"
#include "stats/buckets.h"

#define TWO_SIDED_95 1.96 /* standard errors on either side that hold 95 of 100 */

/* Times are whole nanoseconds, if the clock is not coarser. */
#define LEAST_STEP_NS 1.0

/* Woodruff's interval (JASA 47, 1952): the share of calls below a quantile is estimated with a
 * known error; what lies at both ends of it is the quantile's. Both ends are known to within half a
 * bucket, as the quantile is itself, and to within the clock's step: a call that is seldom timed
 * takes a little longer than one that always is, and the next step of the clock may lie between. */
static void put_range(const pk_stats *stats, double q, double off_ns, double range[2])
{
    double off = TWO_SIDED_95 * sqrt(q * (1 - q)) * stats->sampling_error;
    double low = (double)pk_stats_quantile(stats, PKI_MAX(q - off, 0.0));
    double high = (double)pk_stats_quantile(stats, PKI_MIN(q + off, 1.0));
    range[0] = PKI_MAX(low - low / PKI_OCTAVE_BUCKETS - off_ns, 0.0);
    range[1] = high + high / PKI_OCTAVE_BUCKETS + off_ns;
}

pki_region_thinned pki_region_thinned_of(const pk_stats *s, uint64_t untraced, double step_ns,
                                         double pair_ns)
{
    pki_region_thinned out = {
        .calls = s->untimed + untraced, .untimed = s->untimed, .untraced = untraced};
    if (!s->untimed)
        return out;
    out.error = s->sampling_error;
    out.sum_error = (double)s->count * s->stddev * s->sampling_error;
    out.call_error = PKI_TIMED_PAIRS * pair_ns;
    double off = PKI_MAX(step_ns, LEAST_STEP_NS) + out.call_error;
    put_range(s, 0.50, off, out.p50);
    put_range(s, 0.90, off, out.p90);
    put_range(s, 0.95, off, out.p95);
    put_range(s, 0.99, off, out.p99);
    return out;
}

double pki_thinned_sum_range(const pki_region_thinned *t, uint64_t count)
{
    return TWO_SIDED_95 * t->sum_error + (double)count * t->call_error;
}
