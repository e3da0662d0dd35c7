/* Clocks: the map of one against clocks that are known exactly, and what a session says of its
 * own. */
#include "folder.h"
#include "../kit/rounds.h"
#include "session.h"
#include "valgrind.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "session/collector/collect.h"
#include "session/session.h"

/* ---- the map ---- */

/* Against clocks that are known exactly: a counter whose rate is wrong at first, drifts and is
 * read through noisy brackets, checked against the truth and the promised bound. */

#define SECOND 1000000000ull
#define HZ 2.9e9L

/* A counter as it might be. Times are CLOCK_MONOTONIC's nanoseconds since the first sample. */
typedef struct counter {
    uint64_t first_ticks, first_ns;
    long double ppm,
        period; /* its rate swings by so much, in so many seconds; no period: it is off for good */
    uint64_t noise;        /* ticks by which a sample may be wrong either way */
    long double wrong_ppm; /* the error of the first rate */
} counter;

static pki_clock_map clock_map;
static uint32_t random_state;

static uint32_t draw(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static uint64_t ticks_at(const counter *c, uint64_t ns)
{
    long double t = (long double)ns, swing = t * c->ppm * 1e-6L;
    if (c->period > 0) {
        long double turn = 2 * 3.14159265358979323846L / (c->period * 1e9L);
        swing = c->ppm * 1e-6L / turn * (1 - cosl(turn * t));
    }
    return c->first_ticks + (uint64_t)((t + swing) * (HZ / 1e9L));
}

static pki_clock_sample sample_at(const counter *c, uint64_t ns)
{
    uint64_t off = c->noise ? draw() % (2 * c->noise + 1) : 0;
    return (pki_clock_sample){ticks_at(c, ns) + off - c->noise, c->first_ns + ns, c->noise};
}

static void begin(const counter *c)
{
    pki_clock_sample a = {c->first_ticks, c->first_ns, c->noise};
    pki_clock_sample b = sample_at(c, 1000000);
    b.ns += (uint64_t)llroundl(1000000 * c->wrong_ppm * 1e-6L);
    random_state = 1;
    pki_clock_map_init(&clock_map, 0, a, b);
}

/* As lib/session/collector/collect.c does. */
static uint64_t interval(unsigned check)
{
    static const uint64_t first[] = {4000000, 20000000, 100000000, 400000000};
    return check < 4 ? first[check] : SECOND;
}

static void expect_close(const counter *c, uint64_t ns)
{
    uint64_t mapped = pki_clock_ns(&clock_map, ticks_at(c, ns));
    double error = (double)mapped - (double)ns, allowed = 1000 + 1e-6 * (double)ns;
    if (fabs(error) > allowed)
        fail_msg("%.9f s: %.0f ns off, %.0f allowed, %u segments", (double)ns / 1e9, error, allowed,
                 clock_map.count);
}

#define PROBES 40

/* Random moments of the time between two checks: right, never backwards, and the same after the
 * check as before. */
static void follow(const counter *c, uint64_t from, uint64_t to)
{
    uint64_t at[PROBES + 1], before[PROBES + 1], last = 0;
    const unsigned probes = is_slow() ? PROBES / 5 : PROBES;
    for (unsigned i = 0; i <= probes; i++) {
        at[i] = from + (to - from) * i / probes;
        before[i] = pki_clock_ns(&clock_map, ticks_at(c, at[i]));
        assert_true(before[i] >= last);
        last = before[i];
        expect_close(c, at[i]);
    }
    pki_clock_sample now = sample_at(c, to);
    pki_clock_map_check(&clock_map, now);
    for (unsigned i = 0; i <= probes; i++)
        if (ticks_at(c, at[i]) < now.ticks)
            assert_int_equal(pki_clock_ns(&clock_map, ticks_at(c, at[i])), before[i]);
}

/* Where one segment ends and the next begins, neighbours in ticks are neighbours in time. */
static void expect_continuous(void)
{
    for (uint32_t i = 1; i < clock_map.count; i++) {
        uint64_t tick = clock_map.segments[i].start_ticks;
        uint64_t here = pki_clock_ns(&clock_map, tick), before = pki_clock_ns(&clock_map, tick - 1);
        assert_in_range(here - before, 0,
                        1 + (uint64_t)(clock_map.segments[i - 1].rate >> PKI_RATE_BITS) + 1);
    }
}

static void run(const counter *c, uint64_t seconds)
{
    uint64_t now = 1000000;
    begin(c);
    for (unsigned check = 0; now < seconds * SECOND; check++) {
        uint64_t next = now + interval(check);
        follow(c, now, next);
        now = next;
    }
    expect_continuous();
    assert_in_range(clock_map.count, 2, PKI_CLOCK_SEGMENTS);
}

static const counter plain = {.first_ticks = 123456789012, .first_ns = 987654321};

static void constant_rate(void **state)
{
    (void)state;
    run(&plain, 60);
    run(&plain, 3600);
    assert_true(clock_map.count < 32); /* nothing to correct once the rate is known */
    assert_true(fabs(pki_clock_hz(&clock_map) / (double)HZ - 1) < 1e-9);
    assert_in_range(clock_map.uncertainty_ns, 0, 100);
}

/* CLOCK_MONOTONIC stands still for that long, the counter goes on. */
static uint64_t sleep_for(counter *c, uint64_t now, uint64_t ns)
{
    bool counted = pki_clock_map_slept(
        &clock_map, (pki_clock_sample){ticks_at(c, now + ns), c->first_ns + now, 0}, ns);
    c->first_ns -= ns;
    assert_true(counted);
    pki_clock_map_check(&clock_map, sample_at(c, now + ns));
    return now + ns;
}

/* Session's time goes on, as before, and each moment of it has one of CLOCK_MONOTONIC. */
static void suspended(void **state)
{
    (void)state;
    counter c = plain;
    uint64_t hour = 3600 * SECOND, now, slept;
    run(&c, 60);
    now = slept = sleep_for(&c, 60 * SECOND + 524000000, hour);
    for (; now < slept + 60 * SECOND; now += SECOND)
        follow(&c, now, now + SECOND);
    expect_continuous();
    assert_in_range(clock_map.uncertainty_ns, 0, 1000);
    assert_true(pki_clock_ns(&clock_map, ticks_at(&c, now)) > hour);
    uint64_t origin = clock_map.origin_ns, awake = now - hour;
    assert_int_equal(pki_clock_monotonic_ns(&clock_map, now), origin + awake);
    assert_int_equal(pki_clock_session_ns(&clock_map, origin + awake), now);
    assert_int_equal(pki_clock_session_ns(&clock_map, origin + SECOND), SECOND);
    assert_int_equal(pki_clock_monotonic_ns(&clock_map, SECOND), origin + SECOND);
    /* Within it time stands. */
    assert_int_equal(pki_clock_monotonic_ns(&clock_map, slept - SECOND),
                     pki_clock_monotonic_ns(&clock_map, slept - hour / 2));
    now = sleep_for(&c, now, hour);
    assert_int_equal(pki_clock_session_ns(&clock_map, origin + awake + SECOND), now + SECOND);
    assert_int_equal(pki_clock_monotonic_ns(&clock_map, now + SECOND), origin + awake + SECOND);
}

/* A counter that stands still, too: nothing of it is in the session's time. */
static void suspended_with_its_counter(void **state)
{
    (void)state;
    run(&plain, 60);
    assert_false(pki_clock_map_slept(&clock_map, sample_at(&plain, 61 * SECOND), 3600 * SECOND));
    assert_int_equal(clock_map.sleeps.all, 0);
    pki_clock_map_check(&clock_map, sample_at(&plain, 61 * SECOND));
    expect_close(&plain, 61 * SECOND);
}

static void wrong_rate_at_start(void **state)
{
    counter fast = plain, slow = plain;
    (void)state;
    fast.wrong_ppm = 50;
    slow.wrong_ppm = -50;
    run(&fast, 60);
    assert_true(fabs(pki_clock_ppm(&clock_map) + 50) < 0.5);
    run(&slow, 60);
    assert_true(fabs(pki_clock_ppm(&clock_map) - 50) < 0.5);
    run(&fast, 3600);
    assert_true(clock_map.uncertainty_ns >=
                100); /* what was wrong in the beginning has been noticed and is told */
}

static void noisy_brackets(void **state)
{
    counter noisy = plain;
    (void)state;
    noisy.noise = 145; /* 50 ns either way */
    run(&noisy, 60);
    run(&noisy, 3600);
    assert_true(clock_map.count < 128);
    assert_true(clock_map.uncertainty_ns >= 50);
}

static void drift(void **state)
{
    static const long double swings[] = {100, -100};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        counter c = plain;
        c.ppm = swings[i];
        run(&c, 60);
        c.period = 600;
        run(&c, 60);
        c.period = 3600;
        run(&c, 3600);
        c.noise = 145;
        c.wrong_ppm = swings[i] / 2;
        run(&c, 60);
        run(&c, 3600);
        assert_true(clock_map.count > 32); /* it did have to follow */
    }
}

