/* pk_step_kind and pk_step_begin: steps that have figures of their own, and time that is in none.
 */
#include "session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "session/report/run.h"

static pk_region load = PK_REGION_OF(PK_DATA, "load"),
                 forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region save = PK_REGION_OF(PK_IO, "save"), whole = PK_REGION("whole");

static pki_summary summary;

static void stop_and_gather(void)
{
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
}

static int stop_and_finish(void **state)
{
    pki_summary_finish(&summary);
    return stop_session(state);
}

static void work(pk_region *region)
{
    pk_region_begin(region);
    spend();
    pk_region_end(region);
}

static const pki_step_kind_row *kind_named(const char *name)
{
    for (size_t i = 0; i < summary.steps.step_kind_count; i++)
        if (strcmp(summary.steps.step_kinds[i].name, name) == 0)
            return &summary.steps.step_kinds[i];
    fail_msg("no steps of kind %s", name);
    return NULL;
}

static uint64_t sum_of(const uint64_t *kinds)
{
    uint64_t sum = 0;
    for (int k = 0; k < PKI_SHARES; k++)
        sum += kinds[k];
    return sum;
}

/* Every third step is an evaluation, of other regions and ten times the items. */
static void kinds_have_figures_of_their_own(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 12; i++) {
        bool evaluates = i % 3 == 2;
        if (evaluates)
            pk_step_kind("evaluation");
        work(evaluates ? &load : &forward);
        pk_step(evaluates ? 10 : 1);
    }
    stop_and_gather();
    const pki_step_summary *steps = &summary.steps;
    const pki_step_kind_row *evaluation = kind_named("evaluation");
    assert_int_equal(steps->step_kind_count, 1);
    assert_int_equal(steps->count, 8);
    assert_int_equal(steps->items, steps->steady.count);
    assert_int_equal(steps->kinds[PK_DATA], 0);
    assert_int_equal(evaluation->time.count, 4);
    assert_int_equal(evaluation->items, 40);
    assert_int_equal(evaluation->broken_down, 4);
    assert_true(evaluation->kinds[PK_DATA] >= 4 * SPENT_NS && evaluation->kinds[PK_COMPUTE] == 0);
    assert_true((double)sum_of(evaluation->kinds) == evaluation->time.sum);
    assert_int_equal(steps->between.time.count, 0);
    assert_int_equal(summary.counts.steps, 12); /* all that were made */
}

static void the_kind_ends_with_its_step(void **state)
{
    (void)state;
    pk_step_kind("evaluation");
    pk_step_kind(NULL); /* on second thoughts */
    pk_step(1);
    pk_step_kind("evaluation");
    pk_step_kind("checkpoint"); /* the last one said */
    pk_step(1);
    pk_step(1); /* a usual one again */
    pk_step_kind("");
    pk_step(1);
    stop_and_gather();
    assert_int_equal(summary.steps.count, 3);
    assert_int_equal(summary.steps.step_kind_count, 1);
    assert_int_equal(kind_named("checkpoint")->time.count, 1);
}

static void too_many_kinds_are_summed_up(void **state)
{
    char name[32];
    (void)state;
    for (int i = 0; i < PKI_STEP_KINDS + 5; i++) {
        snprintf(name, sizeof name, "kind %d", i);
        pk_step_kind(name);
        pk_step(1);
    }
    stop_and_gather();
    assert_int_equal(summary.steps.count, 0);
    assert_int_equal(summary.steps.step_kind_count, PKI_STEP_KINDS);
    assert_int_equal(kind_named("kind 14")->time.count, 1);
    assert_int_equal(kind_named("(other kinds)")->time.count, 6);
}

