#include "bench/stats/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* ---- one difference, by signed ranks ---- */

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

/* ---- one difference, by stored runs ---- */

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

/* ---- distributions: Student's t ---- */

/* lgamma writes a global. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static double not_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The continued fraction of I_x(a, b); converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m < 1000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        h *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x, double one_less_x)
{
    if (!(x > 0) || !(one_less_x > 0))
        return x > 0;
    double front =
        exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(one_less_x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, one_less_x) / b;
}

#define NORMAL_FROM 1e8 /* degrees of freedom */

double pki_t_below(double t, double df)
{
    if (isnan(t) || isnan(df))
        return NAN;
    if (isinf(t))
        return t > 0;
    if (df > NORMAL_FROM)
        return erfc(-t / M_SQRT2) / 2;
    double square = t * t, tail;
    tail = incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square)) / 2;
    return t > 0 ? 1 - tail : tail;
}

static double density(double t, double df)
{
    if (df > NORMAL_FROM)
        return exp(-t * t / 2) / sqrt(2 * M_PI);
    return exp(log_gamma((df + 1) / 2) - log_gamma(df / 2) - (df + 1) / 2 * log1p(t * t / df)) /
           sqrt(M_PI * df);
}

/* Newton's steps, as long as they stay within what bisection knows. */
double pki_t_quantile(double p, double df)
{
    if (p > 0.5)
        return -pki_t_quantile(1 - p, df);
    if (!(p > 0))
        return -INFINITY;
    double low = -1, high = 0;
    while (pki_t_below(low, df) > p && low > -1e300)
        low *= 2;
    double t = low;
    for (int i = 0; i < 200; i++) {
        double off = pki_t_below(t, df) - p, next = t - off / density(t, df);
        if (off < 0)
            low = t;
        else
            high = t;
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (fabs(next - t) <= 1e-15 * fabs(next))
            break;
        t = next;
    }
    return t;
}

/* ---- distributions: signed ranks ---- */

#define SUMS (PKI_WILCOXON_EXACT * (PKI_WILCOXON_EXACT + 1) / 2 + 1)

/* share[s]: of the 2^n subsets of 1 .. n, those whose sum is s. The largest sum. */
static size_t count_sums(size_t n, double share[SUMS])
{
    size_t most = 0;
    memset(share, 0, SUMS * sizeof *share);
    share[0] = 1;
    for (size_t rank = 1; rank <= n; rank++) {
        most += rank;
        for (size_t sum = most + 1; sum-- > 0;)
            share[sum] = (share[sum] + (sum >= rank ? share[sum - rank] : 0)) / 2;
    }
    return most;
}

static double exact_below(size_t n, size_t v)
{
    double share[SUMS], below = 0;
    size_t most = count_sums(n, share);
    for (size_t sum = 0; sum <= v && sum <= most; sum++)
        below += share[sum];
    return PKI_MIN(below, 1);
}

double pki_wilcoxon_below(size_t n, double v)
{
    double count = (double)n, most = count * (count + 1) / 2;
    if (v < 0)
        return 0;
    if (v >= most)
        return 1;
    if (n <= PKI_WILCOXON_EXACT)
        return exact_below(n, (size_t)v);
    double deviation = sqrt(count * (count + 1) * (2 * count + 1) / 24);
    return pki_t_below((floor(v) + 0.5 - most / 2) / deviation, INFINITY);
}

