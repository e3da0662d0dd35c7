/* Each verdict at its threshold: not at it, but just beyond. */
#include "verdicts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/overhead.h"
#include "measure/verdict/verdict.h"
#include "session/collector/collect.h"

/* ---- each verdict at its threshold ---- */

/* Not at it, but just beyond. */

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

static pki_summary slow_run(const char *by, double ns)
{
    pki_summary s = good_run();
    s.run.wall = 100000000000;
    s.slow_steps = (pki_slow_steps){.count = 50, .longer = 1500000000};
    s.slow_steps.causes = calloc(3, sizeof *s.slow_steps.causes);
    s.slow_steps.causes[0] = (pki_slow_cause){strdup(PKI_NO_PROCESSOR), 38, ns, strdup(by)};
    s.slow_steps.causes[1] = (pki_slow_cause){strdup(PKI_WAITED), 12, 1500000000 - ns, strdup("")};
    s.slow_steps.causes[2] = (pki_slow_cause){strdup(PKI_COMPUTE), 0, 1000, strdup("")};
    s.slow_steps.cause_count = 3;
    return s;
}

static pki_severity severity_of_slow(const char *by, double ns, double wall)
{
    pki_summary s = slow_run(by, ns);
    s.run.wall = (uint64_t)wall;
    assert_true(pki_verdicts_fill(&s));
    pki_severity is = find_verdict(&s, "slow-steps")->severity;
    pki_summary_finish(&s);
    return is;
}

static void slow_steps_by_cause(void **state)
{
    pki_summary s = slow_run("stress (pid 4711)", 1200000000);
    (void)state;
    assert_true(pki_verdicts_fill(&s));
    assert_string_equal(
        find_verdict(&s, "slow-steps")->text,
        "Of 50 slow steps, which took 1.50 s longer than like ones, 38 had no processor (1.20 s,"
        " because of stress (pid 4711)), 12 waited longer (300 ms). 80.0 % of that time is outside"
        " the program, whose work was as usual.");
    pki_summary_finish(&s);
    assert_int_equal(severity_of_slow("", 750000000, 100e9), PKI_WARN);
    assert_int_equal(severity_of_slow("", 749999999, 100e9), PKI_NOTE);
    assert_int_equal(severity_of_slow("", 1200000000, 151e9), PKI_NOTE);
    assert_int_equal(severity_of_slow(PKI_BY_OWN_THREADS, 1200000000, 100e9), PKI_NOTE);
    s = slow_run("", 1200000000);
    s.slow_steps.count = 2;
    assert_true(pki_verdicts_fill(&s));
    assert_null(strstr(names_of(&s), "slow-steps"));
    pki_summary_finish(&s);
}

