/* Records and activities as the events that viewers and PyTorch's tools read, byte by byte
 * (docs/trace-format.md). */
#include "draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "out/chrome/chrome.h"
#include "out/chrome/events.h"

/* ---- one record as the event that viewers read ---- */

/* one record as the event that viewers read, for tests: a clock whose ticks are nanoseconds, and
 * names of every sort. */

/* Ticks that are nanoseconds, from 1 s on. */
static pki_clock_map map;
static pki_chrome chrome_chrome;

enum {
    PLAIN = 3,
    FORWARD,
    QUOTED,
    VARIANT,
    NEGATIVE,
    MEMORY,
    BARE,
    LONGEST,
    LOAD,
    REDUCE,
    SAVE,
    HOLD,
    SMALL,
    UNKNOWN = 60000
};

static pki_chrome_name name_of(void *user, uint32_t id)
{
    static char longest[PKI_NAME_BYTES];
    static const pki_chrome_name names[] = {
        [PLAIN] = {"step work", "", 9, 0, PK_OTHER, 0},
        [FORWARD] = {"forward", "", 7, 0, PK_COMPUTE, 0},
        [QUOTED] = {"a \"b\"\\\n\xFF\x01\xC3\xA9", "", 11, 0, PK_OTHER, 0},
        [VARIANT] = {"attention[seq=512]", "seq", 18, 3, PK_COMPUTE, 512},
        [NEGATIVE] = {"x[k=-9223372036854775808]", "k\"", 25, 2, PK_OTHER, INT64_MIN},
        [MEMORY] = {"gpu.memory", "bytes", 10, 5, PKI_KIND_COUNTER, 0},
        [BARE] = {"loss", "", 4, 0, PKI_KIND_COUNTER, 0},
        [LONGEST] = {longest, longest, PKI_NAME_BYTES, PKI_NAME_BYTES, PK_WAIT, INT64_MIN},
        [LOAD] = {"load", "", 4, 0, PK_DATA, 0},
        [REDUCE] = {"reduce", "", 6, 0, PK_COMM, 0},
        [SAVE] = {"save", "", 4, 0, PK_IO, 0},
        [SMALL] = {"y[k=-7]", "k", 7, 1, PK_OTHER, -7},
        [HOLD] = {"hold", "", 4, 0, PK_WAIT, 0},
    };
    ++*(unsigned *)user;
    memset(longest, 1, sizeof longest); /* six bytes each, escaped */
    if (id >= sizeof names / sizeof *names || !names[id].name)
        return (pki_chrome_name){.name = "(unknown)", .key = "", .length = 9, .kind = UINT32_MAX};
    return names[id];
}

static unsigned asked;

static int open_chrome(void **state)
{
    (void)state;
    pki_clock_map_init(&map, 1, (pki_clock_sample){1000000000, 1000000000, 0},
                       (pki_clock_sample){1000000001, 1000000001, 0});
    map.step_ticks = 1;
    asked = 0;
    pki_chrome_init(&chrome_chrome, &map, 4711, name_of, &asked);
    return 0;
}

static int close_chrome(void **state)
{
    (void)state;
    pki_chrome_finish(&chrome_chrome);
    return 0;
}

#define AT(us, ns) (1000000000u + 1000u * (us) + (ns))

static void expect_event(const pki_record *r, const pki_record *more, const char *wanted)
{
    static char out[PKI_EVENT_BYTES + 8];
    memset(out, '#', sizeof out);
    size_t n = pki_chrome_event(&chrome_chrome, out, 99, r, more);
    assert_memory_equal(out + PKI_EVENT_BYTES, "########", 8);
    assert_int_equal(out[n], '#');
    out[n] = 0;
    assert_string_equal(out, wanted);
}

static void expect(pki_record r, uint64_t more_start, uint64_t more_value, const char *wanted)
{
    pki_record more = {more_start, more_value, 0, 0};
    expect_event(&r, &more, wanted);
}

#define REGION(id, depth) PKI_WHAT(id, PKI_RECORD_REGION, depth)
#define WORK(id, depth) PKI_WHAT(id, PKI_RECORD_REGION_WORK, depth)
#define STEP PKI_WHAT(PKI_NAME_STEP, PKI_RECORD_STEP, 0)

#define AT_TIME(what, ts)                                                                          \
    ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" what "\",\"pid\":4711,\"tid\":99,\"ts\":" ts
#define NAMED(name) AT_TIME(name, "1.000,")
#define BEGINNING NAMED("step work")
#define MOVED(lacks) AT_TIME("step work", "1.000" lacks ",")

#define with_chrome(test) cmocka_unit_test_setup_teardown(test, open_chrome, close_chrome)

/* ---- records of regions ---- */

