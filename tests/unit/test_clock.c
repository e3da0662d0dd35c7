/* The clock map against clocks that are known exactly: a counter whose rate is wrong at first,
 * drifts and is read through noisy brackets, checked when the collector would check it. */
#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "valgrind.h"

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

static pki_clock_map map;
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
    pki_clock_map_init(&map, 0, a, b);
}

/* As lib/session/collector/collect.c does. */
static uint64_t interval(unsigned check)
{
    static const uint64_t first[] = {4000000, 20000000, 100000000, 400000000};
    return check < 4 ? first[check] : SECOND;
}

static void expect_close(const counter *c, uint64_t ns)
{
    uint64_t mapped = pki_clock_ns(&map, ticks_at(c, ns));
    double error = (double)mapped - (double)ns, allowed = 1000 + 1e-6 * (double)ns;
    if (fabs(error) > allowed)
        fail_msg("%.9f s: %.0f ns off, %.0f allowed, %u segments", (double)ns / 1e9, error, allowed,
                 map.count);
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
        before[i] = pki_clock_ns(&map, ticks_at(c, at[i]));
        assert_true(before[i] >= last);
        last = before[i];
        expect_close(c, at[i]);
    }
    pki_clock_sample now = sample_at(c, to);
    pki_clock_map_check(&map, now);
    for (unsigned i = 0; i <= probes; i++)
        if (ticks_at(c, at[i]) < now.ticks)
            assert_int_equal(pki_clock_ns(&map, ticks_at(c, at[i])), before[i]);
}

/* Where one segment ends and the next begins, neighbours in ticks are neighbours in time. */
static void expect_continuous(void)
{
    for (uint32_t i = 1; i < map.count; i++) {
        uint64_t tick = map.segments[i].start_ticks;
        uint64_t here = pki_clock_ns(&map, tick), before = pki_clock_ns(&map, tick - 1);
        assert_in_range(here - before, 0,
                        1 + (uint64_t)(map.segments[i - 1].rate >> PKI_RATE_BITS) + 1);
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
    assert_in_range(map.count, 2, PKI_CLOCK_SEGMENTS);
}

static const counter plain = {.first_ticks = 123456789012, .first_ns = 987654321};

static void constant_rate(void **state)
{
    (void)state;
    run(&plain, 60);
    run(&plain, 3600);
    assert_true(map.count < 32); /* nothing to correct once the rate is known */
    assert_true(fabs(pki_clock_hz(&map) / (double)HZ - 1) < 1e-9);
    assert_in_range(map.uncertainty_ns, 0, 100);
}

static void wrong_rate_at_start(void **state)
{
    counter fast = plain, slow = plain;
    (void)state;
    fast.wrong_ppm = 50;
    slow.wrong_ppm = -50;
    run(&fast, 60);
    assert_true(fabs(pki_clock_ppm(&map) + 50) < 0.5);
    run(&slow, 60);
    assert_true(fabs(pki_clock_ppm(&map) - 50) < 0.5);
    run(&fast, 3600);
    assert_true(map.uncertainty_ns >=
                100); /* what was wrong in the beginning has been noticed and is told */
}

static void noisy_brackets(void **state)
{
    counter noisy = plain;
    (void)state;
    noisy.noise = 145; /* 50 ns either way */
    run(&noisy, 60);
    run(&noisy, 3600);
    assert_true(map.count < 128);
    assert_true(map.uncertainty_ns >= 50);
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
        assert_true(map.count > 32); /* it did have to follow */
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
        pki_clock_map_check(&map, s);
        uint64_t mapped = pki_clock_ns(&map, s.ticks);
        assert_true(mapped > last);
        last = mapped;
    }
    assert_in_range(map.count, PKI_CLOCK_SEGMENTS - 1, PKI_CLOCK_SEGMENTS);
    expect_continuous();
    assert_true(map.uncertainty_ns >= 500 * SECOND);
}

/* A check that comes late, and one whose sample is no newer than the last. */
static void stalled_checks(void **state)
{
    (void)state;
    begin(&plain);
    follow(&plain, 1000000, 5000000);
    follow(&plain, 5000000, 30 * SECOND);
    uint32_t count = map.count;
    pki_clock_map_check(&map, sample_at(&plain, 10 * SECOND));
    pki_clock_map_check(&map, sample_at(&plain, 30 * SECOND));
    assert_int_equal(map.count, count);
    assert_int_equal(map.last.ns, plain.first_ns + 30 * SECOND);
}

/* A correction runs its course before the next one: pk_stop checks at any moment. */
static void early_check(void **state)
{
    (void)state;
    begin(&plain);
    for (uint64_t s = 1; s <= 8; s++)
        pki_clock_map_check(&map, sample_at(&plain, s * SECOND));
    uint32_t count = map.count;
    pki_clock_sample late = sample_at(&plain, 9 * SECOND),
                     early = sample_at(&plain, 9 * SECOND + SECOND / 4);
    late.ns += 5000;
    pki_clock_map_check(&map, late);
    assert_int_equal(map.count, count + 2);
    pki_clock_map_check(&map, early);
    assert_int_equal(map.count, count + 2);
    expect_continuous();
    for (uint64_t s = 11; s <= 20; s++)
        pki_clock_map_check(&map, sample_at(&plain, s * SECOND));
    expect_continuous();
    expect_close(&plain, 20 * SECOND);
}

static void before_the_start(void **state)
{
    (void)state;
    begin(&plain);
    assert_int_equal(pki_clock_ns(&map, 0), 0);
    assert_int_equal(pki_clock_ns(&map, plain.first_ticks - 1), 0);
    assert_int_equal(pki_clock_ns(&map, plain.first_ticks), 0);
    assert_in_range(pki_clock_ns(&map, plain.first_ticks + 2900000), 999999, 1000001);
    map.count = 0; /* of an arena whose writer was killed before it got here */
    assert_int_equal(pki_clock_ns(&map, plain.first_ticks + 2900000), 0);
    map.count = UINT32_MAX; /* of a damaged one */
    pki_clock_ns(&map, plain.first_ticks);
}

static void monotonic_is_itself(void **state)
{
    static const uint64_t starts[] = {0, 1, 123456789, 1ull << 62, (1ull << 63) - 1};
    static const uint64_t laters[] = {0, 1, 999, 3600 * SECOND, 1ull << 62};
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        pki_clock_sample a = {starts[i], starts[i], 0}, b = {starts[i] + 5, starts[i] + 5, 0};
        pki_clock_map_init(&map, 1, a, b);
        pki_clock_map_check(&map,
                            (pki_clock_sample){starts[i] + SECOND, starts[i] + SECOND + 1, 0});
        assert_int_equal(map.count, 1);
        assert_true(pki_clock_unit_ns(&map) == 1.0 && pki_clock_hz(&map) == 1e9 &&
                    pki_clock_ppm(&map) == 0);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(pki_clock_ns(&map, starts[i] + laters[k]), laters[k]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_rate),
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
