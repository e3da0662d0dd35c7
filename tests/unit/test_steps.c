/* Steps: their figures, where they lie in time, and where the warm-up ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/steps/steps.h"

/* ---- the step accumulator against sums made by hand, for loops short and long ---- */

#define US UINT64_C(1000)

enum { LOAD = 3, WORK = 1, RARE = 700 };

static const char *name_of(void *user, uint32_t id)
{
    (void)user;
    return id == LOAD ? "load" : id == WORK ? "work" : id == RARE ? "rare" : NULL;
}

static pki_step step_of(uint64_t index, uint64_t duration)
{
    return (pki_step){.index = index,
                      .start = 1000 * index,
                      .duration = duration,
                      .items = 4,
                      .broken_down = true};
}

/* load 30 us, work 60 us, 10 us untracked; the extra goes to work */
static void add(pki_steps *steps, uint64_t index, uint64_t extra)
{
    pki_steps_add_self(steps, LOAD, PK_DATA, 30 * US);
    pki_steps_add_self(steps, WORK, PK_COMPUTE, 60 * US + extra);
    pki_step step = step_of(index, 100 * US + extra);
    pki_steps_add(steps, &step);
}

static void give_rows(pki_summary *summary)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } rows[] = {{"work", PK_OTHER}, {"work", PK_COMPUTE}, {"elsewhere", PK_IO},
                {"rare", PK_COMM},  {"load", PK_DATA},    {"work", PK_WAIT},
                {"work", PK_IO},    {"work", PK_DATA},    {"a", PK_IO}};
    pki_summary_init(summary);
    summary->region_count = sizeof rows / sizeof *rows;
    summary->regions = calloc(summary->region_count, sizeof *summary->regions);
    for (size_t i = 0; i < summary->region_count; i++) {
        summary->regions[i].name = strdup(rows[i].name);
        summary->regions[i].kind = rows[i].kind;
    }
}

static void fill(pki_steps *steps, uint32_t warmup, pki_summary *summary)
{
    give_rows(summary);
    assert_true(pki_steps_fill(steps, warmup, name_of, NULL, summary));
    pki_steps_destroy(steps);
}

static void check_near(double got, double wanted, double relative)
{
    if (!(fabs(got - wanted) <= relative * fabs(wanted)))
        fail_msg("%.17g instead of %.17g", got, wanted);
}

static void check_loop(uint64_t count)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    for (uint64_t i = 0; i < count; i++)
        add(steps, i, i ? 0 : 900 * US);
    fill(steps, 0, &s);
    const pki_step_summary *t = &s.steps;
    assert_int_equal(t->count, count);
    assert_int_equal(t->warmup, 1);
    assert_int_equal(t->all.count, count);
    assert_int_equal(t->steady.count, count - 1);
    assert_int_equal(t->broken_down, count - 1);
    assert_int_equal(t->warm.count, 1);
    assert_true(t->warm.sum == 1000e3);
    assert_true(t->steady.sum == 100e3 * (double)(count - 1));
    assert_true(t->steady.min == 100e3 && t->steady.max == 100e3 && t->steady.p99 == 100e3);
    assert_true(t->all.max == 1000e3);
    assert_int_equal(t->items, 4 * (count - 1));
    check_near(t->items_per_second, 4 / 100e-6, 1e-9);
    assert_int_equal(t->kinds[PK_DATA], 30 * US * (count - 1));
    assert_int_equal(t->kinds[PK_COMPUTE], 60 * US * (count - 1));
    assert_int_equal(t->kinds[PKI_UNTRACKED], 10 * US * (count - 1));
    assert_int_equal(t->kinds[PK_WAIT], 0);
    check_near(s.regions[1].step_share, 0.6, 1e-12);
    check_near(s.regions[4].step_share, 0.3, 1e-12);
    assert_int_equal(s.regions[4].step_self.count, count - 1);
    assert_true(s.regions[4].step_self.p50 == 30e3);
    assert_true(s.regions[0].step_share == 0); /* other kinds */
    assert_true(s.regions[5].step_share + s.regions[6].step_share + s.regions[7].step_share == 0);
    assert_true(s.regions[2].step_share == 0);
    assert_int_equal(t->slowest_count, count - 1 < 10 ? count - 1 : 10);
    pki_summary_finish(&s);
}

