/* The bounded series: exact while short, sums kept for ever, thirds compared. */
#include "measure/steps/series.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

static pki_series_row rows[PKI_STEP_SERIES_MOST];

static void short_ones_are_kept_as_they_are(void **state)
{
    pki_step_series series = {0};
    (void)state;
    for (uint64_t i = 0; i < PKI_STEP_SERIES_MOST; i++)
        add(&series, i, i + 1);
    assert_int_equal(series.rows.used, PKI_STEP_SERIES_MOST);
    pki_step_series_rows(&series, rows);
    for (uint64_t i = 0; i < PKI_STEP_SERIES_MOST; i++) {
        assert_int_equal(rows[i].index, i);
        assert_int_equal(rows[i].steps, 1);
        assert_int_equal(rows[i].duration, i + 1);
    }
    pki_series_finish(&series.rows);
}

static void check_whole(const pki_step_series *series, uint64_t count)
{
    uint64_t next = 0, items = 0, duration = 0, data = 0, longest = 0;
    pki_step_series_rows(series, rows);
    for (size_t i = 0; i < series->rows.used; i++) {
        assert_int_equal(rows[i].index, next);
        assert_int_equal(rows[i].start, 100 * next);
        /* All alike but the last. */
        if (i + 1 < series->rows.used)
            assert_int_equal(rows[i].steps, rows[0].steps);
        next += rows[i].steps;
        items += rows[i].items;
        duration += rows[i].duration;
        data += rows[i].kinds[PK_DATA];
        longest = longest > rows[i].longest ? longest : rows[i].longest;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ones_are_kept_as_they_are),
        cmocka_unit_test(long_ones_stay_bounded_and_whole),
        cmocka_unit_test(thirds_are_compared),
        cmocka_unit_test(too_few_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