/* By halves, where each probability is one formula. */
static size_t critical_of_many(size_t n, double p)
{
    size_t low = 0, high = n * (n + 1) / 2;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (pki_wilcoxon_below(n, (double)middle) <= p)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

bool pki_wilcoxon_critical(size_t n, double p, size_t *v)
{
    double share[SUMS], below = 0;
    if (n == 0 || pki_wilcoxon_below(n, 0) > p)
        return false;
    if (n > PKI_WILCOXON_EXACT) {
        *v = critical_of_many(n, p);
        return true;
    }
    size_t most = count_sums(n, share), sum = 0;
    while (sum < most && PKI_MIN(below + share[sum], 1) <= p)
        below += share[sum++];
    *v = sum - 1;
    return true;
}

/* ---- several at once: Holm ---- */

bool pki_holm(const double *p, size_t count, double alpha, bool *rejected, double *levels)
{
    pki_ranked *sorted = count ? malloc(count * sizeof *sorted) : NULL;
    if (count && !sorted)
        return false;
    pki_samples_rank(p, count, sorted);
    double level = 0;
    bool going = true;
    for (size_t i = 0; i < count; i++) {
        if (going)
            level = alpha / (double)(count - i);
        going = going && sorted[i].value <= level;
        rejected[sorted[i].place] = going;
        levels[sorted[i].place] = level;
    }
    free(sorted);
    return true;
}

/* ---- how many replications it takes ---- */

#define POWER 0.9

static bool enough(size_t n, double spread, double distance, double alpha)
{
    double quantiles = -pki_t_quantile(alpha / 2, (double)n - 1) + pki_t_quantile(POWER, INFINITY);
    return quantiles * spread / sqrt((double)n) <= distance;
}

size_t pki_replications_needed(double spread, double distance, double alpha)
{
    size_t low = 2, high = 4;
    if (!(distance > 0) || !isfinite(spread))
        return PKI_TOO_MANY;
    while (high < PKI_TOO_MANY && !enough(high, spread, distance, alpha))
        high *= 2;
    if (high >= PKI_TOO_MANY)
        return PKI_TOO_MANY;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (enough(middle, spread, distance, alpha))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

double pki_evidence_spread(const pki_evidence *e, double alpha)
{
    if (e->method == PKI_BY_MOMENTS)
        return e->runs.spread;
    if (e->count < 2)
        return NAN;
    pki_interval range = pki_evidence_interval(e, alpha);
    if (!isfinite(range.high - range.low))
        return pki_samples_stddev(e->values, e->count);
    double quantile = -pki_t_quantile(alpha / 2, (double)e->count - 1);
    return (range.high - range.low) / 2 * sqrt((double)e->count) / quantile;
}

/* ---- slower, faster, same, or cannot tell: for all benchmarks of a file at once ---- */

const char *pki_change_name(pki_change change)
{
    static const char *const names[] = {"cannot tell", "same", "faster", "slower"};
    return names[change];
}

static double p_of(const pki_evidence *e, double bound)
{
    double one_sided = PKI_MIN(pki_evidence_p_above(e, bound), pki_evidence_p_below(e, -bound));
    return PKI_MIN(2 * one_sided, 1);
}

/* From where the estimate is, to the next bound: beyond that it is one thing or the other. */
static size_t more_of(const pki_evidence *e, double bound, double alpha)
{
    double spread = pki_evidence_spread(e, alpha);
    double distance = fabs(fabs(pki_evidence_estimate(e)) - bound);
    if (isnan(spread) || isnan(distance))
        return 0;
    /* Moments: so many runs of each build. */
    if (e->method == PKI_BY_MOMENTS)
        spread *= M_SQRT2;
    size_t needed = pki_replications_needed(spread, distance, alpha);
    if (needed == PKI_TOO_MANY)
        return PKI_TOO_MANY;
    return needed > e->count ? needed - e->count : 1;
}

static void decide(const pki_evidence *e, double bound, bool rejected, pki_decision *d)
{
    double estimate = pki_evidence_estimate(e);
    pki_interval logs = pki_evidence_interval(e, d->level);
    d->ratio = exp(estimate);
    d->interval = (pki_interval){exp(logs.low), exp(logs.high)};
    if (rejected)
        d->change = estimate > 0 ? PKI_SLOWER : PKI_FASTER;
    else if (logs.low >= -bound && logs.high <= bound)
        d->change = PKI_SAME;
    else
        d->more = more_of(e, bound, d->level);
}

bool pki_decide(const pki_evidence *evidence, size_t count, double margin, double alpha,
                pki_decision *decisions)
{
    double bound = log1p(margin);
    double *p = calloc(PKI_MAX(2 * count, 1), sizeof *p), *levels = p + count;
    bool *rejected = calloc(PKI_MAX(count, 1), sizeof *rejected);
    for (size_t i = 0; p && i < count; i++)
        p[i] = p_of(&evidence[i], bound);
    bool fits = p && rejected && pki_holm(p, count, alpha, rejected, levels);
    for (size_t i = 0; fits && i < count; i++) {
        decisions[i] = (pki_decision){.p = p[i], .level = levels[i]};
        decide(&evidence[i], bound, rejected[i], &decisions[i]);
    }
    free(p);
    free(rejected);
    return fits;
}