static void large_values(void **state)
{
    counter c = {.first_ticks = (1ull << 63) - 30 * 2900000000ull,
                 .first_ns = (1ull << 63) - 40 * SECOND};
    (void)state;
    run(&c, 60);
    c.noise = 145;
    c.ppm = 100;
    c.wrong_ppm = 50;
    c.period = 600;
    run(&c, 60);
}

/* Each sample contradicts the one before by more than is ever tolerated: the list fills up, and the
 * map goes on with its last segment. */
static void list_is_full(void **state)
{
    uint64_t now = 1000000, last = 0;
    (void)state;
    begin(&plain);
    for (unsigned i = 0; i < PKI_CLOCK_SEGMENTS / 2 + 50; i++) {
        now += 8000000 * SECOND;
        pki_clock_sample s = sample_at(&plain, now);
        s.ns += i % 2 ? 1000 * SECOND : 0;
        pki_clock_map_check(&clock_map, s);
        uint64_t mapped = pki_clock_ns(&clock_map, s.ticks);
        assert_true(mapped > last);
        last = mapped;
    }
    assert_in_range(clock_map.count, PKI_CLOCK_SEGMENTS - 1, PKI_CLOCK_SEGMENTS);
    expect_continuous();
    assert_true(clock_map.uncertainty_ns >= 500 * SECOND);
}

