/* Text: bytes from outside, numbers for people, columns, sentences about errors, and a stderr
 * without a reader. */
#include <pk/version.h>

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "measure/figure.h"
#include "out/columns.h"

/* ---- bytes from outside ---- */

/* What is valid UTF-8, what becomes of the rest, and where a cut may fall. */

#define REPLACEMENT "\xEF\xBF\xBD"

static size_t length_of(uint32_t bytes, size_t n)
{
    char s[4] = {(char)(bytes >> 24), (char)(bytes >> 16), (char)(bytes >> 8), (char)bytes};
    return pki_utf8_length(s, n);
}

static void one_byte(void **state)
{
    (void)state;
    assert_int_equal(pki_utf8_length("", 0), 0);
    for (uint32_t a = 0; a < 256; a++)
        assert_int_equal(length_of(a << 24, 1), a < 0x80 ? 1 : 0);
}

static void two_bytes(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < 256; a++)
        for (uint32_t b = 0; b < 256; b++) {
            bool pair = a >= 0xC2 && a <= 0xDF && b >= 0x80 && b <= 0xBF;
            assert_int_equal(length_of(a << 24 | b << 16, 2), a < 0x80 ? 1 : pair ? 2 : 0);
        }
}

/* All of them, by RFC 3629's table. */
static void three_bytes(void **state)
{
    (void)state;
    for (uint32_t a = 0xE0; a <= 0xEF; a++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t low = a == 0xE0 ? 0xA0 : 0x80, high = a == 0xED ? 0x9F : 0xBF;
            bool valid = b >= low && b <= high;
            assert_int_equal(length_of(a << 24 | b << 16 | 0x8000, 3), valid ? 3 : 0);
            assert_int_equal(length_of(a << 24 | b << 16 | 0xBF00, 3), valid ? 3 : 0);
            assert_int_equal(length_of(a << 24 | b << 16 | 0x7F00, 3), 0);
            assert_int_equal(length_of(a << 24 | b << 16 | 0xC000, 3), 0);
            assert_int_equal(length_of(a << 24 | b << 16 | 0x8000, 2), 0); /* cut off */
        }
}

static void four_bytes(void **state)
{
    (void)state;
    for (uint32_t a = 0xF0; a <= 0xFF; a++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t low = a == 0xF0 ? 0x90 : 0x80, high = a == 0xF4 ? 0x8F : 0xBF;
            bool valid = a <= 0xF4 && b >= low && b <= high;
            uint32_t head = a << 24 | b << 16;
            assert_int_equal(length_of(head | 0x8080, 4), valid ? 4 : 0);
            assert_int_equal(length_of(head | 0xBFBF, 4), valid ? 4 : 0);
            assert_int_equal(length_of(head | 0x7F80, 4), 0);
            assert_int_equal(length_of(head | 0x807F, 4), 0);
            assert_int_equal(length_of(head | 0x80C0, 4), 0);
            assert_int_equal(length_of(head | 0x8080, 3), 0);
        }
}

#define expect(s, wanted) expect_escaped("" s, sizeof(s) - 1, wanted)

static void expect_escaped(const char *s, size_t n, const char *wanted)
{
    char out[600];
    memset(out, 'x', sizeof out);
    size_t length = pki_json_escape(out, sizeof out, s, n);
    assert_string_equal(out, wanted);
    assert_int_equal(length, strlen(wanted));
    assert_int_equal(out[length + 1], 'x');
}

static void json_escapes(void **state)
{
    (void)state;
    expect("", "");
    expect("plain", "plain");
    expect("say \"hi\" \\ / there", "say \\\"hi\\\" \\\\ / there");
    expect("\b\t\n\f\r\x1f\x7f", "\\u0008\\u0009\\u000a\\u000c\\u000d\\u001f\\u007f");
    expect("a\0b", "a\\u0000b");
    expect("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80",
           "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80"); /* raw, no surrogate pairs */
}

static void invalid_bytes_are_replaced_one_by_one(void **state)
{
    (void)state;
    expect("\xFF", REPLACEMENT);
    expect("a\x80"
           "b",
           "a" REPLACEMENT "b");
    expect("\xE2\x82", REPLACEMENT REPLACEMENT);          /* cut off */
    expect("\xE2\x82\"", REPLACEMENT REPLACEMENT "\\\""); /* nothing swallowed */
    expect("\xC0\xAF", REPLACEMENT REPLACEMENT);          /* overlong / */
    expect("\xED\xA0\x80", REPLACEMENT REPLACEMENT REPLACEMENT);
    expect("\xF4\x90\x80\x80", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT);
}

