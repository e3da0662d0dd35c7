/* One difference, by each of the methods: compare/stats.h. */
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

/* ---- order statistics: of the values for signs, of the Walsh averages for signed ranks ---- */

typedef struct ordered {
    const double *sorted;
    size_t count;
} ordered;

static ordered order_of(const pki_evidence *e)
{
    if (e->method == PKI_BY_WILCOXON)
        return (ordered){e->walsh, pki_walsh_count(e->count)};
    return (ordered){e->values, e->count};
}

/* Probability that at most k of the statistics lie below the truth. */
static double chance_below(const pki_evidence *e, size_t k)
{
    if (e->method == PKI_BY_WILCOXON)
        return pki_wilcoxon_below(e->count, (double)k);
    return pki_binomial_below(e->count, k);
}

/* The largest k that may be left out on each side: the interval is between the (k + 1)-th from
 * below and from above; false if not even the extremes are far enough. */
static bool left_out(const pki_evidence *e, size_t count, double alpha, size_t *k)
{
    size_t low = 0, high = count / 2;
    if (count == 0 || chance_below(e, 0) > alpha / 2)
        return false;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (chance_below(e, middle) <= alpha / 2)
            low = middle;
        else
            high = middle - 1;
    }
    *k = low;
    return true;
}

static pki_interval order_interval(const pki_evidence *e, double alpha)
{
    ordered all = order_of(e);
    size_t k;
    if (!left_out(e, all.count, alpha, &k))
        return (pki_interval){-INFINITY, INFINITY};
    k = PKI_MIN(k, (all.count - 1) / 2);
    return (pki_interval){all.sorted[k], all.sorted[all.count - 1 - k]};
}

/* What equals the bound speaks for it. */
static double order_p(const pki_evidence *e, double bound, bool above)
{
    ordered all = order_of(e);
    size_t against = 0;
    for (size_t i = 0; i < all.count; i++)
        against += above ? all.sorted[i] <= bound : all.sorted[i] >= bound;
    return all.count ? chance_below(e, against) : 1;
}

/* ---- Student's t: of the values' mean, or of moments ---- */

typedef struct student {
    double mean, error, df, allowance;
} student;

static student student_of(const pki_evidence *e)
{
    if (e->method == PKI_BY_MOMENTS) {
        const pki_moments *m = &e->moments;
        return (student){m->difference, m->error, m->df > 0 ? m->df : INFINITY, m->allowance};
    }
    double error = pki_samples_stddev(e->values, e->count) / sqrt((double)e->count);
    return (student){pki_samples_mean(e->values, e->count), error, (double)e->count - 1, 0};
}

static pki_interval student_interval(const pki_evidence *e, double alpha)
{
    student s = student_of(e);
    if (!(s.df > 0) || isnan(s.error))
        return (pki_interval){-INFINITY, INFINITY};
    double half = s.allowance - pki_t_quantile(alpha / 2, s.df) * s.error;
    return (pki_interval){s.mean - half, s.mean + half};
}

static double student_p(const pki_evidence *e, double distance)
{
    student s = student_of(e);
    distance -= s.allowance;
    if (!(s.df > 0) || isnan(distance) || isnan(s.error))
        return 1;
    if (!(s.error > 0))
        return distance > 0 ? 0 : 1;
    return pki_t_below(-distance / s.error, s.df);
}

/* ---- stored runs ---- */

static double squares(const double *runs, size_t count)
{
    double deviation = pki_samples_stddev(runs, count);
    return count ? deviation * deviation * (double)(count - 1) : 0;
}

pki_moments pki_moments_of(const double *old_runs, size_t old_count, const double *new_runs,
                           size_t new_count, double old_error, double new_error, double allowance)
{
    double old_n = (double)old_count, new_n = (double)new_count, df = old_n + new_n - 2;
    pki_moments m = {
        .difference = pki_samples_mean(new_runs, new_count) - pki_samples_mean(old_runs, old_count),
        .error = hypot(old_error, new_error),
        .spread = NAN,
        .allowance = allowance,
    };
    if (!old_count || !new_count)
        return (pki_moments){.error = NAN, .spread = NAN};
    if (df < PKI_MOMENTS_DF)
        return m;
    m.allowance = 0;
    m.df = df;
    m.spread = sqrt((squares(old_runs, old_count) + squares(new_runs, new_count)) / df);
    m.error = m.spread * sqrt(1 / old_n + 1 / new_n);
    return m;
}

/* ---- whichever it is ---- */

static bool is_ordered(const pki_evidence *e)
{
    return e->method == PKI_BY_WILCOXON || e->method == PKI_BY_SIGN;
}

double pki_evidence_estimate(const pki_evidence *e)
{
    if (!is_ordered(e))
        return student_of(e).mean;
    ordered all = order_of(e);
    return pki_samples_median(all.sorted, all.count);
}

pki_interval pki_evidence_interval(const pki_evidence *e, double alpha)
{
    return is_ordered(e) ? order_interval(e, alpha) : student_interval(e, alpha);
}

double pki_evidence_p_above(const pki_evidence *e, double bound)
{
    return is_ordered(e) ? order_p(e, bound, true) : student_p(e, student_of(e).mean - bound);
}

double pki_evidence_p_below(const pki_evidence *e, double bound)
{
    return is_ordered(e) ? order_p(e, bound, false) : student_p(e, bound - student_of(e).mean);
}
