/* The head, and whole documents, as an independent reader of JSON understands them. */
#include "out/chrome/chrome.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include <jansson.h>

#include "core/names.h"

static pki_clock_map map;
static pki_chrome chrome;

static pki_chrome_name name_of(void *user, uint32_t id)
{
    static char text[PKI_NAME_BYTES];
    (void)user;
    for (unsigned i = 0; i < sizeof text;
         i++) /* other bytes for each id, all that a name can have */
        text[i] = (char)(1 + (id * 37 + i) % 255);
    uint32_t kind = id % 7 == 6 ? PKI_KIND_COUNTER : id % 7;
    uint16_t key_length = (uint16_t)(id % 3 ? 0 : id % 200);
    return (pki_chrome_name){text,       text, (uint16_t)(1 + id % PKI_NAME_BYTES),
                             key_length, kind, -(int64_t)id};
}

static int open_chrome(void **state)
{
    (void)state;
    pki_clock_map_init(&map, 1, (pki_clock_sample){1000, 1000, 0},
                       (pki_clock_sample){1001, 1001, 0});
    pki_chrome_init(&chrome, &map, 4711, name_of, NULL);
    return 0;
}

static int close_chrome(void **state)
{
    (void)state;
    pki_chrome_finish(&chrome);
    return 0;
}

static const pki_chrome_run usual = {.host = "node-1",
                                     .program = "train",
                                     .rank = 3,
                                     .world_size = 8,
                                     .start_unix = 1700000000123456789,
                                     .base_ns = 123456789012,
                                     .clock_name = "tsc",
                                     .clock_hz = 2.9e9,
                                     .clock_step_ns = 0.7,
                                     .clock_uncertainty_ns = 55,
                                     .clock_ppm = -0.013};

static json_t *parse(const char *text, size_t n)
{
    json_error_t error;
    json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!doc)
        fail_msg("line %d, column %d: %s", error.line, error.column, error.text);
    return doc;
}

static json_t *parse_head(const pki_chrome_run *run)
{
    static char text[PKI_HEAD_BYTES + 16];
    size_t n = pki_chrome_head(&chrome, text, run);
    assert_in_range(n, 1000, PKI_HEAD_BYTES - 1);
    memcpy(text + n, PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1);
    return parse(text, n + sizeof PKI_CHROME_TAIL - 1);
}

static json_t *at(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("there is no %s", key);
    return value;
}

static void expect_text(json_t *object, const char *key, const char *wanted)
{
    assert_true(json_is_string(at(object, key)));
    assert_string_equal(json_string_value(at(object, key)), wanted);
}

static void expect_integer(json_t *object, const char *key, int64_t wanted)
{
    assert_true(json_is_integer(at(object, key)));
    assert_int_equal(json_integer_value(at(object, key)), wanted);
}

static void what_the_head_says(void **state)
{
    pki_chrome_run run = usual;
    (void)state;
    run.counts = (pk_counts){.begun = 1,
                             .recorded = 2,
                             .written = 3,
                             .dropped = 4,
                             .unbalanced = 5,
                             .too_deep = 6,
                             .stray_ends = 7,
                             .points = 8,
                             .points_dropped = 9,
                             .unwritten = 10,
                             .threads = 11,
                             .regions = 12,
                             .steps = 13};
    run.toll = (pki_toll){.region_ns = 22.5,
                          .process = 14,
                          .collector = 15,
                          .callers = 16,
                          .backends = 17,
                          .captures = 21,
                          .readings = 22,
                          .stepper = {18, 19, 20}};
    json_t *doc = parse_head(&run), *m = at(doc, "metadata");
    expect_integer(doc, "schemaVersion", 1);
    expect_text(doc, "displayTimeUnit", "ns");
    expect_integer(doc, "baseTimeNanoseconds", 1700000000123456789);
    expect_integer(at(doc, "distributedInfo"), "rank", 3);
    expect_integer(at(doc, "distributedInfo"), "world_size", 8);
    expect_text(m, "perfkit", pk_version());
    expect_text(m, "host", "node-1");
    expect_text(m, "program", "train");
    expect_integer(m, "pid", 4711);
    expect_integer(m, "rank", 3);
    assert_true(json_is_false(at(m, "complete")));
    expect_text(at(m, "clock"), "source", "tsc");
    assert_true(json_number_value(at(at(m, "clock"), "hz")) == 2.9e9);
    assert_true(json_number_value(at(at(m, "clock"), "drift_ppm")) == -0.013);
    expect_integer(at(m, "clock"), "base_monotonic_ns", 123456789012);
    static const char *const counts[] = {
        "begun",  "recorded",       "written",   "dropped", "unbalanced", "too_deep", "stray_ends",
        "points", "points_dropped", "unwritten", "threads", "regions",    "steps"};
    for (int i = 0; i < 13; i++)
        expect_integer(at(m, "counts"), counts[i], i + 1);
    expect_integer(m, "cpu_ns", 14);
    assert_true(json_number_value(at(at(m, "overhead"), "region_ns")) == 22.5);
    expect_integer(at(m, "overhead"), "collector_ns", 15);
    expect_integer(at(m, "overhead"), "callers_ns", 16);
    expect_integer(at(m, "overhead"), "captures_ns", 21);
    expect_integer(at(m, "overhead"), "readings_ns", 22);
    expect_integer(at(m, "overhead"), "backends_ns", 17);
    expect_integer(at(m, "stepping_thread"), "observed_ns", 18);
    expect_integer(at(m, "stepping_thread"), "running_ns", 19);
    expect_integer(at(m, "stepping_thread"), "ready_ns", 20);
    json_decref(doc);
}

