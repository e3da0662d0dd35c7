#include "bench/stats/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "stats/moments.h"
#include "stats/series.h"

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

/* ---- dependence of neighbours ---- */

double pki_samples_autocorrelation(const double *samples, size_t n, size_t lag)
{
    double mean = pki_samples_mean(samples, n), all = 0, together = 0;
    for (size_t i = 0; i < n; i++) {
        all += (samples[i] - mean) * (samples[i] - mean);
        if (i + lag < n)
            together += (samples[i] - mean) * (samples[i + lag] - mean);
    }
    return all > 0 ? together / all : 0;
}

static int side(double sample, double median)
{
    return (sample > median) - (sample < median);
}

/* Correlation of the sides of the median: an outlier weighs no more than any other sample, and it
 * is what the median's variance depends on. */
static double side_correlation(const double *samples, size_t n, double median, size_t lag)
{
    double all = 0, together = 0;
    for (size_t i = 0; i < n; i++) {
        int here = side(samples[i], median);
        all += here * here;
        if (i + lag < n)
            together += here * side(samples[i + lag], median);
    }
    return all > 0 ? together / all : 0;
}

#define MOST_LAGS 256

/* The first lag at which the sides are uncorrelated; the sum of the correlations before it. */
static size_t memory_of(const double *samples, size_t n, double median, double *sum)
{
    double chance = n ? 2 / sqrt((double)n) : 1;
    size_t lag = 1;
    for (*sum = 0; lag < PKI_MIN(n / 8, MOST_LAGS); lag++) {
        double r = side_correlation(samples, n, median, lag);
        if (!(r > chance))
            break;
        *sum += r;
    }
    return lag;
}

double pki_samples_dependence(const double *samples, size_t n, double median)
{
    double sum;
    memory_of(samples, n, median, &sum);
    return 1 + 2 * sum;
}

size_t pki_samples_block(const double *samples, size_t n, double median)
{
    double sum;
    size_t lag = memory_of(samples, n, median, &sum);
    return lag > 1 ? PKI_MAX(PKI_MIN(2 * lag, n / 4), 1) : 1;
}

/* ---- the sign test's interval ---- */

/* How many of n may be left out on each side: the largest k with P(Binomial(n, 1/2) <= k) at most
 * (1 - confidence) / 2; -1 if not even 0 is. */
static ptrdiff_t trimmed_on_each_side(size_t n, double confidence)
{
    double most = (1 - confidence) / 2, sum = 0, logarithm = -(double)n * M_LN2;
    for (size_t k = 0; k <= n / 2; k++) {
        sum += logarithm > -700 ? exp(logarithm) : 0;
        if (sum > most)
            return (ptrdiff_t)k - 1;
        logarithm += log((double)(n - k) / (double)(k + 1));
    }
    return (ptrdiff_t)(n / 2);
}

static size_t independent(size_t n, double dependence)
{
    return (size_t)((double)n / PKI_MAX(dependence, 1));
}

bool pki_samples_sign_supported(size_t n, double dependence, double confidence)
{
    return trimmed_on_each_side(independent(n, dependence), confidence) >= 0;
}

pki_interval pki_samples_sign_interval(const double *sorted, size_t n, double dependence,
                                       double confidence)
{
    if (n == 0)
        return (pki_interval){0, 0};
    size_t count = independent(n, dependence);
    ptrdiff_t out = trimmed_on_each_side(count, confidence);
    size_t below = out > 0 ? (size_t)((double)out * (double)n / (double)count) : 0;
    below = PKI_MIN(below, (n - 1) / 2);
    return (pki_interval){sorted[below], sorted[n - 1 - below]};
}
