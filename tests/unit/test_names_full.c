/* The 65,536th name, and all after it. */
#include "core/names.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "base/clock.h"
#include "base/compiler.h"

static uint32_t fill(void)
{
    static char name[32];
    uint32_t id = PKI_NAME_FIRST, i = 0;
    while (pki_name_count() < PKI_NAMES_MAX) {
        snprintf(name, sizeof name, "filler-%u", i++);
        pk_region *region = pk_region_named(name);
        assert_int_equal(region->id, id++); /* dense */
        assert_string_equal(region->name, name);
    }
    return i;
}

static void the_table_fills_up(void **state)
{
    (void)state;
    uint32_t count = fill();
    assert_int_equal(count, PKI_NAMES_MAX - PKI_NAME_FIRST);
    pk_region *too_many = pk_region_named("one more");
    assert_string_equal(too_many->name, "(too many names)");
    assert_int_equal(too_many->id, PKI_NAME_TOO_MANY);
    assert_ptr_equal(pk_region_named("and another"), too_many);
    assert_ptr_equal(pk_region_variant(too_many, "k", 1), too_many);
    assert_int_equal(pki_name_count(), PKI_NAMES_MAX);
}

static void known_names_stay_known(void **state)
{
    (void)state;
    fill();
    for (uint32_t i = 0; i < PKI_NAMES_MAX - PKI_NAME_FIRST; i += 97) {
        char name[32];
        snprintf(name, sizeof name, "filler-%u", i);
        assert_int_equal(pk_region_named(name)->id, PKI_NAME_FIRST + i);
    }
}

static void recording_goes_on(void **state)
{
    static pk_region late = PK_REGION("late"), later = PK_REGION_OF(PK_COMM, "later");
    static pk_counter counter = PK_COUNTER("late counter", "");
    static pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    (void)state;
    fill();
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    for (int i = 0; i < 10; i++) {
        pk_region_begin(&late);
        pk_region_begin(&later);
        pk_region_end(&later);
        pk_region_end(&late);
        pk_counter_set(&counter, 1.0);
        pk_counter_set(pk_counter_named("another", "x"), 1.0);
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_region_stats(pk_region_named("whatever"), &stats), PK_OK);
    assert_int_equal(stats.count, 20); /* all share one */
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_true(counts.begun == 20 && counts.recorded == 20 && counts.stray_ends == 0);
    assert_int_equal(counts.points_dropped, 20);
    assert_int_equal(counts.regions, PKI_NAMES_MAX - PKI_NAME_FIRST);
}

#define PART 16 /* a sixteenth of the names */

static uint64_t ns_of_stop(void)
{
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    for (uint32_t id = PKI_NAME_FIRST; id < PKI_NAMES_MAX; id++) {
        pk_region region = {.id = id};
        pk_region_begin(&region);
        pk_region_end(&region);
    }
    uint64_t before = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID);
    assert_int_equal(pk_stop(), PK_OK);
    return pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - before;
}

/* To look at all buckets of as many distributions, once: of some of them, which do not lie in the
 * caches either. */
static uint64_t ns_of_looking(void)
{
    static uint64_t all[(PKI_NAMES_MAX - PKI_NAME_FIRST) / PART * PK_STATS_BUCKETS];
    const volatile uint64_t *buckets = all;
    uint64_t sum = 0;
    memset(all, 0, sizeof all); /* pages of its own */
    uint64_t before = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sum += buckets[i];
    assert_int_equal(sum, 0);
    return PART * (pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - before);
}

/* A region has calls in one octave or two of 59. It was ten such looks for each. */
static void stopping_looks_at_what_is_used(void **state)
{
    double least = INFINITY;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* what it adds to each access is no part of either */
#endif
    fill();
    for (int i = 0; i < 25 && least > 2; i++)
        least = PKI_MIN(least, (double)ns_of_stop() / (double)ns_of_looking());
    assert_true(least < 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_fills_up),
        cmocka_unit_test(known_names_stay_known),
        cmocka_unit_test(recording_goes_on),
        cmocka_unit_test(stopping_looks_at_what_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