/* A check that comes late, and one whose sample is no newer than the last. */
static void stalled_checks(void **state)
{
    (void)state;
    begin(&plain);
    follow(&plain, 1000000, 5000000);
    follow(&plain, 5000000, 30 * SECOND);
    uint32_t count = clock_map.count;
    pki_clock_map_check(&clock_map, sample_at(&plain, 10 * SECOND));
    pki_clock_map_check(&clock_map, sample_at(&plain, 30 * SECOND));
    assert_int_equal(clock_map.count, count);
    assert_int_equal(clock_map.last.ns, plain.first_ns + 30 * SECOND);
}

/* A correction runs its course before the next one: pk_stop checks at any moment. */
static void early_check(void **state)
{
    (void)state;
    begin(&plain);
    for (uint64_t s = 1; s <= 8; s++)
        pki_clock_map_check(&clock_map, sample_at(&plain, s * SECOND));
    uint32_t count = clock_map.count;
    pki_clock_sample late = sample_at(&plain, 9 * SECOND),
                     early = sample_at(&plain, 9 * SECOND + SECOND / 4);
    late.ns += 5000;
    pki_clock_map_check(&clock_map, late);
    assert_int_equal(clock_map.count, count + 2);
    pki_clock_map_check(&clock_map, early);
    assert_int_equal(clock_map.count, count + 2);
    expect_continuous();
    for (uint64_t s = 11; s <= 20; s++)
        pki_clock_map_check(&clock_map, sample_at(&plain, s * SECOND));
    expect_continuous();
    expect_close(&plain, 20 * SECOND);
}

static void before_the_start(void **state)
{
    (void)state;
    begin(&plain);
    assert_int_equal(pki_clock_ns(&clock_map, 0), 0);
    assert_int_equal(pki_clock_ns(&clock_map, plain.first_ticks - 1), 0);
    assert_int_equal(pki_clock_ns(&clock_map, plain.first_ticks), 0);
    assert_in_range(pki_clock_ns(&clock_map, plain.first_ticks + 2900000), 999999, 1000001);
    clock_map.count = 0; /* of an arena whose writer was killed before it got here */
    assert_int_equal(pki_clock_ns(&clock_map, plain.first_ticks + 2900000), 0);
    clock_map.count = UINT32_MAX; /* of a damaged one */
    pki_clock_ns(&clock_map, plain.first_ticks);
}