/* Whose region was open as others had the processor is not to blame. */
static void unsteady_from_outside(void **state)
{
    pki_summary s = slow_run("", 1200000000);
    (void)state;
    s.steps.steady.p99 = 2300;
    s.steps.slowest_count = 1;
    s.steps.slowest = calloc(1, sizeof *s.steps.slowest);
    s.steps.slowest[0] = (pki_step_row){.index = 412, .duration = 5000, .part_count = 1};
    s.steps.slowest[0].parts = calloc(1, sizeof *s.steps.slowest[0].parts);
    s.steps.slowest[0].parts[0] = (pki_step_part){strdup("forward"), PK_COMPUTE, 4000, 100};
    assert_true(pki_verdicts_fill(&s));
    assert_null(strstr(find_verdict(&s, "unsteady")->text, "forward"));
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
    s.activities.count = 10;
    s.activities.late = 1;
    assert_string_equal(names_of(&s), "device-records-late compute-bound");
    s = good_run();
    s.comm.dropped_events = 7; /* details */
    assert_string_equal(names_of(&s), "compute-bound");
    s = good_run();
    s.comm.dropped_operations = 3;
    assert_string_equal(names_of(&s), "operations-dropped compute-bound");
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

static const struct CMUnitTest verdict_tests[] = {
    cmocka_unit_test(all_is_well),
    cmocka_unit_test(requests),
    cmocka_unit_test(shares_at_their_thresholds),
    cmocka_unit_test(input_bound_says_why),
    cmocka_unit_test(waiting_for_a_loader_is_input),
    cmocka_unit_test(the_loader_is_named),
    cmocka_unit_test(unsteady_steps),
    cmocka_unit_test(unsteady_names_the_slowest),
    cmocka_unit_test(slow_steps_by_cause),
    cmocka_unit_test(unsteady_from_outside),
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

/* ---- verdicts about devices ---- */

/* Each at its threshold and just beyond, and what they do to the others. */

/* A loop of nothing but computation, and a GPU that is busy for 75 % of it. */
static pki_summary verdict_gpu_good_run(bool measured)
{
    pki_summary s;
    pki_summary_init(&s);
    s.run.complete = true;
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = STEP, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMPUTE] = STEP;
    s.counts.begun = s.counts.recorded = 10000;
    s.gpus = calloc(3, sizeof *s.gpus);
    s.gpu_count = 1;
    s.gpus->measured = measured;
    s.gpus->per_step[PKI_GPU_STEP] = (pki_dist){.count = 1000, .sum = STEP};
    s.gpus->per_step[PKI_GPU_BUSY].sum = STEP * 3 / 4;
    return s;
}

static void set(pki_summary *s, enum pki_gpu_figure figure, uint64_t sum)
{
    s->gpus->per_step[figure].sum = (double)sum;
    s->gpus->per_step[figure].mean = (double)sum / 1000;
}

static const pki_verdict *found(pki_summary *s, const char *name)
{
    assert_true(pki_verdicts_fill(s));
    const pki_verdict *v = find_verdict(s, name);
    if (!v)
        fail_msg("no %s", name);
    return v;
}

static const char *with(bool measured, enum pki_gpu_figure figure, uint64_t sum)
{
    pki_summary s = verdict_gpu_good_run(measured);
    set(&s, figure, sum);
    return names_of(&s);
}

static void verdict_gpu_shares_at_their_thresholds(void **state)
{
    (void)state;
    assert_string_equal(with(true, PKI_GPU_BUSY, STEP * 8 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_BUSY, STEP * 8 / 10 + 1), "gpu-bound");
    assert_string_equal(with(true, PKI_GPU_IDLE, STEP * 3 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_IDLE, STEP * 3 / 10 + 1), "gpu-idle");
    assert_string_equal(with(true, PKI_GPU_COPY_ALONE, STEP * 2 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_COPY_ALONE, STEP * 2 / 10 + 1), "copy-bound");
    assert_string_equal(with(true, PKI_GPU_SYNC_GAPS, STEP * 2 / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_SYNC_GAPS, STEP * 2 / 10 + 1), "sync-bound");
}

static void many_short_kernels_with_gaps(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        pki_summary s = verdict_gpu_good_run(true);
        set(&s, PKI_GPU_LAUNCH_GAPS, STEP * 2 / 10 + more);
        set(&s, PKI_GPU_KERNELS, 1000);
        set(&s, PKI_GPU_SHORT_KERNELS, 500);
        assert_string_equal(names_of(&s), more ? "launch-bound" : "compute-bound");
        s = verdict_gpu_good_run(true);
        set(&s, PKI_GPU_LAUNCH_GAPS, STEP / 2);
        set(&s, PKI_GPU_KERNELS, 1000);
        set(&s, PKI_GPU_SHORT_KERNELS, 499 + more);
        assert_string_equal(names_of(&s), more ? "launch-bound" : "compute-bound");
    }
}