/* Records of regions as the events that viewers read, byte by byte
 * (docs/internals/trace-format.md). */

static void plain_regions(void **state)
{
    (void)state;
    expect((pki_record){AT(12, 345), 6789, REGION(PLAIN, 1), 0}, 0, 0,
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"step work\",\"pid\":4711,\"tid\":99,"
           "\"ts\":12.345,\"dur\":6.789}");
    expect((pki_record){AT(0, 0), 3600000000000, REGION(FORWARD, 64), 0}, 0, 0,
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"forward\","
           "\"cname\":\"thread_state_running\","
           "\"pid\":4711,\"tid\":99,\"ts\":0.000,\"dur\":3600000000.000}");
    expect((pki_record){5, 7, REGION(PLAIN, 1), 0}, 0, 0, /* before the start: never negative */
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"step work\",\"pid\":4711,\"tid\":99,"
           "\"ts\":0.000,\"dur\":0.000296}");
    assert_int_equal(asked, 2); /* each name is asked for, and escaped, once */
}

static void kinds_have_colours(void **state)
{
    static const struct {
        uint32_t id;
        const char *name, *colour;
    } kinds[] = {{LOAD, "load", "rail_load"},
                 {REDUCE, "reduce", "rail_response"},
                 {SAVE, "save", "thread_state_iowait"},
                 {HOLD, "hold", "thread_state_sleeping"}};
    char wanted[300];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        snprintf(
            wanted, sizeof wanted,
            ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"cname\":\"%s\",\"pid\":4711,"
            "\"tid\":99,"
            "\"ts\":1.000,\"dur\":1.000}",
            kinds[i].name, kinds[i].colour);
        expect((pki_record){AT(1, 0), 1000, REGION(kinds[i].id, 1), 0}, 0, 0, wanted);
    }
}

static void names_are_escaped(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 1, REGION(QUOTED, 1), 0}, 0, 0,
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\","
           "\"name\":\"a \\\"b\\\"\\\\\\u000a\xEF\xBF\xBD\\u0001\xC3\xA9\","
           "\"pid\":4711,\"tid\":99,\"ts\":1.000,\"dur\":0.001}");
}

static void work_and_flags(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 500, WORK(PLAIN, 1), 0}, 1 << 20, 42,
           BEGINNING "\"dur\":0.500,\"args\":{\"bytes\":1048576,\"flops\":42}}");
    expect((pki_record){AT(1, 0), 500, WORK(PLAIN, 1), 0}, 0, 42,
           BEGINNING "\"dur\":0.500,\"args\":{\"flops\":42}}");
    expect((pki_record){AT(1, 0), 500, WORK(PLAIN, 1), 0}, 7, 0,
           BEGINNING "\"dur\":0.500,\"args\":{\"bytes\":7}}");
    expect((pki_record){AT(1, 0), 500, WORK(PLAIN, 1), 0}, UINT64_MAX,
           (uint64_t)1 << 63, /* beyond what readers take */
           BEGINNING "\"dur\":0.500,\"args\":{\"bytes\":1.8446744073709552e+19,"
                     "\"flops\":9.223372036854776e+18}}");
    expect((pki_record){AT(1, 0), 500, REGION(PLAIN, 1) | PKI_FLAGS(PKI_FLAG_UNBALANCED), 0}, 0, 0,
           BEGINNING "\"dur\":0.499796,\"args\":{\"unbalanced\":1}}");
    expect((pki_record){AT(1, 0), 500, WORK(PLAIN, 1) | PKI_FLAGS(PKI_FLAG_UNBALANCED), 0}, 3, 4,
           BEGINNING "\"dur\":0.499796,\"args\":{\"bytes\":3,\"flops\":4,\"unbalanced\":1}}");
}

/* Slices that touch end early, deeper ones earlier; those that begin with another move in. */
static void ties_and_touches(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 500, REGION(PLAIN, 2) | PKI_FLAGS(PKI_FLAG_TOUCHES), 0}, 0, 0,
           BEGINNING "\"dur\":0.499792}");
    expect((pki_record){AT(1, 0) - 2, 500, REGION(PLAIN, 3) | PKI_TIES(2), 0}, 0, 0,
           MOVED("002") "\"dur\":0.497786}");
    expect((pki_record){AT(1, 0) - 2, 1, REGION(PLAIN, 3) | PKI_TIES(2), 0}, 0, 0,
           MOVED("002") "\"dur\":0.000286}");
    expect((pki_record){AT(1, 0) - 2, 0, REGION(PLAIN, 3) | PKI_TIES(2), 0}, 0, 0,
           MOVED("002") "\"dur\":0.000288}"); /* has nothing to lack */
    expect((pki_record){AT(1, 0), 0, REGION(PLAIN, 64), 0}, 0, 0, BEGINNING "\"dur\":0.000044}");
    expect((pki_record){AT(1, 0), 0, REGION(PLAIN, 125), 0}, 0, 0, BEGINNING "\"dur\":0.000044}");
    expect((pki_record){AT(1, 0), UINT64_MAX, REGION(PLAIN, 1), 0}, 0, 0,
           BEGINNING "\"dur\":0.000296}"); /* negative */
}

