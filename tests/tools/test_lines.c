/* Lines of files: of any shape, the short ways from one to its event, its numbers, and calls by
 * path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/lines.h"
#include "read/token.h"
#include "rebuild/rebuild.h"
#include "trace/trace.h"

/* ---- lines ---- */

/* Of any shape, through whatever source pk was built with. */

static char lines_path[] = "/tmp/pk-test-lines-XXXXXX";

static void write_file(const char *text, size_t length)
{
    FILE *file = fopen(lines_path, "wb");
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
    assert_true(lines_open(&l, lines_path, 100, &why));
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
    assert_true(lines_open(&l, lines_path, 1000, &why));
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
        assert_true(lines_open(&l, lines_path, 2 << 20, &why));
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
    assert_true(lines_open(&l, lines_path, 1000, &why));
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
        assert_true(lines_open(&l, lines_path, MOST, &why));
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
    assert_true(lines_open(&l, lines_path, 100, &why));
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
    assert_false(lines_open(&l, lines_path, 10, &empty));
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
    int fd = mkstemp(lines_path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(lines_path);
}

static const struct CMUnitTest lines_tests[] = {
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

/* ---- the short ways from a line to its event ---- */

/* The short ways from a line to its event are taken; fuzz_tools.c asks whether they lead to the
 * same place. */

static bool takes(const char *text)
{
    static flat_line parts;
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    return flat_read(&parts, copy, strlen(copy));
}

static void simple_lines_need_no_tree(void **state)
{
    (void)state;
    assert_true(takes("{\"ph\":\"X\",\"name\":\"mlp\",\"ts\":1.002,\"dur\":3.004}"));
    assert_true(takes("{\"args\":{\"device\":0,\"grid\":[64,8,1],\"loss\":1e-05,\"x\":null}}"));
    assert_true(takes(" { \"a\" : -1 , \"b\" : true }"));
    assert_true(takes("{\"name\":\"\xC3\xA9 \xF0\x9F\x98\x80 and more of them\"}"));
}

static void others_are_left_alone(void **state)
{
    static const char *const texts[] = {"{\"name\":\"\\n\"}",
                                        "{\"name\":\"\xC3\"}",
                                        "{\"a\":{\"b\":1}}",
                                        "{\"a\":1,\"a\":2}",
                                        "{\"a\":99999999999999999999}",
                                        "{\"a\":1",
                                        "{\"args\":{\"b\":{}}}",
                                        "[1]",
                                        "",
                                        "{\"args\":{\"b\":[\"c\"]}}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static flat_line parts;
        char copy[64];
        snprintf(copy, sizeof copy, "%s", texts[i]);
        assert_false(flat_read(&parts, copy, strlen(copy)));
        assert_string_equal(copy, texts[i]);
    }
}

static const event *read_one(event_reader *r, const char *text)
{
    static char copy[512];
    const event *e;
    snprintf(copy, sizeof copy, "%s", text);
    assert_int_equal(event_reader_read(r, (line){copy, strlen(copy)}, &e), READ_EVENT);
    return e;
}

#define CALL(name, tid, times)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid "," times "}"

static void known_lines_are_compared(void **state)
{
    event_reader r;
    (void)state;
    event_reader_open(&r);
    assert_int_equal(read_one(&r, CALL("mlp", "2", "\"ts\":1.002,\"dur\":3.004"))->line, 0);
    const event *e = read_one(&r, CALL("mlp", "2", "\"ts\":7.000,\"dur\":0.001"));
    uint32_t id = e->line;
    assert_int_not_equal(id, 0);
    assert_string_equal(e->name, "mlp");
    assert_string_equal(e->track, "1/2");
    assert_int_equal(e->start, 7000);
    assert_int_equal(e->end, 7001);
    /* Another thread, another name: unknown first, and then not the same. */
    assert_int_equal(read_one(&r, CALL("mlp", "3", "\"ts\":1.002,\"dur\":3.004"))->line, 0);
    e = read_one(&r, CALL("mlp", "3", "\"ts\":8,\"dur\":3"));
    assert_int_not_equal(e->line, id);
    assert_int_equal(e->tid, 3);
    /* Arguments are read. */
    e = read_one(&r, CALL("mlp", "2", "\"ts\":9,\"dur\":3,\"args\":{\"bytes\":5}"));
    assert_int_equal(e->line, 0);
    assert_int_equal(e->bytes, 5);
    event_reader_close(&r);
}

/* There are fewer places than names, so many of these have each other's. */
static void a_place_is_not_a_line(void **state)
{
    event_reader r;
    char text[200], name[16];
    (void)state;
    event_reader_open(&r);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "name%04d", i);
        snprintf(text, sizeof text, CALL("%s", "2", "\"ts\":1.5,\"dur\":2"), name);
        assert_string_equal(read_one(&r, text)->name, name);
    }
    event_reader_close(&r);
}

static const struct CMUnitTest flat_tests[] = {
    cmocka_unit_test(simple_lines_need_no_tree),
    cmocka_unit_test(others_are_left_alone),
    cmocka_unit_test(known_lines_are_compared),
    cmocka_unit_test(a_place_is_not_a_line),
};