/* facts of viewers: the rank after a blank, metadata before the events, no cat in the first event
 * only. */
static void what_viewers_need_of_the_head(void **state)
{
    char text[PKI_HEAD_BYTES];
    (void)state;
    text[pki_chrome_head(&chrome, text, &usual)] = 0;
    assert_non_null(strstr(text, "\"rank\": 3"));
    assert_null(strstr(text, "\"rank\":3"));
    assert_true(strstr(text, "\"metadata\"") < strstr(text, "\"traceEvents\""));
    assert_null(strstr(text, "\"samples\""));
    json_t *doc = parse_head(&usual), *events = at(doc, "traceEvents"), *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        expect_text(event, "ph", "M");
        assert_true(json_is_object(at(event, "args")) && json_object_size(at(event, "args")) == 1);
        assert_true(json_is_integer(at(event, "tid")) && json_is_integer(at(event, "pid")) &&
                    json_is_real(at(event, "ts")));
        assert_int_equal(json_object_get(event, "cat") != NULL, i > 0);
    }
    assert_int_equal(json_array_size(events), 5);
    expect_text(at(json_array_get(events, 0), "args"), "name", "train");
    expect_text(at(json_array_get(events, 1), "args"), "labels", "rank 3, node-1");
    json_decref(doc);
}

static void the_head_has_one_length(void **state)
{
    static const double figures[] = {0, 1, -1.0 / 3, DBL_MAX, -DBL_MIN, 2899999999.9999995, 1e-300};
    char text[PKI_HEAD_BYTES];
    size_t length = pki_chrome_head(&chrome, text, &usual);
    (void)state;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        pki_chrome_run run = usual;
        run.clock_hz = run.clock_step_ns = run.clock_ppm = run.clock_uncertainty_ns = figures[i];
        run.base_ns = UINT64_MAX >> i;
        run.complete = i % 2;
        uint64_t *count = (uint64_t *)(void *)&run.counts;
        for (size_t k = 0; k < sizeof run.counts / sizeof *count; k++)
            count[k] = i % 2 ? UINT64_MAX : i * 1000;
        assert_int_equal(pki_chrome_head(&chrome, text, &run), length);
        run.base_ns >>= 1;
        for (size_t k = 0; k < sizeof run.counts / sizeof *count; k++)
            count[k] >>= 1;
        json_decref(parse_head(&run));
    }
}

static void hostile_names_of_host_and_program(void **state)
{
    char long_text[400];
    pki_chrome_run run = usual;
    (void)state;
    memset(long_text, 1, sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    run.host = run.program = long_text;
    run.start_unix = INT64_MAX;
    run.base_ns = INT64_MAX;
    run.rank = INT32_MIN;
    run.world_size = INT32_MIN;
    chrome.pid = UINT32_MAX;
    json_decref(parse_head(&run));
    run.host = "\"},\xFF\xC3";
    run.program = "\\";
    json_t *doc = parse_head(&run);
    expect_text(at(doc, "metadata"), "host", "\"},\xEF\xBF\xBD\xEF\xBF\xBD");
    expect_text(at(doc, "metadata"), "program", "\\");
    json_decref(doc);
}

/* Records of every kind with anything in them, as a damaged arena may hold: always one whole
 * document. */
static void whatever_is_in_the_records(void **state)
{
    size_t room = (size_t)3000 * PKI_EVENT_BYTES + PKI_HEAD_BYTES, events = 0;
    char *text = malloc(room);
    (void)state;
    assert_non_null(text);
    size_t n = pki_chrome_head(&chrome, text, &usual);
    for (int i = 0; i < 3000; i++) {
        pki_record r = {draw() >> (draw() % 64), draw() >> (draw() % 64), draw(), 0},
                   more = {draw() >> (draw() % 64), draw(), 0, 0};
        r.what = (r.what & 0xFFFFFF0000000000u) | (uint64_t)(1 + i % 7) << 32 |
                 (uint32_t)(draw() % 70000);
        size_t length = pki_chrome_event(&chrome, text + n, (uint32_t)draw(), &r, &more);
        assert_true(length == 0 || (text[n] == ',' && text[n + 1] == '\n' &&
                                    !memchr(text + n + 2, '\n', length - 2)));
        events += length > 0;
        n += length;
    }
    memcpy(text + n, PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1);
    json_t *doc = parse(text, n + sizeof PKI_CHROME_TAIL - 1), *event;
    assert_int_equal(json_array_size(at(doc, "traceEvents")), 5 + events);
    assert_true(events > 1500);
    size_t i;
    json_array_foreach(at(doc, "traceEvents"), i, event)
    {
        if (i >= 5)
            expect_integer(event, "pid", 4711);
        assert_true(json_number_value(at(event, "ts")) >= 0);
    }
    json_decref(doc);
    free(text);
}

#define with_chrome(test) cmocka_unit_test_setup_teardown(test, open_chrome, close_chrome)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_chrome(what_the_head_says),         with_chrome(what_viewers_need_of_the_head),
        with_chrome(the_head_has_one_length),    with_chrome(hostile_names_of_host_and_program),
        with_chrome(whatever_is_in_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
