/* Figures of samples against values that were computed by other means (Python's statistics,
 * tables of the sign test), and against what must hold for any samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <pk/bench.h>

#include "bench/stats/samples.h"

static void close_to(double is, double should, double by)
{
    if (!(fabs(is - should) <= by))
        fail_msg("is %.12g, should be %.12g", is, should);
}

static const double ten[] = {2.1, 9.7, 4.4, 3.3, 7.2, 5.8, 1.6, 8.5, 6.9, 30.0};
static const double ten_sorted[] = {1.6, 2.1, 3.3, 4.4, 5.8, 6.9, 7.2, 8.5, 9.7, 30.0};

static double normal(pki_random *r)
{
    double u = ((double)(pki_random_next(r) >> 11) + 1) / 9007199254740993.0;
    double v = (double)(pki_random_next(r) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* ---- random numbers ---- */

static void random_numbers_are_splitmix64(void **state)
{
    (void)state;
    pki_random r = {1234567}; /* the generator's published test vector */
    assert_true(pki_random_next(&r) == 6457827717110365317u);
    assert_true(pki_random_next(&r) == 3203168211198807973u);
    assert_true(pki_random_next(&r) == 9817491932198370423u);
}

static void below_is_even(void **state)
{
    (void)state;
    pki_random r = {3};
    unsigned seen[7] = {0};
    for (int i = 0; i < 70000; i++)
        seen[pki_random_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9600, 10400); /* 4 standard deviations */
    assert_int_equal(pki_random_below(&r, 1), 0);
    /* Three quarters of all numbers: without drawing again every third one would come twice as
     * often as its neighbours. */
    unsigned residues[3] = {0};
    for (int i = 0; i < 30000; i++)
        residues[pki_random_below(&r, (uint64_t)3 << 62) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(residues[i], 9600, 10400);
}

/* ---- location and spread ---- */

static void quantiles_are_type_7(void **state)
{
    (void)state;
    close_to(pki_samples_quantile(ten_sorted, 10, 0.25), 3.575, 1e-12);
    close_to(pki_samples_quantile(ten_sorted, 10, 0.5), 6.35, 1e-12);
    close_to(pki_samples_quantile(ten_sorted, 10, 0.9), 11.73, 1e-12);
    close_to(pki_samples_quantile(ten_sorted, 10, 0.99), 28.173, 1e-12);
    close_to(pki_samples_quantile(ten_sorted, 10, -1), 1.6, 0);
    close_to(pki_samples_quantile(ten_sorted, 10, 2), 30, 0);
    close_to(pki_samples_quantile(ten_sorted, 1, 0.9), 1.6, 0);
    close_to(pki_samples_quantile(NULL, 0, 0.5), 0, 0);
}

static void median_without_sorting(void **state)
{
    (void)state;
    pki_random r = {5};
    for (size_t n = 1; n < 200; n++)
        for (int spread = 1; spread < 1000; spread *= 10) {
            double samples[200], sorted[200];
            for (size_t i = 0; i < n; i++)
                samples[i] = sorted[i] = (double)pki_random_below(&r, (uint64_t)spread);
            pki_samples_sort(sorted, n);
            close_to(pki_samples_select_median(samples, n), pki_samples_median(sorted, n), 0);
        }
    close_to(pki_samples_median(NULL, 0), 0, 0);
    close_to(pki_samples_select_median(NULL, 0), 0, 0);
}

static void spread(void **state)
{
    (void)state;
    double scratch[10];
    close_to(pki_samples_mean(ten, 10), 7.95, 1e-12);
    close_to(pki_samples_stddev(ten, 10), 8.1963745372912, 1e-12);
    close_to(pki_samples_stddev(ten, 1), 0, 0);
    close_to(pki_samples_mad(ten_sorted, 10, scratch), 1.4826 * 2.6, 1e-12);
}

static void outliers_are_classified(void **state)
{
    (void)state;
    /* quartiles 10 and 12: fences at 7, 4, 15 and 18 */
    const double sorted[] = {1, 5, 9.9, 10, 10, 11, 12, 12, 15, 17, 99};
    pki_outliers found = pki_samples_outliers(sorted, 11);
    close_to(pki_samples_quantile(sorted, 11, 0.25), 9.95, 1e-12);
    close_to(pki_samples_quantile(sorted, 11, 0.75), 13.5, 1e-12);
    assert_int_equal(found.low_severe, 0); /* 13.5 - 9.95 = 3.55: -0.7, 4.625, 18.825, 24.15 */
    assert_int_equal(found.low_mild, 1);
    assert_int_equal(found.high_mild, 0);
    assert_int_equal(found.high_severe, 1);
    const double more[] = {-90, 4, 10, 10, 10, 11, 12, 12, 12, 16, 18};
    found = pki_samples_outliers(more, 11); /* 10 and 12: 7, 4, 15, 18: fences belong inside */
    assert_int_equal(found.low_severe, 1);
    assert_int_equal(found.low_mild, 1);
    assert_int_equal(found.high_mild, 2);
    assert_int_equal(found.high_severe, 0);
}

/* ---- how well the median is known ---- */

/* From tables of the sign test: 95 % leaves out 1 of 10, 5 of 20, 39 of 100 on each side. */
static void sign_intervals(void **state)
{
    (void)state;
    double sorted[1000];
    for (int i = 0; i < 1000; i++)
        sorted[i] = i + 1;
    const struct {
        size_t n;
        double confidence, low, high;
    } known[] = {{6, 0.95, 1, 6},     {10, 0.95, 2, 9},   {20, 0.95, 6, 15}, {20, 0.99, 4, 17},
                 {100, 0.95, 40, 61}, {50, 0.95, 18, 33}, {8, 0.99, 1, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        pki_interval is = pki_samples_sign_interval(sorted, known[i].n, 1, known[i].confidence);
        close_to(is.low, known[i].low, 0);
        close_to(is.high, known[i].high, 0);
        assert_true(pki_samples_sign_supported(known[i].n, 1, known[i].confidence));
    }
    assert_false(pki_samples_sign_supported(5, 1, 0.95));
    assert_false(pki_samples_sign_supported(20, 4, 0.95));
    pki_interval all = pki_samples_sign_interval(sorted, 5, 1, 0.95);
    close_to(all.low, 1, 0);
    close_to(all.high, 5, 0);
    pki_interval known_worse = pki_samples_sign_interval(sorted, 1000, 10, 0.95);
    close_to(known_worse.low, 391, 0); /* as 100: 39 out of each side, times 10 */
}

/* Against the definition, written out. */
static void autocorrelation(void **state)
{
    (void)state;
    double same[] = {3, 3, 3, 3}, turns[100], mean = 0, all = 0, together = 0;
    for (int i = 0; i < 100; i++)
        turns[i] = i % 2;
    for (int i = 0; i < 10; i++)
        mean += ten[i] / 10;
    for (int i = 0; i < 10; i++)
        all += (ten[i] - mean) * (ten[i] - mean);
    for (int i = 0; i < 9; i++)
        together += (ten[i] - mean) * (ten[i + 1] - mean);
    close_to(pki_samples_autocorrelation(ten, 10, 1), together / all, 1e-12);
    close_to(pki_samples_autocorrelation(same, 4, 1), 0, 0);
    close_to(pki_samples_autocorrelation(turns, 100, 1), -0.99, 1e-12);
    close_to(pki_samples_autocorrelation(turns, 100, 2), 0.98, 1e-12);
}

/* x[i] = rho x[i - 1] + noise: theory says what the dependence of its sides is. */
static void autoregressive(double *x, size_t n, double rho, uint64_t seed)
{
    pki_random r = {seed};
    double last = 0;
    for (size_t i = 0; i < n; i++) {
        last = rho * last + sqrt(1 - rho * rho) * normal(&r);
        x[i] = 100 + last;
    }
}

static void dependence_is_seen(void **state)
{
    (void)state;
    static double x[20000];
    autoregressive(x, 20000, 0, 1);
    assert_int_equal(pki_samples_block(x, 20000, 100), 1);
    close_to(pki_samples_dependence(x, 20000, 100), 1, 0);
    autoregressive(x, 20000, 0.8, 2);
    double theory = 1, power = 1;
    for (int k = 1; k < 60; k++)
        theory += 2 * (2 / M_PI) * asin(power *= 0.8);
    close_to(pki_samples_dependence(x, 20000, 100) / theory, 1, 0.15);
    assert_in_range(pki_samples_block(x, 20000, 100), 20, 80);
}

/* Of 400 experiments the interval has to hold the true median in about 95 %. */
static double coverage(double rho, size_t n)
{
    double x[400];
    unsigned held = 0;
    for (uint64_t i = 0; i < 400; i++) {
        pki_interval is;
        double sorted[400];
        autoregressive(x, n, rho, 100 + i);
        memcpy(sorted, x, sizeof x);
        pki_samples_sort(sorted, n);
        size_t block = pki_samples_block(x, n, pki_samples_median(sorted, n));
        assert_true(pki_samples_bootstrap(x, n, block, 0.95, 400, 7, &is));
        held += is.low <= 100 && 100 <= is.high;
    }
    return held / 400.0;
}

static void bootstrap_covers(void **state)
{
    (void)state;
    close_to(coverage(0, 50), 0.95, 0.03);
    close_to(coverage(0, 400), 0.95, 0.03);
    assert_true(coverage(0.7, 400) > 0.86); /* blocks are a remedy, no cure: unblocked it is 0.65 */
}

static void bootstrap_repeats(void **state)
{
    (void)state;
    pki_interval a, b, c;
    assert_true(pki_samples_bootstrap(ten, 10, 1, 0.95, 1000, 1, &a));
    assert_true(pki_samples_bootstrap(ten, 10, 1, 0.95, 1000, 1, &b));
    assert_true(pki_samples_bootstrap(ten, 10, 1, 0.80, 1000, 2, &c));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.low < c.low && c.high < a.high);
    assert_true(pki_samples_bootstrap(ten, 1, 1, 0.95, 1000, 1, &a));
    close_to(a.low, 2.1, 0);
    assert_true(pki_samples_bootstrap(NULL, 0, 1, 0.95, 1000, 1, &a));
    close_to(a.high, 0, 0);
}

/* ---- verdicts ---- */

static pki_quality judged(const double *x, size_t n)
{
    pki_quality q;
    assert_true(pki_samples_quality(x, n, &q));
    assert_int_equal(strncmp(q.text, pki_bench_verdict_name(q.verdict),
                             strlen(pki_bench_verdict_name(q.verdict))),
                     0);
    return q;
}

static void verdicts(void **state)
{
    (void)state;
    double x[600];
    pki_random r = {11};
    assert_int_equal(judged(ten, 9).verdict, PK_BENCH_VERDICT_UNKNOWN);
    for (int i = 0; i < 600; i++)
        x[i] = 100 + 0.5 * normal(&r);
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_STEADY);
    for (int i = 0; i < 600; i += 25)
        x[i] = 400; /* 4 %: a shared machine's */
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_STEADY);
    for (int i = 0; i < 600; i++)
        x[i] = 100 + 8 * normal(&r);
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_NOISY);
    for (int i = 0; i < 600; i++)
        x[i] = 100 + i * 0.02 + 2 * normal(&r);
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_DRIFTING);
    for (int i = 0; i < 600; i++)
        x[i] = (pki_random_below(&r, 4) ? 100 : 110) + 0.5 * normal(&r);
    pki_quality two = judged(x, 600);
    assert_int_equal(two.verdict, PK_BENCH_VERDICT_BIMODAL);
    close_to(two.mode_low, 100, 0.2);
    close_to(two.mode_high, 110, 0.2);
    close_to(two.minor, 0.25, 0.06);
    assert_non_null(strstr(two.text, "110 ns"));
    for (int i = 0; i < 600; i++) /* three speeds are not two */
        x[i] = 100 + 5 * (double)((const int[]){0, 0, 1, 2, 2})[i % 5] + 0.1 * normal(&r);
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_NOISY);
}

