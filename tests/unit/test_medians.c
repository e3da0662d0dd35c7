/* The median of a series' rows: exact while steps are few, within its bound whatever their order.
 */
#include "measure/steps/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 40;
}

static int by_size(const void *a, const void *b)
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
        qsort(all, count, sizeof *all, by_size);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_exact),
        cmocka_unit_test(many_stay_within_the_bound),
        cmocka_unit_test(nothing_is_shifted),
        cmocka_unit_test(rows_of_a_long_series),
        cmocka_unit_test(the_last_row_is_not_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
