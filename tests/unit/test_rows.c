/* Arrays that grow, and series that grow and then halve. */
#include "stats/series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

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

/* ---- series ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_grows_zeroed),     cmocka_unit_test(array_that_cannot_be),
        cmocka_unit_test(positions_in_any_order), cmocka_unit_test(the_last_position_that_there_is),
        cmocka_unit_test(one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
