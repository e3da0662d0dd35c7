/* Many numbers in little room: tallies, moments, medians, series, rows, unions of intervals. */
#include "valgrind.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "measure/steps/stages.h"
#include "measure/union.h"
#include "stats/buckets.h"
#include "stats/moments.h"
#include "stats/series.h"
#include "stats/tally.h"

/* ---- the tally against exact values of the samples themselves ---- */

#define N 20000

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double random_unit(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void check_near(double got, double wanted, double relative)
{
    if (fabs(got - wanted) > relative * fabs(wanted))
        fail_msg("%.17g instead of %.17g", got, wanted);
}

static void check_quantiles(const pki_tally *tally, double *samples, size_t count)
{
    static const double qs[] = {0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
    qsort(samples, count, sizeof *samples, by_size);
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
        size_t rank = (size_t)pki_rank(qs[i], count);
        check_near(pki_tally_quantile(tally, qs[i]), samples[rank - 1], 1 / 128.0);
    }
}

static double uniform(void)
{
    return 1 + 1e6 * random_unit();
}

static double exponential_over_octaves(void)
{
    return exp(40 * random_unit() - 20); /* 1e-9 .. 1e8 */
}

static double of_both_signs(void)
{
    return (random_unit() - 0.5) * exp(20 * random_unit());
}

static double bimodal(void)
{
    return random_unit() < 0.7 ? 1000 + 10 * random_unit() : 50000 + 100 * random_unit();
}

static void check_distribution(double (*next)(void))
{
    static double samples[N];
    pki_tally tally = {0};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < N; i++) {
        samples[i] = next();
        sum += samples[i];
        assert_true(pki_tally_add(&tally, samples[i], 1));
    }
    for (size_t i = 0; i < N; i++)
        squares += (samples[i] - sum / N) * (samples[i] - sum / N);
    check_quantiles(&tally, samples, N);
    pki_dist dist = pki_tally_dist(&tally);
    assert_int_equal(dist.count, N);
    assert_true(dist.min == samples[0] && dist.max == samples[N - 1]);
    check_near(dist.stddev, sqrt(squares / N), 1e-9);
    if (fabs(sum) > 1)
        check_near(dist.mean, sum / N, 1e-9);
    pki_tally_finish(&tally);
}

static void quantiles_are_within_a_bucket(void **state)
{
    (void)state;
    check_distribution(uniform);
    check_distribution(exponential_over_octaves);
    check_distribution(of_both_signs);
    check_distribution(bimodal);
}

static void constants_are_exact(void **state)
{
    static const double values[] = {0, 1, -1, 100, 3.6e12, 0.1, -7.25, DBL_MAX, DBL_MIN, 5e-324};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        pki_tally tally = {0};
        assert_true(pki_tally_add(&tally, values[i], 3));
        assert_true(pki_tally_quantile(&tally, 0.5) == values[i]);
        assert_true(pki_tally_quantile(&tally, 1) == values[i]);
        assert_int_equal(tally.used, 1);
        pki_tally_finish(&tally);
    }
}

static void integer_sums_are_exact(void **state)
{
    pki_tally tally = {0};
    uint64_t sum = 0;
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        pki_tally_add(&tally, (double)(UINT64_C(3600000000000) + i), 1);
        sum += UINT64_C(3600000000000) + i;
    }
    assert_true(pki_moments_sum(&tally.moments) == (double)sum);
    pki_tally_finish(&tally);
}

static void not_finite_is_refused(void **state)
{
    pki_tally tally = {0};
    (void)state;
    assert_false(pki_tally_add(&tally, NAN, 1));
    assert_false(pki_tally_add(&tally, INFINITY, 1));
    assert_false(pki_tally_add(&tally, -INFINITY, 1));
    assert_int_equal(tally.moments.count, 0);
    assert_true(pki_tally_quantile(&tally, 0.5) == 0);
    assert_int_equal(pki_tally_dist(&tally).count, 0);
    pki_tally_finish(&tally);
}