static void sums_are_exact_for_any_length(void **state)
{
    static const uint64_t counts[] = {2, 5, 11, 255, 256, 257, 258, 300, 5000};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check_loop(counts[i]);
}

static void one_step_is_not_warmup(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    add(steps, 0, 0);
    fill(steps, 0, &s);
    assert_int_equal(s.steps.warmup, 0);
    assert_int_equal(s.steps.steady.count, 1);
    assert_int_equal(s.steps.slowest_count, 1);
    assert_int_equal(s.steps.slowest[0].part_count, 0); /* nothing above its own median */
    pki_summary_finish(&s);
}

static void no_steps_is_nothing(void **state)
{
    pki_summary s;
    (void)state;
    fill(pki_steps_create(), 0, &s);
    assert_int_equal(s.steps.count, 0);
    assert_null(s.steps.series);
    pki_summary_finish(&s);
    fill(NULL, 0, &s);
    assert_int_equal(s.steps.count, 0);
    pki_summary_finish(&s);
    pki_steps_add_self(NULL, 1, 1, 1);
    pki_steps_add(NULL, &(pki_step){0});
    pki_steps_expect_warmup(NULL, 1);
}

static void warmup_as_given(void **state)
{
    static const struct {
        uint64_t count;
        uint32_t given;
        uint64_t apart;
    } cases[] = {{10, 1, 1},       {10, 4, 4},       {10, 10, 10}, {10, 99, 10},
                 {1000, 256, 256}, {1000, 257, 256}, {1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pki_summary s;
        pki_steps *steps = pki_steps_create();
        for (uint64_t n = 0; n < cases[i].count; n++)
            add(steps, n, 0);
        fill(steps, cases[i].given, &s);
        assert_int_equal(s.steps.warmup, cases[i].apart);
        assert_true(s.steps.warmup_given);
        assert_int_equal(s.steps.warm.count, cases[i].apart);
        assert_int_equal(s.steps.steady.count, cases[i].count - cases[i].apart);
        assert_int_equal(s.steps.kinds[PK_DATA], 30 * US * s.steps.steady.count);
        pki_summary_finish(&s);
    }
}

static void long_warmup_is_announced(void **state)
{
    (void)state;
    for (uint64_t count = 100; count <= 700; count += 300) { /* 100, 400, 700 */
        pki_summary s;
        pki_steps *steps = pki_steps_create();
        pki_steps_expect_warmup(steps, 500);
        for (uint64_t n = 0; n < count; n++)
            add(steps, n, n < 500 ? 77 * US : 0);
        fill(steps, 500, &s);
        assert_int_equal(s.steps.warmup, count < 500 ? count : 500);
        assert_int_equal(s.steps.steady.count, count < 500 ? 0 : count - 500);
        assert_int_equal(s.steps.warm.count + s.steps.steady.count, count);
        assert_true(count < 500 || s.steps.steady.max == 100e3);
        assert_true(s.steps.warm.min == 177e3);
        pki_summary_finish(&s);
    }
}

/* Slow steps everywhere: in the warm-up, in the head, in the tail. */
static void the_slowest_are_right(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    static const uint64_t order[] = {100000, 70, 40000, 256, 12, 255, 2000, 1999, 99999, 9};
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t extra = i == 0 ? 10000 * US : 0;
        for (uint64_t k = 0; k < 10; k++)
            if (i == order[k])
                extra = (50 - k) * US;
        add(steps, i, extra);
    }
    fill(steps, 0, &s);
    assert_int_equal(s.steps.slowest_count, 10);
    for (uint64_t k = 0; k < 10; k++) {
        const pki_step_row *row = &s.steps.slowest[k];
        assert_int_equal(row->index, order[k]);
        assert_int_equal(row->duration, (150 - k) * US);
        assert_int_equal(row->start, 1000 * order[k]);
        assert_int_equal(row->kinds[PK_COMPUTE], (110 - k) * US);
        assert_int_equal(row->part_count, 1);
        assert_string_equal(row->parts[0].name, "work");
        assert_int_equal(row->parts[0].kind, PK_COMPUTE);
        assert_int_equal(row->parts[0].self, (110 - k) * US);
        check_near(row->parts[0].usual, 60e3, 1 / 128.0);
    }
    assert_in_range(s.steps.series_count, PKI_STEPS_SLOWEST, 4096);
    pki_summary_finish(&s);
}