/* What only CUPTI can tell is not said of spans, whatever stands in the figures. */
static void spans_tell_less(void **state)
{
    (void)state;
    assert_string_equal(with(false, PKI_GPU_COPY_ALONE, STEP), "compute-bound");
    assert_string_equal(with(false, PKI_GPU_SYNC_GAPS, STEP), "compute-bound");
    assert_string_equal(with(false, PKI_GPU_LAUNCH_GAPS, STEP), "compute-bound");
    pki_summary s = verdict_gpu_good_run(false);
    set(&s, PKI_GPU_BUSY, STEP);
    assert_non_null(strstr(found(&s, "gpu-bound")->text, "Stream spans cover 100 %"));
    set(&s, PKI_GPU_BUSY, 0);
    set(&s, PKI_GPU_IDLE, STEP);
    const pki_verdict *idle = found(&s, "gpu-idle");
    assert_int_equal(idle->severity, PKI_NOTE);
    assert_non_null(strstr(idle->text, "or runs what is in no pk_gpu_begin"));
    assert_non_null(find_verdict(&s, "compute-bound")); /* as far as anybody knows */
    pki_summary_finish(&s);
}

static void idle_is_a_warning_unless_explained(void **state)
{
    pki_summary s = verdict_gpu_good_run(true);
    (void)state;
    set(&s, PKI_GPU_IDLE, STEP / 2);
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_WARN);
    assert_null(find_verdict(&s, "compute-bound"));
    set(&s, PKI_GPU_SYNC_GAPS, STEP / 2);
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_NOTE);
    assert_int_equal(find_verdict(&s, "sync-bound")->severity, PKI_WARN);
    set(&s, PKI_GPU_SYNC_GAPS, 0);
    s.steps.kinds[PK_DATA] = STEP;
    assert_int_equal(found(&s, "gpu-idle")->severity, PKI_NOTE);
    assert_non_null(find_verdict(&s, "input-bound"));
    pki_summary_finish(&s);
}

/* While the device works, what the loop does is hidden: waiting always, getting input if it is
 * sure. */
static void a_busy_device_hides_waits_and_input(void **state)
{
    (void)state;
    for (int measured = 0; measured < 2; measured++) {
        pki_summary s = verdict_gpu_good_run(measured);
        s.steps.kinds[PK_WAIT] = STEP;
        assert_string_equal(names_of(&s), "waiting");
        s = verdict_gpu_good_run(measured);
        s.steps.kinds[PK_WAIT] = STEP;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), "gpu-bound");
        s = verdict_gpu_good_run(measured);
        s.steps.kinds[PK_DATA] = STEP;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), measured ? "gpu-bound" : "input-bound");
        s = verdict_gpu_good_run(measured);
        s.steps.kinds[PK_COMM] = STEP / 2;
        set(&s, PKI_GPU_BUSY, STEP * 9 / 10);
        assert_string_equal(names_of(&s), "communication-heavy");
    }
}

static void the_good_news_names_the_device(void **state)
{
    pki_summary s = verdict_gpu_good_run(true);
    (void)state;
    s.gpus->device = 5;
    assert_non_null(strstr(found(&s, "compute-bound")->text, " GPU 5 is busy for 75.0 % of it."));
    set(&s, PKI_GPU_BUSY, STEP);
    s.kernels = calloc(4, sizeof *s.kernels);
    for (; s.kernel_count < 4; s.kernel_count++)
        s.kernels[s.kernel_count] =
            (pki_kernel_row){strdup("gemm"), strdup(""), 0, {.count = 1, .sum = 10}};
    const char *text = found(&s, "gpu-bound")->text;
    assert_non_null(strstr(text, "\"gemm\" 25.0 %, \"gemm\" 25.0 %, \"gemm\" 25.0 %. "));
    assert_null(strstr(text, "graphs"));
    s.gpus->graphs = 1;
    s.gpus->kernel_time = 1000;
    s.gpus->graph_time = 9; /* too little to matter */
    assert_null(strstr(found(&s, "gpu-bound")->text, "graphs"));
    s.gpus->graph_time = 250;
    text = found(&s, "gpu-bound")->text;
    assert_non_null(strstr(text, " 25.0 % of that are CUDA graphs as wholes"));
    assert_non_null(strstr(text, "PK_CUPTI_GRAPH_NODES=1"));
    pki_summary_finish(&s);
}

