/* Each verdict at its threshold: not at it, but just beyond. */
#include "measure/verdict/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verdicts.h"

#define STEP 1000000 /* ns of step time, in all */

/* 1000 steady steps of 1000 ns, all computation: nothing wrong with it. */
static pki_summary good_run(void)
{
    pki_summary s;
    pki_summary_init(&s);
    s.run.complete = true;
    s.run.clock_step_ns = 10;
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = STEP, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMPUTE] = STEP;
    s.counts.begun = s.counts.recorded = 10000;
    return s;
}

static void take(pki_summary *s, uint32_t kind, uint64_t time)
{
    s->steps.kinds[kind] += time;
    s->steps.kinds[PK_COMPUTE] -= time;
}

static void give_region(pki_summary *s, const char *name, uint32_t kind, double share)
{
    s->regions = realloc(s->regions, (s->region_count + 1) * sizeof *s->regions);
    s->regions[s->region_count++] = (pki_region_row){
        .name = strdup(name), .kind = kind, .step_share = share, .time = {.count = 5, .p50 = 1e6}};
}

static void give_thread(pki_summary *s, const char *name, uint64_t data)
{
    s->threads = realloc(s->threads, (s->thread_count + 1) * sizeof *s->threads);
    s->threads[s->thread_count] = (pki_thread_row){.name = strdup(name)};
    s->threads[s->thread_count++].kinds[PK_DATA] = data;
}

/* The names in order, "a b c"; finishes s. */
static const char *names_of(pki_summary *s)
{
    static char names[512];
    names[0] = '\0';
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++) {
        strcat(names, i ? " " : "");
        strcat(names, s->verdicts[i].name);
    }
    pki_summary_finish(s);
    return names;
}

static const char *with_kind(uint32_t kind, uint64_t time)
{
    pki_summary s = good_run();
    take(&s, kind, time);
    return names_of(&s);
}

/* A hundred of 10 ms, nine tenths of them in the queue. */
static pki_summary with_requests(uint64_t late, bool limited)
{
    pki_summary s = good_run();
    pki_request_parts all = {100, 1000000000, 900000000, 0, 10000000, 0, 90000000, 0},
                      slow = {late, late * 20000000, late * 2000000, 0, 0, 0, 0, late * 18000000};
    s.requests = (pki_request_summary){.count = 100,
                                       .finished = 100,
                                       .good = 100 - late,
                                       .ttft_limit = limited ? 500000000 : 0,
                                       .slow_from = limited ? 0 : 15000000,
                                       .all = all,
                                       .slow = slow};
    return s;
}

static void expect_words(pki_summary *s, const char *name, const char *words)
{
    assert_true(pki_verdicts_fill(s));
    assert_string_equal(s->verdicts[0].name, name);
    assert_int_equal(s->verdicts[0].severity, PKI_WARN);
    if (!strstr(s->verdicts[0].text, words))
        fail_msg("%s", s->verdicts[0].text);
    pki_summary_finish(s);
}

static void requests(void **state)
{
    (void)state;
    pki_summary s = with_requests(5, true);
    assert_string_equal(names_of(&s), "compute-bound");
    s = with_requests(6, true);
    expect_words(
        &s, "requests-late",
        "first token 500 ms. Of their time 90.0 % went to others' prompts between tokens.");
    s = with_requests(6, true);
    s.requests.finished = 19; /* too few to tell */
    assert_string_equal(names_of(&s), "compute-bound");
    s = with_requests(10, false);
    expect_words(&s, "requests-queued",
                 "90.0 % of their time in the queue (threshold 50 %), 9.00 ms");
    s = with_requests(10, false);
    s.requests.all.queued = 500000000;
    assert_string_equal(names_of(&s), "compute-bound");
    s = with_requests(10, true); /* who has limits is judged by them */
    s.requests.slow.count = 0;
    assert_string_equal(names_of(&s), "compute-bound");
}

static void all_is_well(void **state)
{
    pki_summary s = good_run();
    (void)state;
    assert_true(pki_verdicts_fill(&s));
    assert_int_equal(s.verdict_count, 1);
    assert_string_equal(s.verdicts[0].name, "compute-bound");
    assert_int_equal(s.verdicts[0].severity, PKI_GOOD);
    assert_true(s.verdicts[0].value == 1);
    pki_summary_finish(&s);
}

