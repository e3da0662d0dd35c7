/* lib/bench/stats/sample_quality.c - whether samples are worth believing, and all that they say */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "measure/figure.h"

double pki_samples_mad(const double *sorted, size_t n, double *scratch)
{
    double median = pki_samples_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(sorted[i] - median);
    return 1.4826 * pki_samples_select_median(scratch, n);
}

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

/* Resamples are counted by rank, so that a median takes one pass and no sorting. */
typedef struct resampler {
    const double *sorted;
    const uint32_t *ranks; /* of the samples in the order taken */
    uint32_t *times;       /* that a rank was drawn: all 0 between rounds */
    size_t n, block;
    pki_random random;
} resampler;

#define MOST_DRAWS 4000000 /* some 20 ms */

#define FEWEST_ROUNDS 200

static void draw(resampler *r)
{
    for (size_t drawn = 0; drawn < r->n;) {
        size_t at = pki_random_below(&r->random, r->n);
        size_t here = PKI_MIN(r->block, r->n - drawn);
        for (size_t i = 0; i < here; i++) {
            r->times[r->ranks[at]]++;
            at = at + 1 < r->n ? at + 1 : 0;
        }
        drawn += here;
    }
}

static double drawn_median(resampler *r)
{
    size_t lower = (r->n - 1) / 2, upper = r->n / 2, seen = 0, i = 0;
    while ((seen += r->times[i]) <= lower)
        i++;
    double median = r->sorted[i];
    while (seen <= upper)
        seen += r->times[++i];
    memset(r->times, 0, r->n * sizeof *r->times);
    return (median + r->sorted[i]) / 2;
}

static void rank(const double *samples, size_t n, pki_ranked *pairs, double *sorted,
                 uint32_t *ranks)
{
    pki_samples_rank(samples, n, pairs);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = pairs[i].value;
        ranks[pairs[i].place] = (uint32_t)i;
    }
}

static size_t rounds_for(size_t n, size_t wanted)
{
    return PKI_MAX(PKI_MIN(wanted, MOST_DRAWS / n), PKI_MIN(wanted, FEWEST_ROUNDS));
}

bool pki_samples_bootstrap(const double *samples, size_t n, size_t block, double confidence,
                           size_t rounds, uint64_t seed, pki_interval *interval)
{
    *interval = (pki_interval){n ? samples[0] : 0, n ? samples[0] : 0};
    if (n < 2)
        return true;
    rounds = rounds_for(n, rounds);
    pki_ranked *pairs = malloc(n * sizeof *pairs);
    double *sorted = malloc((n + rounds) * sizeof *sorted), *medians = sorted ? sorted + n : NULL;
    uint32_t *ranks = calloc(2 * n, sizeof *ranks);
    bool fits = pairs && sorted && ranks;
    if (fits) {
        rank(samples, n, pairs, sorted, ranks);
        resampler r = {sorted, ranks, ranks + n, n, PKI_MAX(block, 1), {seed}};
        for (size_t i = 0; i < rounds; i++) {
            draw(&r);
            medians[i] = drawn_median(&r);
        }
        pki_samples_sort(medians, rounds);
        interval->low = pki_samples_quantile(medians, rounds, (1 - confidence) / 2);
        interval->high = pki_samples_quantile(medians, rounds, (1 + confidence) / 2);
    }
    free(pairs);
    free(sorted);
    free(ranks);
    return fits;
}

/* ---- all that samples say ---- */

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

/* ---- whether samples are worth believing ---- */

const char *pki_bench_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"unknown", "steady", "noisy", "drifting", "bimodal"};
    return verdict < PKI_COUNT_OF(names) ? names[verdict] : "unknown";
}

/* ---- drift ---- */

#define BINS 30
#define BEYOND_CHANCE 3.0

static double median_of(const double *samples, size_t n, double *scratch)
{
    memcpy(scratch, samples, n * sizeof *scratch);
    return pki_samples_select_median(scratch, n);
}

/* Mann and Kendall's statistic: how much more often a later value is above an earlier one than
 * below it, in standard deviations of what chance does. */
static double trend_of(const double *values, size_t n)
{
    int sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            sum += (values[j] > values[i]) - (values[j] < values[i]);
    double count = (double)n, variance = count * (count - 1) * (2 * count + 5) / 18;
    int towards_zero = sum - (sum > 0) + (sum < 0);
    return variance > 0 ? towards_zero / sqrt(variance) : 0;
}

static void find_drift(const double *samples, size_t n, pki_quality *q, double *scratch)
{
    double bins[BINS];
    size_t count = PKI_MIN(n, BINS), third = n / 3;
    for (size_t i = 0; i < count; i++) {
        size_t from = i * n / count, to = (i + 1) * n / count;
        bins[i] = median_of(samples + from, to - from, scratch);
    }
    q->trend = trend_of(bins, count);
    double first = median_of(samples, third, scratch);
    double last = median_of(samples + n - third, third, scratch);
    q->drift = first > 0 ? last / first - 1 : 0;
}

static bool drifts(const pki_quality *q)
{
    return fabs(q->drift) > PKI_QUALITY_DRIFT && fabs(q->trend) > BEYOND_CHANCE &&
           (q->drift > 0) == (q->trend > 0);
}

/* ---- two modes ---- */

/* Where cutting the sorted samples in two leaves the least variance within the parts. Sums are
 * taken around the median, so that large values with small differences keep their digits. */
