/* Moments of doubles: what is known beforehand, to the last digit, and the same in any order and
 * parts. */
#include "stats/moments.h"

#include "base/compiler.h"
#include "valgrind.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define N 10000

static double values[N];

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
        for (size_t i = 0; i < N; i++)
            values[i] = i & 1 ? high : low;
        pki_moments m = of(values, N);
        assert_true(m.count == N && m.min == low && m.max == high);
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
        pki_moments_add(&m, 0, N - 1);
        double wanted = far * sqrt(N - 1.0) / N;
        assert_true(fabs(pki_moments_deviation(&m, 0) - wanted) <= wanted * 4e-16);
        assert_true(fabs(pki_moments_mean(&m) - far / N) <= far / N * 2.3e-16);
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
        for (size_t i = 0; i < N; i++)
            values[i] = draw[k]();
        pki_moments straight = of(values, N);
        for (size_t i = N; i-- > 0;)
            pki_moments_add(&turned, values[i], 1);
        for (size_t i = 0; i < N; i++)
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
    for (size_t i = 0; i < N; i++) {
        values[i] = memory();
        sum += (uint64_t)values[i];
    }
    for (size_t i = 0; i < N; i++) { /* n x - sum is an integer */
        int64_t apart = (int64_t)((uint64_t)values[i] * N - sum);
        uint64_t distance = (uint64_t)(apart < 0 ? -apart : apart);
        squares += (pki_u128)distance * distance;
    }
    double deviation = (double)sqrtl((long double)squares / N) / N;
    double fine = under_valgrind() ? 4 : 1; /* its long double is a double */
    pki_moments m = of(values, N);
    assert_true(pki_moments_sum(&m) == (double)sum);
    assert_true(fabs(pki_moments_deviation(&m, 0) - deviation) <= fine * 4e-16 * deviation);
    double sample = deviation * sqrt(N / (N - 1.0));
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
    for (size_t i = 0; i < N; i++)
        values[i] = i == 0 || i == 70 ? 1e8 : 3.9 + 1e-3 * draw_unit();
    for (size_t i = 0; i < N; i++) {
        pki_moments_add(&m, values[i], 1);
        if (i < 10)
            continue;
        pki_moments_remove(&m, values[i - 10]);
        pki_moments fresh = of(values + i - 9, 10);
        double wanted = pki_moments_deviation(&fresh, 1), got = pki_moments_deviation(&m, 1);
        assert_true(fabs(got - wanted) <= 1e-6 * wanted);
    }
    for (size_t i = N - 10; i < N; i++)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_from_zero),
        cmocka_unit_test(first_is_far_away),
        cmocka_unit_test(constants_do_not_deviate),
        cmocka_unit_test(in_any_order_and_parts),
        cmocka_unit_test(as_defined),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(values_taken_away),
        cmocka_unit_test(none_and_too_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
