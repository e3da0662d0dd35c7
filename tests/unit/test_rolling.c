/* A file of lines in a bounded number of parts. */
#include "folder.h"

#include <errno.h>

#include "out/rolling.h"

#define LEAST (PKI_ROLLING_PARTS * 1000)

static long size_of(const char *name)
{
    struct stat s;
    return stat(name, &s) == 0 ? (long)s.st_size : -1;
}

static void put_lines(pki_rolling *file, int from, int count)
{
    char line[101];
    for (int i = from; i < from + count; i++) {
        snprintf(line, sizeof line, "%99d\n", i);
        assert_true(pki_rolling_append(file, line, 100));
    }
}

static void parts_of_a_file(void **state)
{
    static pki_rolling file;
    (void)state;
    assert_true(pki_rolling_open(&file, "w", false, LEAST));
    put_lines(&file, 0, 10);
    assert_true(size_of("w") == 1000 && size_of("w.1") == -1);
    put_lines(&file, 10, 1000);
    assert_true(size_of("w") > 0 && size_of("w") <= 1000 && size_of("w.4") == -1);
    assert_true(size_of("w.1") == 1000 && size_of("w.2") == 1000 && size_of("w.3") == 1000);
    errno = 0;
    char large[1001];
    memset(large, 'x', sizeof large);
    assert_true(!pki_rolling_append(&file, large, sizeof large) && errno == EFBIG);
    pki_rolling_close(&file);
}

static void a_file_that_is_moved(void **state)
{
    static pki_rolling file;
    (void)state;
    assert_true(pki_rolling_open(&file, "w", false, LEAST));
    put_lines(&file, 0, 3);
    assert_int_equal(rename("w", "w.old"), 0);
    put_lines(&file, 3, 2);
    assert_true(size_of("w") == 200 && size_of("w.old") == 300);
    assert_int_equal(unlink("w"), 0);
    put_lines(&file, 5, 1);
    assert_int_equal(size_of("w"), 100);
    pki_rolling_close(&file);
}

static void expect_text(const char *name, const char *text)
{
    size_t n;
    char *got = read_file(name, &n);
    assert_string_equal(got, text);
    free(got);
}

/* What an earlier run has left goes out of the way, with its parts; the one before that goes. */
static void an_earlier_run_is_kept(void **state)
{
    (void)state;
    pki_rolling_keep("w");
    assert_false(exists("w.prev"));
    write_file("w", "second\n");
    write_file("w.1", "first\n");
    pki_rolling_keep("w");
    expect_text("w.prev", "second\n");
    expect_text("w.prev.1", "first\n");
    assert_false(exists("w") || exists("w.1"));
    write_file("w", ""); /* killed before its first window */
    pki_rolling_keep("w");
    expect_text("w.prev", "second\n");
    write_file("w", "third\n");
    pki_rolling_keep("w");
    expect_text("w.prev", "third\n");
    assert_false(exists("w.prev.1"));
    write_file("w", "fourth\n");
    assert_int_equal(unlink("w.prev"), 0);
    assert_int_equal(mkdir("w.prev", 0700), 0); /* somebody else's */
    pki_rolling_keep("w");
    expect_text("w", "fourth\n");
    assert_int_equal(rmdir("w.prev"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_of_a_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(an_earlier_run_is_kept, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(a_file_that_is_moved, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