/* A median that is known to a hundredth of a per cent is not noise, whatever became of the samples
 * that were interrupted; a middle half that is wide is. */
static void what_is_well_known_is_not_noisy(void **state)
{
    (void)state;
    double x[600];
    for (unsigned interrupted = 0; interrupted <= 240; interrupted += 20) {
        pki_random r = {31};
        pki_interval is;
        for (int i = 0; i < 600; i++)
            x[i] = 100 + 0.02 * normal(&r);
        for (unsigned i = 0; i < interrupted; i++)
            x[pki_random_below(&r, 600)] = 101 + (double)pki_random_below(&r, 1000) / 10;
        assert_true(pki_samples_bootstrap(x, 600, 1, 0.95, 1000, 1, &is));
        assert_true(is.high - is.low < 0.02);
        pki_quality q = judged(x, 600);
        if (q.verdict != PK_BENCH_VERDICT_STEADY)
            fail_msg("%u interrupted samples of 600: %s", interrupted, q.text);
        if (interrupted <= 100) /* of more the fences take in some */
            assert_int_equal(strstr(q.text, "far from it") != NULL, interrupted > 30);
        if (interrupted <= 120 || interrupted >= 220) /* a quarter of them are drawn in between */
            assert_int_equal(strstr(q.text, "the closest half") != NULL, interrupted >= 220);
    }
    pki_random r = {37};
    for (int i = 0; i < 600; i++)
        x[i] = 100 + 6 * normal(&r) + (i % 20 ? 0 : 300);
    assert_int_equal(judged(x, 600).verdict, PK_BENCH_VERDICT_NOISY);
}