static void monotonic_is_itself(void **state)
{
    static const uint64_t starts[] = {0, 1, 123456789, 1ull << 62, (1ull << 63) - 1};
    static const uint64_t laters[] = {0, 1, 999, 3600 * SECOND, 1ull << 62};
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        pki_clock_sample a = {starts[i], starts[i], 0}, b = {starts[i] + 5, starts[i] + 5, 0};
        pki_clock_map_init(&clock_map, 1, a, b);
        pki_clock_map_check(&clock_map,
                            (pki_clock_sample){starts[i] + SECOND, starts[i] + SECOND + 1, 0});
        assert_int_equal(clock_map.count, 1);
        assert_true(pki_clock_unit_ns(&clock_map) == 1.0 && pki_clock_hz(&clock_map) == 1e9 &&
                    pki_clock_ppm(&clock_map) == 0);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(pki_clock_ns(&clock_map, starts[i] + laters[k]), laters[k]);
    }
}

/* The clocks of this machine, as far as they can be told without a stopwatch. */
static void real_clocks(void **state)
{
    const char *why_not = "";
    (void)state;
    pki_clock_sample m = pki_clock_read(1), n = pki_clock_read(1);
    assert_true(m.ticks == m.ns && m.uncertainty == 0 && n.ns >= m.ns);
    assert_true(pki_clock_step(1) >= 1);
    if (!pki_cycle_counter_trusted(&why_not)) {
        assert_true(why_not[0]);
        print_message("no cycle counter here: %s\n", why_not);
        return;
    }
    pki_clock_sample a = pki_clock_read(0), b = pki_clock_read(0);
    assert_true(b.ticks > a.ticks && b.ns >= a.ns && a.uncertainty < UINT64_MAX / 2);
    assert_true(pki_clock_step(0) >= 1);
}

static uint64_t readings[PKI_STEP_READINGS];

/* A clock of that step, read at uneven distances. One reading in `odd` shows a tick more. */
static uint64_t step_of(uint64_t step, uint64_t least, unsigned odd)
{
    uint64_t now = 1000000;
    for (unsigned i = 0; i < PKI_STEP_READINGS; i++) {
        now += least + (uint64_t)i * i % 31;
        readings[i] = now / step * step + (odd && i % odd == 0);
    }
    return pki_clock_step_in(readings, PKI_STEP_READINGS);
}

static void steps(void **state)
{
    (void)state;
    for (unsigned odd = 0; odd < 60; odd += 15) {
        assert_int_equal(step_of(26, 22, odd), 26);
        assert_int_equal(step_of(10, 25, odd), 10); /* a reading takes longer */
        assert_int_equal(step_of(40, 1, odd), 40);  /* many readings are the same */
        assert_int_equal(step_of(1, 20, odd), 1);
        assert_int_equal(step_of(2, 18, odd), odd ? 1 : 2);
    }
    memset(readings, 0, sizeof readings);
    assert_int_equal(pki_clock_step_in(readings, PKI_STEP_READINGS), 1); /* stands still */
    assert_int_equal(pki_clock_step_in(readings, 1), 1);
}

static void first_lines_of_files(void **state)
{
    char line[8], name[] = "/tmp/pk-line-XXXXXX";
    int fd = mkstemp(name);
    (void)state;
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_false(pki_read_line(name, line, sizeof line)); /* empty */
    fputs("tsc\nhpet\n", file);
    fflush(file);
    assert_true(pki_read_line(name, line, sizeof line));
    assert_string_equal(line, "tsc");
    fputs("and more than fits\n", file);
    rewind(file);
    fputs("1234567890", file);
    fclose(file);
    assert_true(pki_read_line(name, line, sizeof line));
    assert_string_equal(line, "1234567");
    remove(name);
    assert_false(pki_read_line(name, line, sizeof line));
}

