/* pk_step through the public API: whose time a step's is, and steps of several kinds. */
#include "session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "session/report/run.h"

/* ---- pk_step through the public API ---- */

/* Whose time a step's is, to the nanosecond. */

static pk_region load = PK_REGION_OF(PK_DATA, "load"),
                 forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region reduce = PK_REGION_OF(PK_COMM, "reduce"), save = PK_REGION_OF(PK_IO, "save");
static pk_region hold = PK_REGION_OF(PK_WAIT, "hold"), misc = PK_REGION("misc");

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

static uint64_t parts_of(const pki_series_row *row)
{
    uint64_t sum = 0;
    for (int k = 0; k < PKI_SHARES; k++)
        sum += row->kinds[k];
    return sum;
}

static const pki_series_row *row_of(size_t step)
{
    assert_true(step < summary.steps.series_count);
    assert_int_equal(summary.steps.series[step].index, step);
    return &summary.steps.series[step];
}

static void expect_known(size_t step)
{
    assert_int_equal(parts_of(row_of(step)), row_of(step)->duration);
}

static void expect_unknown(size_t step)
{
    assert_int_equal(parts_of(row_of(step)), 0);
    assert_true(row_of(step)->duration > 0);
}

static void kinds_add_up_to_the_step(void **state)
{
    pk_region *const all[] = {&misc, &forward, &load, &reduce, &save, &hold};
    uint64_t total = 0;
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        for (size_t k = 0; k < i % 7 && k < 6; k++)
            work(all[k]);
        spend();
        pk_step(i);
    }
    stop_and_gather();
    assert_true(summary.steps.count == 20 && summary.counts.steps == 20 &&
                summary.counts.points == 20);
    for (size_t i = 0; i < 20; i++) {
        expect_known(i);
        for (size_t k = 0; k < 6; k++) /* the kinds are in this order */
            assert_int_equal(row_of(i)->kinds[k] >= SPENT_NS, k < i % 7);
        assert_true(row_of(i)->kinds[PKI_UNTRACKED] >= SPENT_NS);
        assert_int_equal(row_of(i)->items, i);
        total += row_of(i)->duration;
    }
    assert_int_equal(pk_step_stats(&the_stats), PK_OK);
    assert_int_equal(the_stats.count, 20);
    expect_sum(the_stats.sum, total, 20);
}

static void steps_follow_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        spend();
        pk_step(1);
    }
    stop_and_gather();
    assert_in_range(row_of(0)->start, 0, row_of(0)->duration + 1000000000); /* from the start on */
    for (size_t i = 1; i < 10; i++) {
        uint64_t end = row_of(i - 1)->start + row_of(i - 1)->duration;
        uint64_t bend =
            2000 + row_of(i - 1)->duration / 100; /* starts are by the map, which bends */
        assert_in_range(row_of(i)->start + bend, end, end + 2 * bend);
        assert_int_equal(row_of(i)->kinds[PKI_UNTRACKED], row_of(i)->duration);
    }
}

/* A region around the whole loop belongs to every step in part. */
static void regions_that_stay_open(void **state)
{
    uint64_t training = 0;
    (void)state;
    pk_step(0);
    pk_region_begin(&forward);
    for (int i = 0; i < 5; i++) {
        spend();
        work(&load);
        pk_region_begin(&reduce); /* begun in one step, ended in the next */
        spend();
        pk_step(1);
        spend();
        pk_region_end(&reduce);
    }
    pk_region_end(&forward);
    pk_step(1);
    stop_and_gather();
    for (size_t i = 1; i < 7; i++) {
        const pki_series_row *row = row_of(i);
        expect_known(i);
        training += row->kinds[PK_COMPUTE];
        assert_true(row->kinds[PK_COMPUTE] >= SPENT_NS || i == 6);
        assert_true(row->kinds[PK_COMM] >= (i > 1 && i < 6 ? 2 * SPENT_NS : SPENT_NS));
        assert_true(row->kinds[PK_DATA] >= SPENT_NS || i == 6);
    }
    uint64_t self = stats_of(&forward)->self; /* what the steps have is what the region has */
    assert_int_equal(the_stats.count, 1);
    expect_sum(self, training, 6);
    assert_true(the_stats.sum > self);
}

