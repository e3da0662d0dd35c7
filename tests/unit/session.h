/* tests/unit/session.h - a session that keeps statistics only, and what it has counted, for tests.
 *
 * Group tests run twice, with CLOCK_MONOTONIC and with this machine's fastest clock: the first one
 * takes every call through its slow path, the second most through its fast one.
 */
#ifndef TESTS_SESSION_H
#define TESTS_SESSION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "base/clock.h"
#include "../kit/tuning.h"

static const char *the_clock = ""; /* the fastest */
static pk_stats the_stats;

static inline int use_monotonic(void **state)
{
    (void)state;
    the_clock = "monotonic";
    return 0;
}

static inline int use_fastest(void **state)
{
    (void)state;
    the_clock = "";
    return 0;
}

#define both_clocks(tests)                                                                         \
    (cmocka_run_group_tests_name(#tests ", monotonic", tests, use_monotonic, NULL) +               \
     cmocka_run_group_tests_name(#tests ", fastest", tests, use_fastest, NULL))

static inline int start_session(void **state)
{
    (void)state;
    return pk_start(pk_options(.backends = "none", .tuning = kit_tuning("clock=%s", the_clock)));
}

/* Whether or not the test has stopped it. */
static inline int stop_session(void **state)
{
    (void)state;
    pk_stop();
    return 0;
}

static inline pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    return counts;
}

/* And what holds at the end of every session whose regions are closed. */
static inline pk_counts stop_and_count(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    pk_counts counts = counts_now();
    assert_int_equal(counts.recorded + counts.dropped, counts.begun);
    return counts;
}

static inline const pk_stats *stats_of(const pk_region *region)
{
    assert_int_equal(pk_region_stats(region, &the_stats), PK_OK);
    return &the_stats;
}

static inline uint64_t count_of(const pk_region *region)
{
    return stats_of(region)->count;
}

/* Sums in nanoseconds are rounded, each by itself, unless nanoseconds are what the clock counts. */
static inline void expect_sum(uint64_t sum, uint64_t parts, unsigned terms)
{
    uint64_t apart = sum > parts ? sum - parts : parts - sum;
    assert_in_range(apart, 0, the_stats.unit_ns == 1.0 ? 0 : terms);
}

/* Some time passes, at least so much on every clock: the session's map may bend by a part of it,
 * and starts out quite wrong on an emulator's counter. */
#define SPENT_NS 1000
static inline void spend(void)
{
    uint64_t until = pki_monotonic_ns() + 2500;
    while (pki_monotonic_ns() < until)
        ;
}

#define with_session(test) cmocka_unit_test_setup_teardown(test, start_session, stop_session)

#endif