static void merging_is_adding_both(void **state)
{
    pki_tally both = {0}, a = {0}, b = {0}, none = {0};
    (void)state;
    for (int i = 0; i < 1000; i++) {
        double x = i % 3 ? uniform() : of_both_signs();
        pki_tally_add(&both, x, 1);
        pki_tally_add(i % 2 ? &a : &b, x, 1);
    }
    assert_true(pki_tally_merge(&none, &a) && pki_tally_merge(&none, &b));
    assert_int_equal(none.moments.count, both.moments.count);
    assert_int_equal(none.used, both.used);
    for (size_t i = 0; i < both.used; i++) {
        assert_int_equal(none.buckets[i].key, both.buckets[i].key);
        assert_int_equal(none.buckets[i].count, both.buckets[i].count);
    }
    assert_true(none.moments.min == both.moments.min && none.moments.max == both.moments.max);
    check_near(pki_tally_dist(&none).stddev, pki_tally_dist(&both).stddev, 1e-12);
    pki_tally_finish(&both);
    pki_tally_finish(&a);
    pki_tally_finish(&b);
    pki_tally_finish(&none);
}

static void many_at_once_are_one_by_one(void **state)
{
    pki_tally at_once = {0}, one_by_one = {0};
    (void)state;
    for (int value = 1; value < 5; value++) {
        pki_tally_add(&at_once, value, 10);
        for (int i = 0; i < 10; i++)
            pki_tally_add(&one_by_one, value, 1);
    }
    assert_int_equal(at_once.moments.count, 40);
    check_near(pki_tally_dist(&at_once).stddev, pki_tally_dist(&one_by_one).stddev, 1e-12);
    check_near(pki_tally_dist(&at_once).mean, 2.5, 1e-12);
    pki_tally_finish(&at_once);
    pki_tally_finish(&one_by_one);
}

static void narrow_values_take_little_room(void **state)
{
    pki_tally tally = {0};
    (void)state;
    for (int i = 0; i < 100000; i++)
        pki_tally_add(&tally, 1e6 * (1 + random_unit()), 1);
    assert_true(tally.used <= 66);
    assert_true(tally.room * sizeof *tally.buckets <= 2048);
    pki_tally_finish(&tally);
}

static const struct CMUnitTest tally_tests[] = {
    cmocka_unit_test(quantiles_are_within_a_bucket),  cmocka_unit_test(constants_are_exact),
    cmocka_unit_test(integer_sums_are_exact),         cmocka_unit_test(not_finite_is_refused),
    cmocka_unit_test(merging_is_adding_both),         cmocka_unit_test(many_at_once_are_one_by_one),
    cmocka_unit_test(narrow_values_take_little_room),
};

/* ---- moments of doubles ---- */

/* What is known beforehand, to the last digit, and the same in any order and parts. */

#define MOMENTS_N 10000

static double values[MOMENTS_N];

static double draw_unit(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static pki_moments of(const double *from, size_t n)
{
    pki_moments m = {0};
    for (size_t i = 0; i < n; i++)
        pki_moments_add(&m, from[i], 1);
    return m;
}

/* Half of them above, half below: what a difference of two large sums loses. */
static void far_from_zero(void **state)
{
    static const struct {
        double middle, apart;
    } some[] = {{8e10, 1000},  {-8e10, 1000}, {1.7e18, 1024},    {1e15, 0.5},
                {0x1p60, 256}, {3, 0x1p-50},  {1e-20, 0x1p-130}, {-4e15, 1},
                {0, 1},        {1e100, 1e90}, {0x1p400, 0x1p350}};
    (void)state;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        double low = some[k].middle - some[k].apart, high = some[k].middle + some[k].apart;
        for (size_t i = 0; i < MOMENTS_N; i++)
            values[i] = i & 1 ? high : low;
        pki_moments m = of(values, MOMENTS_N);
        assert_true(m.count == MOMENTS_N && m.min == low && m.max == high);
        assert_true(pki_moments_deviation(&m, 0) == (high - low) / 2);
        assert_true(pki_moments_mean(&m) == low + (high - low) / 2);
    }
}