/* Whatever the room: the same text, cut between characters, and never more than there is. */
static void expect_cut(const char *s, size_t n)
{
    char whole[64], cut[64];
    size_t all = pki_json_escape(whole, sizeof whole, s, n);
    for (size_t size = 0; size <= all + 2; size++) {
        memset(cut, 'x', sizeof cut);
        size_t length = pki_json_escape(cut, size, s, n);
        assert_int_equal(cut[size], 'x');
        assert_true(size == 0 ? length == 0 : length < size && cut[length] == 0);
        assert_memory_equal(cut, whole, length);
        for (size_t i = 0; i < length;) {
            size_t step = whole[i] != '\\'      ? pki_utf8_length(whole + i, length - i)
                          : whole[i + 1] == 'u' ? 6
                                                : 2;
            assert_true(step > 0 && i + step <= length);
            i += step;
        }
        assert_true(size <= all || length == all);
    }
}

static void cuts_fall_between_characters(void **state)
{
    static const char text[] = "a\"\xC3\xA9\x01\xF0\x9F\x9A\x80\xFFz";
    (void)state;
    expect_cut(text, sizeof text - 1);
}

/* Any bytes: the result is valid UTF-8 without anything that ends a JSON string. */
static void any_bytes(void **state)
{
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char s[20], out[6 * sizeof s + 1];
        for (size_t i = 0; i < sizeof s; i++)
            s[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
        size_t n = pki_json_escape(out, sizeof out, s, sizeof s);
        for (size_t i = 0, step; i < n; i += step) {
            step = pki_utf8_length(out + i, n - i);
            assert_true(step && (unsigned char)out[i] >= 0x20 && out[i] != '"');
            step += out[i] == '\\';
        }
    }
}

static void expect_path(const char *pattern, const char *wanted)
{
    static const pki_path_fields fields = {3, 4711, "node-1"};
    char out[64], bad;
    assert_true(pki_path_expand(out, sizeof out, pattern, &fields, &bad));
    assert_string_equal(out, wanted);
}

static void expect_bad_path(size_t size, const char *pattern, char what)
{
    static const pki_path_fields fields = {3, 4711, "node-1"};
    char out[64], bad = 'x';
    memset(out, 'x', sizeof out);
    assert_false(pki_path_expand(out, size, pattern, &fields, &bad));
    assert_int_equal(bad, what);
    assert_int_equal(out[size], 'x');
}

static void paths(void **state)
{
    (void)state;
    expect_path("run.json", "run.json");
    expect_path("run-%r.json", "run-3.json");
    expect_path("%h_%p.pt.trace.json", "node-1_4711.pt.trace.json");
    expect_path("%r%r%%r%%", "33%r%");
    expect_bad_path(32, "run-%d.json", 'd');
    expect_bad_path(32, "run-%R", 'R');
    expect_bad_path(32, "% r", ' ');
    expect_bad_path(32, "run%", '%');
    expect_bad_path(8, "run.json", 0);
    expect_bad_path(9, "run-%p.json", 0);
    expect_bad_path(9, "", 0);
}

static void path_that_just_fits(void **state)
{
    static const pki_path_fields fields = {-1, 1, ""};
    char out[8], bad;
    (void)state;
    assert_true(pki_path_expand(out, sizeof out, "%h1234%r", &fields, &bad));
    assert_string_equal(out, "1234-1");
    assert_true(pki_path_expand(out, sizeof out, "1234567", &fields, &bad));
    assert_false(pki_path_expand(out, sizeof out, "12345678", &fields, &bad));
}

static void endings(void **state)
{
    (void)state;
    assert_true(pki_ends_with("run.json", ".json"));
    assert_true(pki_ends_with(".json", ".json"));
    assert_true(pki_ends_with("x", ""));
    assert_false(pki_ends_with("json", ".json"));
    assert_false(pki_ends_with("run.json.gz", ".json"));
    assert_false(pki_ends_with("", ".gz"));
}

static const struct CMUnitTest text_tests[] = {
    cmocka_unit_test(one_byte),
    cmocka_unit_test(two_bytes),
    cmocka_unit_test(three_bytes),
    cmocka_unit_test(four_bytes),
    cmocka_unit_test(json_escapes),
    cmocka_unit_test(invalid_bytes_are_replaced_one_by_one),
    cmocka_unit_test(cuts_fall_between_characters),
    cmocka_unit_test(any_bytes),
    cmocka_unit_test(paths),
    cmocka_unit_test(path_that_just_fits),
    cmocka_unit_test(endings),
};