static void parts_are_ordered_by_excess(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 400; i++)
        add(steps, i, 0);
    /* load +20, rare +500 (usually 0), untracked +90, work -60 */
    pki_steps_add_self(steps, LOAD, PK_DATA, 50 * US);
    pki_steps_add_self(steps, RARE, PK_COMM, 500 * US);
    pki_step slow = step_of(400, 650 * US);
    pki_steps_add(steps, &slow);
    fill(steps, 0, &s);
    const pki_step_row *row = &s.steps.slowest[0];
    assert_int_equal(row->index, 400);
    assert_int_equal(row->part_count, 3);
    assert_string_equal(row->parts[0].name, "rare");
    assert_true(row->parts[0].usual == 0);
    assert_string_equal(row->parts[1].name, "untracked");
    assert_int_equal(row->parts[1].kind, PKI_UNTRACKED);
    assert_int_equal(row->parts[1].self, 100 * US);
    assert_string_equal(row->parts[2].name, "load");
    /* Once in 400 steps: all others count as 0. */
    assert_int_equal(s.regions[3].step_self.count, 400);
    assert_true(s.regions[3].step_self.p50 == 0 && s.regions[3].step_self.max == 500e3);
    pki_summary_finish(&s);
}

static void parts_of_one_region_add_up(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        pki_steps_add_self(steps, LOAD, PK_DATA, 10 * US);
        pki_steps_add_self(steps, WORK, PK_COMPUTE, 1 * US);
        pki_steps_add_self(steps, LOAD, PK_DATA, 30 * US);
        pki_step step = step_of(i, 100 * US);
        pki_steps_add(steps, &step);
    }
    fill(steps, 0, &s);
    assert_int_equal(s.regions[4].step_self.count, 1);
    assert_true(s.regions[4].step_self.max == 40e3);
    pki_summary_finish(&s);
}

static void without_a_breakdown(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 600; i++) {
        pki_steps_add_self(steps, LOAD, PK_DATA, 30 * US);
        pki_step step = step_of(i, 100 * US);
        step.broken_down = i % 2;
        pki_steps_add(steps, &step);
    }
    fill(steps, 0, &s);
    assert_int_equal(s.steps.steady.count, 599);
    assert_int_equal(s.steps.broken_down, 300);
    assert_int_equal(s.steps.kinds[PK_DATA], 300 * 30 * US);
    assert_int_equal(s.steps.kinds[PKI_UNTRACKED], 300 * 70 * US);
    check_near(s.regions[4].step_share, 0.3, 1e-12);
    assert_int_equal(s.regions[4].step_self.count, 300);
    assert_int_equal(s.steps.series[1].kinds[PK_DATA], 30 * US);
    assert_int_equal(s.steps.series[2].kinds[PK_DATA], 0); /* what is not known is not shown */
    assert_int_equal(s.steps.series[2].kinds[PKI_UNTRACKED], 0);
    pki_summary_finish(&s);
}

