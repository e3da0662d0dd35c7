/* Figures for people: digits, units, and the places where one unit becomes the next. */
#include "measure/figure.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void times(void **state)
{
    static const struct {
        double ns;
        const char *text, *tight;
    } cases[] = {
        {0, "0 ns", "0ns"},
        {1, "1 ns", "1ns"},
        {23.45, "23.5 ns", "23.5ns"},
        {9.994, "9.99 ns", "9.99ns"},
        {9.996, "10.0 ns", "10.0ns"},
        {999, "999 ns", "999ns"},
        {999.4, "999 ns", "999ns"},
        {999.5, "1.00 us", "1.00us"},
        {1000, "1.00 us", "1.00us"},
        {999499, "999 us", "999us"},
        {999500, "1.00 ms", "1.00ms"},
        {41234567, "41.2 ms", "41.2ms"},
        {12.345e9, "12.3 s", "12.3s"},
        {99.94e9, "99.9 s", "99.9s"},
        {99.95e9, "1 min 40 s", "1m40s"},
        {134e9, "2 min 14 s", "2m14s"},
        {3599.4e9, "59 min 59 s", "59m59s"},
        {3599.6e9, "1 h 00 min", "1h00m"},
        {11100e9, "3 h 05 min", "3h05m"},
        {86399e9, "1 d 00 h", "1d00h"},
        {187200e9, "2 d 04 h", "2d04h"},
        {-1, "-", "-"},
        {NAN, "-", "-"},
        {INFINITY, "-", "-"},
        {1e300, "-", "-"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(pki_figure_time(cases[i].ns).text, cases[i].text);
        assert_string_equal(pki_figure_time_tight(cases[i].ns).text, cases[i].tight);
    }
}

static void counts(void **state)
{
    (void)state;
    assert_string_equal(pki_figure_count(0).text, "0");
    assert_string_equal(pki_figure_count(99999).text, "99999");
    assert_string_equal(pki_figure_count(100000).text, "100K");
    assert_string_equal(pki_figure_count(999499).text, "999K");
    assert_string_equal(pki_figure_count(999500).text, "1.00M");
    assert_string_equal(pki_figure_count(1234567).text, "1.23M");
    assert_string_equal(pki_figure_count(UINT64_C(4294967296)).text, "4.29G");
    assert_string_equal(pki_figure_count(UINT64_MAX).text, "18.4E");
}

static void scaled(void **state)
{
    (void)state;
    assert_string_equal(pki_figure_scaled(0, "B").text, "0 B");
    assert_string_equal(pki_figure_scaled(512, "B").text, "512 B");
    assert_string_equal(pki_figure_scaled(1.234e9, "B/s").text, "1.23 GB/s");
    assert_string_equal(pki_figure_scaled(4.56e12, "FLOP/s").text, "4.56 TFLOP/s");
    assert_string_equal(pki_figure_scaled(-2500, "").text, "-2.50K");
    assert_string_equal(pki_figure_scaled(0.25, "").text, "0.250");
    assert_string_equal(pki_figure_scaled(0.0003, "").text, "3.00e-4");
    assert_string_equal(pki_figure_scaled(9.999e-7, "").text, "1.00e-6");
    assert_string_equal(pki_figure_scaled(0.99951, "").text, "1.00");
    assert_string_equal(pki_figure_scaled(1.5e24, "").text, "1.50e24");
    assert_string_equal(pki_figure_scaled(NAN, "B").text, "-");
    assert_string_equal(pki_figure_scaled(-INFINITY, "B").text, "-");
    assert_true(strlen(pki_figure_scaled(1e18, "a unit beyond all reason").text) < 24);
}

static void percents(void **state)
{
    (void)state;
    assert_string_equal(pki_figure_percent(0).text, "0 %");
    assert_string_equal(pki_figure_percent(0.00004).text, "<0.01 %");
    assert_string_equal(pki_figure_percent(0.0034).text, "0.34 %");
    assert_string_equal(pki_figure_percent(0.0234).text, "2.3 %");
    assert_string_equal(pki_figure_percent(0.612).text, "61.2 %");
    assert_string_equal(pki_figure_percent(1).text, "100 %");
    assert_string_equal(pki_figure_percent(2.5).text, "250 %");
    assert_string_equal(pki_figure_percent(-0.1).text, "-10.0 %");
    assert_string_equal(pki_figure_percent(NAN).text, "-");
}

static void ratios(void **state)
{
    (void)state;
    assert_string_equal(pki_figure_ratio(2.263).text, "2.26 x");
    assert_string_equal(pki_figure_ratio(INFINITY).text, "-");
}

/* A comma in the program's locale must not get into a report. */
static void no_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    assert_string_equal(pki_figure_time(41234567).text, "41.2 ms");
    assert_string_equal(pki_figure_scaled(0.25, "").text, "0.250");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),    cmocka_unit_test(counts), cmocka_unit_test(scaled),
        cmocka_unit_test(percents), cmocka_unit_test(ratios), cmocka_unit_test(no_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