static void nested_open_regions(void **state)
{
    uint64_t kinds[PKI_SHARES] = {0};
    (void)state;
    pk_region_begin(&misc);
    pk_region_begin(&forward);
    pk_region_begin(&load);
    for (int i = 0; i < 4; i++) {
        spend();
        pk_step(0);
    }
    pk_region_end(&load);
    pk_region_end(&forward);
    pk_region_end(&misc);
    pk_step(0);
    stop_and_gather();
    for (size_t i = 0; i < 5; i++) {
        expect_known(i);
        for (int k = 0; k < PKI_SHARES; k++)
            kinds[k] += row_of(i)->kinds[k];
    }
    expect_sum(stats_of(&load)->self, kinds[PK_DATA], 5);
    expect_sum(stats_of(&forward)->self, kinds[PK_COMPUTE], 5);
    expect_sum(stats_of(&misc)->self, kinds[PK_OTHER], 5);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(row_of(i)->kinds[PK_DATA], row_of(i)->duration);
}

/* Nanoseconds are rounded ticks: many small parts, rounded, are no more than the whole. */
static void many_parts(void **state)
{
    (void)state;
    pk_region_begin(&misc);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 40; k++) {
            pk_region *part = pk_region_variant(&forward, "part", k);
            pk_region_begin(part);
            pk_region_end(part);
        }
        pk_step(1);
    }
    pk_region_end(&misc);
    stop_and_gather();
    for (size_t i = 0; i < 40; i++)
        expect_known(i);
    assert_int_equal(row_of(39)->kinds[PKI_UNTRACKED], 0);
}

/* -- other threads -- */

static void run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, NULL);
}

static void *load_elsewhere(void *unused)
{
    for (int i = 0; i < 20; i++)
        work(&load);
    return unused;
}

static void data_of_another_thread_is_not_the_steps(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        work(&forward);
        pk_region_begin(&hold); /* waits for it */
        run(load_elsewhere, NULL);
        pk_region_end(&hold);
        pk_step(1);
    }
    stop_and_gather();
    for (size_t i = 0; i < 3; i++) {
        expect_known(i);
        assert_int_equal(row_of(i)->kinds[PK_DATA], 0);
        assert_true(row_of(i)->kinds[PK_WAIT] >= 40000);
    }
    assert_int_equal(count_of(&load), 60);
}

static void *three_steps(void *flush_between)
{
    for (int i = 0; i < 3; i++) {
        work(&forward);
        pk_step(1);
        if (flush_between)
            pk_flush();
    }
    return NULL;
}

static void another_thread_makes_the_steps(void **state)
{
    (void)state;
    three_steps(NULL);
    run(three_steps,
        &summary); /* which stays the same thread's when its records are taken one by one */
    three_steps(NULL);
    stop_and_gather();
    assert_int_equal(summary.steps.count, 9);
    for (size_t i = 0; i < 9; i++)
        if (i == 3 || i == 6)
            expect_unknown(i);
        else
            expect_known(i);
}

/* The thread that follows may have the memory of the one that has ended: it is not the same for
 * that. */
static void each_step_by_a_thread_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        run(three_steps, NULL);
        pk_flush();
        pk_flush();
    }
    stop_and_gather();
    for (size_t i = 0; i < 9; i++)
        if (i == 3 || i == 6)
            expect_unknown(i);
        else
            expect_known(i);
}

