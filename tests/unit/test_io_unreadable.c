/* Readings at ends of steps (costs=io) where a folder that stands for /proc/self has what the
 * kernel's does not have, or nothing. */
#include "io_steps.h"

#include "session/costs/io.h"

static void kernel_says(uint64_t written, uint64_t calls)
{
    FILE *file = fopen("io", "w");
    assert_non_null(file);
    fprintf(file,
            "rchar: 1000000\nwchar: %llu\nsyscr: 1000\nsyscw: %llu\nread_bytes: 0\n"
            "write_bytes: %llu\ncancelled_write_bytes: 0\n",
            (unsigned long long)written, (unsigned long long)calls, (unsigned long long)written);
    fclose(file);
}

static void step_of(uint64_t written, uint64_t calls)
{
    kernel_says(written, calls);
    last();
    pk_step(1);
}

static void counts_that_fall(void **state)
{
    static const uint64_t expected[] = {500, 0, 0, 500};
    (void)state;
    kernel_says(1000, 10);
    pki_io_folder = ".";
    start("io");
    step_of(1500, 20000);
    step_of(700, 20000); /* 800 less */
    step_of(1500, 20000);
    step_of(2000, 20001);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.all[i].written, expected[i]);
        assert_int_equal(r.all[i].device_written, expected[i]);
        assert_int_equal(r.all[i].read, 0); /* it does not have our own reading */
        assert_int_equal(r.all[i].steps, 1);
    }
}

/* A program may give up its rights, and get them again. */
static void not_readable_for_a_while(void **state)
{
    (void)state;
    kernel_says(1000, 10);
    pki_io_folder = ".";
    start("io");
    step_of(1500, 11);
    assert_int_equal(unlink("io"), 0);
    last();
    pk_step(1);
    FILE *file = fopen("io", "w");
    fputs("rchar: 1\nwchar: 2\n", file); /* or half of it */
    fclose(file);
    last();
    pk_step(1);
    step_of(4500, 13);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 2);
    assert_int_equal(r.all[1].steps, 3);
    assert_int_equal(r.all[1].written, 3000);
}

static void where_it_cannot_be_read(void **state)
{
    (void)state;
    pki_io_folder = "/nowhere";
    start("io");
    last();
    pk_step(1);
    assert_int_equal(pki_io_steps_spent(), 0);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(counts_that_fall),
        IN_FOLDER(not_readable_for_a_while),
        IN_FOLDER(where_it_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
