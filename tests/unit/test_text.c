/* Bytes from outside: what is valid UTF-8, what becomes of the rest, and where a cut may fall. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
