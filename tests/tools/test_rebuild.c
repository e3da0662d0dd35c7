/* Self times and steps from slices, in whatever order they come. */
#include "rebuild/rebuild.h"

#include "table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct slice {
    const char *name;
    uint64_t start, end;
} slice;

static event event_of(const char *name, uint64_t start, uint64_t end)
{
    event e = {.type = EVENT_REGION, .name = name, .start = start, .end = end, .tid = 1};
    strcpy(e.track, "1/1");
    strcpy(e.stepper, "1/1");
    /* "#3" is step 3 */
    if (name[0] == '#') {
        e.type = EVENT_STEP;
        e.index = strtoull(name + 1, NULL, 10);
        e.items = 10;
    }
    return e;
}

static void feed(rebuild *r, const slice *slices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        event e = event_of(slices[i].name, slices[i].start, slices[i].end);
        rebuild_event(r, &e);
    }
}

static void finish(rebuild *r, pki_summary *s)
{
    trace_about about;
    trace_about_begin(&about);
    trace_about_end(&about);
    rebuild_finish(r, &about, true, s);
    trace_about_forget(&about);
    rebuild_destroy(r);
}

static uint64_t self_of(const pki_summary *s, const char *name)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (strcmp(s->regions[i].name, name) == 0)
            return s->regions[i].self;
    fail_msg("no region %s", name);
    return 0;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* "tail" ends, and "head" begins, with what it is in. */
static const slice nested[] = {
    {"leaf", 10, 20},    {"leaf", 25, 30},    {"tail", 36, 40},   {"inner", 5, 40},
    {"leaf", 50, 60},    {"outer", 0, 100},   {"head", 105, 108}, {"leaf", 110, 120},
    {"alone", 130, 131}, {"later", 105, 140},
};

static void check_nested(const pki_summary *s)
{
    assert_int_equal(self_of(s, "leaf"), 10 + 5 + 10 + 10);
    assert_int_equal(self_of(s, "tail"), 4);
    assert_int_equal(self_of(s, "head"), 3);
    assert_int_equal(self_of(s, "inner"), 35 - 15 - 4);
    assert_int_equal(self_of(s, "outer"), 100 - 35 - 10);
    assert_int_equal(self_of(s, "later"), 35 - 3 - 11);
    assert_int_equal(self_of(s, "alone"), 1);
    assert_int_equal(s->threads[0].recorded, 10);
    assert_int_equal(s->threads[0].kinds[PK_OTHER], 135);
    assert_int_equal(s->run.wall, 140);
}

static void own_time_is_what_children_leave(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    feed(r, nested, COUNT(nested));
    assert_false(rebuild_needs_sorting(r));
    finish(r, &s);
    check_nested(&s);
    pki_summary_finish(&s);
}

static void any_order_will_do(void **state)
{
    slice turned[COUNT(nested)];
    pki_summary s;
    (void)state;
    for (size_t i = 0; i < COUNT(nested); i++)
        turned[i] = nested[COUNT(nested) - 1 - i];
    rebuild *r = rebuild_create(false, false);
    feed(r, turned, COUNT(turned));
    assert_true(rebuild_needs_sorting(r));
    rebuild_destroy(r);
    r = rebuild_create(true, false);
    feed(r, turned, COUNT(turned));
    assert_false(rebuild_needs_sorting(r));
    finish(r, &s);
    check_nested(&s);
    pki_summary_finish(&s);
}

/* Two steps; "work" straddles the end of the first, "all" both. */
static const slice stepped[] = {
    {"load", 0, 30},    {"#0", 0, 100},   {"part", 95, 110},  {"work", 60, 130},
    {"load", 140, 180}, {"#1", 100, 200}, {"tail", 190, 210}, {"all", 50, 220},
};

static void check_stepped(const pki_summary *s)
{
    const pki_step_summary *t = &s->steps;
    assert_int_equal(t->count, 2);
    assert_int_equal(t->all.count, 2);
    assert_int_equal(t->warmup, 1);
    assert_int_equal(t->broken_down, 1);
    assert_int_equal(t->items, 10);
    assert_int_equal(t->series[0].index, 0);
    /* Step 0: load 30, all 10 (50..60), work 35 (60..95), part 5, untracked 20 (30..50) */
    assert_int_equal(t->series[0].kinds[PKI_UNTRACKED], 20);
    /* Step 1: part 10, work 20, load 40, tail 10, all 20 */
    assert_int_equal(t->series[1].kinds[PKI_UNTRACKED], 0);
    for (size_t i = 0; i < s->region_count; i++) {
        static const struct {
            const char *name;
            double self;
        } wanted[] = {{"part", 10}, {"work", 20}, {"load", 40}, {"tail", 10}, {"all", 20}};
        for (size_t k = 0; k < COUNT(wanted); k++)
            if (strcmp(s->regions[i].name, wanted[k].name) == 0)
                assert_true(s->regions[i].step_self.sum == wanted[k].self);
    }
}

static void steps_get_what_overlaps(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    rebuild_expect_steps(r, "1/1");
    feed(r, stepped, COUNT(stepped));
    assert_false(rebuild_needs_sorting(r));
    finish(r, &s);
    check_stepped(&s);
    pki_summary_finish(&s);
    r = rebuild_create(true, false); /* a pipe: whose steps is not known before */
    feed(r, stepped, COUNT(stepped));
    finish(r, &s);
    check_stepped(&s);
    pki_summary_finish(&s);
}

