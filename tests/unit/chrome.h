/* tests/unit/chrome.h - one record as the event that viewers read, for tests: a clock whose ticks
 * are nanoseconds, and names of every sort.
 */
#ifndef TESTS_CHROME_H
#define TESTS_CHROME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/names.h"
#include "out/chrome/chrome.h"

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

static inline int open_chrome(void **state)
{
    (void)state;
    pki_clock_map_init(&map, 1, (pki_clock_sample){1000000000, 1000000000, 0},
                       (pki_clock_sample){1000000001, 1000000001, 0});
    map.step_ticks = 1;
    asked = 0;
    pki_chrome_init(&chrome, &map, 4711, name_of, &asked);
    return 0;
}

static inline int close_chrome(void **state)
{
    (void)state;
    pki_chrome_finish(&chrome);
    return 0;
}

#define AT(us, ns) (1000000000u + 1000u * (us) + (ns))

static inline void expect_event(const pki_record *r, const pki_record *more, const char *wanted)
{
    static char out[PKI_EVENT_BYTES + 8];
    memset(out, '#', sizeof out);
    size_t n = pki_chrome_event(&chrome, out, 99, r, more);
    assert_memory_equal(out + PKI_EVENT_BYTES, "########", 8);
    assert_int_equal(out[n], '#');
    out[n] = 0;
    assert_string_equal(out, wanted);
}

static inline void expect(pki_record r, uint64_t more_start, uint64_t more_value,
                          const char *wanted)
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

#endif