static void the_device_that_is_judged(void **state)
{
    pki_summary s = verdict_gpu_good_run(false);
    (void)state;
    s.gpu_count = 3;
    s.gpus[1] = s.gpus[2] = s.gpus[0];
    s.gpus[1].device = 1;
    s.gpus[1].per_step[PKI_GPU_BUSY].sum = STEP;
    s.gpus[2].device = 2;
    s.gpus[2].per_step[PKI_GPU_STEP] = (pki_dist){0};               /* in no steady step */
    assert_non_null(strstr(found(&s, "gpu-bound")->text, "GPU 1")); /* the busiest */
    s.gpus[0].measured = true;
    assert_non_null(strstr(found(&s, "compute-bound")->text, "GPU 0")); /* a measured one */
    assert_null(find_verdict(&s, "gpu-bound"));
    pki_summary_finish(&s);
}

static void exposed_communication(void **state)
{
    (void)state;
    assert_string_equal(with(true, PKI_GPU_COMM_EXPOSED, STEP / 10), "compute-bound");
    assert_string_equal(with(true, PKI_GPU_COMM_EXPOSED, STEP / 10 + 1), "communication-exposed");
    assert_string_equal(with(false, PKI_GPU_COMM_EXPOSED, STEP / 2), "communication-exposed");
    assert_string_equal(with(true, PKI_GPU_COMM_HIDDEN, STEP), "compute-bound");
    pki_summary s = verdict_gpu_good_run(true);
    set(&s, PKI_GPU_COMM_EXPOSED, STEP / 4);
    set(&s, PKI_GPU_COMM_HIDDEN, STEP / 8);
    const pki_verdict *v = found(&s, "communication-exposed");
    assert_int_equal(v->severity, PKI_WARN);
    assert_non_null(strstr(v->text, "for 25.0 % of the step GPU 0 has collectives in flight and no"
                                    " kernel on another stream beside"));
    assert_non_null(strstr(v->text, "; hidden: 12.5 %. Start each"));
    pki_summary_finish(&s);
}

/* Of those that are on a GPU: by NCCL, or timed on a stream. */
static void the_longest_collective(void **state)
{
    static const char *const libraries[] = {"MPI", "NCCL", "mine"};
    (void)state;
    pki_summary s = verdict_gpu_good_run(true);
    set(&s, PKI_GPU_COMM_EXPOSED, STEP / 4);
    s.comm.comms = calloc(3, sizeof *s.comm.comms);
    s.comm.slowest = calloc(3, sizeof *s.comm.slowest);
    s.comm.comm_count = s.comm.slowest_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        s.comm.comms[i] = (pki_comm_row){.library = strdup(libraries[i]), .name = strdup("world")};
        s.comm.slowest[i] = (pki_comm_call_row){.region = strdup(i ? "backward" : "load"),
                                                .comm = i,
                                                .op = i,
                                                .bytes = 1000,
                                                .duration = 3500 - 1000 * i};
    }
    const pki_verdict *v = found(&s, "communication-exposed");
    assert_non_null(strstr(v->text, "The longest one, broadcast of 1.00 KB in \"backward\", took"
                                    " 2.50 us."));
    s.comm.slowest[1].comm = 0;
    v = found(&s, "communication-exposed");
    assert_null(strstr(v->text, "The longest one"));
    s.comm.comms[2].on_stream = 1;
    v = found(&s, "communication-exposed");
    assert_non_null(strstr(v->text, ", took 1.50 us."));
    pki_summary_finish(&s);
}

/* Idle in few steps, for long: the median of the longest gaps is none. */
static void the_longest_gap_of_most_steps_is_none(void **state)
{
    pki_summary s = verdict_gpu_good_run(true);
    (void)state;
    set(&s, PKI_GPU_IDLE, STEP * 63 / 100);
    s.gpus->per_step[PKI_GPU_LONGEST_GAP] = (pki_dist){.count = 1000, .p50 = 0, .max = 7000000};
    const pki_verdict *v = found(&s, "gpu-idle");
    assert_non_null(
        strstr(v->text, "gaps per step; most steps have none, the longest took 7.00 ms."));
    s.gpus->per_step[PKI_GPU_LONGEST_GAP].p50 = 3000;
    v = found(&s, "gpu-idle");
    assert_non_null(strstr(v->text, "gaps per step; the longest takes 3.00 us (median)."));
    pki_summary_finish(&s);
}