/* The first one far from all others, which is the worst that can be summed from. */
static void first_is_far_away(void **state)
{
    (void)state;
    for (double far = 1; far < 1e60; far *= 1e6) {
        pki_moments m = {0};
        pki_moments_add(&m, far, 1);
        pki_moments_add(&m, 0, MOMENTS_N - 1);
        double wanted = far * sqrt(MOMENTS_N - 1.0) / MOMENTS_N;
        assert_true(fabs(pki_moments_deviation(&m, 0) - wanted) <= wanted * 4e-16);
        assert_true(fabs(pki_moments_mean(&m) - far / MOMENTS_N) <= far / MOMENTS_N * 2.3e-16);
    }
}

static void constants_do_not_deviate(void **state)
{
    static const double some[] = {0, 0.1, -7.25, 1.0 / 3, 3.6e12, 1e300, 5e-324, 12345.678};
    (void)state;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        pki_moments m = {0};
        for (size_t i = 0; i < 1000; i++)
            pki_moments_add(&m, some[k], 1);
        assert_true(pki_moments_deviation(&m, 0) == 0 && pki_moments_deviation(&m, 1) == 0);
        assert_true(pki_moments_mean(&m) == some[k]);
    }
}

static double anything(void)
{
    return (draw_unit() - 0.5) * exp2(60 * (draw_unit() - 0.5));
}

static double loss(void)
{
    return 3.9 + draw_unit() * 1e-9;
}

static double memory(void)
{
    return 8e10 + floor(2000 * draw_unit());
}

static void expect_same(const pki_moments *a, const pki_moments *b)
{
    assert_true(a->count == b->count && a->min == b->min && a->max == b->max);
    assert_true(pki_moments_sum(a) == pki_moments_sum(b));
    assert_true(pki_moments_mean(a) == pki_moments_mean(b));
    assert_true(pki_moments_deviation(a, 0) == pki_moments_deviation(b, 0));
}

/* As folded and then rebuilt from a trace, or by several threads. */
static void in_any_order_and_parts(void **state)
{
    static double (*const draw[])(void) = {anything, loss, memory};
    (void)state;
    for (size_t k = 0; k < sizeof draw / sizeof *draw; k++) {
        pki_moments turned = {0}, joined = {0}, parts[7] = {{0}};
        for (size_t i = 0; i < MOMENTS_N; i++)
            values[i] = draw[k]();
        pki_moments straight = of(values, MOMENTS_N);
        for (size_t i = MOMENTS_N; i-- > 0;)
            pki_moments_add(&turned, values[i], 1);
        for (size_t i = 0; i < MOMENTS_N; i++)
            pki_moments_add(&parts[i * 7919 % 7], values[i], 1);
        for (size_t i = 0; i < 7; i++)
            pki_moments_merge(&joined, &parts[i]);
        expect_same(&straight, &turned);
        expect_same(&straight, &joined);
    }
}

/* Against a sum in two passes around the exact mean, of integers. */
static void as_defined(void **state)
{
    uint64_t sum = 0;
    pki_u128 squares = 0;
    (void)state;
    for (size_t i = 0; i < MOMENTS_N; i++) {
        values[i] = memory();
        sum += (uint64_t)values[i];
    }
    for (size_t i = 0; i < MOMENTS_N; i++) { /* n x - sum is an integer */
        int64_t apart = (int64_t)((uint64_t)values[i] * MOMENTS_N - sum);
        uint64_t distance = (uint64_t)(apart < 0 ? -apart : apart);
        squares += (pki_u128)distance * distance;
    }
    double deviation = (double)sqrtl((long double)squares / MOMENTS_N) / MOMENTS_N;
    double fine = under_valgrind() ? 4 : 1; /* its long double is a double */
    pki_moments m = of(values, MOMENTS_N);
    assert_true(pki_moments_sum(&m) == (double)sum);
    assert_true(fabs(pki_moments_deviation(&m, 0) - deviation) <= fine * 4e-16 * deviation);
    double sample = deviation * sqrt(MOMENTS_N / (MOMENTS_N - 1.0));
    assert_true(fabs(pki_moments_deviation(&m, 1) - sample) <= fine * 6e-16 * sample);
}

