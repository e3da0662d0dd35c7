/* All that samples say: sample_stats.h. */
#include "bench/stats/sample_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_sorted(pk_bench_result *r, const double *sorted, size_t n, double *scratch)
{
    r->min = sorted[0];
    r->max = sorted[n - 1];
    r->median = pki_samples_median(sorted, n);
    r->p90 = pki_samples_quantile(sorted, n, 0.90);
    r->p95 = pki_samples_quantile(sorted, n, 0.95);
    r->p99 = pki_samples_quantile(sorted, n, 0.99);
    r->mad = pki_samples_mad(sorted, n, scratch);
    pki_outliers outliers = pki_samples_outliers(sorted, n);
    r->low_severe = outliers.low_severe;
    r->low_mild = outliers.low_mild;
    r->high_mild = outliers.high_mild;
    r->high_severe = outliers.high_severe;
}

static bool describe_quality(pk_bench_result *r, const double *samples, size_t n)
{
    pki_quality quality;
    if (!pki_samples_quality(samples, n, &quality))
        return false;
    r->verdict = (uint32_t)quality.verdict;
    snprintf(r->verdict_text, sizeof r->verdict_text, "%s", quality.text);
    return true;
}

static bool describe_interval(pk_bench_result *r, const double *samples, size_t n, uint64_t seed)
{
    pki_interval interval;
    r->block = (uint32_t)pki_samples_block(samples, n, r->median);
    if (!pki_samples_bootstrap(samples, n, r->block, r->confidence, PKI_BOOTSTRAP_ROUNDS, seed,
                               &interval))
        return false;
    r->low = interval.low;
    r->high = interval.high;
    return true;
}

bool pki_samples_describe(pk_bench_result *r, const double *samples, size_t n, double confidence,
                          uint64_t seed)
{
    double *sorted = n ? malloc(2 * n * sizeof *sorted) : NULL;
    if (n && !sorted)
        return false;
    if (n) {
        memcpy(sorted, samples, n * sizeof *sorted);
        pki_samples_sort(sorted, n);
        describe_sorted(r, sorted, n, sorted + n);
    }
    free(sorted);
    r->count = n;
    r->confidence = confidence;
    r->mean = pki_samples_mean(samples, n);
    r->stddev = pki_samples_stddev(samples, n);
    r->cv = r->mean > 0 ? r->stddev / r->mean : 0;
    r->autocorrelation = pki_samples_autocorrelation(samples, n, 1);
    return describe_quality(r, samples, n) && describe_interval(r, samples, n, seed);
}
