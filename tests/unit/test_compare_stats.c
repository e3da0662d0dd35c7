/* Intervals, p-values, Holm and sample sizes against values that other programs gave: R 4.2.2 (pt,
 * qt, psignrank, wilcox.test, p.adjust) and SciPy 1.10.1 (stats.t, ttest_ind), as noted
 * beside each; and against what must hold between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "base/compiler.h"
#include "bench/stats/decision.h"
#include "stats/series.h"
#include "valgrind.h"

static void close_to(double is, double should, double by)
{
    if (!(fabs(is - should) <= by * PKI_MAX(fabs(should), 1e-300)))
        fail_msg("is %.17g, should be %.17g", is, should);
}

static const double twelve[] = {0.021, 0.013, 0.034, -0.004, 0.018, 0.027,
                                0.009, 0.041, 0.015, 0.022,  0.006, 0.030};

/* ---- distributions ---- */

static void students_t(void **state)
{
    (void)state; /* scipy.stats.t.cdf, norm.ppf; qt */
    close_to(pki_t_below(2.0, 5), 0.9490302605850709, 1e-12);
    close_to(pki_t_below(-1.3, 19), 0.10457575014866397, 1e-12);
    close_to(pki_t_below(4.6, 19), 0.9999022682456832, 1e-12);
    close_to(pki_t_below(-7, 3), 0.00299312784885355, 1e-12);
    close_to(pki_t_below(0.1, 1), 0.5317255174305535, 1e-12);
    close_to(pki_t_below(-30, 2), 0.0005546313409798294, 1e-12);
    close_to(pki_t_below(1.5, 2.5), 0.876081773456852, 1e-12);
    close_to(pki_t_below(-3, 1e6), 0.0013499312707108977, 1e-9);
    close_to(pki_t_below(0, 7), 0.5, 0);
    close_to(pki_t_below(INFINITY, 7), 1, 0);
    close_to(pki_t_below(-INFINITY, 7), 0, 0);
    close_to(pki_t_quantile(0.005, 9), -3.249835541592126, 1e-12);
    close_to(pki_t_quantile(0.995, 39), 2.707913183517662, 1e-12);
    close_to(pki_t_quantile(0.0001, 19), -4.589864596755032, 1e-12);
    close_to(pki_t_quantile(1e-7, 3), -222.571590947198672, 1e-12);
    close_to(pki_t_quantile(0.25, 1), -1, 1e-12);
    close_to(pki_t_quantile(0.995, INFINITY), 2.5758293035489004, 1e-12);
}

static void signed_ranks(void **state)
{
    (void)state; /* psignrank */
    close_to(pki_wilcoxon_below(5, 0), 0.03125, 1e-12);
    close_to(pki_wilcoxon_below(10, 8), 0.0244140625, 1e-12);
    close_to(pki_wilcoxon_below(20, 37), 0.004717826843261719, 1e-12);
    close_to(pki_wilcoxon_below(60, 500), 0.0009551037004586482, 1e-12);
    close_to(pki_wilcoxon_below(60, -1), 0, 0);
    close_to(pki_wilcoxon_below(4, 10), 1, 0);
    /* Past the exact ones, the normal distribution is a little too wide in the tail. */
    close_to(pki_wilcoxon_below(61, 520), 0.0009536593093971211, 0.2);
}

/* The largest that is unlikely enough, by the probabilities themselves. */
static void critical_ranks(void **state)
{
    (void)state;
    size_t v = 0;
    assert_false(pki_wilcoxon_critical(0, 0.5, &v));
    assert_false(pki_wilcoxon_critical(5, 0.03, &v));
    assert_true(pki_wilcoxon_critical(5, 0.03125, &v));
    assert_int_equal(v, 0);
    for (size_t n = 1; n <= 70; n++)
        for (double p = 1e-6; p < 0.5; p *= 3) {
            bool any = pki_wilcoxon_critical(n, p, &v);
            assert_int_equal(any, pki_wilcoxon_below(n, 0) <= p);
            assert_true(!any || pki_wilcoxon_below(n, (double)v) <= p);
            assert_true(!any || pki_wilcoxon_below(n, (double)v + 1) > p);
        }
}

/* ---- medians with weights ---- */