static void variants(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 500, REGION(VARIANT, 1), 0}, 0, 0,
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"attention[seq=512]\","
           "\"cname\":\"thread_state_running\","
           "\"pid\":4711,\"tid\":99,\"ts\":1.000,\"dur\":0.500,\"args\":{\"seq\":512}}");
    expect((pki_record){AT(1, 0), 500, WORK(NEGATIVE, 1), 0}, 1, 2,
           ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"x[k=-9223372036854775808]\","
           "\"pid\":4711,\"tid\":99,"
           "\"ts\":1.000,\"dur\":0.500,\"args\":{\"k\\\"\":-9223372036854775808,\"bytes\":1,"
           "\"flops\":2}}");
    expect((pki_record){AT(1, 0), 500, REGION(SMALL, 1), 0}, 0, 0,
           NAMED("y[k=-7]") "\"dur\":0.500,\"args\":{\"k\":-7}}");
}

static void payloads(void **state)
{
    static const struct {
        uint64_t bits, type;
        const char *args;
    } cases[] = {{7, PKI_PAYLOAD_UNSIGNED, "\"payload\":7"},
                 {UINT64_MAX, PKI_PAYLOAD_UNSIGNED, "\"payload\":1.8446744073709552e+19"},
                 {(uint64_t)-7, PKI_PAYLOAD_SIGNED, "\"payload\":-7"},
                 {1ull << 63, PKI_PAYLOAD_SIGNED, "\"payload\":-9223372036854775808"},
                 {0x3FF8000000000000, PKI_PAYLOAD_REAL, "\"payload\":1.5"},
                 {0x7FF8000000000000, PKI_PAYLOAD_REAL, "\"payload\":null"},
                 {9, 77, ""}};
    char wanted[300];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pki_record r = {AT(1, 0), 500, WORK(SMALL, 1), 0};
        pki_record more = {3, 0, cases[i].type, cases[i].bits};
        snprintf(wanted, sizeof wanted,
                 NAMED("y[k=-7]") "\"dur\":0.500,\"args\":{\"k\":-7,\"bytes\":3%s%s}}",
                 *cases[i].args ? "," : "", cases[i].args);
        expect_event(&r, &more, wanted);
    }
    expect((pki_record){AT(3, 4), 5, PKI_WHAT(PLAIN, PKI_RECORD_MARK, 0), PKI_PAYLOAD_SIGNED}, 0, 0,
           ",\n{\"ph\":\"i\",\"cat\":\"cpu_op\",\"name\":\"step work\",\"pid\":4711,"
           "\"tid\":99,\"s\":\"t\",\"ts\":3.004,\"args\":{\"payload\":5}}");
    expect((pki_record){AT(3, 4), 5, PKI_WHAT(SMALL, PKI_RECORD_MARK, 0), 0}, 0, 0,
           ",\n{\"ph\":\"i\",\"cat\":\"cpu_op\",\"name\":\"y[k=-7]\",\"pid\":4711,"
           "\"tid\":99,\"s\":\"t\",\"ts\":3.004,\"args\":{\"k\":-7}}");
}

/* A call without a record, for which there was no room, leaves its note to no other one. */
static void notes(void **state)
{
    (void)state;
    expect((pki_record){AT(2, 0), 7, PKI_WHAT(PLAIN, PKI_RECORD_NOTE, 2), 0}, 0, 0, "");
    expect((pki_record){AT(3, 0), 9, PKI_WHAT(FORWARD, PKI_RECORD_NOTE, 1), 0}, 0, 0, "");
    expect((pki_record){AT(2, 500), 100, REGION(PLAIN, 2), 0}, 0, 0,
           AT_TIME("step work", "2.500,") "\"dur\":0.100}");
    expect((pki_record){AT(1, 0), 5000, REGION(PLAIN, 1), 0}, 0, 0,
           BEGINNING "\"dur\":5.000,\"args\":{\"forward\":9}}");
    expect((pki_record){AT(1, 0), 5000, REGION(PLAIN, 1), 0}, 0, 0, BEGINNING "\"dur\":5.000}");
}

