/* Records of all else as the events that viewers read, byte by byte
 * (docs/internals/trace-format.md): counters, instant events, steps, threads, and what a killed run
 * may have left. */
#include "chrome.h"

#include <math.h>

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
            size_t n = pki_chrome_event(&chrome, out, 99, &r, &more);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_chrome(counters),
        with_chrome(marks),
        with_chrome(steps),
        with_chrome(records_without_an_event),
        with_chrome(ids_that_fit_nothing),
        with_chrome(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