/* Beside one that puts all in order; weights of quarters, so that halves are met exactly. */
static double median_by_order(const pki_weighted *all, size_t n)
{
    double sum = 0, below = 0;
    size_t order[64], i = 0;
    for (size_t k = 0; k < n; k++) {
        size_t at = k;
        for (; at > 0 && all[order[at - 1]].value > all[k].value; at--)
            order[at] = order[at - 1];
        order[at] = k;
        sum += all[k].weight;
    }
    for (; (below += all[order[i]].weight) < sum / 2;)
        i++;
    if (below > sum / 2 || i + 1 == n)
        return all[order[i]].value;
    return (all[order[i]].value + all[order[i + 1]].value) / 2;
}

static void weighted_medians(void **state)
{
    (void)state;
    pki_random r = {11};
    pki_weighted all[64];
    assert_true(isnan(pki_select_weighted_median(all, 0)));
    for (size_t n = 1; n <= 64; n++)
        for (int turn = 0; turn < 100; turn++) {
            uint64_t values = turn % 3 == 0 ? 1000 : 5; /* many alike */
            for (size_t i = 0; i < n; i++)
                all[i] = (pki_weighted){.value = (double)pki_random_below(&r, values),
                                        .weight = 0.25 * (double)(1 + pki_random_below(&r, 4))};
            double should = median_by_order(all, n);
            close_to(pki_select_weighted_median(all, n), should, 0);
        }
}

/* ---- one difference ---- */

/* The Walsh averages go where there is room for them. */
static pki_evidence of(size_t count, const double *values, double *averages)
{
    pki_walsh_averages(values, count, averages);
    return (pki_evidence){
        .method = PKI_BY_WILCOXON, .count = count, .values = values, .walsh = averages};
}

static pki_evidence of_twelve(void)
{
    static double averages[78];
    return of(12, twelve, averages);
}

static pki_evidence of_runs(const double *old, size_t old_count, const double *new,
                            size_t new_count, double old_error, double new_error)
{
    return (pki_evidence){
        .method = PKI_BY_MOMENTS,
        .runs = pki_run_difference_of(old, old_count, new, new_count, old_error, new_error, 0.2)};
}

static void by_wilcoxon(void **state)
{
    (void)state; /* wilcox.test(x, conf.int=TRUE, conf.level=0.99), and with mu=0.0101 */
    pki_evidence e = of_twelve();
    pki_interval interval = pki_evidence_interval(&e, 0.01);
    close_to(pki_evidence_estimate(&e), 0.0195, 1e-12);
    close_to(interval.low, 0.0075, 1e-12);
    close_to(interval.high, 0.0310, 1e-12);
    close_to(pki_evidence_p_above(&e, 0), 0.0009765625 / 2, 1e-12);
    close_to(pki_evidence_p_above(&e, 0.0101), 0.01708984375, 1e-12);
    close_to(pki_evidence_p_below(&e, 0.0101), 0.986572265625, 1e-12);
}

/* Twelve that count as six leave out the share of 21 averages that P(V <= k) allows six. */
static void dependent_ones_count_as_fewer(void **state)
{
    (void)state;
    pki_evidence e = of_twelve();
    pki_interval all = pki_walsh_interval(e.walsh, 12, 1, 0.05);
    pki_interval half = pki_walsh_interval(e.walsh, 12, 2, 0.05);
    pki_interval few = pki_walsh_interval(e.walsh, 12, 4, 0.05);
    close_to(all.low, e.walsh[13], 0); /* tables: 13 of 78 for n = 12 */
    close_to(half.low, e.walsh[0],
             0); /* none of 21 for n = 6: P(V <= 0) = 1/64, P(V <= 1) = 1/32 */
    close_to(half.high, e.walsh[77], 0);
    assert_true(few.low == -INFINITY && few.high == INFINITY);
    half = pki_walsh_interval(e.walsh, 12, 1.5, 0.05); /* 8: 3 of 36, so 6 of 78 */
    close_to(half.low, e.walsh[6], 0);
    close_to(half.high, e.walsh[71], 0);
}

static void by_moments(void **state)
{
    (void)state; /* scipy.stats.ttest_ind(b, a), equal variances */
    double a[] = {log(100), log(103), log(98), log(101)}, b[] = {log(104), log(109), log(103)};
    pki_evidence e = of_runs(a, 4, b, 3, 1, 1);
    pki_interval interval = pki_evidence_interval(&e, 0.01);
    close_to(e.runs.mean, 0.046825797434328464, 1e-10);
    close_to(e.runs.spread, 0.024989464653036232, 1e-10);
    close_to(pki_evidence_p_above(&e, 0), 0.028847052731049677, 1e-9);
    close_to(interval.low, -0.03013176, 1e-6);
    close_to(interval.high, 0.12378335, 1e-6);
}

