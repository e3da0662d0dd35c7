/* The table of open spans against a plain list, and which of their events a capture has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/names.h"
#include "history/format.h"
#include "measure/spans/spans.h"

static uint64_t chance = 88172645463325252u;

static uint32_t any(uint32_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)(chance >> 33) % below;
}

#define SERIALS 4096u

/* Serials far apart by a power of two meet in one place. */
static uint32_t serial_of(uint32_t n)
{
    return n % 2 ? n : n << 18;
}

static void the_table_has_what_a_list_has(void **state)
{
    static bool there[SERIALS];
    pki_open_spans spans = {0};
    size_t count = 0;
    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t n = any(SERIALS);
        pki_open_span *found = pki_open_spans_find(&spans, serial_of(n));
        assert_int_equal(found != NULL, there[n]);
        if (found) {
            assert_int_equal(found->id, n);
            pki_open_spans_remove(&spans, found);
        } else {
            const pki_open_span s = {
                .id = n, .serial = serial_of(n), .state = n % 3 ? PKI_SPAN_OPEN : PKI_SPAN_ENDED};
            assert_true(pki_open_spans_add(&spans, &s));
        }
        there[n] = !there[n];
        count = there[n] ? count + 1 : count - 1;
        assert_int_equal(spans.used, count);
    }
    size_t ended = 0;
    for (uint32_t n = 0; n < SERIALS; n++)
        ended += there[n] && n % 3 == 0;
    assert_int_equal(spans.ended, ended);
    pki_open_spans_finish(&spans);
    assert_null(spans.cells);
}

static void ends_and_begins_meet_in_either_order(void **state)
{
    pki_span_counter c = {0};
    const pki_open_span one = {.start = 5, .serial = 1, .name = 3, .state = PKI_SPAN_OPEN};
    const pki_open_span two = {.start = 5, .serial = 2, .name = 3, .state = PKI_SPAN_OPEN};
    const pki_open_span lost = {.start = 5, .serial = 3, .name = 4, .state = PKI_SPAN_OPEN};
    (void)state;
    assert_true(pki_spans_begin(&c, &one) == UINT64_MAX);
    assert_true(pki_spans_end(&c, &one, 10, false));
    assert_false(pki_spans_end(&c, &two, 11, false));
    assert_int_equal(pki_spans_begin(&c, &two), 11);
    assert_true(pki_spans_end(&c, &lost, 12, true));
    assert_false(pki_spans_end(&c, &one, 10, false)); /* a copy's */
    assert_false(pki_spans_end(&c, &one, 10, false));
    assert_int_equal(c.open.ended, 1);
    pki_spans_mark(&c, 900);
    pki_span_row row = pki_spans_row(&c, 3, 0);
    assert_true(row.begun == 2 && row.ended == 2 && row.unfinished == 0 && row.marks == 0);
    row = pki_spans_row(&c, 4, 0);
    assert_true(row.begun == 1 && row.ended == 1);
    row = pki_spans_row(&c, 900, 5); /* four of them without a record */
    assert_true(row.begun == 0 && row.marks == 5 && row.events > 0);
    assert_int_equal(pki_spans_row(&c, 70000, 9).events, 0);
    pki_spans_finish_counter(&c);
}

/* ---- captures ---- */

static pki_clock_map map;
static char text[8192];

static pki_chrome_name name_of(void *user, uint32_t id)
{
    (void)user;
    (void)id;
    return (pki_chrome_name){.name = "request", .key = "", .length = 7};
}

static bool sink(void *user, const char *event, size_t n)
{
    (void)user;
    strncat(text, event, n);
    return true;
}

typedef struct scene {
    pki_open_spans seen;
    pki_history_range range;
    pki_chrome chrome;
} scene;

static void put(scene *s, pki_record_type type, uint32_t serial, uint64_t start, uint64_t ticks)
{
    char event[PKI_EVENT_BYTES];
    const pki_record r = {start, ticks, PKI_WHAT(5, type, 0), serial}, more = {77, 0, 0, 0};
    size_t n = pki_history_span(&s->seen, &s->chrome, event, 4, &s->range, &r, &more);
    sink(NULL, event, n);
}

/* Letters of the events of a span, in their order. */
static const char *events_of(uint32_t serial)
{
    static char found[16];
    char id[32];
    size_t n = 0;
    snprintf(id, sizeof id, "\"id\":%u,\"args\":", serial);
    for (char *line = text; (line = strstr(line, "{\"ph\":\"")) && n < 15; line++) {
        const char *next = strchr(line, '\n'), *at = strstr(line, id);
        if (at && (!next || at < next))
            found[n++] = line[7];
    }
    found[n] = 0;
    return found;
}

static void a_capture_has_what_overlaps(void **state)
{
    const pki_open_span open[] = {{10, 1, 20, 5, PKI_SPAN_OPEN, 0},
                                  {900, 1, 21, 5, PKI_SPAN_OPEN, 0}};
    scene s = {.range = {.from = 100, .until = 200, .open = open, .open_count = 2}};
    (void)state;
    pki_clock_map_init(&map, 1, (pki_clock_sample){1, 1, 0}, (pki_clock_sample){2, 2, 0});
    pki_chrome_init(&s.chrome, &map, 42, name_of, NULL);
    text[0] = 0;
    put(&s, PKI_RECORD_SPAN_BEGIN, 1, 110, 1); /* within */
    put(&s, PKI_RECORD_SPAN_MARK, 1, 120, 10);
    put(&s, PKI_RECORD_SPAN_END, 1, 110, 20);
    put(&s, PKI_RECORD_SPAN_BEGIN, 2, 50, 1); /* before, into it */
    put(&s, PKI_RECORD_SPAN_END, 2, 50, 100);
    put(&s, PKI_RECORD_SPAN_BEGIN, 3, 50, 1); /* before */
    put(&s, PKI_RECORD_SPAN_MARK, 3, 60, 10);
    put(&s, PKI_RECORD_SPAN_END, 3, 50, 10);
    put(&s, PKI_RECORD_SPAN_END, 4, 20, 120); /* whose begin is gone */
    put(&s, PKI_RECORD_SPAN_END, 5, 130, 20); /* whose begin comes later in the history */
    put(&s, PKI_RECORD_SPAN_BEGIN, 5, 130, 1);
    put(&s, PKI_RECORD_SPAN_BEGIN, 6, 50, 1);  /* all over it */
    put(&s, PKI_RECORD_SPAN_BEGIN, 7, 150, 1); /* within, and still open */
    put(&s, PKI_RECORD_SPAN_BEGIN, 8, 250, 1); /* behind it */
    put(&s, PKI_RECORD_SPAN_END, 8, 250, 9);
    assert_true(pki_history_open_spans(&s.seen, &s.chrome, &s.range, 200, sink, NULL));
    const char *const expected[] = {"", "bne", "be", "", "be", "be", "be", "be", ""};
    for (uint32_t i = 1; i < 9; i++)
        assert_string_equal(events_of(i), expected[i]);
    assert_string_equal(events_of(20), "be");
    assert_non_null(strstr(text, "\"id\":7,\"args\":{\"id\":1,\"unfinished\":1}}"));
    assert_string_equal(events_of(21), "");
    pki_open_spans_finish(&s.seen);
    pki_chrome_finish(&s.chrome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_what_a_list_has),
        cmocka_unit_test(ends_and_begins_meet_in_either_order),
        cmocka_unit_test(a_capture_has_what_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
