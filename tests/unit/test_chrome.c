/* Records of regions as the events that viewers read, byte by byte
 * (docs/internals/trace-format.md). */
#include "chrome.h"

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

/* A clock in steps gives slices the same tick all the time. */
static void coarse_clocks(void **state)
{
    (void)state;
    map.step_ticks = 40;
    pki_chrome_init(&chrome, &map, 4711, name_of, &asked);
    expect((pki_record){AT(1, 0), 500, REGION(PLAIN, 1), 0}, 0, 0, BEGINNING "\"dur\":0.499796}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_chrome(plain_regions),     with_chrome(kinds_have_colours),
        with_chrome(names_are_escaped), with_chrome(work_and_flags),
        with_chrome(ties_and_touches),  with_chrome(variants),
        with_chrome(payloads),          with_chrome(the_longest_event_fits),
        with_chrome(coarse_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