/* Clocks round: more self time than step. */
static void untracked_is_never_negative(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        pki_steps_add_self(steps, LOAD, PK_DATA, 101);
        pki_step step = step_of(i, 100);
        pki_steps_add(steps, &step);
    }
    fill(steps, 0, &s);
    assert_int_equal(s.steps.kinds[PKI_UNTRACKED], 0);
    check_near(s.regions[4].step_share, 1, 1e-12);
    pki_summary_finish(&s);
}

static void strange_ids_and_kinds(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        pki_steps_add_self(steps, UINT32_MAX, PK_COMM, 10);
        pki_steps_add_self(steps, PKI_STEPS_IDS, PK_COMM, 10);
        pki_steps_add_self(steps, 9, 77, 20);
        pki_steps_add_self(steps, PKI_STEPS_IDS - 1, PK_IO, 0); /* not worth a table */
        pki_step step = step_of(i, i == 2 ? 200 : 100);
        pki_steps_add(steps, &step);
    }
    fill(steps, 0, &s);
    assert_int_equal(s.steps.kinds[PK_COMM], 2 * 20);
    assert_int_equal(s.steps.kinds[PK_OTHER], 2 * 20);
    assert_int_equal(s.steps.kinds[PK_IO], 0);
    assert_int_equal(s.steps.slowest[0].index, 2);
    assert_string_equal(s.steps.slowest[0].parts[0].name, "untracked");
    pki_summary_finish(&s);
}

static void filled_twice_is_filled_anew(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    give_rows(&s);
    for (uint64_t i = 0; i < 300; i++) {
        add(steps, i, 0);
        if (i % 100 == 50)
            assert_true(pki_steps_fill(steps, 0, name_of, NULL, &s));
    }
    assert_int_equal(s.steps.count, 251);
    assert_int_equal(s.steps.steady.count, 250);
    assert_true(pki_steps_fill(steps, 0, name_of, NULL, &s));
    assert_int_equal(s.steps.count, 300);
    pki_steps_destroy(steps);
    pki_summary_finish(&s);
}

static void drift_and_series(void **state)
{
    pki_summary s;
    pki_steps *steps = pki_steps_create();
    (void)state;
    for (uint64_t i = 0; i < 9001; i++)
        add(steps, i, i <= 3000 ? 0 : i <= 6000 ? 20 * US : 50 * US);
    fill(steps, 0, &s);
    assert_in_range(s.steps.series_count, 2048, 4096);
    check_near(s.steps.first_third, 100e3, 1e-9);
    check_near(s.steps.last_third, 150e3, 1e-9);
    check_near(s.steps.drift, 0.5, 1e-9);
    pki_summary_finish(&s);
}

static const struct CMUnitTest steps_tests[] = {
    cmocka_unit_test(sums_are_exact_for_any_length),
    cmocka_unit_test(one_step_is_not_warmup),
    cmocka_unit_test(no_steps_is_nothing),
    cmocka_unit_test(warmup_as_given),
    cmocka_unit_test(long_warmup_is_announced),
    cmocka_unit_test(the_slowest_are_right),
    cmocka_unit_test(parts_are_ordered_by_excess),
    cmocka_unit_test(parts_of_one_region_add_up),
    cmocka_unit_test(without_a_breakdown),
    cmocka_unit_test(untracked_is_never_negative),
    cmocka_unit_test(strange_ids_and_kinds),
    cmocka_unit_test(filled_twice_is_filled_anew),
    cmocka_unit_test(drift_and_series),
};

/* ---- where in time a range of steps lies, before and after it has been seen ---- */

static pki_step_watch w;

static void see(uint64_t index, uint64_t start, uint64_t duration)
{
    pki_step_watch_see(index, start, duration);
    w = pki_step_watch_now();
}