/* ---- widths, cuts and paragraphs, in columns of a terminal ---- */

static char *columns_text;
static size_t length;
static FILE *page;

static int open_page(void **state)
{
    (void)state;
    page = open_memstream(&columns_text, &length);
    return page ? 0 : -1;
}

static int close_page(void **state)
{
    (void)state;
    fclose(page);
    free(columns_text);
    return 0;
}

static void columns_expect(const char *wanted)
{
    fclose(page);
    assert_string_equal(columns_text, wanted);
    free(columns_text);
    page = open_memstream(&columns_text, &length);
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(pki_width(""), 0);
    assert_int_equal(pki_width("abc"), 3);
    assert_int_equal(pki_width("\xC3\xA9t\xC3\xA9"), 3);        /* e acute, two bytes */
    assert_int_equal(pki_width("e\xCC\x81"), 1);                /* combining acute */
    assert_int_equal(pki_width("\xE6\xA2\xAF\xE5\xBA\xA6"), 4); /* two ideographs */
    assert_int_equal(pki_width("\xF0\x9F\x9A\x80"), 2);         /* a rocket */
    assert_int_equal(pki_width("a\xFF\xC0"), 3);                /* each bad byte is shown */
    assert_int_equal(pki_width("\xE2\x82"), 2);                 /* cut off */
}

static void cells(void **state)
{
    (void)state;
    pki_put_left(page, "abc", 5);
    columns_expect("abc  ");
    pki_put_right(page, "abc", 5);
    columns_expect("  abc");
    pki_put_left(page, "abcde", 5);
    columns_expect("abcde");
    pki_put_left(page, "abcdefghij", 9);
    columns_expect("abc...hij");
    pki_put_right(page, "abcdefghij", 8);
    columns_expect("abc...ij");
    pki_put_left(page, "\xE6\xA2\xAF\xE5\xBA\xA6\xE6\xA2\xAF\xE5\xBA\xA6", 7);
    columns_expect("\xE6\xA2\xAF...\xE5\xBA\xA6");
    pki_put_left(page, "\xE6\xA2\xAF\xE5\xBA\xA6\xE6\xA2\xAF\xE5\xBA\xA6",
                 6); /* no half ideographs */
    columns_expect("\xE6\xA2\xAF... ");
}

typedef struct row {
    uint64_t figure;
    const char *name;
} row;

static const char *name_of(const void *of)
{
    return ((const row *)of)->name;
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The names as rows of a table, each cut to the width: what is wanted, and no two alike. */
static void expect_rows(const char *const *names, size_t width, const char *const *wanted)
{
    row rows[64];
    char *shown[64];
    size_t count = 0;
    for (; names[count]; count++)
        rows[count] = (row){count, names[count]};
    for (size_t i = 0; i < count; i++) {
        pki_column column = pki_column_near(rows, count, sizeof *rows, i, name_of);
        pki_put_apart(page, names[i], width, &column);
        fflush(page);
        shown[i] = strdup(columns_text);
        assert_int_equal(pki_width(shown[i]), width);
        if (wanted)
            columns_expect(wanted[i]);
        else
            columns_expect(shown[i]);
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(shown[k], shown[i]) != 0 || strcmp(names[k], names[i]) == 0);
    }
    while (count)
        free(shown[--count]);
}

static void cut_rows_differ(void **state)
{
    (void)state;
    expect_rows(ROWS("backward > layer.bwd[3] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[4] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[11] > attention.bwd > matmul_backward",
                     "backward > layer.bwd[3] > mlp.bwd > matmul_backward", "forward"),
                42,
                ROWS("backward ...bwd[3] > attention..._backward",
                     "backward ...bwd[4] > attention..._backward",
                     "backward ...bwd[11] > attention...backward",
                     "backward > l...bwd[3] > mlp...mul_backward",
                     "forward                                   "));
    /* Numbers of several lengths, of which one repeats another's digits. */
    expect_rows(ROWS("model.transformer.layers[1].self_attention.query_key_value.weight",
                     "model.transformer.layers[11].self_attention.query_key_value.weight",
                     "model.transformer.layers[111].self_attention.query_key_value.weight"),
                30,
                ROWS("model.tr...layers[1]....weight", "model.t...layers[11]....weight",
                     "model.t...layers[111]...weight"));
    /* What nothing tells apart, and what is alone, is cut in the middle. */
    expect_rows(ROWS("one name that is quite long", "one name that is quite long"), 15,
                ROWS("one na...e long", "one na...e long"));
    expect_rows(ROWS("one name that is quite long", "two of them"), 15,
                ROWS("one na...e long", "two of them    "));
}

