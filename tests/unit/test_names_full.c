/* The 65,536th name, and all after it. */
#include "core/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_fills_up),
        cmocka_unit_test(known_names_stay_known),
        cmocka_unit_test(recording_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
