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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_of_a_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(a_file_that_is_moved, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