static void a_thread_that_begins_while_others_record(void **state)
{
    (void)state;
    pthread_mutex_lock(&pki_drain_lock); /* this thread must not get the first one's block */
    run(load_elsewhere, NULL);           /* the first thread to record is not the one that steps */
    load_elsewhere(NULL);
    pthread_mutex_unlock(&pki_drain_lock);
    pk_flush(); /* and what it records is taken before it is known to be the one */
    three_steps(NULL);
    three_steps(&summary);
    stop_and_gather();
    expect_unknown(0);
    for (size_t i = 1; i < 6; i++)
        expect_known(i);
}

#define CALLS 20000

static pthread_barrier_t barrier;

static void *call(void *unused)
{
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CALLS; i++)
        pk_step(1);
    return unused;
}

static void calls_at_the_same_time(void **state)
{
    pthread_t threads[4];
    (void)state;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.steps + counts.points_dropped, 4 * CALLS);
    assert_int_equal(pk_step_stats(&the_stats), PK_OK);
    assert_int_equal(the_stats.count, counts.steps);
}

static void no_steps(void **state)
{
    (void)state;
    work(&load);
    assert_int_equal(pk_step_stats(&the_stats), PK_ENOENT);
    stop_and_gather();
    assert_true(summary.steps.count == 0 && summary.steps.series_count == 0);
}

#define with_summary(test) cmocka_unit_test_setup_teardown(test, start_session, stop_and_finish)

static const struct CMUnitTest step_calls_steps[] = {
    with_summary(kinds_add_up_to_the_step),
    with_summary(steps_follow_each_other),
    with_summary(regions_that_stay_open),
    with_summary(nested_open_regions),
    with_summary(many_parts),
    with_summary(data_of_another_thread_is_not_the_steps),
    with_summary(another_thread_makes_the_steps),
    with_summary(each_step_by_a_thread_of_its_own),
    with_summary(a_thread_that_begins_while_others_record),
    with_summary(calls_at_the_same_time),
    with_summary(no_steps),
};

/* ---- pk_step_kind and pk_step_begin ---- */

/* Steps that have figures of their own, and time that is in none. */

static pk_region step_kinds_load = PK_REGION_OF(PK_DATA, "load"),
                 step_kinds_forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region step_kinds_save = PK_REGION_OF(PK_IO, "save"), whole = PK_REGION("whole");

static pki_summary step_kinds_summary;

static void step_kinds_stop_and_gather(void)
{
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &step_kinds_summary));
}

static int step_kinds_stop_and_finish(void **state)
{
    pki_summary_finish(&step_kinds_summary);
    return stop_session(state);
}

static const pki_step_kind_row *kind_named(const char *name)
{
    for (size_t i = 0; i < step_kinds_summary.steps.step_kind_count; i++)
        if (strcmp(step_kinds_summary.steps.step_kinds[i].name, name) == 0)
            return &step_kinds_summary.steps.step_kinds[i];
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
        work(evaluates ? &step_kinds_load : &step_kinds_forward);
        pk_step(evaluates ? 10 : 1);
    }
    step_kinds_stop_and_gather();
    const pki_step_summary *steps = &step_kinds_summary.steps;
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
    assert_int_equal(step_kinds_summary.counts.steps, 12); /* all that were made */
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
    step_kinds_stop_and_gather();
    assert_int_equal(step_kinds_summary.steps.count, 3);
    assert_int_equal(step_kinds_summary.steps.step_kind_count, 1);
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
    step_kinds_stop_and_gather();
    assert_int_equal(step_kinds_summary.steps.count, 0);
    assert_int_equal(step_kinds_summary.steps.step_kind_count, PKI_STEP_KINDS);
    assert_int_equal(kind_named("kind 14")->time.count, 1);
    assert_int_equal(kind_named("(other kinds)")->time.count, 6);
}

