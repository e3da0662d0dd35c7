#include "bench/stats/sample_stats.h"

#include "base/compare.h"
#include "base/compiler.h"
#include "stats/moments.h"
#include "stats/select.h"

#include <math.h>
#include <stdlib.h>

/* ---- random numbers ---- */

uint64_t pki_random_next(pki_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The high half of a product; the few low halves that would favour some results are drawn again. */
uint64_t pki_random_below(pki_random *random, uint64_t n)
{
    uint64_t least = (0 - n) % n;
    for (;;) {
        pki_u128 product = (pki_u128)pki_random_next(random) * n;
        if ((uint64_t)product >= least)
            return (uint64_t)(product >> 64);
    }
}

/* ---- location and spread ---- */

void pki_samples_sort(double *samples, size_t n)
{
    if (n > 1)
        qsort(samples, n, sizeof *samples, pki_compare_double);
}

static int by_rank(const void *a, const void *b)
{
    const pki_ranked *x = a, *y = b;
    int order = (isnan(x->value) != 0) - (isnan(y->value) != 0);
    order = order ? order : pki_compare_double(&x->value, &y->value);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

void pki_samples_rank(const double *samples, size_t n, pki_ranked *ranked)
{
    for (size_t i = 0; i < n; i++)
        ranked[i] = (pki_ranked){samples[i], i};
    if (n)
        qsort(ranked, n, sizeof *ranked, by_rank);
}

double pki_samples_quantile(const double *sorted, size_t n, double q)
{
    if (n == 0)
        return 0;
    double at = PKI_MIN(PKI_MAX(q, 0), 1) * (double)(n - 1);
    size_t below = PKI_MIN((size_t)at, n - 1), above = PKI_MIN(below + 1, n - 1);
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

double pki_samples_median(const double *sorted, size_t n)
{
    return n == 0 ? 0 : n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double pki_samples_select_median(double *samples, size_t n)
{
    if (n == 0)
        return 0;
    pki_select(samples, n, n / 2);
    double upper = samples[n / 2], lower = -INFINITY;
    if (n % 2)
        return upper;
    for (size_t i = 0; i < n / 2; i++)
        lower = PKI_MAX(lower, samples[i]);
    return (lower + upper) / 2;
}

double pki_samples_mean(const double *samples, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    return n ? sum / (double)n : 0;
}

double pki_samples_stddev(const double *samples, size_t n)
{
    pki_moments moments = {0};
    for (size_t i = 0; i < n; i++)
        pki_moments_add(&moments, samples[i], 1);
    return pki_moments_deviation(&moments, 1);
}

double pki_samples_mad(const double *sorted, size_t n, double *scratch)
{
    double median = pki_samples_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(sorted[i] - median);
    return 1.4826 * pki_samples_select_median(scratch, n);
}

/* ---- outliers ---- */

pki_outliers pki_samples_outliers(const double *sorted, size_t n)
{
    pki_outliers found = {0, 0, 0, 0};
    double lower = pki_samples_quantile(sorted, n, 0.25);
    double upper = pki_samples_quantile(sorted, n, 0.75), range = upper - lower;
    for (size_t i = 0; i < n; i++) {
        found.low_severe += sorted[i] < lower - 3 * range;
        found.low_mild += sorted[i] < lower - 1.5 * range && !(sorted[i] < lower - 3 * range);
        found.high_severe += sorted[i] > upper + 3 * range;
        found.high_mild += sorted[i] > upper + 1.5 * range && !(sorted[i] > upper + 3 * range);
    }
    return found;
}