static void the_longest_event_fits(void **state)
{
    static char out[PKI_EVENT_BYTES];
    pki_record more = {UINT64_MAX, UINT64_MAX, 0, 0};
    pki_record r = {UINT64_MAX / 2, INT64_MAX, WORK(LONGEST, 64) | PKI_FLAGS(0xFF) | PKI_TIES(64),
                    0};
    (void)state;
    chrome_chrome.pid = UINT32_MAX;
    size_t n = pki_chrome_event(&chrome_chrome, out, UINT32_MAX, &r, &more);
    assert_in_range(n, 2 * 6 * PKI_NAME_BYTES, PKI_EVENT_BYTES);
}

/* A clock in steps gives slices the same tick all the time. */
static void coarse_clocks(void **state)
{
    (void)state;
    map.step_ticks = 40;
    pki_chrome_init(&chrome_chrome, &map, 4711, name_of, &asked);
    expect((pki_record){AT(1, 0), 500, REGION(PLAIN, 1), 0}, 0, 0, BEGINNING "\"dur\":0.499796}");
}

static const struct CMUnitTest chrome_tests[] = {
    with_chrome(plain_regions),
    with_chrome(kinds_have_colours),
    with_chrome(names_are_escaped),
    with_chrome(work_and_flags),
    with_chrome(ties_and_touches),
    with_chrome(variants),
    with_chrome(payloads),
    with_chrome(notes),
    with_chrome(the_longest_event_fits),
    with_chrome(coarse_clocks),
};

/* ---- records of all else ---- */

/* Counters, instant events, steps, threads, and what a killed run leaves. */

static pki_record counter_record(uint32_t id, double value)
{
    pki_record r = {AT(2, 5), 0, PKI_WHAT(id, PKI_RECORD_COUNTER, 0), 0};
    memcpy(&r.value, &value, sizeof value);
    return r;
}

static void counters(void **state)
{
    static const struct {
        double value;
        const char *text;
    } values[] = {{0, "0"},
                  {-0.0, "-0"},
                  {1.5, "1.5"},
                  {-3, "-3"},
                  {1e300, "1e+300"},
                  {0.1, "0.1"},
                  {5e-324, "4.94065645841247e-324"},
                  {1.0 / 3, "0.3333333333333333"},
                  {123456789012345, "123456789012345"}};
    char wanted[300];
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(wanted, sizeof wanted,
                 ",\n{\"ph\":\"C\",\"cat\":\"counter\",\"name\":\"gpu.memory\",\"pid\":4711,"
                 "\"tid\":99,\"ts\":2.005,"
                 "\"args\":{\"bytes\":%s}}",
                 values[i].text);
        expect(counter_record(MEMORY, values[i].value), 0, 0, wanted);
    }
    expect(counter_record(BARE, 2.25), 0, 0,
           ",\n{\"ph\":\"C\",\"cat\":\"counter\",\"name\":\"loss\",\"pid\":4711,\"tid\":99,"
           "\"ts\":2.005,\"args\":{\"value\":2.25}}");
    expect(counter_record(BARE, (double)NAN), 0, 0, ""); /* Perfetto hangs on them */
    expect(counter_record(BARE, -(double)INFINITY), 0, 0, "");
}

static void marks(void **state)
{
    (void)state;
    expect((pki_record){AT(3, 4), 0, PKI_WHAT(FORWARD, PKI_RECORD_MARK, 0), 0}, 0, 0,
           ",\n{\"ph\":\"i\",\"cat\":\"cpu_op\",\"name\":\"forward\","
           "\"cname\":\"thread_state_running\",\"pid\":4711,"
           "\"tid\":99,\"s\":\"t\",\"ts\":3.004}");
}

static void steps(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 1000000, STEP, 0}, 41, 8,
           ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#41\","
           "\"pid\":4711,\"tid\":4294967294,"
           "\"ts\":1.000,\"dur\":999.999800,\"args\":{\"thread\":99,\"items\":8,"
           "\"items_per_second\":8000}}");
    expect((pki_record){AT(1, 0), 500, STEP | PKI_FLAGS(PKI_FLAG_UNKNOWN), 0}, 0, 0,
           ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\",\"pid\":4711,"
           "\"tid\":4294967294,"
           "\"ts\":1.000,\"dur\":0.499800,\"args\":{\"thread\":99,\"items\":0}}");
    expect(
        (pki_record){AT(1, 0), 0, STEP, 0}, 0, 5, /* of no duration: no rate */
        ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\",\"pid\":4711,"
        "\"tid\":4294967294,\"ts\":1.000,\"dur\":0.000300,\"args\":{\"thread\":99,\"items\":5}}");
}