/* It has no say in when the device is busy, or idle. */
static void a_device_with_collectives_alone(void **state)
{
    pki_summary s = verdict_gpu_good_run(false);
    (void)state;
    s.gpus->per_step[PKI_GPU_BUSY] = (pki_dist){0};
    set(&s, PKI_GPU_COMM, STEP / 2);
    assert_null(strstr(found(&s, "compute-bound")->text, "GPU"));
    assert_string_equal(names_of(&s), "compute-bound");
}

static void copies_say_which_way(void **state)
{
    pki_summary s = verdict_gpu_good_run(true);
    (void)state;
    set(&s, PKI_GPU_COPY_ALONE, STEP / 2);
    set(&s, PKI_GPU_H2D_TIME, STEP / 2);
    set(&s, PKI_GPU_H2D_BYTES, STEP * 5);
    const pki_verdict *v = found(&s, "copy-bound");
    assert_non_null(strstr(v->text, "; host to device 5.00 KB per step at 10.0 GB/s. "));
    assert_null(strstr(v->text, "device to host"));
    assert_true(v->value > 0.49 && v->value < 0.51 && v->threshold < 0.21);
    pki_summary_finish(&s);
}

static const struct CMUnitTest verdict_gpu_tests[] = {
    cmocka_unit_test(verdict_gpu_shares_at_their_thresholds),
    cmocka_unit_test(many_short_kernels_with_gaps),
    cmocka_unit_test(spans_tell_less),
    cmocka_unit_test(idle_is_a_warning_unless_explained),
    cmocka_unit_test(the_longest_gap_of_most_steps_is_none),
    cmocka_unit_test(a_busy_device_hides_waits_and_input),
    cmocka_unit_test(the_good_news_names_the_device),
    cmocka_unit_test(the_device_that_is_judged),
    cmocka_unit_test(exposed_communication),
    cmocka_unit_test(the_longest_collective),
    cmocka_unit_test(a_device_with_collectives_alone),
    cmocka_unit_test(copies_say_which_way),
};

/* ---- a loop without a processor ---- */

/* Said first, and what it explains is not said as if it were the cause. */

#define SECOND UINT64_C(1000000000)

/* 80 % communication, and a processor for a part of the time. */
static pki_summary a_rank(uint64_t ready)
{
    pki_summary s = {.run.complete = true};
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = STEP, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMM] = STEP * 8 / 10;
    s.steps.kinds[PK_COMPUTE] = STEP * 2 / 10;
    s.steps.processor = (pki_processor){SECOND, SECOND - ready, ready};
    return s;
}

/* "! a, - b"; finishes s. */
static const char *verdicts_of(pki_summary *s)
{
    static char text[512];
    static const char marks[] = {[PKI_GOOD] = '+', [PKI_NOTE] = '-', [PKI_WARN] = '!'};
    size_t n = 0;
    text[0] = '\0';
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c %s", i ? ", " : "",
                              marks[s->verdicts[i].severity], s->verdicts[i].name);
    pki_summary_finish(s);
    return text;
}

static const char *verdicts_with(uint64_t ready)
{
    pki_summary s = a_rank(ready);
    return verdicts_of(&s);
}

static void at_its_threshold(void **state)
{
    (void)state;
    assert_string_equal(verdicts_with(0), "! communication-bound");
    assert_string_equal(verdicts_with(SECOND / 10), "! communication-bound");
    assert_string_equal(verdicts_with(SECOND / 10 + 1), "! cpu-starved, ! communication-bound");
}

