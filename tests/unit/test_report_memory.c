/* From steps to reports with one allocation failing, or all from one on, for each way to one: an
 * answer each time, the right one if it says so, and nothing left behind (which a sanitizer or
 * valgrind sees). */
#include "failing_memory.h"
#include "measure/steps/steps.h"
#include "measure/verdict/verdict.h"
#include "out/report/report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 300

static const char *name_of(void *user, uint32_t id)
{
    (void)user;
    return id == 1 ? "load" : id == 2 ? "work" : NULL;
}

static void feed(pki_steps *steps)
{
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t work = 1000 + 37 * (i % 50);
        pki_steps_add_self(steps, 1, PK_DATA, 2000);
        pki_steps_add_self(steps, 2, PK_COMPUTE, work);
        pki_steps_add(steps, &(pki_step){.index = i,
                                         .start = 10000 * i,
                                         .duration = 4000 + work,
                                         .items = 1,
                                         .broken_down = true});
    }
}

/* Made while memory is to be had. */
static void give_regions(pki_summary *s)
{
    memory_fails_after(-1);
    pki_summary_init(s);
    s->run.complete = true;
    s->region_count = 2;
    s->regions = calloc(2, sizeof *s->regions);
    s->regions[0] = (pki_region_row){.name = strdup("load"), .kind = PK_DATA};
    s->regions[1] = (pki_region_row){.name = strdup("work"), .kind = PK_COMPUTE};
}

/* Not changed by what there was no memory for. */
static void check_filled(const pki_summary *s)
{
    const pki_step_summary *t = &s->steps;
    assert_int_equal(t->count, STEPS);
    assert_int_equal(t->broken_down, STEPS - t->warmup);
    assert_int_equal(t->kinds[PK_DATA], 2000 * (STEPS - t->warmup));
    assert_in_range(t->steady.count, 0, STEPS - t->warmup);
}

typedef void failing(long n);

static bool run(failing *way, long n)
{
    pki_summary s;
    give_regions(&s);
    FILE *nowhere = fopen("/dev/null", "w");
    way(n);
    pki_steps *steps = pki_steps_create();
    feed(steps);
    bool filled = pki_steps_fill(steps, 0, name_of, NULL, &s);
    if (filled && steps)
        check_filled(&s);
    else
        assert_int_equal(s.steps.count, 0);
    if (!pki_verdicts_fill(&s))
        assert_int_equal(s.verdict_count, 0);
    for (size_t i = 0; i < s.verdict_count; i++)
        assert_true(s.verdicts[i].name && s.verdicts[i].text);
    bool before = memory_has_failed();
    int text = pki_report_text(&s, nowhere), json = pki_report_json(&s, nowhere);
    bool failed = memory_has_failed();
    /* A text without all its sentences does not pass for one. */
    if (failed && !(way == memory_fails_once && before))
        assert_int_equal(text, -ENOMEM);
    else
        assert_int_equal(text, 0);
    assert_int_equal(json, 0);
    memory_fails_after(-1);
    pki_steps_destroy(steps);
    pki_summary_finish(&s);
    fclose(nowhere);
    return failed;
}

static void sweep(failing *way)
{
    size_t count;
    long total;
    assert_false(run(memory_watch, 0));
    const long *chosen = memory_watched(&count, &total);
    assert_in_range(total, 300, 5000); /* each step of the head is one at least */
    for (size_t i = 0; i < count; i++)
        assert_true(run(way, chosen[i]));
    assert_false(run(way, total));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    sweep(memory_fails_after);
    sweep(memory_fails_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
