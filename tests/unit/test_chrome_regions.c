/* Many plain regions at once have the events that each has alone. */
#include "out/chrome/chrome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"

#include "core/names.h"

enum { NAMES = 12, RECORDS = 100, ROUNDS = 300 };

static pki_clock_map map;

/* Of all lengths, with what has to be escaped; a counter; one with arguments. */
static pki_chrome_name name_of(void *user, uint32_t id)
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
    pki_clock_map_init(&map, 0, (pki_clock_sample){1000, 5000, 1},
                       (pki_clock_sample){1003000, 1005000, 1});
    map.step_ticks = step;
    map.segments[1] = map.segments[2] = map.segments[0];
    map.segments[1].start_ticks = 1u << 30;
    map.segments[1].start_ns = pki_clock_ns(&map, 1u << 30);
    map.segments[1].rate += map.segments[1].rate / 1000;
    map.count = 2;
    map.segments[2].start_ticks = 5000000000000;
    map.segments[2].start_ns = pki_clock_ns(&map, 5000000000000);
    map.count = 3;
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
    pki_chrome_init(&a, &map, 4711, name_of, NULL);
    pki_chrome_init(&b, &map, 4711, name_of, NULL);
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
        pki_clock_stretch s = pki_clock_stretch_at(&map, at[i]);
        assert_true(pki_clock_stretch_has(&s, at[i], 0));
        assert_int_equal(pki_clock_stretch_ns(&s, at[i]), pki_clock_ns(&map, at[i]));
        uint64_t last = s.from + s.length - 1;
        assert_int_equal(pki_clock_stretch_ns(&s, last), pki_clock_ns(&map, last));
        assert_true(pki_clock_stretch_has(&s, s.from, s.length - 1));
        assert_false(pki_clock_stretch_has(&s, s.from, s.length));
        assert_false(pki_clock_stretch_has(&s, s.from + s.length, 0));
        assert_true(s.from == 0 || !pki_clock_stretch_has(&s, s.from - 1, 0));
    }
    pki_clock_stretch first = pki_clock_stretch_at(&map, 5);
    assert_false(pki_clock_stretch_has(&first, 1000, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fine_clock), cmocka_unit_test(coarse_clock),
                                       cmocka_unit_test(stretches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