static void a_range_ahead(void **state)
{
    (void)state;
    pki_step_watch_start(10, 12);
    w = pki_step_watch_now();
    assert_true(pki_step_watch_expect(&w) == PKI_NOT_YET);
    see(0, 5, 100);
    assert_int_equal(pki_step_watch_expect(&w), 105 + 9 * 100);
    see(1, 105, 500); /* steps get longer: what is usual follows */
    assert_int_equal(pki_step_watch_expect(&w), 605 + 8 * 200);
    assert_true(w.begin_ns == PKI_NOT_YET && w.end_ns == PKI_NOT_YET);
    see(9, 1000, 50);
    assert_true(w.begin_ns == 1050 && pki_step_watch_expect(&w) == 1050);
    see(10, 1050, 10);
    see(11, 1060, 10);
    assert_true(w.end_ns == PKI_NOT_YET);
    see(12, 1070, 10);
    assert_int_equal(w.end_ns, 1080);
    see(13, 1080, 10);
    assert_true(w.begin_ns == 1050 && w.end_ns == 1080);
}

static void steps_that_are_missing(void **state)
{
    (void)state;
    pki_step_watch_start(5, 6);
    see(5, 100, 10); /* 4 has been dropped */
    assert_int_equal(w.begin_ns, 100);
    see(8, 130, 10);
    assert_int_equal(w.end_ns, 130);
    pki_step_watch_start(5, 6); /* all of the range */
    see(9, 500, 10);
    assert_true(w.begin_ns == 500 && w.end_ns == 500);
}

static void from_the_start(void **state)
{
    (void)state;
    pki_step_watch_start(0, 0);
    w = pki_step_watch_now();
    assert_int_equal(w.begin_ns, 0);
    see(0, 3, 4);
    assert_int_equal(w.end_ns, 7);
}

static void farther_than_numbers_go(void **state)
{
    (void)state;
    pki_step_watch_start(UINT64_MAX - 1, UINT64_MAX);
    see(0, 0, 1000000);
    assert_true(pki_step_watch_expect(&w) == PKI_NOT_YET);
}

static const struct CMUnitTest step_watch_tests[] = {
    cmocka_unit_test(a_range_ahead),
    cmocka_unit_test(steps_that_are_missing),
    cmocka_unit_test(from_the_start),
    cmocka_unit_test(farther_than_numbers_go),
};

/* ---- where the warm-up ends ---- */

/* On series whose answer is known, and where the rule's limits are. */

#define MS 1000000.0
#define MOST 4096

static uint64_t series[MOST];

static double random_unit(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

/* Normally distributed enough: the sum of twelve. */
static double noise(double deviation)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_unit();
    return deviation * sum;
}

typedef double shape(size_t i, size_t n);

static uint64_t found(shape *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        series[i] = (uint64_t)(of(i, n) * MS);
    return pki_warmup_find(series, n < PKI_WARMUP_KNOWN ? n : PKI_WARMUP_KNOWN, n);
}

static double constant(size_t i, size_t n)
{
    (void)i, (void)n;
    return 10;
}

static double first_slow(size_t i, size_t n)
{
    (void)n;
    return i == 0 ? 900 : 10;
}

static double three_slow(size_t i, size_t n)
{
    (void)n;
    return (i == 0 ? 500 : i < 3 ? 30 : 10) + noise(0.2);
}

/* 110, 60, 35, 22.5, 16.25, 13.1, 11.6, then within 1.25 x the median */
static double decaying(size_t i, size_t n)
{
    (void)n;
    return 10 + 100 * pow(0.5, (double)i);
}

static double noisy(size_t i, size_t n)
{
    (void)i, (void)n;
    return 10 * exp(noise(0.3));
}

static double bimodal(size_t i, size_t n)
{
    (void)n;
    return (i % 5 < 2 ? 20 : 10) + noise(0.2);
}

static double starting_in_the_slow_mode(size_t i, size_t n)
{
    (void)n;
    return (i < 4 || i % 3 == 0 ? 20 : 10) + noise(0.1);
}

static double falling(size_t i, size_t n)
{
    return 10 * (2 - (double)i / (double)n) + noise(0.05);
}

