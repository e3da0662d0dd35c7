/* Lines of files of any shape, through whatever source pk was built with. */
#include "read/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/pk-test-lines-XXXXXX";

static void write_file(const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

static void expect(lines *l, const char *wanted)
{
    line got;
    assert_true(lines_next(l, &got));
    assert_int_equal(got.length, strlen(wanted));
    assert_memory_equal(got.text, wanted, got.length);
}

static void one_by_one(void **state)
{
    lines l;
    line got;
    complaint why = {""};
    (void)state;
    write_file("a\n\nbc\nlast", 10);
    assert_true(lines_open(&l, path, 100, &why));
    expect(&l, "a");
    expect(&l, "");
    expect(&l, "bc");
    assert_int_equal(l.number, 3);
    lines_unread(&l);
    expect(&l, "bc");
    assert_int_equal(l.number, 3);
    expect(&l, "last"); /* without a newline */
    assert_false(lines_next(&l, &got));
    assert_false(l.failed);
    assert_true(lines_rewind(&l));
    expect(&l, "a");
    assert_int_equal(l.number, 1);
    assert_true(lines_rest(&l, 100, &got));
    assert_int_equal(got.length, 8);
    assert_memory_equal(got.text, "\nbc\nlast", 8);
    lines_close(&l);
}

/* Lines across every border of the buffer. */
static void many(void **state)
{
    lines l;
    complaint why = {""};
    size_t room = 4u << 20, length = 0;
    char *text = malloc(room);
    (void)state;
    for (int i = 0; length + 1000 < room; i++)
        length += (size_t)sprintf(text + length, "%d %.*s\n", i, i % 700,
                                  "------------------------------------------------------------");
    write_file(text, length);
    assert_true(lines_open(&l, path, 1000, &why));
    line got;
    size_t at = 0;
    while (lines_next(&l, &got)) {
        assert_memory_equal(got.text, text + at, got.length);
        assert_int_equal(text[at + got.length], '\n');
        at += got.length + 1;
    }
    assert_int_equal(at, length);
    assert_true(l.room <= 2048 * 1024); /* the longest line's, not the file's */
    lines_close(&l);
    free(text);
}

/* A newline that is the first byte of what is read next. */
static void newline_at_the_border(void **state)
{
    static const size_t borders[] = {128 * 1024, 1024 * 1024};
    static char text[1024 * 1024 + 3];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        lines l;
        line got;
        complaint why = {""};
        memset(text, 'x', borders[i]);
        memcpy(text + borders[i], "\nb\n", 3);
        write_file(text, borders[i] + 3);
        assert_true(lines_open(&l, path, 2 << 20, &why));
        assert_true(lines_next(&l, &got));
        assert_int_equal(got.length, borders[i]);
        expect(&l, "b");
        lines_close(&l);
    }
}

static void too_long(void **state)
{
    lines l;
    line got;
    complaint why = {""};
    char *text = malloc(2 << 20);
    (void)state;
    memset(text, 'x', 2 << 20);
    write_file(text, 2 << 20);
    assert_true(lines_open(&l, path, 1000, &why));
    assert_false(lines_next(&l, &got));
    assert_true(l.failed);
    assert_true(l.overlong);
    assert_string_equal(why.text, "has a line of more than 1 MiB");
    lines_close(&l);
    free(text);
}

/* To the byte, in no more memory than that takes. */
static void as_long_as_is_allowed(void **state)
{
    enum { MOST = 3 << 20 };
    char *text = malloc(MOST + 2);
    (void)state;
    memset(text, 'x', MOST + 2);
    for (size_t length = MOST - 1; length <= MOST + 1; length++) {
        lines l;
        line got;
        complaint why = {""};
        text[length] = '\n';
        write_file(text, length + 1);
        text[length] = 'x';
        assert_true(lines_open(&l, path, MOST, &why));
        assert_int_equal(lines_ahead(&l, MOST), length <= MOST);
        assert_int_equal(lines_next(&l, &got), length <= MOST);
        assert_true(l.room <= MOST + 1);
        assert_int_equal(l.overlong, length > MOST);
        lines_close(&l);
    }
    free(text);
}

/* What follows the lines that have been taken, in pieces of any length. */
static void as_bytes(void **state)
{
    char *text = malloc(3 << 20), *read = malloc(3 << 20);
    (void)state;
    for (size_t i = 0; i < 3 << 20; i++)
        text[i] = i == 5 ? '\n' : (char)('a' + i % 23);
    write_file(text, 3 << 20);
    lines l;
    line got;
    complaint why = {""};
    assert_true(lines_open(&l, path, 100, &why));
    assert_true(lines_ahead(&l, 5) && lines_next(&l, &got));
    assert_int_equal(got.length, 5);
    size_t at = 6;
    for (size_t n, i = 0; (n = lines_read(&l, read + at, 1 + i * 7919 % 100000)) > 0; i++)
        at += n;
    assert_int_equal(at, 3 << 20);
    assert_memory_equal(read + 6, text + 6, at - 6);
    assert_false(l.failed);
    lines_close(&l);
    free(read);
    free(text);
}

static void what_is_no_file(void **state)
{
    lines l;
    complaint why = {""}, directory = {""}, empty = {""};
    (void)state;
    assert_false(lines_open(&l, "/nowhere/at/all", 10, &why));
    assert_string_equal(why.text, "No such file or directory");
    assert_false(lines_open(&l, "/tmp", 10, &directory));
    assert_string_equal(directory.text, "is a directory");
    write_file("", 0);
    assert_false(lines_open(&l, path, 10, &empty));
    assert_string_equal(empty.text, "is empty");
}

static void trimming(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {{"a", "a"}, {" ,a,\r", "a"}, {"\t", ""}, {",", ""}, {"a b", "a b"}, {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[16];
        strcpy(copy, cases[i].from);
        line l = line_trim((line){copy, strlen(copy)});
        assert_int_equal(l.length, strlen(cases[i].to));
        assert_memory_equal(l.text, cases[i].to, l.length);
    }
}

static void complaints_are_one_clean_line(void **state)
{
    complaint c = {""};
    (void)state;
    assert_false(complaint_set(&c, "a\nb\x1b[31m%s", "\xC2\x9B"));
    assert_string_equal(c.text, "a?b?[31m??");
    complaint_set(&c, "second");
    assert_string_equal(c.text, "a?b?[31m??"); /* the first one stays */
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(many),
        cmocka_unit_test(newline_at_the_border),
        cmocka_unit_test(too_long),
        cmocka_unit_test(as_long_as_is_allowed),
        cmocka_unit_test(as_bytes),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(trimming),
        cmocka_unit_test(complaints_are_one_clean_line),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