static void records_without_an_event(void **state)
{
    (void)state;
    expect((pki_record){0, 5, PKI_WHAT(PLAIN, PKI_RECORD_STEP_SELF, 0), 0}, 0, 0, "");
    expect((pki_record){0, 5, PKI_WHAT(PLAIN, PKI_RECORD_STEP_OPEN, 0), 0}, 0, 0, "");
    expect((pki_record){0, 5, PKI_WHAT(PLAIN, 0, 0), 0}, 0, 0, "");
    expect((pki_record){0, 5, PKI_WHAT(PLAIN, 15, 0), 0}, 0, 0, "");
}

/* What a killed run has left may lack a name, or have another's id in it: always JSON, whatever it
 * says. */
static void ids_that_fit_nothing(void **state)
{
    (void)state;
    expect((pki_record){AT(1, 0), 500, REGION(UNKNOWN, 1), 0}, 0, 0,
           NAMED("(unknown)") "\"dur\":0.500}");
    pki_record r = {AT(1, 0), 500, REGION(MEMORY, 1), 0};
    char out[PKI_EVENT_BYTES];
    for (uint64_t type = PKI_RECORD_REGION; type <= PKI_RECORD_MARK; type++)
        for (uint32_t i = 0; i < 3; i++) {
            static const uint32_t ids[] = {MEMORY, UNKNOWN, UINT32_MAX};
            pki_record more = {1, 2, 0, 0};
            r.what = PKI_WHAT(ids[i], type, 1);
            size_t n = pki_chrome_event(&chrome_chrome, out, 99, &r, &more);
            out[n] = 0;
            assert_null(strstr(out, ":}")); /* a key without a value */
            assert_null(strstr(out, ":,"));
            assert_null(strstr(out, "{1"));
        }
    expect(counter_record(UNKNOWN, 1), 0, 0, "");
    expect(counter_record(PLAIN, 1), 0, 0, "");
}

static void threads(void **state)
{
    char out[PKI_EVENT_BYTES], name[64];
    (void)state;
    out[pki_chrome_thread(&chrome_chrome, out, 99, "lo\"ader", 4)] = 0;
    assert_string_equal(
        out,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":4711,\"tid\":99,"
        "\"ts\":0.000,\"args\":{\"name\":\"lo\\\"ader\"}}"
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\",\"pid\":4711,"
        "\"tid\":99,\"ts\":0.000,\"args\":{\"sort_index\":5}}");
    out[pki_chrome_thread(&chrome_chrome, out, 99, "", 0)] = 0;
    assert_non_null(strstr(out, "\"(unnamed)\""));
    memset(name, 1, sizeof name); /* without an end */
    size_t n = pki_chrome_thread(&chrome_chrome, out, UINT32_MAX, name, UINT32_MAX - 1);
    assert_true(n < PKI_EVENT_BYTES && out[n - 1] == '}');
}

static const struct CMUnitTest chrome_points_tests[] = {
    with_chrome(counters),
    with_chrome(marks),
    with_chrome(steps),
    with_chrome(records_without_an_event),
    with_chrome(ids_that_fit_nothing),
    with_chrome(threads),
};

/* ---- many plain regions at once have the events that each has alone ---- */

enum { NAMES = 12, RECORDS = 100, ROUNDS = 300 };

static pki_clock_map chrome_regions_map;

/* Of all lengths, with what has to be escaped; a counter; one with arguments. */
static pki_chrome_name chrome_regions_name_of(void *user, uint32_t id)
{
    static const char letters[] = "\"quoted\\ and long, some of it at least, and more";
    static const char key[] = "key";
    (void)user;
    if (id >= NAMES)
        return (pki_chrome_name){.name = "(unknown)", .key = "", .length = 9, .kind = UINT32_MAX};
    pki_chrome_name n = {.name = letters, .length = (uint16_t)(1 + 4 * id), .kind = id % 5};
    n.key = id == 3 ? key : "";
    n.key_length = id == 3 ? 3 : 0;
    n.kind = id == 4 ? PKI_KIND_COUNTER : n.kind;
    return n;
}

/* Three stretches of the clock, of which one begins amid the records. */
static void make_map(uint64_t step)
{
    pki_clock_map_init(&chrome_regions_map, 0, (pki_clock_sample){1000, 5000, 1},
                       (pki_clock_sample){1003000, 1005000, 1});
    chrome_regions_map.step_ticks = step;
    chrome_regions_map.segments[1] = chrome_regions_map.segments[2] =
        chrome_regions_map.segments[0];
    chrome_regions_map.segments[1].start_ticks = 1u << 30;
    chrome_regions_map.segments[1].start_ns = pki_clock_ns(&chrome_regions_map, 1u << 30);
    chrome_regions_map.segments[1].rate += chrome_regions_map.segments[1].rate / 1000;
    chrome_regions_map.count = 2;
    chrome_regions_map.segments[2].start_ticks = 5000000000000;
    chrome_regions_map.segments[2].start_ns = pki_clock_ns(&chrome_regions_map, 5000000000000);
    chrome_regions_map.count = 3;
}

