/* The short ways from a line to its event are taken; fuzz_flat.c asks whether they lead to the same
 * place. */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
}

static void others_are_left_alone(void **state)
{
    static const char *const texts[] = {"{\"name\":\"\\n\"}",
                                        "{\"name\":\"\xC3\xA9\"}",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_lines_need_no_tree),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(known_lines_are_compared),
        cmocka_unit_test(a_place_is_not_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