/* Noise of one mode, of whatever shape, must not be called two; nor noise a drift. */
static void noise_is_no_pattern(void **state)
{
    (void)state;
    pki_random r = {23};
    unsigned two = 0, drifting = 0;
    for (int trial = 0; trial < 600; trial++) {
        double x[200];
        for (int i = 0; i < 200; i++) {
            double even = (double)(pki_random_next(&r) >> 11) / 9007199254740992.0;
            x[i] = 100 + (trial % 3 == 0   ? 5 * normal(&r)
                          : trial % 3 == 1 ? 20 * even
                                           : -5 * log(1 - even));
        }
        pki_quality q = judged(x, 200);
        two += q.verdict == PK_BENCH_VERDICT_BIMODAL;
        drifting += q.verdict == PK_BENCH_VERDICT_DRIFTING;
    }
    assert_true(two <= 2);
    assert_true(drifting <= 6);
}

static void all_at_once(void **state)
{
    (void)state;
    pk_bench_result s = {.size = sizeof s}, none = {.size = sizeof none};
    assert_true(pki_samples_describe(&s, ten, 10, 0.95, 1));
    assert_int_equal(s.count, 10);
    close_to(s.min, 1.6, 0);
    close_to(s.max, 30, 0);
    close_to(s.median, 6.35, 1e-12);
    close_to(s.cv, 8.1963745372912 / 7.95, 1e-12);
    assert_int_equal(s.high_severe, 1);
    assert_true(s.low < 6.35 && 6.35 < s.high);
    assert_true(pki_samples_describe(&none, NULL, 0, 0.95, 1));
    close_to(none.max, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_are_splitmix64),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(quantiles_are_type_7),
        cmocka_unit_test(median_without_sorting),
        cmocka_unit_test(spread),
        cmocka_unit_test(outliers_are_classified),
        cmocka_unit_test(sign_intervals),
        cmocka_unit_test(autocorrelation),
        cmocka_unit_test(dependence_is_seen),
        cmocka_unit_test(bootstrap_covers),
        cmocka_unit_test(bootstrap_repeats),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(what_is_well_known_is_not_noisy),
        cmocka_unit_test(noise_is_no_pattern),
        cmocka_unit_test(all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
