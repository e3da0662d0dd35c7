#include "measure/thinned.h"

#include <math.h>

#include "base/compiler.h"

#define TWO_SIDED_95 1.96 /* standard errors on either side that hold 95 of 100 */

/* Woodruff's interval (JASA 47, 1952): the share of calls below a quantile is estimated with a
 * known error; what lies at both ends of it is the quantile's. */
static void put_range(const pk_stats *stats, double q, double range[2])
{
    double off = TWO_SIDED_95 * sqrt(q * (1 - q)) * stats->sampling_error;
    range[0] = (double)pk_stats_quantile(stats, PKI_MAX(q - off, 0.0));
    range[1] = (double)pk_stats_quantile(stats, PKI_MIN(q + off, 1.0));
}

pki_region_thinned pki_region_thinned_of(const pk_stats *s, uint64_t untraced)
{
    pki_region_thinned out = {
        .calls = s->untimed + untraced, .untimed = s->untimed, .untraced = untraced};
    if (!s->untimed)
        return out;
    out.error = s->sampling_error;
    out.sum_error = (double)s->count * s->stddev * s->sampling_error;
    put_range(s, 0.50, out.p50);
    put_range(s, 0.90, out.p90);
    put_range(s, 0.95, out.p95);
    put_range(s, 0.99, out.p99);
    return out;
}