/* A step is what it would be without the pause before it. */
static void time_between_steps_is_in_none(void **state)
{
    (void)state;
    work(&load); /* set-up */
    for (uint64_t i = 0; i < 6; i++) {
        pk_step_begin();
        work(&forward);
        pk_step(1);
        work(&save);
        spend();
    }
    stop_and_gather();
    const pki_step_summary *steps = &summary.steps;
    const pki_step_kind_row *between = &steps->between;
    assert_int_equal(steps->count, 6);
    assert_int_equal(between->time.count, 6);
    assert_int_equal(between->broken_down, 6);
    assert_true(between->kinds[PK_DATA] >= SPENT_NS);
    assert_true(between->kinds[PK_IO] >= 5 * SPENT_NS); /* the last is followed by no step */
    assert_true(between->kinds[PKI_UNTRACKED] >= 5 * SPENT_NS);
    assert_true((double)sum_of(between->kinds) == between->time.sum);
    for (size_t i = 0; i < 6; i++) {
        const pki_series_row *row = &steps->series[i];
        assert_int_equal(row->index, i);
        assert_true(row->kinds[PK_COMPUTE] >= SPENT_NS);
        assert_int_equal(row->kinds[PK_IO] + row->kinds[PK_DATA], 0);
        assert_int_equal(sum_of(row->kinds), row->duration);
    }
    assert_int_equal(summary.counts.steps, 6);
    assert_int_equal(summary.counts.points, 12);
}

/* A region around the whole loop has a part in steps and in what lies between. */
static void regions_around_both(void **state)
{
    (void)state;
    pk_region_begin(&whole);
    for (int i = 0; i < 3; i++) {
        pk_step_begin();
        spend();
        pk_step(1);
        spend();
    }
    pk_region_end(&whole);
    stop_and_gather();
    const pki_step_summary *steps = &summary.steps;
    assert_true(steps->between.kinds[PK_OTHER] >= 2 * SPENT_NS);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(steps->series[i].kinds[PK_OTHER], steps->series[i].duration);
}

static void begun_twice_is_one_pause_in_two_parts(void **state)
{
    (void)state;
    pk_step(1);
    spend();
    pk_step_begin();
    spend();
    pk_step_begin();
    pk_step(1);
    stop_and_gather();
    assert_int_equal(summary.steps.count, 2);
    assert_int_equal(summary.steps.between.time.count, 2);
    assert_true((double)summary.steps.series[1].duration < summary.steps.between.time.sum);
}

static void off_is_nothing(void **state)
{
    (void)state;
    pk_stop();
    pk_step_begin();
    pk_step_kind("evaluation");
    pk_step(1);
    assert_int_equal(pk_start(pk_options(.clock = the_clock, .backends = "none")), PK_OK);
    pk_step(1); /* of the usual kind: nothing is left over */
    stop_and_gather();
    assert_int_equal(summary.steps.count, 1);
    assert_int_equal(summary.steps.step_kind_count, 0);
}

/* Without steps: the main thread's time, by kind. */
static void a_run_without_steps_is_broken_down(void **state)
{
    (void)state;
    work(&load);
    work(&forward);
    spend();
    stop_and_gather();
    const pki_whole_run *run = &summary.whole_run;
    assert_int_equal(run->time, summary.run.wall);
    assert_int_equal(sum_of(run->kinds), run->time);
    assert_true(run->kinds[PK_DATA] >= SPENT_NS && run->kinds[PK_COMPUTE] >= SPENT_NS);
    assert_true(run->kinds[PKI_UNTRACKED] >= SPENT_NS);
    assert_false(run->busiest);
}

static void *work_apart(void *unused)
{
    work(&load);
    return unused;
}

static void the_busiest_thread_is_called_so(void **state)
{
    (void)state;
    pthread_t worker;
    assert_int_equal(pthread_create(&worker, NULL, work_apart, NULL), 0);
    pthread_join(worker, NULL);
    stop_and_gather();
    assert_true(summary.whole_run.busiest && summary.whole_run.kinds[PK_DATA] >= SPENT_NS);
}

static void a_run_with_steps_is_not(void **state)
{
    (void)state;
    work(&load);
    pk_step(1);
    stop_and_gather();
    assert_int_equal(summary.whole_run.time, 0);
}

#define with_summary(test) cmocka_unit_test_setup_teardown(test, start_session, stop_and_finish)

int main(void)
{
    const struct CMUnitTest step_kinds[] = {
        with_summary(kinds_have_figures_of_their_own),
        with_summary(the_kind_ends_with_its_step),
        with_summary(too_many_kinds_are_summed_up),
        with_summary(time_between_steps_is_in_none),
        with_summary(regions_around_both),
        with_summary(begun_twice_is_one_pause_in_two_parts),
        with_summary(off_is_nothing),
        with_summary(a_run_without_steps_is_broken_down),
        with_summary(the_busiest_thread_is_called_so),
        with_summary(a_run_with_steps_is_not),
    };
    return both_clocks(step_kinds);
}