/* A slice that comes before the step that it outlasts. */
static void a_step_that_comes_late(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    rebuild_expect_steps(r, "1/1");
    feed(r, (slice[]){{"work", 20, 150}, {"#0", 0, 100}, {"#1", 100, 200}}, 3);
    finish(r, &s);
    assert_int_equal(s.steps.series[0].kinds[PK_OTHER], 80);
    assert_int_equal(s.steps.series[1].kinds[PK_OTHER], 50);
    pki_summary_finish(&s);
}

static void other_threads_do_not_count(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    rebuild_expect_steps(r, "1/1");
    event e = event_of("load", 0, 90);
    strcpy(e.track, "1/2");
    rebuild_event(r, &e);
    feed(r, (slice[]){{"#0", 0, 100}, {"work", 100, 150}, {"#1", 100, 200}}, 3);
    e = event_of("#2", 200, 300);
    strcpy(e.stepper, "1/2"); /* a step ended by another thread has no breakdown */
    rebuild_event(r, &e);
    finish(r, &s);
    assert_int_equal(s.steps.count, 3);
    assert_int_equal(s.steps.broken_down, 1);
    assert_int_equal(s.steps.series[0].kinds[PKI_UNTRACKED], 100);
    assert_int_equal(s.steps.kinds[PK_OTHER], 50);
    pki_summary_finish(&s);
}

/* More slices between two steps than are kept apart. */
static void very_many_slices_in_a_step(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    rebuild_expect_steps(r, "1/1");
    uint64_t now = 0;
    for (uint64_t step = 0; step < 3; step++) {
        uint64_t start = now;
        for (int i = 0; i < 150000; i++, now += 10) {
            event e = event_of("tick", now, now + 7);
            rebuild_event(r, &e);
        }
        char name[8];
        snprintf(name, sizeof name, "#%d", (int)step);
        event e = event_of(name, start, now);
        rebuild_event(r, &e);
    }
    event all = event_of("all", 0, now);
    rebuild_event(r, &all);
    finish(r, &s);
    for (size_t i = 0; i < 3; i++) { /* "all" has the gaps, but for a rounding per merger */
        assert_in_range(s.steps.series[i].kinds[PK_OTHER], 1500000 - 150, 1500000 + 150);
        assert_in_range(s.steps.series[i].kinds[PKI_UNTRACKED], 0, 150);
    }
    /* 450,000 children of one slice: some were merged, none was lost. */
    assert_int_equal(self_of(&s, "all"), 450000 * 3);
    pki_summary_finish(&s);
}

static void regions_of_each_thread(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, true);
    (void)state;
    feed(r, (slice[]){{"a", 0, 10}, {"b", 10, 30}}, 2);
    event e = event_of("a", 0, 5);
    strcpy(e.track, "1/2");
    e.tid = 2;
    rebuild_event(r, &e);
    e = event_of("second", 0, 0);
    e.type = EVENT_THREAD_NAME;
    strcpy(e.track, "1/2");
    e.tid = 2;
    rebuild_event(r, &e);
    finish(r, &s);
    assert_int_equal(s.thread_count, 2);
    assert_int_equal(s.threads[0].region_count, 2);
    assert_int_equal(s.threads[1].region_count, 1);
    assert_string_equal(s.threads[1].name, "second");
    assert_int_equal(s.threads[1].tid, 2);
    assert_int_equal(s.threads[1].regions[0].self, 5);
    assert_int_equal(self_of(&s, "a"), 15);
    pki_summary_finish(&s);
}

static void too_many_names_share_one(void **state)
{
    pki_summary s;
    rebuild *r = rebuild_create(false, false);
    (void)state;
    for (uint64_t i = 0; i < REBUILD_NAMES_MOST + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", (int)i);
        event e = event_of(name, i, i + 1);
        rebuild_event(r, &e);
    }
    finish(r, &s);
    assert_int_equal(s.region_count, REBUILD_NAMES_MOST + 1);
    assert_int_equal(self_of(&s, "(too many names)"), 10);
    pki_summary_finish(&s);
}

static void tables(void **state)
{
    table t = {0};
    char text[16];
    (void)state;
    assert_int_equal(table_find(&t, "1"), TABLE_NONE);
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%d", (int)i);
        assert_int_equal(table_add(&t, text), i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%d", (int)i);
        assert_int_equal(table_add(&t, text), i);
        assert_int_equal(table_find(&t, text), i);
        assert_string_equal(t.texts[i], text);
    }
    assert_int_equal(table_find(&t, "x"), TABLE_NONE);
    table_finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_time_is_what_children_leave),
        cmocka_unit_test(any_order_will_do),
        cmocka_unit_test(steps_get_what_overlaps),
        cmocka_unit_test(a_step_that_comes_late),
        cmocka_unit_test(other_threads_do_not_count),
        cmocka_unit_test(very_many_slices_in_a_step),
        cmocka_unit_test(regions_of_each_thread),
        cmocka_unit_test(too_many_names_share_one),
        cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