static void many_at_once(void **state)
{
    pki_moments at_once = {0}, one_by_one = {0}, most = {0};
    (void)state;
    for (int i = 1; i < 5; i++) {
        pki_moments_add(&at_once, i + 0.1, 10);
        pki_moments_add(&at_once, i, 0);
        for (int k = 0; k < 10; k++)
            pki_moments_add(&one_by_one, i + 0.1, 1);
    }
    expect_same(&at_once, &one_by_one);
    pki_moments_add(&most, 1e9 - 1, (uint64_t)1 << 40);
    pki_moments_add(&most, 1e9 + 1, (uint64_t)1 << 40);
    assert_true(pki_moments_deviation(&most, 0) == 1 && pki_moments_mean(&most) == 1e9);
}

/* A window's: values come and go, a very large one among them. */
static void values_taken_away(void **state)
{
    pki_moments m = {0};
    (void)state;
    for (size_t i = 0; i < MOMENTS_N; i++)
        values[i] = i == 0 || i == 70 ? 1e8 : 3.9 + 1e-3 * draw_unit();
    for (size_t i = 0; i < MOMENTS_N; i++) {
        pki_moments_add(&m, values[i], 1);
        if (i < 10)
            continue;
        pki_moments_remove(&m, values[i - 10]);
        pki_moments fresh = of(values + i - 9, 10);
        double wanted = pki_moments_deviation(&fresh, 1), got = pki_moments_deviation(&m, 1);
        assert_true(fabs(got - wanted) <= 1e-6 * wanted);
    }
    for (size_t i = MOMENTS_N - 10; i < MOMENTS_N; i++)
        pki_moments_remove(&m, values[i]);
    assert_true(m.count == 0 && pki_moments_deviation(&m, 0) == 0 && pki_moments_mean(&m) == 0);
}

static void none_and_too_far(void **state)
{
    pki_moments m = {0}, none = {0};
    (void)state;
    pki_moments_merge(&m, &none);
    assert_true(m.count == 0 && pki_moments_sum(&m) == 0 && pki_moments_deviation(&m, 0) == 0);
    pki_moments_add(&m, 5, 1);
    assert_true(pki_moments_deviation(&m, 0) == 0 && pki_moments_deviation(&m, 1) == 0);
    pki_moments_add(&m, 1e200, 1);
    assert_true(isinf(pki_moments_deviation(&m, 0)) && m.max == 1e200);
    pki_moments_add(&m, -1e300, 3);
    pki_moments_merge(&none, &m);
    assert_true(isinf(pki_moments_deviation(&none, 0)) && none.min == -1e300 && none.count == 5);
}

static const struct CMUnitTest moments_tests[] = {
    cmocka_unit_test(far_from_zero),
    cmocka_unit_test(first_is_far_away),
    cmocka_unit_test(constants_do_not_deviate),
    cmocka_unit_test(in_any_order_and_parts),
    cmocka_unit_test(as_defined),
    cmocka_unit_test(many_at_once),
    cmocka_unit_test(values_taken_away),
    cmocka_unit_test(none_and_too_far),
};

/* ---- the median of a series' rows ---- */

/* Exact while steps are few, within its bound whatever their order. */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 40;
}

static int medians_by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void few_are_exact(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 8; count++) {
        pki_medians m = {0};
        uint64_t all[8];
        for (size_t i = 0; i < count; i++)
            pki_medians_add(&m, all[i] = random_number());
        qsort(all, count, sizeof *all, medians_by_size);
        uint64_t low = all[(count - 1) / 2], high = all[count / 2];
        assert_int_equal(pki_medians_median(&m), low + (high - low) / 2);
    }
    pki_medians none = {0};
    assert_int_equal(pki_medians_median(&none), 0);
}

static uint64_t growing(size_t i)
{
    return i;
}

static uint64_t falling(size_t i)
{
    return 1000000 - i;
}

static uint64_t any(size_t i)
{
    (void)i;
    return random_number();
}