static size_t best_cut(const double *sorted, size_t n, double centre)
{
    double all = 0, left = 0, best = -1;
    size_t cut = 0;
    for (size_t i = 0; i < n; i++)
        all += sorted[i] - centre;
    for (size_t i = 1; i < n; i++) {
        left += sorted[i - 1] - centre;
        double apart = left / (double)i - (all - left) / (double)(n - i);
        double between = (double)i * (double)(n - i) * apart * apart;
        if (between > best) {
            best = between;
            cut = i;
        }
    }
    return cut;
}

/* Fewer samples in the middle third between the modes than a quarter of the smaller one. */
static bool valley(const double *sorted, size_t n, const pki_quality *q)
{
    double from = q->mode_low + (q->mode_high - q->mode_low) / 3;
    double to = q->mode_high - (q->mode_high - q->mode_low) / 3;
    size_t between = 0;
    for (size_t i = 0; i < n; i++)
        between += sorted[i] > from && sorted[i] < to;
    return (double)between < q->minor * (double)n / 4;
}

/* sorted: without the hundredth at each end, so that single spikes make no mode. */
static bool find_modes(const double *sorted, size_t n, pki_quality *q, double *scratch)
{
    size_t cut = best_cut(sorted, n, pki_samples_median(sorted, n));
    if (cut == 0)
        return false;
    double spread =
        pki_samples_mad(sorted, cut, scratch) + pki_samples_mad(sorted + cut, n - cut, scratch);
    q->mode_low = pki_samples_median(sorted, cut);
    q->mode_high = pki_samples_median(sorted + cut, n - cut);
    q->minor = (double)PKI_MIN(cut, n - cut) / (double)n;
    double gap = q->mode_high - q->mode_low;
    return q->minor >= PKI_QUALITY_MINOR && gap > PKI_QUALITY_GAP * q->mode_low &&
           gap > PKI_QUALITY_SEPARATION * spread && valley(sorted, n, q);
}

/* ---- the verdict, in words ---- */

#define PERCENT(share) (pki_figure_percent(share).text)

/* The least width that holds half of the samples. The median is always among them. */
static double narrowest_half(const double *sorted, size_t n)
{
    double least = sorted[n - 1] - sorted[0];
    for (size_t i = 0; i + n / 2 < n; i++)
        least = PKI_MIN(least, sorted[i + n / 2] - sorted[i]);
    return least;
}

/* The median is what is reported, so what lies far from it is no noise of the figure: on a shared
 * machine a tenth of the samples is interrupted, however well the others agree. */
static void describe_spread(pki_quality *q, double middle, double closest, double outliers)
{
    bool wide = middle > PKI_QUALITY_NOISE, noisy = wide && closest > PKI_QUALITY_CORE;
    char far[96] = "";
    q->verdict = noisy ? PK_BENCH_VERDICT_NOISY : PK_BENCH_VERDICT_STEADY;
    if (outliers > PKI_QUALITY_OUTLIERS)
        snprintf(far, sizeof far, "; %s of the samples far from it", PERCENT(outliers));
    if (noisy)
        snprintf(q->text, sizeof q->text, "noisy: the middle half is %s wide%s", PERCENT(middle),
                 far);
    else
        snprintf(q->text, sizeof q->text, "steady: %s half within %s, no trend%s",
                 wide ? "the closest" : "the middle", PERCENT(wide ? closest : middle), far);
}

static void describe_modes(pki_quality *q, bool low_is_minor)
{
    q->verdict = PK_BENCH_VERDICT_BIMODAL;
    snprintf(q->text, sizeof q->text, "bimodal: %s around %s, %s around %s",
             PERCENT(low_is_minor ? q->minor : 1 - q->minor), pki_figure_time(q->mode_low).text,
             PERCENT(low_is_minor ? 1 - q->minor : q->minor), pki_figure_time(q->mode_high).text);
}

static void describe_drift(pki_quality *q)
{
    q->verdict = PK_BENCH_VERDICT_DRIFTING;
    snprintf(q->text, sizeof q->text, "drifting: the last third is %s %s than the first",
             PERCENT(fabs(q->drift)), q->drift > 0 ? "slower" : "faster");
}

static void judge(const double *samples, size_t n, pki_quality *q, double *sorted, double *scratch)
{
    memcpy(sorted, samples, n * sizeof *sorted);
    pki_samples_sort(sorted, n);
    find_drift(samples, n, q, scratch);
    size_t ends = n / 100;
    bool two = find_modes(sorted + ends, n - 2 * ends, q, scratch);
    double median = pki_samples_median(sorted, n);
    double range = pki_samples_quantile(sorted, n, 0.75) - pki_samples_quantile(sorted, n, 0.25);
    pki_outliers beyond = pki_samples_outliers(sorted, n);
    if (drifts(q))
        describe_drift(q);
    else if (two)
        describe_modes(q, median > (q->mode_low + q->mode_high) / 2);
    else
        describe_spread(q, median > 0 ? range / median : 0,
                        median > 0 ? narrowest_half(sorted, n) / median : 0,
                        (double)(beyond.low_severe + beyond.high_severe) / (double)n);
}

bool pki_samples_quality(const double *samples, size_t n, pki_quality *quality)
{
    memset(quality, 0, sizeof *quality);
    if (n < PKI_QUALITY_LEAST) {
        snprintf(quality->text, sizeof quality->text,
                 "unknown: %zu samples say nothing about "
                 "their spread",
                 n);
        return true;
    }
    double *sorted = malloc(2 * n * sizeof *sorted);
    if (sorted)
        judge(samples, n, quality, sorted, sorted + n);
    free(sorted);
    return sorted != NULL;
}