/* What differs takes more than there is room for, lies at several places, or is half a character.
 */
static void cut_rows_differ_at_several_places(void **state)
{
#define KERNEL(n, functor, type)                                                                   \
    "void at::native::vectorized_elementwise_kernel<" n ", at::native::" functor "<" type          \
    ">, at::detail::Array<char*, 3>>(int, at::native::" functor "<" type                           \
    ">, at::detail::Array<char*, 3>)"
    (void)state;
    for (size_t width = 36; width < 200; width++)
        expect_rows(ROWS(KERNEL("4", "AddFunctor", "float"), KERNEL("4", "MulFunctor", "float"),
                         KERNEL("4", "MulFunctor", "double"), KERNEL("8", "MulFunctor", "double")),
                    width, NULL);
    for (size_t width = 18; width < 60; width++)
        expect_rows(
            ROWS(
                "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                "\xC3\xA8\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9",
                "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                "\xC3\xAA\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"),
            width, NULL);
}

static void nothing_acts_on_the_terminal(void **state)
{
    (void)state;
    pki_put_left(page, "a\x1b[31m\n\t\x7f", 9);
    columns_expect("a?[31m???");
    pki_put_left(page,
                 "\xC2\x9B"
                 "1m",
                 3); /* C1: the other way to write an escape sequence */
    columns_expect("?1m");
    pki_put_left(page,
                 "\xE2\x80\xAE"
                 "abc",
                 4); /* right to left */
    columns_expect("?abc");
    pki_put_left(page, "\xFFx", 2);
    columns_expect("\xEF\xBF\xBDx");
}

static void paragraphs(void **state)
{
    char wanted[400], words[200] = "";
    (void)state;
    pki_put_paragraph(page, "  a  few\nwords ", 4, 2);
    columns_expect("a few words\n");
    pki_put_paragraph(page, "no step", 0, 6); /* a short word before the indent */
    columns_expect("no step\n");
    pki_put_paragraph(page, "", 4, 2);
    columns_expect("\n");
    /* 38 + 1 + 39 columns from 2 on are 80; one more is too many. */
    memset(words, 'x', 38);
    words[38] = ' ';
    memset(words + 39, 'y', 39);
    pki_put_paragraph(page, words, 2, 4);
    snprintf(wanted, sizeof wanted, "%s\n", words);
    columns_expect(wanted);
    pki_put_paragraph(page, words, 3, 4);
    snprintf(wanted, sizeof wanted, "%.38s\n    %.39s\n", words, words + 39);
    columns_expect(wanted);
}

static void long_words_are_broken(void **state)
{
    char word[201], wanted[400];
    (void)state;
    memset(word, 'w', 200);
    word[200] = '\0';
    pki_put_paragraph(page, word, 2, 2);
    snprintf(wanted, sizeof wanted, "%.78s\n  %.78s\n  %.44s\n", word, word, word);
    columns_expect(wanted);
}

static const struct CMUnitTest columns_tests[] = {
    cmocka_unit_test(widths),
    cmocka_unit_test_setup_teardown(cells, open_page, close_page),
    cmocka_unit_test_setup_teardown(cut_rows_differ, open_page, close_page),
    cmocka_unit_test_setup_teardown(cut_rows_differ_at_several_places, open_page, close_page),
    cmocka_unit_test_setup_teardown(nothing_acts_on_the_terminal, open_page, close_page),
    cmocka_unit_test_setup_teardown(paragraphs, open_page, close_page),
    cmocka_unit_test_setup_teardown(long_words_are_broken, open_page, close_page),
};

/* ---- figures for people ---- */

/* Digits, units, and the places where one unit becomes the next. */

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

static const struct CMUnitTest figure_tests[] = {
    cmocka_unit_test(times),    cmocka_unit_test(counts), cmocka_unit_test(scaled),
    cmocka_unit_test(percents), cmocka_unit_test(ratios), cmocka_unit_test(no_locale),
};

/* ---- codes, sentences and who gets to hear them ---- */

static char heard[1024];
static pk_log_level heard_level;
static unsigned messages_times;

static void listen(void *user, pk_log_level level, const char *message)
{
    assert_ptr_equal(user, &messages_times);
    heard_level = level;
    snprintf(heard, sizeof heard, "%s", message);
    messages_times++;
}

static int silence(void **state)
{
    (void)state;
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    heard[0] = 0;
    messages_times = 0;
    return 0;
}

/* The values are frozen: this list is a copy on purpose. */
static void codes_and_names(void **state)
{
    static const struct {
        int value;
        const char *name;
    } codes[] = {{0, "PK_OK"},      {-1, "PK_EINVAL"},  {-2, "PK_EBUSY"},   {-3, "PK_EOFF"},
                 {-4, "PK_ENOMEM"}, {-5, "PK_EIO"},     {-6, "PK_ENOSPC"},  {-7, "PK_EACCES"},
                 {-8, "PK_ENOENT"}, {-9, "PK_ETHREAD"}, {-10, "PK_ENOTSUP"}};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_string_equal(pk_status_name((pk_status)codes[i].value), codes[i].name);
        assert_true(strlen(pk_status_text((pk_status)codes[i].value)) > 5);
    }
    assert_string_equal(pk_status_text(PK_OK), "success");
    assert_string_equal(pk_status_name((pk_status)-11), "PK_E?");
    assert_string_equal(pk_status_name((pk_status)1), "PK_E?");
    assert_string_equal(pk_status_text((pk_status)12345), "unknown status");
}