static uint64_t now_and_then_ten_times(size_t i)
{
    return (i % 9 ? 1000 : 10000) + random_number() % 100;
}

/* Share of the steps that are below the median found, or the nearest such share among equals. */
static double rank_off(uint64_t *all, size_t count, uint64_t median)
{
    size_t below = 0, not_above = 0;
    for (size_t i = 0; i < count; i++) {
        below += all[i] < median;
        not_above += all[i] <= median;
    }
    double low = (double)below / (double)count, high = (double)not_above / (double)count;
    return low > 0.5 ? low - 0.5 : high < 0.5 ? 0.5 - high : 0;
}

static void many_stay_within_the_bound(void **state)
{
    static uint64_t (*const orders[])(size_t) = {growing, falling, any, now_and_then_ten_times};
    static uint64_t all[4096];
    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        pki_medians m = {0};
        double allowed = 1.0 / 16; /* eight say no more */
        for (size_t i = 0, doubled = 8; i < 4096; i++) {
            pki_medians_add(&m, all[i] = orders[o](i));
            if (i + 1 != doubled)
                continue;
            doubled *= 2;
            assert_true(rank_off(all, i + 1, pki_medians_median(&m)) <= allowed);
            pki_some some = pki_medians_some(&m, i + 1);
            assert_int_equal(pki_some_median(&some, i + 1), pki_medians_median(&m));
            allowed += 1.0 / 16;
        }
    }
}

/* Errors of either sign follow each other: over many rows they cancel. */
static void nothing_is_shifted(void **state)
{
    static uint64_t all[512];
    double shift = 0;
    (void)state;
    for (size_t run = 0; run < 400; run++) {
        pki_medians m = {0};
        size_t below = 0;
        for (size_t i = 0; i < 512; i++)
            pki_medians_add(&m, all[i] = random_number());
        for (size_t i = 0; i < 512; i++)
            below += all[i] < pki_medians_median(&m);
        shift += (double)below / 512 - 0.5;
    }
    assert_true(shift / 400 > -0.01 && shift / 400 < 0.01);
}

/* One slow step in nine: the mean of a row is far above, the median is not. */
static void rows_of_a_long_series(void **state)
{
    pki_step_series series = {0};
    static pki_series_row rows[PKI_STEP_SERIES_MOST];
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t ns = now_and_then_ten_times((size_t)i);
        pki_series_row step = {
            .index = i, .steps = 1, .duration = ns, .longest = ns, .shortest = ns};
        assert_true(pki_step_series_add(&series, &step));
    }
    pki_step_series_rows(&series, rows);
    assert_int_equal(series.rows.used, 3125);
    for (size_t i = 0; i < series.rows.used; i++) {
        assert_int_equal(rows[i].steps, 32);
        assert_in_range(rows[i].median, 1000, 1100);
        assert_in_range(rows[i].shortest, 1000, 1099);
        assert_in_range(rows[i].longest, 10000, 10100);
        assert_true(rows[i].duration / 32 > 1700);
    }
    pki_series_finish(&series.rows);
}

static void the_last_row_is_not_full(void **state)
{
    pki_step_series series = {0};
    static pki_series_row rows[PKI_STEP_SERIES_MOST];
    (void)state;
    for (uint64_t i = 0; i < PKI_STEP_SERIES_MOST + 3; i++) {
        pki_series_row step = {
            .index = i, .steps = 1, .duration = i + 1, .longest = i + 1, .shortest = i + 1};
        assert_true(pki_step_series_add(&series, &step));
    }
    pki_step_series_rows(&series, rows);
    assert_int_equal(series.rows.used, PKI_STEP_SERIES_MOST / 2 + 2);
    assert_int_equal(rows[0].median, 1);
    assert_int_equal(rows[1].median, 3);
    assert_int_equal(rows[series.rows.used - 2].median, PKI_STEP_SERIES_MOST + 1);
    assert_int_equal(rows[series.rows.used - 1].steps, 1);
    assert_int_equal(rows[series.rows.used - 1].median, PKI_STEP_SERIES_MOST + 3);
    pki_series_finish(&series.rows);
}

