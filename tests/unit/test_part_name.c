/* What the files of a trace are called that is cut into several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "out/part_name.h"

static void expect(const char *path, const char *part)
{
    char name[PATH_MAX];
    assert_true(pki_part_name(path, 3, name));
    assert_string_equal(name, part);
    assert_true(pki_part_is_one(name) && !pki_part_is_one(path));
}

static void names(void **state)
{
    char name[PATH_MAX], longest[PATH_MAX];
    (void)state;
    expect("run.json", "run.part3.json");
    expect("a.b/run.json.gz", "a.b/run.part3.json.gz");
    expect("a.b/run", "a.b/run.part3");
    expect("./.hidden", "./.hidden.part3");
    expect("run.4.json", "run.4.part3.json");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_false(pki_part_name(longest, 3, name));
}

static void numbers(void **state)
{
    (void)state;
    assert_int_equal(pki_part_of("run.part3.json", "run.json"), 3);
    assert_int_equal(pki_part_of("run.part4294967295.json.gz", "run.json.gz"), UINT32_MAX);
    assert_int_equal(pki_part_of("run.part4294967296.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part99999999999999999999.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part0.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part03.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part3.json.gz", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part3x.json", "run.json"), 0);
    assert_int_equal(pki_part_of("other.part3.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.json", "run.json"), 0);
    assert_false(pki_part_is_one("run.part.json") || pki_part_is_one("part3") ||
                 pki_part_is_one("run.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