static void version(void **state)
{
    char wanted[32];
    (void)state;
    snprintf(wanted, sizeof wanted, "%d.%d.%d", PK_VERSION_MAJOR, PK_VERSION_MINOR,
             PK_VERSION_PATCH);
    assert_string_equal(pk_version(), wanted);
    assert_true(PK_VERSION_OF(1, 2, 3) == 10203 && PK_VERSION > 0);
}

static void system_errors(void **state)
{
    static const int access[] = {EACCES, EPERM, EROFS, EISDIR, ELOOP, EEXIST};
    (void)state;
    assert_int_equal(pki_status_of_errno(ENOSPC), PK_ENOSPC);
    assert_int_equal(pki_status_of_errno(EDQUOT), PK_ENOSPC);
    assert_int_equal(pki_status_of_errno(EFBIG), PK_ENOSPC);
    for (size_t i = 0; i < sizeof access / sizeof *access; i++)
        assert_int_equal(pki_status_of_errno(access[i]), PK_EACCES);
    assert_int_equal(pki_status_of_errno(ENOENT), PK_ENOENT);
    assert_int_equal(pki_status_of_errno(ENOTDIR), PK_ENOENT);
    assert_int_equal(pki_status_of_errno(ENOMEM), PK_ENOMEM);
    assert_int_equal(pki_status_of_errno(EIO), PK_EIO);
    assert_int_equal(pki_status_of_errno(0), PK_EIO);
}

static void *other_thread(void *first)
{
    strcpy(first, pk_error_message());
    pki_fail(PK_EIO, "of the other thread");
    return NULL;
}

static void message_of_this_thread(void **state)
{
    pthread_t thread;
    char first[400] = "x";
    (void)state;
    assert_string_equal(pk_error_message(), "");
    assert_int_equal(pki_fail(PK_EINVAL, "%s is %d", "answer", 42), PK_EINVAL);
    assert_string_equal(pk_error_message(), "answer is 42");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, first), 0);
    pthread_join(thread, NULL);
    assert_string_equal(first, "");
    assert_string_equal(pk_error_message(), "answer is 42");
}

static void long_messages_are_cut(void **state)
{
    char text[2000];
    (void)state;
    memset(text, 'm', sizeof text - 1);
    text[sizeof text - 1] = 0;
    pki_log_to(listen, &messages_times, PK_LOG_DEBUG);
    pki_fail(PK_EIO, "%s", text);
    assert_in_range(strlen(pk_error_message()), 200, 400);
    assert_in_range(strlen(heard), 200, 400);
    pki_log(PK_LOG_INFO, "%s", text);
    assert_in_range(strlen(heard), 200, 400);
}

static void levels(void **state)
{
    static const unsigned wanted[] = {2, 1, 2, 3, 4}; /* by default, warnings and errors */
    (void)state;
    for (unsigned level = PK_LOG_DEFAULT; level <= PK_LOG_DEBUG; level++) {
        messages_times = 0;
        pki_log_to(listen, &messages_times, (pk_log_level)level);
        for (unsigned i = PK_LOG_ERROR; i <= PK_LOG_DEBUG; i++)
            pki_log((pk_log_level)i, "level %u", i);
        assert_int_equal(messages_times, wanted[level]);
        assert_int_equal(heard_level, wanted[level]);
    }
}

