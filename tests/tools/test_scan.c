/* Microseconds in decimal to nanoseconds, exactly; and only those of the event itself. */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void exact(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"0", 0},
        {"0.000", 0},
        {"7", 7000},
        {"12.345", 12345},
        {"12.3", 12300},
        {"12.03", 12030},
        {"12.0004", 12000},
        {"12.0005", 12001},
        {"12.9999", 13000},
        {"12.344800", 12345}, /* perfkit's slices end a fraction early */
        {"12.344544", 12345},
        {"0.000796", 1},
        {"007.001", 7001},
        {"1.5e3", 1500000},
        {"2E-3", 2},
        /* Where doubles would fail. */
        {"9007199254740.993", UINT64_C(9007199254740993)},
        {"1795173753123456.789", UINT64_C(1795173753123456789)},
        {"2305843009213693.951", SCAN_MOST},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ns = 1;
        if (!scan_us(cases[i].text, strlen(cases[i].text), &ns) || ns != cases[i].ns)
            fail_msg("%s: %llu", cases[i].text, (unsigned long long)ns);
    }
}

static void refused(void **state)
{
    static const char *const texts[] = {
        "",
        "-1",
        "-0.001",
        "+1",
        ".5",
        "x",
        "1x",
        "1.2.3",
        "1,5",
        "0x10",
        "inf",
        "nan",
        "1e",
        "1e400",
        "-1e3",
        "2305843009214693.951",
        "99999999999999999999999999999999999999",
        "1e30",
        " 1",
        "1 ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t ns = 77;
        if (scan_us(texts[i], strlen(texts[i]), &ns))
            fail_msg("\"%s\" became %llu", texts[i], (unsigned long long)ns);
        assert_int_equal(ns, 77);
    }
}

static void decimals_may_be_missing(void **state)
{
    uint64_t ns = 0;
    (void)state;
    assert_true(scan_us("5.", 2, &ns)); /* JSON does not allow it; jansson says so */
    assert_int_equal(ns, 5000);
}

/* Of perfkit's own: six decimals, and a duration that ends early. */
static void what_a_duration_lacks(void **state)
{
    (void)state;
    assert_int_equal(scan_ps("7.123456", 8), 456);
    assert_int_equal(scan_ps("7.123", 5), 0);
    assert_int_equal(scan_ps("7.12345", 7), 0);
    assert_int_equal(scan_ps("7.1234567", 9), 0);
    assert_int_equal(scan_ps("7.123456 ", 9), 0);
    assert_int_equal(scan_ps("7", 1), 0);
    assert_int_equal(scan_lack(2, 794), 2);
    assert_int_equal(scan_lack(64, 542), 64);
    assert_int_equal(scan_lack(65, 542), 0);
    assert_int_equal(scan_lack(2, 290), 2);
    assert_int_equal(scan_lack(2, 292), 0); /* moved, but of no duration */
    assert_int_equal(scan_lack(2, 0), 0);
}

static bool scan_ts(const char *text, uint64_t *ns)
{
    uint32_t ps = 77;
    return scan_member_us(text, strlen(text), "ts", ns, &ps) && ps == 0;
}

static void members(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"{\"ts\":1.002}", 1002},
        {"{\"name\":\"a\",\"ts\" : 1.002 ,\"dur\":5}", 1002},
        {"{\"args\":{\"ts\":9},\"ts\":1.002}", 1002},
        {"{\"args\":[{\"ts\":9}],\"ts\":1.002}", 1002},
        {"{\"name\":\"\\\"ts\\\":9,\",\"ts\":1.002}", 1002},
        {"{\"name\":\"ts\",\"ts\":1.002}", 1002},
        {"{\"name\":\"}\",\"x\":\"{\",\"ts\":1.002}", 1002},
        {"{\"name\":\"\\\\\",\"ts\":1.002}", 1002},
        {"{\"tss\":9,\"at\":9,\"ts\":1.002}", 1002},
    };
    uint64_t ns;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!scan_ts(cases[i].text, &ns) || ns != cases[i].ns)
            fail_msg("%s", cases[i].text);
    uint32_t ps = 0;
    assert_true(scan_member_us("{\"ts\":1.002003}", 15, "ts", &ns, &ps) && ns == 1002 && ps == 3);
    assert_false(scan_ts("{\"dur\":1}", &ns));
    assert_false(scan_ts("{\"args\":{\"ts\":1}}", &ns));
    assert_false(scan_ts("{\"ts\":\"1\"}", &ns));
    assert_false(scan_ts("{\"ts\":-1}", &ns));
    assert_false(scan_ts("", &ns));
    assert_false(scan_ts("{\"ts\"", &ns));
    assert_false(scan_ts("{\"ts\":", &ns));
    assert_false(scan_ts("{\"t\\", &ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact),
        cmocka_unit_test(refused),
        cmocka_unit_test(decimals_may_be_missing),
        cmocka_unit_test(what_a_duration_lacks),
        cmocka_unit_test(members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
