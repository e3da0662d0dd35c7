/* The step accumulator against sums made by hand, for loops short and long. */
#include "measure/steps/steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
