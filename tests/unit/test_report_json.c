/* The JSON report: a realistic one to the byte, and valid whatever the summary holds. */
#include "golden.h"
#include "out/json_write.h"
#include "out/report/report.h"
#include "base/text.h"
#include "report_fixture.h"

#include <errno.h>
#include <locale.h>
#include <math.h>

typedef int writer(const pki_summary *summary, FILE *file);

static char *json_of(pki_summary *summary, writer *write)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(write(summary, file), 0);
    fclose(file);
    pki_summary_finish(summary);
    return text;
}

static void a_training_run(void **state)
{
    pki_summary s;
    (void)state;
    fixture_train(&s, 40);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-train.json", text);
    free(text);
}

static void two_gpus(void **state)
{
    pki_summary s;
    (void)state;
    fixture_gpu(&s, 60);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-gpu.json", text);
    free(text);
}

static void two_communicators(void **state)
{
    pki_summary s;
    (void)state;
    fixture_comm(&s);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-comm.json", text);
    free(text);
}

static void one_line_is_the_same_without_breaks(void **state)
{
    pki_summary s;
    (void)state;
    fixture_train(&s, 40);
    char *rows = json_of(&s, pki_report_json);
    fixture_train(&s, 40);
    char *line = json_of(&s, pki_report_json_line);
    size_t kept = 0;
    for (size_t i = 0; rows[i]; i++)
        if (rows[i] != '\n')
            rows[kept++] = rows[i];
    rows[kept] = '\0';
    assert_string_equal(line, rows);
    free(rows);
    free(line);
}

/* A strict reader of JSON (RFC 8259) that keeps nothing. */
static const char *skip_value(const char *s);

static const char *skip_string(const char *s)
{
    assert_int_equal(*s, '"');
    for (s++; *s != '"';) {
        size_t length = pki_utf8_length(s, strnlen(s, 4));
        assert_int_not_equal(length, 0);
        assert_in_range((unsigned char)*s, 0x20, 0xFF);
        if (*s == '\\') {
            assert_non_null(strchr("\"\\/bfnrtu", s[1]));
            s += s[1] == 'u' ? 6 : 2;
        } else {
            s += length;
        }
    }
    return s + 1;
}

static const char *skip_members(const char *s, bool keys, char close)
{
    if (*s == close)
        return s + 1;
    for (;; s++) {
        if (keys) {
            s = skip_string(s);
            assert_int_equal(*s, ':');
            s++;
        }
        s = skip_value(s);
        if (*s == close)
            return s + 1;
        assert_int_equal(*s, ',');
    }
}

static const char *skip_number(const char *s)
{
    s += *s == '-';
    assert_in_range(*s, '0', '9');
    size_t digits = strspn(s, "0123456789");
    assert_true(*s != '0' || digits == 1);
    s += digits;
    if (*s == '.') {
        digits = strspn(++s, "0123456789");
        assert_int_not_equal(digits, 0);
        s += digits;
    }
    if (*s == 'e') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        digits = strspn(s, "0123456789");
        assert_int_not_equal(digits, 0);
        s += digits;
    }
    return s;
}

static const char *skip_value(const char *s)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return *s == '{'   ? skip_members(s + 1, true, '}')
           : *s == '[' ? skip_members(s + 1, false, ']')
           : *s == '"' ? skip_string(s)
                       : skip_number(s);
}

static void check_valid(void (*fixture)(pki_summary *))
{
    pki_summary s;
    fixture(&s);
    char *line = json_of(&s, pki_report_json_line);
    assert_int_equal(*skip_value(line), '\0');
    assert_null(strstr(line, "nan"));
    assert_null(strstr(line, "inf"));
    free(line);
}

static void always_valid(void **state)
{
    (void)state;
    check_valid(fixture_empty);
    check_valid(fixture_hostile);
}

static const char *number(double value)
{
    static char text[64];
    FILE *file = fmemopen(text, sizeof text, "w");
    pki_json json = {.file = file};
    pki_json_real(&json, NULL, value);
    fclose(file);
    return text;
}

static void numbers(void **state)
{
    (void)state;
    assert_string_equal(number(0), "0");
    assert_string_equal(number(-3), "-3");
    assert_string_equal(number(9007199254740991.0), "9007199254740991");
    assert_string_equal(number(0.1), "0.1");
    assert_string_equal(number(1 / 3.0), "0.3333333333333333");
    assert_string_equal(number(1e300), "1e+300");
    assert_string_equal(number(NAN), "null");
    assert_string_equal(number(INFINITY), "null");
    assert_string_equal(number(-INFINITY), "null");
    for (double x = 1e-30; x < 1e30; x *= 7.3)
        assert_true(strtod(number(x), NULL) == x);
}

static const char *integer(uint64_t value)
{
    static char text[64];
    FILE *file = fmemopen(text, sizeof text, "w");
    pki_json json = {.file = file};
    pki_json_uint(&json, NULL, value);
    fclose(file);
    return text;
}

static void integers(void **state)
{
    (void)state;
    assert_string_equal(integer(9007199254740993), "9007199254740993");
    assert_string_equal(integer(INT64_MAX), "9223372036854775807");
    assert_string_equal(integer(UINT64_MAX), "9223372036854775807");
}

/* Strings are escaped in pieces; no piece may end inside a character. */
static void long_strings(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        char value[2100] = "", wanted[2200], *text = NULL;
        size_t length;
        memset(value, 'a', shift);
        for (int i = 0; i < 500; i++)
            strcat(value, "\xF0\x9F\x9A\x80");
        FILE *file = open_memstream(&text, &length);
        pki_json json = {.file = file};
        pki_json_text(&json, NULL, value);
        fclose(file);
        snprintf(wanted, sizeof wanted, "\"%s\"", value);
        assert_string_equal(text, wanted);
        free(text);
    }
}

static void no_locale_gets_in(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    a_training_run(state);
    setlocale(LC_ALL, "C");
}

static void write_errors_are_seen(void **state)
{
    pki_summary s;
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    fixture_train(&s, 600);
    assert_int_equal(pki_report_json(&s, full), -ENOSPC);
    fclose(full);
    pki_summary_finish(&s);
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : "tests/golden";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_run),    cmocka_unit_test(two_gpus),
        cmocka_unit_test(two_communicators), cmocka_unit_test(one_line_is_the_same_without_breaks),
        cmocka_unit_test(always_valid),      cmocka_unit_test(numbers),
        cmocka_unit_test(integers),          cmocka_unit_test(long_strings),
        cmocka_unit_test(no_locale_gets_in), cmocka_unit_test(write_errors_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
