/* Each kind of record as the event that viewers read, byte by byte (docs/trace-format.md). */
#include "out/chrome/chrome.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/names.h"

/* Ticks that are nanoseconds, from 1 s on. */
static pki_clock_map map;
static pki_chrome chrome;

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
    pki_chrome_init(&chrome, &map, 4711, name_of, &asked);
    return 0;
}

static int close_chrome(void **state)
{
    (void)state;
    pki_chrome_finish(&chrome);
    return 0;
}

#define AT(us, ns) (1000000000u + 1000u * (us) + (ns))

static void expect_event(const pki_record *r, const pki_record *more, const char *wanted)
{
    static char out[PKI_EVENT_BYTES + 8];
    memset(out, '#', sizeof out);
    size_t n = pki_chrome_event(&chrome, out, 99, r, more);
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
            size_t n = pki_chrome_event(&chrome, out, 99, &r, &more);
            out[n] = 0;
            assert_null(strstr(out, ":}")); /* a key without a value */
            assert_null(strstr(out, ":,"));
            assert_null(strstr(out, "{1"));
        }
    expect(counter_record(UNKNOWN, 1), 0, 0, "");
    expect(counter_record(PLAIN, 1), 0, 0, "");
}

static void the_longest_event_fits(void **state)
{
    static char out[PKI_EVENT_BYTES];
    pki_record more = {UINT64_MAX, UINT64_MAX, 0, 0};
    pki_record r = {UINT64_MAX / 2, INT64_MAX, WORK(LONGEST, 64) | PKI_FLAGS(0xFF) | PKI_TIES(64),
                    0};
    (void)state;
    chrome.pid = UINT32_MAX;
    size_t n = pki_chrome_event(&chrome, out, UINT32_MAX, &r, &more);
    assert_in_range(n, 2 * 6 * PKI_NAME_BYTES, PKI_EVENT_BYTES);
}

static void threads(void **state)
{
    char out[PKI_EVENT_BYTES], name[64];
    (void)state;
    out[pki_chrome_thread(&chrome, out, 99, "lo\"ader", 4)] = 0;
    assert_string_equal(
        out,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":4711,\"tid\":99,"
        "\"ts\":0.000,\"args\":{\"name\":\"lo\\\"ader\"}}"
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\",\"pid\":4711,"
        "\"tid\":99,\"ts\":0.000,\"args\":{\"sort_index\":5}}");
    out[pki_chrome_thread(&chrome, out, 99, "", 0)] = 0;
    assert_non_null(strstr(out, "\"(unnamed)\""));
    memset(name, 1, sizeof name); /* without an end */
    size_t n = pki_chrome_thread(&chrome, out, UINT32_MAX, name, UINT32_MAX - 1);
    assert_true(n < PKI_EVENT_BYTES && out[n - 1] == '}');
}

/* A clock in steps gives slices the same tick all the time. */
static void coarse_clocks(void **state)
{
    (void)state;
    map.step_ticks = 40;
    pki_chrome_init(&chrome, &map, 4711, name_of, &asked);
    expect((pki_record){AT(1, 0), 500, REGION(PLAIN, 1), 0}, 0, 0, BEGINNING "\"dur\":0.499796}");
}

#define with_chrome(test) cmocka_unit_test_setup_teardown(test, open_chrome, close_chrome)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_chrome(plain_regions),
        with_chrome(kinds_have_colours),
        with_chrome(names_are_escaped),
        with_chrome(work_and_flags),
        with_chrome(ties_and_touches),
        with_chrome(variants),
        with_chrome(counters),
        with_chrome(marks),
        with_chrome(payloads),
        with_chrome(steps),
        with_chrome(records_without_an_event),
        with_chrome(ids_that_fit_nothing),
        with_chrome(the_longest_event_fits),
        with_chrome(threads),
        with_chrome(coarse_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