/* 80 % with 30 % that may be waiting for a processor is 50 %: no longer more than the threshold. */
static void what_it_explains_yields(void **state)
{
    (void)state;
    assert_string_equal(verdicts_with(SECOND * 29 / 100), "! cpu-starved, ! communication-bound");
    assert_string_equal(verdicts_with(SECOND * 31 / 100), "! cpu-starved, - communication-bound");
}

static void uneven_steps_yield(void **state)
{
    pki_summary s = a_rank(0);
    (void)state;
    s.steps.steady.p99 = 2000;
    s.steps.drift = 0.2;
    assert_string_equal(verdicts_of(&s), "! communication-bound, ! unsteady, ! drifting");
    s = a_rank(SECOND / 2);
    s.steps.steady.p99 = 2000;
    s.steps.drift = 0.2;
    s.counts.dropped = 1; /* which has nothing to do with it */
    assert_string_equal(verdicts_of(&s), "! cpu-starved, ! records-dropped, - communication-bound, "
                                         "- unsteady, - drifting");
}

static void in_words(void **state)
{
    pki_summary s = a_rank(SECOND * 61 / 100);
    (void)state;
    s.steps.processor.running = SECOND * 34 / 100;
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(strstr(s.verdicts[0].text, "The loop had a processor for 34.0 % of the time; "
                                               "for 61.0 % (threshold 10 %) it was ready"));
    assert_non_null(strstr(s.verdicts[1].text, "Without a processor (cpu-starved), that can come"));
    pki_summary_finish(&s);
}

static void not_judged_too_early(void **state)
{
    pki_summary s = a_rank(0);
    (void)state;
    s.steps.processor = (pki_processor){PKI_PROCESSOR_LEAST_NS - 1, 0, PKI_PROCESSOR_LEAST_NS - 1};
    assert_string_equal(verdicts_of(&s), "! communication-bound");
}

static void what_the_kernel_writes(void **state)
{
    uint64_t running = 7, ready = 7;
    (void)state;
    assert_true(pki_stepper_parse("123456789 987654321 42", &running, &ready));
    assert_true(running == 123456789 && ready == 987654321);
    assert_true(pki_stepper_parse("0 0 0", &running, &ready));
    assert_false(pki_stepper_parse("", &running, &ready));
    assert_false(pki_stepper_parse("12", &running, &ready));
    assert_false(pki_stepper_parse("12-7 5", &running, &ready));
    assert_false(pki_stepper_parse("no", &running, &ready));
}

/* A wait that had begun before the first look, and running that the kernel entered late. */
static void nobody_has_more_than_there_was(void **state)
{
    pki_processor sum = {0};
    (void)state;
    pki_stepper_add(&sum, &(pki_processor){100, 30, 90});
    assert_true(sum.observed == 100 && sum.running == 30 && sum.ready == 70);
    pki_stepper_add(&sum, &(pki_processor){100, 104, 0});
    assert_true(sum.observed == 200 && sum.running == 130 && sum.ready == 70);
    /* Of a wait over two looks nothing is lost: the first has left room for it. */
    pki_stepper_add(&sum, &(pki_processor){100, 0, 0});
    pki_stepper_add(&sum, &(pki_processor){100, 20, 180});
    assert_true(sum.observed == 400 && sum.running == 150 && sum.ready == 250);
}

static const struct CMUnitTest processor_tests[] = {
    cmocka_unit_test(nobody_has_more_than_there_was),
    cmocka_unit_test(at_its_threshold),
    cmocka_unit_test(what_it_explains_yields),
    cmocka_unit_test(uneven_steps_yield),
    cmocka_unit_test(in_words),
    cmocka_unit_test(not_judged_too_early),
    cmocka_unit_test(what_the_kernel_writes),
};

int main(void)
{
    int failed = cmocka_run_group_tests(verdict_tests, NULL, NULL);
    failed += cmocka_run_group_tests(verdict_gpu_tests, NULL, NULL);
    failed += cmocka_run_group_tests(processor_tests, NULL, NULL);
    return failed;
}