/* A step is what it would be without the pause before it. */
static void time_between_steps_is_in_none(void **state)
{
    (void)state;
    work(&step_kinds_load); /* set-up */
    for (uint64_t i = 0; i < 6; i++) {
        pk_step_begin();
        work(&step_kinds_forward);
        pk_step(1);
        work(&step_kinds_save);
        spend();
    }
    step_kinds_stop_and_gather();
    const pki_step_summary *steps = &step_kinds_summary.steps;
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
    assert_int_equal(step_kinds_summary.counts.steps, 6);
    assert_int_equal(step_kinds_summary.counts.points, 12);
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
    step_kinds_stop_and_gather();
    const pki_step_summary *steps = &step_kinds_summary.steps;
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
    step_kinds_stop_and_gather();
    assert_int_equal(step_kinds_summary.steps.count, 2);
    assert_int_equal(step_kinds_summary.steps.between.time.count, 2);
    assert_true((double)step_kinds_summary.steps.series[1].duration <
                step_kinds_summary.steps.between.time.sum);
}

static void off_is_nothing(void **state)
{
    (void)state;
    pk_stop();
    pk_step_begin();
    pk_step_kind("evaluation");
    pk_step(1);
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .tuning = kit_tuning("clock=%s", the_clock))),
        PK_OK);
    pk_step(1); /* of the usual kind: nothing is left over */
    step_kinds_stop_and_gather();
    assert_int_equal(step_kinds_summary.steps.count, 1);
    assert_int_equal(step_kinds_summary.steps.step_kind_count, 0);
}

/* Without steps: the main thread's time, by kind. */
static void a_run_without_steps_is_broken_down(void **state)
{
    (void)state;
    work(&step_kinds_load);
    work(&step_kinds_forward);
    spend();
    step_kinds_stop_and_gather();
    const pki_whole_run *run = &step_kinds_summary.whole_run;
    assert_int_equal(run->time, step_kinds_summary.run.wall);
    assert_int_equal(sum_of(run->kinds), run->time);
    assert_true(run->kinds[PK_DATA] >= SPENT_NS && run->kinds[PK_COMPUTE] >= SPENT_NS);
    assert_true(run->kinds[PKI_UNTRACKED] >= SPENT_NS);
    assert_false(run->busiest);
}

static void *work_apart(void *unused)
{
    work(&step_kinds_load);
    return unused;
}

static void the_busiest_thread_is_called_so(void **state)
{
    (void)state;
    pthread_t worker;
    assert_int_equal(pthread_create(&worker, NULL, work_apart, NULL), 0);
    pthread_join(worker, NULL);
    step_kinds_stop_and_gather();
    assert_true(step_kinds_summary.whole_run.busiest &&
                step_kinds_summary.whole_run.kinds[PK_DATA] >= SPENT_NS);
}

static void a_run_with_steps_is_not(void **state)
{
    (void)state;
    work(&step_kinds_load);
    pk_step(1);
    step_kinds_stop_and_gather();
    assert_int_equal(step_kinds_summary.whole_run.time, 0);
}

#define step_kinds_with_summary(test)                                                              \
    cmocka_unit_test_setup_teardown(test, start_session, step_kinds_stop_and_finish)

static const struct CMUnitTest step_kinds[] = {
    step_kinds_with_summary(kinds_have_figures_of_their_own),
    step_kinds_with_summary(the_kind_ends_with_its_step),
    step_kinds_with_summary(too_many_kinds_are_summed_up),
    step_kinds_with_summary(time_between_steps_is_in_none),
    step_kinds_with_summary(regions_around_both),
    step_kinds_with_summary(begun_twice_is_one_pause_in_two_parts),
    step_kinds_with_summary(off_is_nothing),
    step_kinds_with_summary(a_run_without_steps_is_broken_down),
    step_kinds_with_summary(the_busiest_thread_is_called_so),
    step_kinds_with_summary(a_run_with_steps_is_not),
};

int main(void)
{
    int failed = both_clocks(step_calls_steps);
    failed += both_clocks(step_kinds);
    return failed;
}