static void single_runs_have_the_allowance(void **state)
{
    (void)state;
    double a = log(100), b = log(125);
    pki_evidence e = of_runs(&a, 1, &b, 1, 0.003, 0.004);
    pki_interval interval = pki_evidence_interval(&e, 0.01);
    close_to(interval.low, log(1.25) - 0.2 - 2.5758293035489 * 0.005, 1e-9);
    close_to(interval.high, log(1.25) + 0.2 + 2.5758293035489 * 0.005, 1e-9);
    assert_true(isnan(pki_evidence_spread(&e, 0.01)));
    assert_true(pki_evidence_p_above(&e, 0) < 0.01);
    assert_true(pki_evidence_p_above(&e, 0.02) > 0.1);
    e = of_runs(&a, 1, &b, 1, 0, 0); /* one sample each: nothing is known */
    close_to(pki_evidence_p_above(&e, 0.02), 0, 0);
    e = of_runs(&a, 1, &b, 0, 0, 0);
    close_to(pki_evidence_p_above(&e, 0), 1, 0);
}

/* The interval excludes a bound exactly where its p-value says so, by either method. */
static void intervals_and_p_values_agree(void **state)
{
    (void)state;
    pki_evidence both[] = {of_twelve(), of_runs(twelve, 4, twelve + 4, 8, 0, 0)};
    for (size_t m = 0; m < PKI_COUNT_OF(both); m++)
        for (double alpha = 0.002; alpha < 0.5; alpha *= 1.7)
            for (double bound = -0.0101; bound < 0.05; bound += 0.0007) {
                pki_interval interval = pki_evidence_interval(&both[m], alpha);
                assert_int_equal(interval.low > bound,
                                 pki_evidence_p_above(&both[m], bound) <= alpha / 2);
                assert_int_equal(interval.high < bound,
                                 pki_evidence_p_below(&both[m], bound) <= alpha / 2);
            }
}

static void too_few_bound_nothing(void **state)
{
    (void)state;
    double values[] = {0.02, 0.02, 0.03, 0.03, 0.03}, averages[15];
    for (size_t count = 0; count < 6; count++) {
        pki_evidence e = of(count, values, averages);
        pki_interval interval = pki_evidence_interval(&e, 0.01);
        assert_true(isinf(interval.low) && isinf(interval.high));
        assert_true(pki_evidence_p_above(&e, 0) > 0.005);
    }
    pki_evidence none = of_runs(values, 0, values, 1, 0, 0);
    assert_true(isinf(pki_evidence_interval(&none, 0.01).high));
}

static void all_the_same(void **state)
{
    (void)state;
    double old[] = {0, 0, 0, 0}, new[] = {0.02, 0.02, 0.02, 0.02};
    pki_evidence e = of_runs(old, 4, new, 4, 0, 0);
    close_to(pki_evidence_p_above(&e, 0.01), 0, 0);
    close_to(pki_evidence_p_above(&e, 0.02), 1, 0);
    close_to(pki_evidence_p_below(&e, 0.01), 1, 0);
}

/* ---- several ---- */

static void holm(void **state)
{
    (void)state; /* p.adjust(p, "holm"): 0.005 0.060 0.060 0.060 0.020 */
    const double p[] = {0.001, 0.02, 0.04, 0.03, 0.005};
    bool rejected[5];
    double levels[5];
    assert_true(pki_holm(p, 5, 0.05, rejected, levels));
    static const bool should[] = {true, false, false, false, true};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(rejected[i], should[i]);
    close_to(levels[0], 0.01, 1e-12);
    close_to(levels[4], 0.0125, 1e-12);
    for (size_t i = 1; i < 4; i++)
        close_to(levels[i], 0.05 / 3, 1e-12);
    const double none[] = {NAN, 0.009};
    assert_true(pki_holm(none, 2, 0.02, rejected, levels));
    assert_false(rejected[0]);
    assert_true(rejected[1]);
    assert_true(pki_holm(NULL, 0, 0.02, NULL, NULL));
}

static void how_many(void **state)
{
    (void)state; /* the same formula with scipy's quantiles, n counted up from 2 */
    assert_int_equal(pki_replications_needed(0.01, 0.01, 0.01), 18);
    assert_int_equal(pki_replications_needed(0.01, 0.005, 0.01), 63);
    assert_int_equal(pki_replications_needed(0.003, 0.01, 0.01), 5);
    assert_int_equal(pki_replications_needed(0.02, 0.001, 0.0002), 10008);
    assert_int_equal(pki_replications_needed(0.02, 0, 0.01), PKI_TOO_MANY);
    assert_int_equal(pki_replications_needed(0.02, 1e-9, 0.01), PKI_TOO_MANY);
    assert_int_equal(pki_replications_needed(0, 0.01, 0.01), 2);
    assert_int_equal(pki_replications_needed(NAN, 0.01, 0.01), PKI_TOO_MANY);
}