static const struct CMUnitTest medians_tests[] = {
    cmocka_unit_test(few_are_exact),
    cmocka_unit_test(many_stay_within_the_bound),
    cmocka_unit_test(nothing_is_shifted),
    cmocka_unit_test(rows_of_a_long_series),
    cmocka_unit_test(the_last_row_is_not_full),
};

/* ---- the bounded series ---- */

/* Exact while short, sums kept for ever, thirds compared. */

static void add(pki_step_series *series, uint64_t index, uint64_t duration)
{
    pki_series_row row = {.index = index,
                          .start = 100 * index,
                          .steps = 1,
                          .duration = duration,
                          .longest = duration,
                          .items = 2};
    row.kinds[PK_DATA] = duration / 2;
    row.kinds[PKI_UNTRACKED] = duration - duration / 2;
    assert_true(pki_step_series_add(series, &row));
}

static pki_series_row series_rows[PKI_STEP_SERIES_MOST];

static void short_ones_are_kept_as_they_are(void **state)
{
    pki_step_series series = {0};
    (void)state;
    for (uint64_t i = 0; i < PKI_STEP_SERIES_MOST; i++)
        add(&series, i, i + 1);
    assert_int_equal(series.rows.used, PKI_STEP_SERIES_MOST);
    pki_step_series_rows(&series, series_rows);
    for (uint64_t i = 0; i < PKI_STEP_SERIES_MOST; i++) {
        assert_int_equal(series_rows[i].index, i);
        assert_int_equal(series_rows[i].steps, 1);
        assert_int_equal(series_rows[i].duration, i + 1);
    }
    pki_series_finish(&series.rows);
}

static void check_whole(const pki_step_series *series, uint64_t count)
{
    uint64_t next = 0, items = 0, duration = 0, data = 0, longest = 0;
    pki_step_series_rows(series, series_rows);
    for (size_t i = 0; i < series->rows.used; i++) {
        assert_int_equal(series_rows[i].index, next);
        assert_int_equal(series_rows[i].start, 100 * next);
        /* All alike but the last. */
        if (i + 1 < series->rows.used)
            assert_int_equal(series_rows[i].steps, series_rows[0].steps);
        next += series_rows[i].steps;
        items += series_rows[i].items;
        duration += series_rows[i].duration;
        data += series_rows[i].kinds[PK_DATA];
        longest = longest > series_rows[i].longest ? longest : series_rows[i].longest;
    }
    assert_int_equal(next, count);
    assert_int_equal(items, 2 * count);
    assert_int_equal(duration, count * (count + 1) / 2);
    assert_int_equal(longest, count);
    assert_in_range(data + count, duration / 2, duration / 2 + count);
}

static void long_ones_stay_bounded_and_whole(void **state)
{
    pki_step_series series = {0};
    uint64_t count = 0;
    static const uint64_t checks[] = {1, 63, 64, 65, 4095, 4097, 4098, 8191, 8193, 20001, 300000};
    (void)state;
    for (size_t c = 0; c < sizeof checks / sizeof *checks; c++) {
        for (; count < checks[c]; count++)
            add(&series, count, count + 1);
        check_whole(&series, count);
        assert_in_range(series.rows.used, 1, PKI_STEP_SERIES_MOST);
        if (count > PKI_STEP_SERIES_MOST)
            assert_in_range(series.rows.used, PKI_STEP_SERIES_MOST / 2, PKI_STEP_SERIES_MOST);
    }
    assert_int_equal(series.rows.room, PKI_STEP_SERIES_MOST);
    pki_series_finish(&series.rows);
}

static void thirds_are_compared(void **state)
{
    pki_step_series series = {0};
    double first = -1, last = -1;
    (void)state;
    add(&series, 0, 100000);
    for (uint64_t i = 1; i < 31; i++)
        add(&series, i, i <= 10 ? 100 : i <= 20 ? 999 : 130);
    assert_true(pki_step_series_thirds(&series, 1, &first, &last));
    assert_true(first == 100 && last == 130);
    pki_series_finish(&series.rows);
}