static void failures_are_errors_of_the_log(void **state)
{
    (void)state;
    pki_log_to(listen, &messages_times, PK_LOG_DEFAULT);
    pki_fail(PK_ENOSPC, "nothing left on %s", "disk");
    assert_string_equal(heard, "nothing left on disk");
    assert_int_equal(heard_level, PK_LOG_ERROR);
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    pki_fail(PK_EIO, "unheard");
    assert_int_equal(messages_times, 1);
    assert_string_equal(pk_error_message(), "unheard");
}

static void to_stderr(void **state)
{
    int pipe_ends[2], saved = dup(STDERR_FILENO);
    char text[2000] = "";
    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    pki_log_to(pki_log_to_stderr, NULL, PK_LOG_DEBUG);
    pki_log(PK_LOG_ERROR, "one");
    pki_log(PK_LOG_WARNING, "two");
    pki_log(PK_LOG_INFO, "three");
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true(read(pipe_ends[0], text, sizeof text - 1) > 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    assert_string_equal(text, "perfkit: error: one\nperfkit: warning: two\nperfkit: three\n");
}

static const struct CMUnitTest messages_tests[] = {
    cmocka_unit_test(codes_and_names),
    cmocka_unit_test(version),
    cmocka_unit_test(system_errors),
    cmocka_unit_test(message_of_this_thread),
    cmocka_unit_test_setup(long_messages_are_cut, silence),
    cmocka_unit_test_setup(levels, silence),
    cmocka_unit_test_setup(failures_are_errors_of_the_log, silence),
    cmocka_unit_test_setup(to_stderr, silence),
};

/* ---- writing to a stderr that may have lost its reader ---- */

/* stderr as a pipe; the end to read from, or -1 if nobody is to read. */
static int pipe_as_stderr(int *real, bool reader)
{
    int ends[2];
    *real = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    if (reader)
        return ends[0];
    close(ends[0]);
    return -1;
}

static void give_stderr_back(int real)
{
    dup2(real, STDERR_FILENO);
    close(real);
}

static void all_of_it(void **state)
{
    char got[16] = "";
    int real, from = pipe_as_stderr(&real, true);
    bool written = pki_write_stderr("ten bytes\n", 10);
    give_stderr_back(real);
    assert_true(written);
    assert_int_equal(read(from, got, sizeof got), 10);
    assert_string_equal(got, "ten bytes\n");
    close(from);
    (void)state;
}

/* SIGPIPE has its default here: it would end this test. */
static void nobody_reads(void **state)
{
    int real;
    pipe_as_stderr(&real, false);
    errno = 0;
    bool written = pki_write_stderr("lost\n", 5);
    int error = errno;
    give_stderr_back(real);
    assert_false(written);
    assert_int_equal(error, EPIPE);
    (void)state;
}

/* A SIGPIPE that waited for the program before is still there behind it, and the mask is as it was.
 */
static void signals_stay(void **state)
{
    sigset_t mask, pending, pipe_only;
    int real;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_only, NULL);
    raise(SIGPIPE);
    pipe_as_stderr(&real, false);
    pki_write_stderr("lost\n", 5);
    give_stderr_back(real);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGPIPE));
    sigprocmask(SIG_SETMASK, NULL, &mask);
    assert_true(sigismember(&mask, SIGPIPE));
    signal(SIGPIPE, SIG_IGN); /* drops the one that waits */
    sigprocmask(SIG_UNBLOCK, &pipe_only, NULL);
    signal(SIGPIPE, SIG_DFL);
    (void)state;
}

static const struct CMUnitTest stderr_tests[] = {
    cmocka_unit_test(all_of_it),
    cmocka_unit_test(nobody_reads),
    cmocka_unit_test(signals_stay),
};

int main(void)
{
    int failed = cmocka_run_group_tests(text_tests, NULL, NULL);
    failed += cmocka_run_group_tests(columns_tests, NULL, NULL);
    failed += cmocka_run_group_tests(figure_tests, NULL, NULL);
    failed += cmocka_run_group_tests(messages_tests, NULL, NULL);
    failed += cmocka_run_group_tests(stderr_tests, NULL, NULL);
    return failed;
}