static pki_record draw_record(void)
{
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     PKI_FLAG_TOUCHES,
                                     PKI_FLAG_LOST,
                                     PKI_FLAG_LOST | PKI_FLAG_TOUCHES,
                                     PKI_FLAG_UNBALANCED,
                                     PKI_FLAG_THINNED | PKI_FLAG_LOST,
                                     PKI_FLAG_UNBALANCED | PKI_FLAG_CUT_OFF};
    static const uint64_t around[] = {0, 999, 1000, 100000000, 1u << 30, 5000000000000};
    uint64_t start = around[draw() % 6] + (draw() >> (34 + draw() % 30)) - draw() % 64;
    uint64_t ties = draw() % 4 ? 0 : draw() % 3;
    return (pki_record){start, draw() >> (20 + draw() % 44),
                        PKI_WHAT(draw() % (NAMES + 1), PKI_RECORD_REGION, 1 + draw() % 70) |
                            PKI_TIES(ties) | PKI_FLAGS((uint64_t)flags[draw() % 9]),
                        draw()};
}

static void compare(uint64_t step)
{
    static pki_record records[RECORDS];
    size_t room = (size_t)RECORDS * PKI_EVENT_BYTES;
    char *together = malloc(room), *alone = malloc(room);
    pki_chrome a, b;
    make_map(step);
    pki_chrome_init(&a, &chrome_regions_map, 4711, chrome_regions_name_of, NULL);
    pki_chrome_init(&b, &chrome_regions_map, 4711, chrome_regions_name_of, NULL);
    assert_true(together && alone);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t tid = 1 + (uint32_t)draw() % 3, n = 1 + (uint32_t)draw() % RECORDS;
        size_t length = 0;
        for (uint32_t i = 0; i < n; i++) {
            records[i] = draw_record();
            length += pki_chrome_event(&b, alone + length, tid, &records[i], &records[i]);
        }
        assert_int_equal(pki_chrome_regions(&a, together, tid, records, n), length);
        assert_memory_equal(together, alone, length);
    }
    pki_chrome_finish(&a);
    pki_chrome_finish(&b);
    free(together);
    free(alone);
}

static void fine_clock(void **state)
{
    (void)state;
    compare(1);
}

static void coarse_clock(void **state)
{
    (void)state;
    compare(26);
}

/* A stretch gives what the map gives, and ends where the next segment begins. */
static void stretches(void **state)
{
    (void)state;
    make_map(1);
    const uint64_t at[] = {0, 999, 1000, 1001, (1u << 30) - 1, 1u << 30, 5000000000000, 1u << 31};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        pki_clock_stretch s = pki_clock_stretch_at(&chrome_regions_map, at[i]);
        assert_true(pki_clock_stretch_has(&s, at[i], 0));
        assert_int_equal(pki_clock_stretch_ns(&s, at[i]), pki_clock_ns(&chrome_regions_map, at[i]));
        uint64_t last = s.from + s.length - 1;
        assert_int_equal(pki_clock_stretch_ns(&s, last), pki_clock_ns(&chrome_regions_map, last));
        assert_true(pki_clock_stretch_has(&s, s.from, s.length - 1));
        assert_false(pki_clock_stretch_has(&s, s.from, s.length));
        assert_false(pki_clock_stretch_has(&s, s.from + s.length, 0));
        assert_true(s.from == 0 || !pki_clock_stretch_has(&s, s.from - 1, 0));
    }
    pki_clock_stretch first = pki_clock_stretch_at(&chrome_regions_map, 5);
    assert_false(pki_clock_stretch_has(&first, 1000, 0));
}

static const struct CMUnitTest chrome_regions_tests[] = {
    cmocka_unit_test(fine_clock), cmocka_unit_test(coarse_clock), cmocka_unit_test(stretches)};

/* ---- what devices and libraries did ---- */

/* What devices and libraries did, as the events that PyTorch's tools read, byte by byte. */

static const pki_track stream = {2147488000u, 7, "GPU 0", "stream 7", 3};

static void chrome_activity_expect(const pki_activity *a, const char *region, const char *wanted)
{
    char out[PKI_EVENT_BYTES + 1];
    pki_chrome chrome = {0};
    pki_chrome_set_rank(&chrome, 3, 4);
    size_t n = pki_chrome_activity(&chrome, out, &stream, a, region, region ? strlen(region) : 0);
    assert_in_range(n, 1, PKI_EVENT_BYTES);
    out[n] = 0;
    assert_string_equal(out, wanted);
}

