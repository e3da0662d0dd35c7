/* Where in time a range of steps lies, before and after it has been seen. */
#include "measure/steps/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static pki_step_watch w;

static void see(uint64_t index, uint64_t start, uint64_t duration)
{
    pki_step_watch_see(index, start, duration);
    w = pki_step_watch_now();
}

static void a_range_ahead(void **state)
{
    (void)state;
    pki_step_watch_start(10, 12);
    w = pki_step_watch_now();
    assert_true(pki_step_watch_expect(&w) == PKI_NOT_YET);
    see(0, 5, 100);
    assert_int_equal(pki_step_watch_expect(&w), 105 + 9 * 100);
    see(1, 105, 500); /* steps get longer: what is usual follows */
    assert_int_equal(pki_step_watch_expect(&w), 605 + 8 * 200);
    assert_true(w.begin_ns == PKI_NOT_YET && w.end_ns == PKI_NOT_YET);
    see(9, 1000, 50);
    assert_true(w.begin_ns == 1050 && pki_step_watch_expect(&w) == 1050);
    see(10, 1050, 10);
    see(11, 1060, 10);
    assert_true(w.end_ns == PKI_NOT_YET);
    see(12, 1070, 10);
    assert_int_equal(w.end_ns, 1080);
    see(13, 1080, 10);
    assert_true(w.begin_ns == 1050 && w.end_ns == 1080);
}

static void steps_that_are_missing(void **state)
{
    (void)state;
    pki_step_watch_start(5, 6);
    see(5, 100, 10); /* 4 has been dropped */
    assert_int_equal(w.begin_ns, 100);
    see(8, 130, 10);
    assert_int_equal(w.end_ns, 130);
    pki_step_watch_start(5, 6); /* all of the range */
    see(9, 500, 10);
    assert_true(w.begin_ns == 500 && w.end_ns == 500);
}

static void from_the_start(void **state)
{
    (void)state;
    pki_step_watch_start(0, 0);
    w = pki_step_watch_now();
    assert_int_equal(w.begin_ns, 0);
    see(0, 3, 4);
    assert_int_equal(w.end_ns, 7);
}

static void farther_than_numbers_go(void **state)
{
    (void)state;
    pki_step_watch_start(UINT64_MAX - 1, UINT64_MAX);
    see(0, 0, 1000000);
    assert_true(pki_step_watch_expect(&w) == PKI_NOT_YET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_ahead),
        cmocka_unit_test(steps_that_are_missing),
        cmocka_unit_test(from_the_start),
        cmocka_unit_test(farther_than_numbers_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