static const struct CMUnitTest clock_tests[] = {
    cmocka_unit_test(constant_rate),
    cmocka_unit_test(suspended),
    cmocka_unit_test(suspended_with_its_counter),
    cmocka_unit_test(wrong_rate_at_start),
    cmocka_unit_test(noisy_brackets),
    cmocka_unit_test(drift),
    cmocka_unit_test(large_values),
    cmocka_unit_test(list_is_full),
    cmocka_unit_test(stalled_checks),
    cmocka_unit_test(before_the_start),
    cmocka_unit_test(monotonic_is_itself),
    cmocka_unit_test(real_clocks),
    cmocka_unit_test(steps),
    cmocka_unit_test(first_lines_of_files),
    cmocka_unit_test(early_check),
};

/* ---- what a session says of its clock ---- */

/* Why it is not the processor's counter, that somebody insists on one that the kernel does not
 * trust, and that it has jumped. */

static char said[8][512];
static unsigned said_count;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    if (level == PK_LOG_WARNING && strncmp(message, "clock: ", 7) == 0 && said_count < 8)
        snprintf(said[said_count++], sizeof said[0], "%s", message);
}

static int begin_quietly(void **state)
{
    said_count = 0;
    memset(said, 0, sizeof said);
    return enter_folder(state);
}

/* In one line. */
static char *report_of(void)
{
    static char text[65536];
    FILE *file = fopen("report", "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file), kept = 0;
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        char c = text[i] == '\n' ? ' ' : text[i];
        if (c != ' ' || (kept && text[kept - 1] != ' '))
            text[kept++] = c;
    }
    text[kept] = 0;
    return text;
}

static void start_with(const char *clock)
{
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .log = hear, .report_path = "report",
                            .tuning = kit_tuning("clock=%s,flush_ms=3600000", clock ? clock : ""))),
        PK_OK);
}

static void says_why_it_is_not_the_counter(void **state)
{
    const char *why_not = NULL;
    (void)state;
    bool trusted = pki_cycle_counter_trusted(&why_not);
    start_with(NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, 0); /* nobody has asked for anything else */
    assert_int_equal(!strstr(report_of(), "the processor's counter"), trusted);
    assert_true(trusted || strstr(report_of(), why_not));
    start_with("monotonic");
    assert_int_equal(pk_stop(), PK_OK);
    assert_null(strstr(report_of(), "the processor's counter"));
}

static void warns_who_insists(void **state)
{
    const char *why_not = NULL;
    (void)state;
    bool trusted = pki_cycle_counter_trusted(&why_not);
    if (!pki_cycle_counter_constant())
        skip();
    start_with(PKI_CYCLE_COUNTER_NAME);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, trusted ? 0 : 1);
    assert_true(trusted || strstr(said[0], why_not));
    assert_int_equal(!strstr(report_of(), "used as requested"), trusted);
}

/* The map is moved instead of the counter. */
static void tells_of_a_jump_once(void **state)
{
    const char *why_not;
    (void)state;
    if (!pki_cycle_counter_constant())
        skip();
    unsigned before = pki_cycle_counter_trusted(&why_not) ? 0 : 1;
    start_with(PKI_CYCLE_COUNTER_NAME);
    kit_end_collector();
    pki_collect_check_clock(&pki_the_session, true);
    assert_int_equal(said_count, before);
    pki_clock_map *map = &pki_the_session.arena->header->clock;
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < map->count; k++)
            map->segments[k].start_ns += 5000000000u;
        pki_collect_check_clock(&pki_the_session, true);
    }
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(said_count, before + 1);
    assert_non_null(strstr(said[before], "has jumped: it is 5.00 s away"));
}

static const struct CMUnitTest clock_session_tests[] = {
    cmocka_unit_test_setup_teardown(says_why_it_is_not_the_counter, begin_quietly, leave_folder),
    cmocka_unit_test_setup_teardown(warns_who_insists, begin_quietly, leave_folder),
    cmocka_unit_test_setup_teardown(tells_of_a_jump_once, begin_quietly, leave_folder),
};

int main(void)
{
    int failed = cmocka_run_group_tests(clock_tests, NULL, NULL);
    failed += cmocka_run_group_tests(clock_session_tests, NULL, NULL);
    return failed;
}
