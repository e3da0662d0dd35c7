/* Numbers as text: every digit, and no comma, whatever the program's locale. */
#include "out/emit.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "valgrind.h"

/* The same source with a C library that is set to a language with a decimal comma: machines that
 * have no such locale installed test it, too. */
static const char *comma = ",";
static int comma_snprintf(char *out, size_t size, const char *format, int digits, double value);
static double comma_strtod(const char *text, char **end);
char *put_double_with_comma(char *p, double value);

#define snprintf comma_snprintf
#define strtod comma_strtod
#define pki_put_double put_double_with_comma
#define pki_digit_pairs digit_pairs_with_comma
#include "out/emit.c"
#undef pki_digit_pairs
#undef pki_put_double
#undef strtod
#undef snprintf

static int comma_snprintf(char *out, size_t size, const char *format, int digits, double value)
{
    char text[64];
    snprintf(text, sizeof text, strcmp(format, "%.*g") == 0 ? "%.*g" : "%.*e", digits, value);
    size_t point = strcspn(text, ".");
    const char *after = text[point] ? text + point + 1 : "";
    return snprintf(out, size, "%.*s%s%s", (int)point, text, text[point] ? comma : "", after);
}

static double comma_strtod(const char *text, char **end)
{
    char plain[64];
    const char *at = strstr(text, comma);
    size_t before = at ? (size_t)(at - text) : strlen(text);
    snprintf(plain, sizeof plain, "%.*s%s%s", (int)before, text, at ? "." : "",
             at ? at + strlen(comma) : "");
    (void)end;
    return strtod(plain, NULL);
}

static const double doubles[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.1,
                                 1.0 / 3,
                                 1e21,
                                 123456789.125,
                                 1e-7,
                                 5e-324,
                                 DBL_MIN,
                                 DBL_MAX,
                                 -DBL_MAX,
                                 DBL_EPSILON,
                                 1e15,
                                 1e16,
                                 9007199254740993.0,
                                 0.30000000000000004,
                                 4.35,
                                 2.5e-8,
                                 100,
                                 1e100,
                                 3.141592653589793};

typedef char *put_double_function(char *p, double value);

/* Reads back as the same number, and is one in JSON. */
static void expect_double(put_double_function *put_it, double value)
{
    char text[64], *end;
    char *p = put_it(text, value);
    assert_in_range(p - text, 1, 25);
    *p = 0;
    assert_int_equal(strspn(text, "-0123456789.e+"), strlen(text));
    assert_null(strchr(text, ','));
    double back = strtod(text, &end);
    assert_true(*end == 0 && memcmp(&back, &value, sizeof back) == 0);
    assert_true(text[0] != '.' && text[strlen(text) - 1] != '.' && text[text[0] == '-'] != '.');
    const char *point = strchr(text, '.');
    assert_true(!point || strspn(point + 1, "0123456789") <= 19); /* Perfetto misreads more */
}

/* Where all takes fifty times as long one in seven will do: the arithmetic is what other
 * configurations test with all. */
static int stride(void)
{
    return is_slow() ? 7 : 1;
}

/* Learning rates and late losses, on both sides of where an exponent begins. */
static void expect_small_doubles(put_double_function *put_it)
{
    for (int n = 1; n < 4000; n += stride())
        for (double value = 1.0 / n; value > 1e-9; value /= 10) {
            expect_double(put_it, value);
            expect_double(put_it, -value);
        }
}

static void expect_doubles(put_double_function *put_it)
{
    uint64_t bits = 88172645463325252u;
    expect_small_doubles(put_it);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        expect_double(put_it, doubles[i]);
    for (int i = 0; i < 20000; i += stride()) {
        double value;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            expect_double(put_it, value);
    }
}

static void doubles_in_the_plain_locale(void **state)
{
    char text[64];
    (void)state;
    expect_doubles(pki_put_double);
    *pki_put_double(text, 0.1) = 0; /* short where short will do */
    assert_string_equal(text, "0.1");
    *pki_put_double(text, -2500) = 0;
    assert_string_equal(text, "-2500");
    *pki_put_double(text, 0.0005) = 0;
    assert_string_equal(text, "0.0005");
    *pki_put_double(text, -1.0 / 3000) = 0; /* 16 digits */
    assert_string_equal(text, "-0.0003333333333333333");
    *pki_put_double(text, 1.0 / 2051) = 0; /* 17 */
    assert_string_equal(text, "4.8756704046806434e-04");
    *pki_put_double(text, 1e21) = 0;
    assert_string_equal(text, "1e+21");
}

static void doubles_with_a_comma(void **state)
{
    char text[64];
    (void)state;
    expect_doubles(put_double_with_comma);
    *put_double_with_comma(text, -0.25) = 0;
    assert_string_equal(text, "-0.25");
    comma = "\xD9\xAB"; /* the Arabic one takes two bytes */
    expect_doubles(put_double_with_comma);
    *put_double_with_comma(text, 1234.5) = 0;
    assert_string_equal(text, "1234.5");
    comma = ",";
}

static void doubles_in_a_real_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8",
                                        "es_ES.UTF-8"};
    const char *found = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found || localeconv()->decimal_point[0] != ',') {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        char text[64];
        *pki_put_double(text, doubles[i]) = 0;
        assert_null(strchr(text, ','));
    }
    setlocale(LC_NUMERIC, "C");
}

static void integers(void **state)
{
    char text[64], wanted[64];
    uint64_t n = 0;
    (void)state;
    for (int round = 0; round < 300000; round += stride()) {
        *pki_put_u64(text, n) = 0;
        snprintf(wanted, sizeof wanted, "%" PRIu64, n);
        assert_string_equal(text, wanted);
        n = round < 100000 ? n + 1 : n * 6364136223846793005u + 1442695040888963407u;
        if (round > 200000)
            n >>= round % 64;
    }
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10)
        for (uint64_t k = power - 1; k <= power + 1; k++) {
            *pki_put_u64(text, k) = 0;
            snprintf(wanted, sizeof wanted, "%" PRIu64, k);
            assert_string_equal(text, wanted);
        }
    *pki_put_u64(text, UINT64_MAX) = 0;
    assert_string_equal(text, "18446744073709551615");
}

static void microseconds(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } some[] = {{0, "0.000"},
                {1, "0.001"},
                {999, "0.999"},
                {1000, "1.000"},
                {12345, "12.345"},
                {1000000007, "1000000.007"},
                {3600000000099, "3600000000.099"},
                {UINT64_MAX, "18446744073709551.615"}};
    char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        *pki_put_us(text, some[i].ns) = 0;
        assert_string_equal(text, some[i].text);
    }
    for (uint32_t n = 0; n < 1000; n++) {
        char wanted[16];
        *pki_put_three(text, n) = 0;
        snprintf(wanted, sizeof wanted, "%03u", n);
        assert_string_equal(text, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(microseconds),
        cmocka_unit_test(doubles_in_the_plain_locale),
        cmocka_unit_test(doubles_with_a_comma),
        cmocka_unit_test(doubles_in_a_real_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