/* ---- numbers ---- */

/* Microseconds in decimal to nanoseconds, exactly; and only those of the event itself. */

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

static const struct CMUnitTest scan_tests[] = {
    cmocka_unit_test(exact),
    cmocka_unit_test(refused),
    cmocka_unit_test(decimals_may_be_missing),
    cmocka_unit_test(what_a_duration_lacks),
    cmocka_unit_test(members),
};

/* ---- calls by path, from slices in the order of their ends ---- */

typedef struct text {
    char all[4096];
} text;

static bool write_node(void *user, const tree_node *n, uint32_t depth)
{
    text *t = user;
    size_t used = strlen(t->all);
    snprintf(t->all + used, sizeof t->all - used, "%*s%c %u %u %u\n", (int)depth, "", (char)n->name,
             (unsigned)n->calls, (unsigned)n->time, (unsigned)n->self);
    return true;
}

static void check(tree *t, const char *wanted)
{
    text found = {""};
    tree_walk(t, tree_finish(t), write_node, &found);
    assert_string_equal(found.all, wanted);
    tree_free(t);
}

static void of_one_name_in_one_path_is_one_node(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'l', 10, 20);
    tree_call(&t, 0, 'l', 25, 30);
    tree_call(&t, 0, 'i', 5, 40);
    tree_call(&t, 0, 'l', 50, 60);
    tree_call(&t, 0, 'o', 0, 100);
    tree_call(&t, 0, 'l', 110, 113);
    tree_call(&t, 0, 'o', 100, 120);
    check(&t, "o 2 120 72\n i 1 35 20\n  l 2 15 15\n l 2 13 13\n");
}

static void recursion_is_a_path(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'r', 2, 8);
    tree_call(&t, 0, 'r', 1, 9);
    tree_call(&t, 0, 'r', 0, 10);
    tree_call(&t, 0, 'r', 21, 25);
    tree_call(&t, 0, 'r', 20, 30);
    check(&t, "r 2 20 8\n r 2 12 6\n  r 1 6 6\n");
}

static void threads_are_merged_and_do_not_nest(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 1, 'b', 2, 8);
    tree_call(&t, 0, 'a', 0, 10);
    tree_call(&t, 1, 'a', 20, 50);
    tree_call(&t, 0, 'b', 21, 30);
    check(&t, "a 2 40 40\nb 2 15 15\n");
}

static void of_the_same_times_the_later_is_the_outer(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'i', 5, 5);
    tree_call(&t, 0, 'm', 5, 5);
    tree_call(&t, 0, 'o', 5, 9);
    check(&t, "o 1 4 4\n m 1 0 0\n  i 1 0 0\n");
}

static void a_cleared_tree_is_an_empty_one(void **state)
{
    tree t = {0};
    (void)state;
    tree_call(&t, 0, 'x', 0, 7);
    tree_clear(&t);
    tree_call(&t, 0, 'y', 8, 9);
    check(&t, "y 1 1 1\n");
}

/* -- against a tree made from the outside in -- */

#define DEEPEST 6

typedef struct made {
    uint64_t calls[4096], time[4096], self[4096]; /* by path: base 4, from 1 */
    uint64_t now;
    unsigned seed;
} made;

static unsigned draw(made *m, unsigned below)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 16) % below;
}

static uint64_t make_call(made *m, tree *t, uint32_t path, unsigned depth)
{
    uint64_t start = m->now, inside = 0;
    m->now += draw(m, 4);
    for (unsigned n = depth < DEEPEST ? draw(m, 4) : 0; n; n--) {
        inside += make_call(m, t, 4 * path + draw(m, 3) + 1, depth + 1);
        m->now += draw(m, 3);
    }
    m->now++;
    uint64_t took = m->now - start;
    tree_call(t, 0, (path - 1) % 4, start, m->now);
    m->calls[path]++;
    m->time[path] += took;
    m->self[path] += took - inside;
    return took;
}

typedef struct comparison {
    const made *with;
    uint32_t path[DEEPEST + 1];
    size_t seen;
} comparison;

static bool compare(void *user, const tree_node *n, uint32_t depth)
{
    comparison *c = user;
    uint32_t path = 4 * (depth ? c->path[depth - 1] : 0) + n->name + 1;
    c->path[depth] = path;
    assert_int_equal(n->calls, c->with->calls[path]);
    assert_int_equal(n->time, c->with->time[path]);
    assert_int_equal(n->self, c->with->self[path]);
    c->seen++;
    return true;
}

static void whatever_nests_is_exact(void **state)
{
    made *m = calloc(1, sizeof *m);
    tree t = {0};
    (void)state;
    m->seed = 7;
    for (unsigned i = 0; i < 3000; i++)
        make_call(m, &t, draw(m, 3) + 1, 3); /* paths of up to 4 */
    comparison c = {.with = m};
    tree_walk(&t, tree_finish(&t), compare, &c);
    size_t paths = 0;
    for (size_t i = 0; i < 4096; i++)
        paths += m->calls[i] > 0;
    assert_int_equal(c.seen, paths);
    assert_true(paths > 100);
    tree_free(&t);
    free(m);
}