static void shares_at_their_thresholds(void **state)
{
    (void)state;
    assert_string_equal(with_kind(PK_DATA, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with_kind(PK_DATA, STEP * 3 / 10 + 1), "input-bound");
    assert_string_equal(with_kind(PK_WAIT, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with_kind(PK_WAIT, STEP * 3 / 10 + 1), "waiting");
    assert_string_equal(with_kind(PK_IO, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with_kind(PK_IO, STEP * 3 / 10 + 1), "io-bound");
    assert_string_equal(with_kind(PK_COMM, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with_kind(PK_COMM, STEP * 3 / 10 + 1), "communication-heavy");
    assert_string_equal(with_kind(PK_COMM, STEP / 2), "communication-heavy");
    assert_string_equal(with_kind(PK_COMM, STEP / 2 + 1), "communication-bound");
    assert_string_equal(with_kind(PKI_UNTRACKED, STEP / 5), "compute-bound");
    assert_string_equal(with_kind(PKI_UNTRACKED, STEP / 5 + 1), "untracked");
    assert_string_equal(with_kind(PK_OTHER, STEP / 2 - 1), "compute-bound");
    assert_string_equal(with_kind(PK_OTHER, STEP / 2), "no-bottleneck");
}

static void input_bound_says_why(void **state)
{
    pki_summary s = good_run();
    (void)state;
    take(&s, PK_DATA, 612000);
    give_region(&s, "decode", PK_DATA, 0.032);
    give_region(&s, "load batch", PK_DATA, 0.58);
    give_region(&s, "mlp", PK_COMPUTE, 0.3);
    give_region(&s, "peek", PK_DATA, 0.0099); /* too little to be named */
    assert_true(pki_verdicts_fill(&s));
    const pki_verdict *v = find_verdict(&s, "input-bound");
    assert_non_null(v);
    assert_int_equal(v->severity, PKI_WARN);
    assert_true(v->value == 0.612 && v->threshold == 0.30);
    assert_string_equal(
        v->text, "Getting input takes 61.2 % of the step (threshold 30 %): \"load batch\" 58.0 %,"
                 " \"decode\" 3.2 %. Load ahead of the loop, on more threads, or make loading"
                 " cheaper.");
    pki_summary_finish(&s);
}

static const char *with_loader(uint64_t data, uint64_t wait, uint64_t loader)
{
    pki_summary s = good_run();
    take(&s, PK_DATA, data);
    take(&s, PK_WAIT, wait);
    give_thread(&s, "main", data);
    give_thread(&s, "loader 0", loader);
    return names_of(&s);
}

/* Waiting counts as input only where a loader is what holds the loop up. */
static void waiting_for_a_loader_is_input(void **state)
{
    (void)state;
    assert_string_equal(with_loader(0, STEP * 4 / 10, STEP * 8 / 10), "input-bound");
    assert_string_equal(with_loader(0, STEP * 4 / 10, STEP * 8 / 10 - 1), "waiting");
    assert_string_equal(with_loader(STEP / 10, STEP / 4, STEP), "input-bound");
    assert_string_equal(with_loader(STEP / 10, STEP / 5, STEP), "compute-bound"); /* 0.1 + 0.2 */
    assert_string_equal(with_loader(STEP / 10, STEP / 4, STEP / 2), "compute-bound");
    assert_string_equal(with_loader(STEP / 10, 0, 5 * STEP), "compute-bound"); /* it is ahead */
}

static void the_loader_is_named(void **state)
{
    pki_summary s = good_run();
    (void)state;
    take(&s, PK_WAIT, STEP / 2);
    give_thread(&s, "loader 7", 970000);
    give_region(&s, "wait for batch", PK_WAIT, 0.5);
    assert_true(pki_verdicts_fill(&s));
    const char *text = find_verdict(&s, "input-bound")->text;
    assert_non_null(strstr(text, "\"wait for batch\" 50.0 %"));
    assert_non_null(strstr(text, "thread \"loader 7\" spent 970 us in data regions"));
    pki_summary_finish(&s);
}

static void unsteady_steps(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.steps.steady.p99 = 1500;
    assert_string_equal(names_of(&s), "compute-bound");
    s = good_run();
    s.steps.steady.p99 = 1501;
    assert_string_equal(names_of(&s), "unsteady");
    s = good_run();
    s.steps.steady.p99 = 9000;
    s.steps.steady.count = 20;
    s.steps.broken_down = 20;
    assert_string_equal(names_of(&s), "unsteady");
    s = good_run();
    s.steps.steady.p99 = 9000;
    s.steps.steady.count = 19;
    s.steps.broken_down = 19;
    assert_string_equal(names_of(&s), "compute-bound");
}

static void unsteady_names_the_slowest(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.steps.steady.p99 = 2300;
    s.steps.slowest_count = 1;
    s.steps.slowest = calloc(1, sizeof *s.steps.slowest);
    s.steps.slowest[0] = (pki_step_row){.index = 412, .duration = 5000, .part_count = 1};
    s.steps.slowest[0].parts = calloc(1, sizeof *s.steps.slowest[0].parts);
    s.steps.slowest[0].parts[0] = (pki_step_part){strdup("checkpoint"), PK_IO, 4000, 100};
    assert_true(pki_verdicts_fill(&s));
    assert_string_equal(
        find_verdict(&s, "unsteady")->text,
        "One step in a hundred takes 2.30 x the median or more (threshold 1.5 x): p50 1.00 us,"
        " p99 2.30 us. The slowest is step 412 with 5.00 us: \"checkpoint\" took 3.90 us longer"
        " than usual.");
    pki_summary_finish(&s);
}

static const char *with_drift(double drift, uint64_t steps)
{
    pki_summary s = good_run();
    s.steps.drift = drift;
    s.steps.steady.count = s.steps.broken_down = steps;
    return names_of(&s);
}

static void drifting_steps(void **state)
{
    (void)state;
    assert_string_equal(with_drift(0.10, 1000), "compute-bound");
    assert_string_equal(with_drift(0.1001, 1000), "drifting");
    assert_string_equal(with_drift(-0.10, 1000), "compute-bound");
    assert_string_equal(with_drift(-0.1001, 1000),
                        "compute-bound drifting"); /* faster is but a note */
    assert_string_equal(with_drift(3, 30), "drifting");
    assert_string_equal(with_drift(3, 29), "compute-bound");
}

static void drifting_says_where_to(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.steps.drift = 0.25;
    s.steps.first_third = 4000;
    s.steps.last_third = 5000;
    assert_true(pki_verdicts_fill(&s));
    assert_string_equal(
        find_verdict(&s, "drifting")->text,
        "Steps became 25.0 % slower over the run (threshold 10 %): a median of 4.00 us in its"
        " first third, 5.00 us in its last.");
    pki_summary_finish(&s);
}

static void not_finite(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.counts.not_finite = 3;
    assert_true(pki_verdicts_fill(&s));
    assert_null(find_verdict(&s, "records-dropped")); /* no ring was full */
    assert_string_equal(find_verdict(&s, "not-finite")->text,
                        "3 values given to counters were not finite (infinite, or no number at"
                        " all): they are in no figure and not in the trace. Look at what"
                        " pk_counter_set is given.");
    pki_summary_finish(&s);
}

static void losses(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.counts.dropped = 1;
    assert_string_equal(names_of(&s), "records-dropped compute-bound");
    s = good_run();
    s.counts.points_dropped = 1;
    assert_string_equal(names_of(&s), "records-dropped compute-bound");
    s = good_run();
    s.counts.unwritten = 1;
    assert_string_equal(names_of(&s), "trace-incomplete compute-bound");
    s = good_run();
    s.run.complete = false;
    assert_string_equal(names_of(&s), "incomplete compute-bound");
    s = good_run();
    s.counts.unbalanced = 1;
    assert_string_equal(names_of(&s), "compute-bound unbalanced");
    s = good_run();
    s.counts.stray_ends = 1;
    assert_string_equal(names_of(&s), "compute-bound unbalanced");
}

static void dropped_says_why(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.counts.dropped = s.counts.too_deep = 100;
    assert_true(pki_verdicts_fill(&s));
    const pki_verdict *v = find_verdict(&s, "records-dropped");
    assert_true(v->value == 0.01);
    assert_non_null(
        strstr(v->text, "100 records were dropped (1.0 % of all), 100 of them regions below 64"));
    assert_null(strstr(v->text, "PK_RING_RECORDS"));
    s.counts.dropped = 101;
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(
        strstr(find_verdict(&s, "records-dropped")->text, "the others because a ring was full"));
    pki_summary_finish(&s);
}

static void another_perfkit_is_told_of(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.counts.other_starts = 1;
    assert_string_equal(names_of(&s), "two-perfkits compute-bound");
    s = good_run();
    s.counts.other_starts = 3;
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(
        strstr(find_verdict(&s, "two-perfkits")->text, "wanted to start, 3 times: what"));
    pki_summary_finish(&s);
}

static const char *with_median(double p50, double step)
{
    pki_summary s = good_run();
    s.run.clock_step_ns = step;
    give_region(&s, "tiny", PK_OTHER, 0);
    s.regions[0].time.p50 = p50;
    return names_of(&s);
}

static void clock_at_its_threshold(void **state)
{
    (void)state;
    assert_string_equal(with_median(100, 10), "compute-bound");
    assert_string_equal(with_median(99, 10), "compute-bound clock-coarse");
    assert_string_equal(with_median(99, 0), "compute-bound"); /* unknown */
}

static void about_the_steps(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.steps.warmup = 1;
    s.steps.warm.sum = 9e6;
    assert_string_equal(names_of(&s), "compute-bound warm-up");
    s = good_run();
    s.steps.steady.count = s.steps.broken_down = 10;
    assert_string_equal(names_of(&s), "compute-bound");
    s = good_run();
    s.steps.steady.count = s.steps.broken_down = 9;
    assert_string_equal(names_of(&s), "compute-bound few-steps");
    s = good_run();
    s.steps.broken_down = 999;
    assert_string_equal(names_of(&s), "compute-bound no-breakdown");
    s = good_run();
    s.steps = (pki_step_summary){0};
    assert_string_equal(names_of(&s), "no-steps");
    s = good_run();
    s.steps = (pki_step_summary){0};
    s.run.awaits_steps = true; /* captures of slow steps, say */
    assert_true(pki_verdicts_fill(&s) && s.verdict_count == 1);
    assert_true(s.verdicts[0].severity == PKI_WARN && strstr(s.verdicts[0].text, "captures"));
    pki_summary_finish(&s);
}

static void warnings_first_then_good_then_notes(void **state)
{
    pki_summary s = good_run();
    (void)state;
    take(&s, PK_DATA, STEP / 3);
    take(&s, PK_COMM, STEP / 3);
    s.steps.warmup = 2;
    s.counts.dropped = 3;
    assert_string_equal(names_of(&s), "input-bound communication-heavy records-dropped warm-up");
}

static void one_more_takes_its_place(void **state)
{
    pki_summary s = good_run();
    (void)state;
    s.steps.warmup = 1;
    assert_true(pki_verdicts_fill(&s));
    assert_true(pki_verdict_add(&s, "z", PKI_WARN, 1, 0, "warning"));
    assert_true(pki_verdict_add(&s, "y", PKI_GOOD, 1, 0, "good"));
    assert_true(pki_verdict_add(&s, "x", PKI_NOTE, 1, 0, "note"));
    static const char *const order[] = {"z", "compute-bound", "y", "warm-up", "x"};
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(s.verdicts[i].name, order[i]);
    assert_true(pki_verdicts_fill(&s)); /* starts anew */
    assert_int_equal(s.verdict_count, 2);
    pki_summary_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(requests),
        cmocka_unit_test(shares_at_their_thresholds),
        cmocka_unit_test(input_bound_says_why),
        cmocka_unit_test(waiting_for_a_loader_is_input),
        cmocka_unit_test(the_loader_is_named),
        cmocka_unit_test(unsteady_steps),
        cmocka_unit_test(unsteady_names_the_slowest),
        cmocka_unit_test(drifting_steps),
        cmocka_unit_test(drifting_says_where_to),
        cmocka_unit_test(losses),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(dropped_says_why),
        cmocka_unit_test(another_perfkit_is_told_of),
        cmocka_unit_test(clock_at_its_threshold),
        cmocka_unit_test(about_the_steps),
        cmocka_unit_test(warnings_first_then_good_then_notes),
        cmocka_unit_test(one_more_takes_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