static void kernels(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_KERNEL,
                      .name = "void gemm<128, \"x\">(float*)",
                      .name_length = 27,
                      .start = 1500,
                      .end = 4750,
                      .context = 1,
                      .stream = 7,
                      .correlation = 42,
                      .external = 9,
                      .registers = 32,
                      .shared_bytes = 1024,
                      .grid = {4, 5, 6},
                      .block = {128, 1, 1},
                      .flow = 1,
                      .graph = 2,
                      .graph_node = 11};
    (void)state;
    chrome_activity_expect(
        &a, "forward",
        ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void gemm<128, \\\"x\\\">(float*)\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":1.500,\"dur\":3.250,\"args\":{\"device\":0,"
        "\"context\":1,\"stream\":7,\"correlation\":42,\"External id\":9,\"queued\":0,"
        "\"registers per thread\":32,\"shared memory\":1024,\"grid\":[4,5,6],"
        "\"block\":[128,1,1],\"graph id\":2,\"graph node id\":11,\"region\":\"forward\"}}"
        ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":2147488000,"
        "\"tid\":7,\"ts\":1.500,\"id\":12884901930}");
}

/* A kernel to PyTorch's tools; to ours, what nobody has looked into. */
static void graphs_as_wholes_say_so(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_GRAPH,
                      .name = "graph 3",
                      .name_length = 7,
                      .start = 1000,
                      .end = 3000,
                      .stream = 9,
                      .graph = 3};
    (void)state;
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"graph 3\",\"pid\":2147488000,\"tid\":7,"
        "\"ts\":1.000,\"dur\":2.000,\"args\":{\"device\":0,\"stream\":9,\"graph id\":3,"
        "\"whole graph\":1}}");
}

static void copies(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_MEMCPY,
                      .name = "Memcpy HtoD (Pinned -> Device)",
                      .name_length = 30,
                      .start = 1000,
                      .end = 3000,
                      .device = 1,
                      .stream = 9,
                      .bytes = 50000,
                      .copy = PKI_COPY_HTOD};
    (void)state;
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":1.000,\"dur\":2.000,\"args\":{\"device\":1,"
        "\"stream\":9,\"bytes\":50000,\"memory bandwidth (GB/s)\":25}}");
    a.end = 900; /* a reversed one lasts nothing, and has no bandwidth */
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":1.000,\"dur\":0.000,\"args\":{\"device\":1,"
        "\"stream\":9,\"bytes\":50000}}");
}

static void calls_begin_arrows(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_RUNTIME,
                      .name = "cudaLaunchKernel",
                      .name_length = 16,
                      .start = 5,
                      .end = 6,
                      .device = PKI_NO_DEVICE,
                      .correlation = 1,
                      .flow = 1};
    (void)state;
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":0.005,\"dur\":0.001,\"args\":{\"correlation\":1}}"
        ",\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":2147488000,\"tid\":7,"
        "\"ts\":0.005,\"id\":12884901889}");
}

static void spans_have_no_stream_argument(void **state)
{
    pki_activity a = {.kind = PKI_ACTIVITY_SPAN,
                      .name = "forward",
                      .name_length = 7,
                      .start = 0,
                      .end = 1000,
                      .stream = 7,
                      .stream_hidden = 1};
    (void)state;
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"forward\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"dur\":1.000,\"args\":{\"device\":0,\"on_stream\":7}}");
    a.stream = 0; /* not known */
    a.device = PKI_NO_DEVICE;
    chrome_activity_expect(&a, NULL,
                           ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"forward\","
                           "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"dur\":1.000}");
}

/* Where a reader's sums in floating point put its end, from the time of the first event on. */
static double end_of(uint64_t base, uint32_t level, uint64_t start, uint64_t end)
{
    pki_activity a = {.kind = PKI_ACTIVITY_RANGE, .name = "x", .name_length = 1};
    char out[PKI_EVENT_BYTES + 1];
    pki_chrome chrome = {0};
    double ts, dur;
    a.start = start;
    a.end = end;
    a.level = level;
    out[pki_chrome_activity(&chrome, out, &stream, &a, NULL, 0)] = 0;
    assert_int_equal(sscanf(strstr(out, "\"ts\":"), "\"ts\":%lf,\"dur\":%lf", &ts, &dur), 2);
    assert_true((uint64_t)(dur * 1000 + 0.5) == end - start || end == start);
    return ts - (double)base / 1000 + dur;
}

/* A group, a call in it and the launch in that: on a clock of coarse steps they end together. */
static void touching_ones_end_from_the_inside_out(void **state)
{
    uint64_t chance = 88172645463325252u, base = 16543917;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        uint64_t start = base + 10 * (chance >> 40), end = start + 10 * (chance >> 20 & 255);
        double outer = end_of(base, 1, start, end + 1), call = end_of(base, 2, start, end + 1);
        double launch = end_of(base, 3, end, end + 1), next = (double)(end + 1 - base) / 1000;
        assert_true(launch < call && call < outer && outer < next);
    }
}