static void too_few_say_nothing(void **state)
{
    pki_step_series series = {0};
    double first, last;
    (void)state;
    assert_false(pki_step_series_thirds(&series, 0, &first, &last));
    for (uint64_t i = 0; i < PKI_THIRDS_LEAST; i++)
        add(&series, i, 100);
    assert_true(pki_step_series_thirds(&series, 0, &first, &last));
    assert_false(pki_step_series_thirds(&series, 1, &first, &last));
    assert_false(pki_step_series_thirds(&series, 1000, &first, &last));
    pki_series_finish(&series.rows);
}

static const struct CMUnitTest series_tests[] = {
    cmocka_unit_test(short_ones_are_kept_as_they_are),
    cmocka_unit_test(long_ones_stay_bounded_and_whole),
    cmocka_unit_test(thirds_are_compared),
    cmocka_unit_test(too_few_say_nothing),
};

/* ---- arrays that grow, and series that grow and then halve ---- */

static void array_grows_zeroed(void **state)
{
    uint32_t *array = NULL;
    size_t room = 0;
    (void)state;
    for (size_t wanted = 1; wanted < 5000; wanted += 1 + wanted / 7) {
        size_t before = room;
        assert_true(pki_array_fit(&array, &room, wanted, sizeof *array));
        assert_true(room >= wanted && (room == before || room >= 2 * before));
        for (size_t i = before; i < room; i++) {
            assert_int_equal(array[i], 0);
            array[i] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < room; i++)
        assert_int_equal(array[i], i);
    free(array);
}

static void array_that_cannot_be(void **state)
{
    uint64_t *array = NULL;
    size_t room = 0;
    (void)state;
    assert_true(pki_array_fit(&array, &room, 3, sizeof *array));
    uint64_t *before = array;
    size_t room_before = room;
    assert_false(pki_array_fit(&array, &room, SIZE_MAX / 4, sizeof *array));
    assert_false(pki_array_fit(&array, &room, SIZE_MAX, sizeof *array));
    assert_true(array == before && room == room_before);
    free(array);
}

/* -- series -- */

typedef struct row {
    uint64_t count, sum, first;
} row;

static void join(void *into, const void *from)
{
    row *a = into;
    const row *b = from;
    a->first = a->count && (!b->count || a->first < b->first) ? a->first : b->first;
    a->count += b->count;
    a->sum += b->sum;
}

static const pki_series_kind kind = {
    .row_bytes = sizeof(row), .first_room = 4, .most = 16, .first_stride = 2, .join = join};

static void put(pki_series *series, uint64_t position)
{
    row *at = pki_series_at(series, &kind, position);
    assert_non_null(at);
    join(at, &(row){1, position, position});
}

static void expect_whole(const pki_series *series, uint64_t count, uint64_t sum)
{
    const row *rows = series->rows;
    assert_true(series->used <= series->room && series->room <= kind.most);
    for (size_t i = 0; i < series->room; i++) {
        assert_true(!rows[i].count || rows[i].first / series->stride == i);
        assert_true(!rows[i].count || i < series->used);
        count -= rows[i].count;
        sum -= rows[i].sum;
    }
    assert_true(count == 0 && sum == 0);
}

static void positions_in_any_order(void **state)
{
    uint64_t random = 1, sum = 0;
    pki_series series = {0};
    (void)state;
    for (uint64_t n = 1; n <= 3000; n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t position = (random >> 33) % (1 + n * n / 8);
        put(&series, position);
        sum += position;
        expect_whole(&series, n, sum);
    }
    assert_int_equal(series.room, 16);
    pki_series_finish(&series);
    assert_true(!series.rows && !series.used);
}

static void the_last_position_that_there_is(void **state)
{
    pki_series series = {0};
    (void)state;
    put(&series, 0);
    put(&series, UINT64_MAX);
    const row *rows = series.rows;
    assert_int_equal(series.used, 16);
    assert_true(rows[0].count == 1 && rows[15].count == 1);
    pki_series_finish(&series);
}

static void one_after_the_other(void **state)
{
    pki_series series = {0};
    (void)state;
    for (uint64_t n = 0; n < 1000; n++) {
        row *at = pki_series_next(&series, &kind);
        assert_non_null(at);
        join(at, &(row){1, n, n});
        assert_int_equal(series.count, n + 1);
        expect_whole(&series, n + 1, n * (n + 1) / 2);
    }
    const row *rows = series.rows;
    for (size_t i = 0; i + 1 < series.used; i++) /* all alike but the last */
        assert_int_equal(rows[i].count, series.stride);
    pki_series_finish(&series);
}

static const struct CMUnitTest rows_tests[] = {
    cmocka_unit_test(array_grows_zeroed),     cmocka_unit_test(array_that_cannot_be),
    cmocka_unit_test(positions_in_any_order), cmocka_unit_test(the_last_position_that_there_is),
    cmocka_unit_test(one_after_the_other),
};

/* ---- the length of what intervals cover, against a map of every moment ---- */

static uint64_t length_of(const uint64_t (*intervals)[2], size_t n)
{
    pki_union u = {0};
    for (size_t i = 0; i < n; i++)
        pki_union_add(&u, intervals[i][0], intervals[i][1]);
    return pki_union_length(&u);
}

static void each_moment_once(void **state)
{
    static const uint64_t apart[][2] = {{0, 10}, {20, 30}}, alike[][2] = {{5, 9}, {5, 9}, {5, 9}},
                          touching[][2] = {{0, 5}, {5, 9}}, around[][2] = {{4, 6}, {8, 9}, {0, 20}},
                          bridge[][2] = {{0, 4}, {6, 9}, {20, 21}, {3, 7}},
                          empty[][2] = {{5, 5}, {9, 7}};
    (void)state;
    assert_int_equal(length_of(apart, 2), 20);
    assert_int_equal(length_of(alike, 3), 4);
    assert_int_equal(length_of(touching, 2), 9);
    assert_int_equal(length_of(around, 3), 20);
    assert_int_equal(length_of(bridge, 4), 10);
    assert_int_equal(length_of(empty, 2), 0);
}

#define MOMENTS 100000

/* By their ends, a few in disorder, as two threads' operations come. */
static void as_a_map_says(void **state)
{
    static bool map[MOMENTS + 1000];
    pki_union u = {0};
    uint64_t length = 0;
    (void)state;
    srand(5);
    memset(map, 0, sizeof map);
    for (uint64_t end = 100; end < MOMENTS; end += (uint64_t)(rand() % 40)) {
        uint64_t to = end + (uint64_t)(rand() % 20),
                 from = to - PKI_MIN(to, (uint64_t)(rand() % 50));
        pki_union_add(&u, from, to);
        for (uint64_t i = from; i < to; i++)
            map[i] = true;
    }
    for (size_t i = 0; i < PKI_COUNT_OF(map); i++)
        length += map[i];
    assert_int_equal(pki_union_length(&u), length);
}

/* One that reaches back over more pieces than are kept is cut there, never counted twice. */
static void never_more_than_has_passed(void **state)
{
    pki_union u = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        pki_union_add(&u, 10 * i, 10 * i + 5);
    assert_int_equal(pki_union_length(&u), 5000);
    pki_union_add(&u, 0, 10000);
    assert_in_range(pki_union_length(&u), 5000, 10000);
    pki_union_add(&u, 0, 10000);
    assert_in_range(pki_union_length(&u), 5000, 10000);
}

static const struct CMUnitTest union_tests[] = {
    cmocka_unit_test(each_moment_once),
    cmocka_unit_test(as_a_map_says),
    cmocka_unit_test(never_more_than_has_passed),
};

int main(void)
{
    int failed = cmocka_run_group_tests(tally_tests, NULL, NULL);
    failed += cmocka_run_group_tests(moments_tests, NULL, NULL);
    failed += cmocka_run_group_tests(medians_tests, NULL, NULL);
    failed += cmocka_run_group_tests(series_tests, NULL, NULL);
    failed += cmocka_run_group_tests(rows_tests, NULL, NULL);
    failed += cmocka_run_group_tests(union_tests, NULL, NULL);
    return failed;
}