/* ---- verdicts ---- */

static void verdicts(void **state)
{
    (void)state;
    double slower[20], faster[20], same[20], wide[20];
    for (int i = 0; i < 20; i++) {
        double off = (i - 9.5) / 9.5;
        slower[i] = 0.03 + 0.001 * off;
        faster[i] = -0.03 + 0.001 * off;
        same[i] = 0.001 * off;
        wide[i] = 0.008 + 0.02 * off;
    }
    static double averages[5][210];
    pki_evidence e[] = {of(20, slower, averages[0]), of(20, faster, averages[1]),
                        of(20, same, averages[2]), of(20, wide, averages[3]),
                        of(1, wide, averages[4])};
    static const pki_change should[] = {PKI_SLOWER, PKI_FASTER, PKI_SAME, PKI_UNSURE, PKI_UNSURE};
    pki_decision d[5];
    assert_true(pki_decide(e, 5, 0.01, 0.01, d));
    for (int i = 0; i < 5; i++)
        assert_int_equal(d[i].change, should[i]);
    close_to(d[0].ratio, exp(0.03), 1e-12);
    assert_true(d[0].interval.low > 1.01 && d[1].interval.high < 1 / 1.01);
    double spread = pki_evidence_spread(&e[3], d[3].level);
    assert_in_range((uint64_t)(1e4 * spread), 80, 160); /* of 0.02 about the middle: 0.0123 */
    assert_int_equal(d[3].more,
                     pki_replications_needed(spread, log1p(0.01) - 0.008, d[3].level) - 20);
    assert_true(isinf(d[4].interval.high));
    assert_string_equal(pki_change_name(PKI_UNSURE), "cannot tell");
}

static double normal(pki_random *r)
{
    double u = ((double)(pki_random_next(r) >> 11) + 1) / 9007199254740993.0;
    double v = (double)(pki_random_next(r) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Layout variance of a process run: its place, and now and then a neighbour's burst. */
static double launch(pki_random *r, double spread)
{
    return spread * (normal(r) + (pki_random_below(r, 20) == 0 ? 3 * normal(r) : 0));
}

/* Files of 50 benchmarks of which every one is exactly at the margin on one side, the worst case
 * that is still no slow-down: any "slower" is a false alarm of the file. */
static size_t false_alarms(size_t files, size_t count, pki_random *r)
{
    enum { ROWS = 50, MOST = 20 };
    static double values[ROWS][MOST], averages[ROWS][MOST * (MOST + 1) / 2];
    size_t alarms = 0;
    for (size_t file = 0; file < files; file++) {
        pki_evidence e[ROWS];
        pki_decision d[ROWS];
        bool alarm = false;
        for (size_t i = 0; i < ROWS; i++) {
            for (size_t k = 0; k < count; k++)
                values[i][k] = log1p(0.01) + launch(r, i % 2 ? 0.002 : 0.01);
            e[i] = of(count, values[i], averages[i]);
        }
        assert_true(pki_decide(e, ROWS, 0.01, 0.01, d));
        for (size_t i = 0; i < ROWS; i++)
            alarm |= d[i].change == PKI_SLOWER || d[i].change == PKI_FASTER;
        alarms += alarm;
    }
    return alarms;
}

/* At most 1 file in 100. The seed is fixed, so the counts are always the same. */
static void a_file_of_fifty(void **state)
{
    (void)state;
    pki_random r = {20};
    size_t files = is_slow() ? 2 : 200;
    assert_in_range(false_alarms(files, 20, &r), 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_t),
        cmocka_unit_test(signed_ranks),
        cmocka_unit_test(critical_ranks),
        cmocka_unit_test(weighted_medians),
        cmocka_unit_test(by_wilcoxon),
        cmocka_unit_test(dependent_ones_count_as_fewer),
        cmocka_unit_test(by_moments),
        cmocka_unit_test(single_runs_have_the_allowance),
        cmocka_unit_test(intervals_and_p_values_agree),
        cmocka_unit_test(too_few_bound_nothing),
        cmocka_unit_test(all_the_same),
        cmocka_unit_test(holm),
        cmocka_unit_test(how_many),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(a_file_of_fifty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
