/* lib/bench/stats/samples.h - what a handful of samples says, and how well */
#pragma once

#include <pk/bench.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what a handful of samples says ---- */

/* Location, spread, outliers, how well the median is known, and whether the samples are worth
 * believing.
 *
 * Samples are plain doubles, all finite, in the order in which they were taken unless a parameter
 * is called `sorted`. With no samples every figure is 0. Filling, judging and
 * the bootstrap need memory, and answer false without it; the others allocate nothing. */

/* ---- random numbers: the same everywhere for the same seed ---- */

typedef struct pki_random {
    uint64_t state;
} pki_random;

/* splitmix64: any seed is a good one. */
uint64_t pki_random_next(pki_random *random);

/* 0 .. n - 1, without bias; n > 0. */
uint64_t pki_random_below(pki_random *random, uint64_t n);

/* ---- location and spread ---- */

void pki_samples_sort(double *samples, size_t n);

/* Each with its place, smallest first; of equal ones the earlier; what is no number last. */
typedef struct pki_ranked {
    double value;
    size_t place;
} pki_ranked;
void pki_samples_rank(const double *samples, size_t n, pki_ranked *ranked);

/* Linear between neighbours: at q (n - 1), counted from 0 (R's type 7, NumPy's default). */
double pki_samples_quantile(const double *sorted, size_t n, double q);
double pki_samples_median(const double *sorted, size_t n);

/* The median of samples in any order, which it rearranges: linear time. */
double pki_samples_select_median(double *samples, size_t n);

double pki_samples_mean(const double *samples, size_t n);
double pki_samples_stddev(const double *samples, size_t n); /* n - 1; 0 for one sample */

/* Median distance from the median, times 1.4826; scratch has room for n. */
double pki_samples_mad(const double *sorted, size_t n, double *scratch);

/* ---- outliers ---- */

/* Tukey's fences: 1.5 (mild) and 3 (severe) interquartile ranges beyond the quartiles. */
typedef struct pki_outliers {
    uint64_t low_severe, low_mild, high_mild, high_severe;
} pki_outliers;

pki_outliers pki_samples_outliers(const double *sorted, size_t n);

/* ---- how well the median is known ---- */

typedef struct pki_interval {
    double low, high;
} pki_interval;

/* How much wider the interval of the median gets because neighbours depend on each other: the
 * variance inflation 1 + 2 (r1 + r2 + ...) of being above or below the median, up to the lag where
 * the correlation falls to chance (2 / sqrt(n)). 1: independent, as far as one can see. */
double pki_samples_dependence(const double *samples, size_t n, double median);

/* Between order statistics (the sign test's interval): no assumption on the distribution. n samples
 * count as n / dependence independent ones; too few of them for the level (below 6 for 0.95): the
 * whole range, and `supported` says no. */
bool pki_samples_sign_supported(size_t n, double dependence, double confidence);
pki_interval pki_samples_sign_interval(const double *sorted, size_t n, double dependence,
                                       double confidence);

/* Percentile bootstrap of the median: `rounds` resamples (fewer of very many samples) in blocks of
 * `block` neighbours (1: as if independent). The same seed gives the same interval. False without
 * memory. */
#define PKI_BOOTSTRAP_ROUNDS 1000
bool pki_samples_bootstrap(const double *samples, size_t n, size_t block, double confidence,
                           size_t rounds, uint64_t seed, pki_interval *interval);

/* Correlation of each sample with the one `lag` later, -1 .. 1; 0 if they are all the same. */
double pki_samples_autocorrelation(const double *samples, size_t n, size_t lag);

/* How many neighbours the bootstrap should keep together: 1 unless being above or below the median
 * is correlated beyond chance at lag 1, else twice the lag where that ends, n / 4 at most. */
size_t pki_samples_block(const double *samples, size_t n, double median);

/* ---- the verdict: drifting before bimodal before noisy where several fit ---- */

#define PKI_QUALITY_LEAST 10       /* samples for any verdict */
#define PKI_QUALITY_NOISE 0.05     /* noisy: the interquartile range over the median... */
#define PKI_QUALITY_CORE 0.005     /* ...unless half of the samples lie within this */
#define PKI_QUALITY_OUTLIERS 0.05  /* so many severe outliers are said beside the verdict */
#define PKI_QUALITY_DRIFT 0.02     /* drifting: last third over first, and a trend beyond chance */
#define PKI_QUALITY_GAP 0.03       /* bimodal: the modes are so far apart... */
#define PKI_QUALITY_SEPARATION 3.0 /* ...and so many of their own spreads... */
#define PKI_QUALITY_MINOR 0.10     /* ...and the smaller one has so many of the samples */

typedef struct pki_quality {
    pk_bench_verdict verdict;
    double drift; /* median of the last third over that of the first, less 1 */
    double trend; /* Mann and Kendall's Z of thirtieths of the samples: 3 is beyond
                                 chance */
    double mode_low, mode_high, minor; /* where two modes would lie, the share of the smaller one */
    char text[192];                    /* "steady: the middle half within 0.4 %, no trend" */
} pki_quality;

/* False without memory. */
bool pki_samples_quality(const double *samples, size_t n, pki_quality *quality);

/* "unknown", "steady", "noisy", "drifting", "bimodal" */
const char *pki_bench_verdict_name(uint32_t verdict);

/* ---- all of it at once ---- */

/* What the samples say, as the result's figures from count to verdict; the arrays are left alone.
 * False without memory. */
bool pki_samples_describe(pk_bench_result *result, const double *samples, size_t n,
                          double confidence, uint64_t seed);
