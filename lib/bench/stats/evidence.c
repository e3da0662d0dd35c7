/* One difference, by each of the methods: evidence.h. */
#include "bench/stats/evidence.h"

#include "base/compiler.h"

#include <math.h>

/* ---- signed ranks ---- */

size_t pki_walsh_count(size_t n)
{
    return n * (n + 1) / 2;
}

void pki_walsh_averages(const double *values, size_t n, double *walsh)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            walsh[count++] = values[i] + (values[j] - values[i]) / 2;
    pki_samples_sort(walsh, count);
}

/* The interval is between the (k + 1)-th of the averages from below and from above. Values that
 * depend on each other count as fewer: the same share of the averages is left out as of so many
 * independent ones. */
pki_interval pki_walsh_interval(const double *walsh, size_t n, double dependence, double alpha)
{
    size_t k, count = pki_walsh_count(n);
    size_t independent = (size_t)((double)n / PKI_MAX(dependence, 1));
    if (!pki_wilcoxon_critical(independent, alpha / 2, &k))
        return (pki_interval){-INFINITY, INFINITY};
    double share = (double)k / (double)pki_walsh_count(independent);
    k = independent == n ? k : (size_t)(share * (double)count);
    k = PKI_MIN(k, (count - 1) / 2);
    return (pki_interval){walsh[k], walsh[count - 1 - k]};
}

/* What equals the bound speaks for it. */
static double rank_p(const pki_evidence *e, double bound, bool above)
{
    size_t against = 0, count = pki_walsh_count(e->count);
    for (size_t i = 0; i < count; i++)
        against += above ? e->walsh[i] <= bound : e->walsh[i] >= bound;
    return count ? pki_wilcoxon_below(e->count, (double)against) : 1;
}

/* ---- stored runs ---- */

static double squares(const double *runs, size_t count)
{
    double deviation = pki_samples_stddev(runs, count);
    return count ? deviation * deviation * (double)(count - 1) : 0;
}

pki_run_difference pki_run_difference_of(const double *old_runs, size_t old_count,
                                         const double *new_runs, size_t new_count, double old_error,
                                         double new_error, double allowance)
{
    double old_n = (double)old_count, new_n = (double)new_count, df = old_n + new_n - 2;
    pki_run_difference d = {
        .mean = pki_samples_mean(new_runs, new_count) - pki_samples_mean(old_runs, old_count),
        .error = hypot(old_error, new_error),
        .spread = NAN,
        .allowance = allowance,
    };
    if (!old_count || !new_count)
        return (pki_run_difference){.error = NAN, .spread = NAN};
    if (df < PKI_MOMENTS_DF)
        return d;
    d.allowance = 0;
    d.df = df;
    d.spread = sqrt((squares(old_runs, old_count) + squares(new_runs, new_count)) / df);
    d.error = d.spread * sqrt(1 / old_n + 1 / new_n);
    return d;
}

/* Of the normal distribution where only the two runs themselves say how well they are known. */
static double df_of(const pki_run_difference *d)
{
    return d->df > 0 ? d->df : INFINITY;
}

static pki_interval run_interval(const pki_run_difference *d, double alpha)
{
    if (isnan(d->error))
        return (pki_interval){-INFINITY, INFINITY};
    double half = d->allowance - pki_t_quantile(alpha / 2, df_of(d)) * d->error;
    return (pki_interval){d->mean - half, d->mean + half};
}

static double run_p(const pki_run_difference *d, double distance)
{
    distance -= d->allowance;
    if (isnan(distance) || isnan(d->error))
        return 1;
    if (!(d->error > 0))
        return distance > 0 ? 0 : 1;
    return pki_t_below(-distance / d->error, df_of(d));
}

/* ---- whichever it is ---- */

double pki_evidence_estimate(const pki_evidence *e)
{
    if (e->method == PKI_BY_MOMENTS)
        return e->runs.mean;
    return pki_samples_median(e->walsh, pki_walsh_count(e->count));
}

pki_interval pki_evidence_interval(const pki_evidence *e, double alpha)
{
    return e->method == PKI_BY_MOMENTS ? run_interval(&e->runs, alpha)
                                       : pki_walsh_interval(e->walsh, e->count, 1, alpha);
}

double pki_evidence_p_above(const pki_evidence *e, double bound)
{
    return e->method == PKI_BY_MOMENTS ? run_p(&e->runs, e->runs.mean - bound)
                                       : rank_p(e, bound, true);
}

double pki_evidence_p_below(const pki_evidence *e, double bound)
{
    return e->method == PKI_BY_MOMENTS ? run_p(&e->runs, bound - e->runs.mean)
                                       : rank_p(e, bound, false);
}