static double rising(size_t i, size_t n)
{
    return 10 * (1 + (double)i / (double)n) + noise(0.05);
}

static double always_slower_than_later(size_t i, size_t n)
{
    return i < n / 2 ? 50 : 10;
}

static double second_slow_only(size_t i, size_t n)
{
    (void)n;
    return i == 2 ? 900 : 10;
}

static void the_first_step_always_is(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 3, 4, 5, 19, 20, 100, 4096};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(found(constant, counts[i]), 1);
        assert_int_equal(found(first_slow, counts[i]), 1);
    }
}

static void few_steps(void **state)
{
    (void)state;
    assert_int_equal(found(first_slow, 0), 0);
    assert_int_equal(found(first_slow, 1), 0); /* else nothing would be left */
    for (size_t n = 2; n <= 5; n++) {
        assert_int_equal(found(three_slow, n), 1);
        assert_int_equal(found(decaying, n), 1);
    }
}

static void slow_ones_that_follow_are(void **state)
{
    (void)state;
    assert_int_equal(found(three_slow, 30), 3);
    assert_int_equal(found(three_slow, 1000), 3);
    assert_int_equal(found(decaying, 100), 6);
    assert_int_equal(found(decaying, MOST), 6);
}

static void at_most_a_tenth(void **state)
{
    (void)state;
    assert_int_equal(found(decaying, 29), 2);
    assert_int_equal(found(decaying, 30), 3);
    assert_int_equal(found(decaying, 59), 5);
    assert_int_equal(found(decaying, 60), 6);
}

static void at_most_32(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        series[i] = (uint64_t)((i < 40 ? 100 : 10) * MS);
    assert_int_equal(pki_warmup_find(series, PKI_WARMUP_KNOWN, MOST), PKI_WARMUP_MOST);
}

static void noise_is_not(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        assert_in_range(found(noisy, 400), 1, 2);
    uint64_t sum = 0;
    for (int i = 0; i < 200; i++)
        sum += found(noisy, 400) - 1;
    assert_in_range(sum, 0, 4);
}

static void two_sorts_of_steps_are_not(void **state)
{
    (void)state;
    assert_int_equal(found(bimodal, 400), 1);
    assert_int_equal(found(starting_in_the_slow_mode, 400), 1);
}

static void drift_is_not(void **state)
{
    (void)state;
    assert_int_equal(found(falling, 400), 1);
    assert_int_equal(found(falling, MOST), 1);
    assert_int_equal(found(rising, 400), 1);
    assert_int_equal(found(always_slower_than_later, MOST), 1);
}

static void it_ends_at_the_first_usual_step(void **state)
{
    (void)state;
    assert_int_equal(found(second_slow_only, 400), 1);
}

/* All steps alike but the second: a step of 1.25 x the median is not above the threshold. */
static void at_the_threshold(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++)
        series[i] = 1000;
    series[1] = 1250;
    assert_int_equal(pki_warmup_find(series, 100, 100), 1);
    series[1] = 1251;
    assert_int_equal(pki_warmup_find(series, 100, 100), 2);
}

static const struct CMUnitTest warmup_tests[] = {
    cmocka_unit_test(the_first_step_always_is),
    cmocka_unit_test(few_steps),
    cmocka_unit_test(slow_ones_that_follow_are),
    cmocka_unit_test(at_most_a_tenth),
    cmocka_unit_test(at_most_32),
    cmocka_unit_test(noise_is_not),
    cmocka_unit_test(two_sorts_of_steps_are_not),
    cmocka_unit_test(drift_is_not),
    cmocka_unit_test(it_ends_at_the_first_usual_step),
    cmocka_unit_test(at_the_threshold),
};

int main(void)
{
    int failed = cmocka_run_group_tests(steps_tests, NULL, NULL);
    failed += cmocka_run_group_tests(step_watch_tests, NULL, NULL);
    failed += cmocka_run_group_tests(warmup_tests, NULL, NULL);
    return failed;
}