/* -- bounds -- */

static bool add_up(void *user, const tree_node *n, uint32_t depth)
{
    uint64_t *sums = user;
    sums[0] += n->self;
    sums[1] += n->calls;
    sums[2] = depth > sums[2] ? depth : sums[2];
    return true;
}

static void very_deep_calls_count_as_their_parents_own(void **state)
{
    uint64_t sums[3] = {0, 0, 0};
    tree t = {0};
    (void)state;
    for (uint64_t i = 0; i < 5000; i++)
        tree_call(&t, 0, 'd', 5000 - i, 6000 + i);
    tree_walk(&t, tree_finish(&t), add_up, sums);
    assert_int_equal(sums[0], 6000 + 4999 - 1);
    assert_in_range(sums[2], 1, TREE_DEPTH_MOST);
    tree_free(&t);
}

static void many_that_wait_lose_nothing(void **state)
{
    uint64_t sums[3] = {0, 0, 0};
    tree t = {0};
    (void)state;
    for (uint64_t i = 0; i < 300000; i++)
        tree_call(&t, 0, (uint32_t)('a' + i % 3), 10 * i, 10 * i + 5);
    tree_call(&t, 0, 'o', 0, 3000000);
    assert_true(t.room < 200000);
    tree_walk(&t, tree_finish(&t), add_up, sums);
    assert_int_equal(sums[0], 3000000);
    assert_int_equal(sums[1], 300001);
    tree_free(&t);
}

static const struct CMUnitTest tree_tests[] = {
    cmocka_unit_test(of_one_name_in_one_path_is_one_node),
    cmocka_unit_test(recursion_is_a_path),
    cmocka_unit_test(threads_are_merged_and_do_not_nest),
    cmocka_unit_test(of_the_same_times_the_later_is_the_outer),
    cmocka_unit_test(a_cleared_tree_is_an_empty_one),
    cmocka_unit_test(whatever_nests_is_exact),
    cmocka_unit_test(very_deep_calls_count_as_their_parents_own),
    cmocka_unit_test(many_that_wait_lose_nothing),
};

/* ---- words of JSON ---- */

/* fuzz_tools.c compares what is passed over with what jansson takes. */

static void whole_objects_and_others(void **state)
{
    static const char *const good[] = {"{}",
                                       " {\"a\":[1,-0.5e+3,{\"b\":null},[],\"\\u00e9\\n\"]}\r\n",
                                       "{\"a\":\"\\ud83d\\ude00 \xC3\xA9\",\"a\":true}"};
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"a\":1,}",
                                      "{\"a\":[1 2]}",
                                      "{\"a\":01}",
                                      "{\"a\":1.}",
                                      "{\"a\":tru}",
                                      "{\"a\":\"\\ud83d\"}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\xC3\"}",
                                      "{}}",
                                      "{\"a\":[1}}",
                                      "{\"a\":\"\t\"}",
                                      "{\"a\":\"\\u0000\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(token_is_object(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(token_is_object(bad[i], strlen(bad[i])));
}

static void texts_as_they_are_meant(void **state)
{
    static const char json[] = "\"a\\u00e9\\ud83d\\ude00\\/\\\\\\t\\\"\xC3\xA9\"";
    complaint why = {""};
    scan s = {.at = json, .end = json + sizeof json - 1, .why = &why};
    (void)state;
    char *meant = token_text(&s);
    assert_string_equal(meant, "a\xC3\xA9\xF0\x9F\x98\x80/\\\t\"\xC3\xA9");
    assert_true(token_ends(&s));
    free(meant);
}

static void members_of_an_object(void **state)
{
    static const char json[] = "{\"b\":{\"a\":1},\"a\" : [2,\"}\"] ,\"c\":3";
    const char *value, *end;
    (void)state;
    assert_true(token_member(json, sizeof json - 1, "a", &value, &end));
    assert_memory_equal(value, "[2,\"}\"]", 7);
    assert_int_equal(end - value, 7);
    assert_true(token_member(json, sizeof json - 1, "c", &value, &end));
    assert_false(token_member(json, sizeof json - 1, "d", &value, &end));
}

static const struct CMUnitTest token_tests[] = {
    cmocka_unit_test(whole_objects_and_others),
    cmocka_unit_test(texts_as_they_are_meant),
    cmocka_unit_test(members_of_an_object),
};

int main(void)
{
    int failed = cmocka_run_group_tests(lines_tests, make_path, remove_path);
    failed += cmocka_run_group_tests(flat_tests, NULL, NULL);
    failed += cmocka_run_group_tests(scan_tests, NULL, NULL);
    failed += cmocka_run_group_tests(token_tests, NULL, NULL);
    failed += cmocka_run_group_tests(tree_tests, NULL, NULL);
    return failed;
}