static void more_arguments(void **state)
{
    const pki_activity_arg args[] = {
        {"Collective name", "all\"reduce", 0}, {"In msg nelems", NULL, 1024}, {"Seq", NULL, -1}};
    pki_activity a = {.kind = PKI_ACTIVITY_OPERATION,
                      .name = "nccl:all_reduce",
                      .name_length = 15,
                      .start = 1,
                      .end = 2,
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = PKI_COUNT_OF(args)};
    (void)state;
    chrome_activity_expect(
        &a, NULL,
        ",\n{\"ph\":\"X\",\"cat\":\"collective\",\"name\":\"nccl:all_reduce\","
        "\"pid\":2147488000,\"tid\":7,\"ts\":0.001,\"dur\":0.001,\"args\":{"
        "\"Collective name\":\"all\\\"reduce\",\"In msg nelems\":1024,\"Seq\":-1}}");
}

/* All that can be long is, and every figure is the largest. */
static void chrome_activity_the_longest_event_fits(void **state)
{
    static char name[8192], out[PKI_EVENT_BYTES + 1];
    pki_activity_arg args[64];
    pki_track longest = {UINT32_MAX, UINT32_MAX, name, name, UINT32_MAX};
    pki_chrome chrome = {.id_base = UINT64_MAX >> 12};
    memset(name, 1, sizeof name - 1); /* six bytes each, escaped */
    const pki_operation operation = {.comm = name,
                                     .library = name,
                                     .comm_length = sizeof name - 1,
                                     .library_length = sizeof name - 1,
                                     .count = UINT64_MAX,
                                     .sequence = UINT64_MAX,
                                     .op = PK_COMM_OP_SCATTER,
                                     .in_flight = UINT32_MAX};
    for (size_t i = 0; i < PKI_COUNT_OF(args); i++)
        args[i] = (pki_activity_arg){"a key of some length, as some have", name, 0};
    for (int kind = 0; kind < PKI_ACTIVITY_KINDS; kind++) {
        pki_activity a;
        memset(&a, 0xFF, sizeof a);
        a.kind = (pki_activity_kind)kind;
        a.name = name;
        a.name_length = sizeof name - 1;
        a.start = 0;
        a.operation = &operation;
        a.args = args;
        a.arg_count = PKI_COUNT_OF(args);
        a.device--;
        a.stream_hidden = 0;
        size_t n = pki_chrome_activity(&chrome, out, &longest, &a, name, sizeof name - 1);
        assert_in_range(n, 1, PKI_EVENT_BYTES);
        assert_int_equal(out[n - 1], '}');
    }
    assert_in_range(pki_chrome_track(out, &longest), 1, PKI_EVENT_BYTES);
    (void)state;
}

static void tracks(void **state)
{
    char out[PKI_EVENT_BYTES + 1];
    pki_track beside = {99, 1073741923u, NULL, "CUDA calls of main", 12};
    (void)state;
    out[pki_chrome_track(out, &stream)] = 0;
    assert_string_equal(
        out, ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_name\",\"pid\":2147488000,"
             "\"tid\":7,\"ts\":0.000,\"args\":{\"name\":\"GPU 0\"}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_sort_index\","
             "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"args\":{\"sort_index\":2147488000}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":2147488000,"
             "\"tid\":7,\"ts\":0.000,\"args\":{\"name\":\"stream 7\"}}"
             ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\","
             "\"pid\":2147488000,\"tid\":7,\"ts\":0.000,\"args\":{\"sort_index\":3}}");
    out[pki_chrome_track(out, &beside)] = 0;
    assert_null(strstr(out, "process"));
    assert_non_null(strstr(out, "CUDA calls of main"));
}

static const struct CMUnitTest chrome_activity_tests[] = {
    cmocka_unit_test(kernels),
    cmocka_unit_test(graphs_as_wholes_say_so),
    cmocka_unit_test(copies),
    cmocka_unit_test(tracks),
    cmocka_unit_test(spans_have_no_stream_argument),
    cmocka_unit_test(touching_ones_end_from_the_inside_out),
    cmocka_unit_test(more_arguments),
    cmocka_unit_test(calls_begin_arrows),
    cmocka_unit_test(chrome_activity_the_longest_event_fits),
};

int main(void)
{
    int failed = cmocka_run_group_tests(chrome_tests, NULL, NULL);
    failed += cmocka_run_group_tests(chrome_points_tests, NULL, NULL);
    failed += cmocka_run_group_tests(chrome_regions_tests, NULL, NULL);
    failed += cmocka_run_group_tests(chrome_activity_tests, NULL, NULL);
    return failed;
}
