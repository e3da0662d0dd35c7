/* The length of what intervals cover, against a map of every moment. */
#include "measure/union.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_once),
        cmocka_unit_test(as_a_map_says),
        cmocka_unit_test(never_more_than_has_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
