/* The tally against exact values of the samples themselves. */
#include "stats/tally.h"

#include "stats/buckets.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_a_bucket),
        cmocka_unit_test(constants_are_exact),
        cmocka_unit_test(integer_sums_are_exact),
        cmocka_unit_test(not_finite_is_refused),
        cmocka_unit_test(merging_is_adding_both),
        cmocka_unit_test(many_at_once_are_one_by_one),
        cmocka_unit_test(narrow_values_take_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
