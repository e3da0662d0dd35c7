/* Where the warm-up ends, on series whose answer is known, and where the rule's limits are. */
#include "measure/steps/warmup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000.0
#define MOST 4096

static uint64_t series[MOST];

static double random_unit(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

/* Normally distributed enough: the sum of twelve. */
static double noise(double deviation)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_unit();
    return deviation * sum;
}

typedef double shape(size_t i, size_t n);

static uint64_t found(shape *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        series[i] = (uint64_t)(of(i, n) * MS);
    return pki_warmup_find(series, n < PKI_WARMUP_KNOWN ? n : PKI_WARMUP_KNOWN, n);
}

static double constant(size_t i, size_t n)
{
    (void)i, (void)n;
    return 10;
}

static double first_slow(size_t i, size_t n)
{
    (void)n;
    return i == 0 ? 900 : 10;
}

static double three_slow(size_t i, size_t n)
{
    (void)n;
    return (i == 0 ? 500 : i < 3 ? 30 : 10) + noise(0.2);
}

/* 110, 60, 35, 22.5, 16.25, 13.1, 11.6, then within 1.25 x the median */
static double decaying(size_t i, size_t n)
{
    (void)n;
    return 10 + 100 * pow(0.5, (double)i);
}

static double noisy(size_t i, size_t n)
{
    (void)i, (void)n;
    return 10 * exp(noise(0.3));
}

static double bimodal(size_t i, size_t n)
{
    (void)n;
    return (i % 5 < 2 ? 20 : 10) + noise(0.2);
}

static double starting_in_the_slow_mode(size_t i, size_t n)
{
    (void)n;
    return (i < 4 || i % 3 == 0 ? 20 : 10) + noise(0.1);
}

static double falling(size_t i, size_t n)
{
    return 10 * (2 - (double)i / (double)n) + noise(0.05);
}

static double rising(size_t i, size_t n)
{
    return 10 * (1 + (double)i / (double)n) + noise(0.05);
}

static double always_slower_than_later(size_t i, size_t n)
{
    return i < n / 2 ? 50 : 10;
}

static double second_slow_only(size_t i, size_t n)
{
    (void)n;
    return i == 2 ? 900 : 10;
}

static void the_first_step_always_is(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 3, 4, 5, 19, 20, 100, 4096};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(found(constant, counts[i]), 1);
        assert_int_equal(found(first_slow, counts[i]), 1);
    }
}

static void few_steps(void **state)
{
    (void)state;
    assert_int_equal(found(first_slow, 0), 0);
    assert_int_equal(found(first_slow, 1), 0); /* else nothing would be left */
    for (size_t n = 2; n <= 5; n++) {
        assert_int_equal(found(three_slow, n), 1);
        assert_int_equal(found(decaying, n), 1);
    }
}

static void slow_ones_that_follow_are(void **state)
{
    (void)state;
    assert_int_equal(found(three_slow, 30), 3);
    assert_int_equal(found(three_slow, 1000), 3);
    assert_int_equal(found(decaying, 100), 6);
    assert_int_equal(found(decaying, MOST), 6);
}

static void at_most_a_tenth(void **state)
{
    (void)state;
    assert_int_equal(found(decaying, 29), 2);
    assert_int_equal(found(decaying, 30), 3);
    assert_int_equal(found(decaying, 59), 5);
    assert_int_equal(found(decaying, 60), 6);
}

static void at_most_32(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        series[i] = (uint64_t)((i < 40 ? 100 : 10) * MS);
    assert_int_equal(pki_warmup_find(series, PKI_WARMUP_KNOWN, MOST), PKI_WARMUP_MOST);
}

static void noise_is_not(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        assert_in_range(found(noisy, 400), 1, 2);
    uint64_t sum = 0;
    for (int i = 0; i < 200; i++)
        sum += found(noisy, 400) - 1;
    assert_in_range(sum, 0, 4);
}

static void two_sorts_of_steps_are_not(void **state)
{
    (void)state;
    assert_int_equal(found(bimodal, 400), 1);
    assert_int_equal(found(starting_in_the_slow_mode, 400), 1);
}

static void drift_is_not(void **state)
{
    (void)state;
    assert_int_equal(found(falling, 400), 1);
    assert_int_equal(found(falling, MOST), 1);
    assert_int_equal(found(rising, 400), 1);
    assert_int_equal(found(always_slower_than_later, MOST), 1);
}

static void it_ends_at_the_first_usual_step(void **state)
{
    (void)state;
    assert_int_equal(found(second_slow_only, 400), 1);
}

/* All steps alike but the second: a step of 1.25 x the median is not above the threshold. */
static void at_the_threshold(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++)
        series[i] = 1000;
    series[1] = 1250;
    assert_int_equal(pki_warmup_find(series, 100, 100), 1);
    series[1] = 1251;
    assert_int_equal(pki_warmup_find(series, 100, 100), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_always_is),
        cmocka_unit_test(few_steps),
        cmocka_unit_test(slow_ones_that_follow_are),
        cmocka_unit_test(at_most_a_tenth),
        cmocka_unit_test(at_most_32),
        cmocka_unit_test(noise_is_not),
        cmocka_unit_test(two_sorts_of_steps_are_not),
        cmocka_unit_test(drift_is_not),
        cmocka_unit_test(it_ends_at_the_first_usual_step),
        cmocka_unit_test(at_the_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
