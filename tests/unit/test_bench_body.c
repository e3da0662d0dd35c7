/* What a benchmark's body may do, on clocks that the test moves: the processor's and a device's. */
#include "script_clock.h"

#include <stdio.h>

#include "base/atomic.h"
#include "bench/case.h"
#include "bench/counters.h"

/* ---- what a benchmark's body may do, on a clock that the test moves ---- */

static const struct pk_bench_options *const few =
    &(struct pk_bench_options){.size = sizeof *few, .max_samples = 25, .iterations = 10};

/* -- what is not timed -- */

static unsigned set_ups, tear_downs, befores, afters;

static int set_up(void *user)
{
    assert_ptr_equal(user, &set_ups);
    set_ups++;
    pass(1e6);
    return 0;
}

static void tear_down(void *user)
{
    (void)user;
    tear_downs++;
    pass(1e6);
}

static void before(void *user)
{
    (void)user;
    befores++;
    pass(1e5);
}

static void after(void *user)
{
    (void)user;
    afters++;
    pass(1e5);
}

static unsigned bodies;

static void with_surroundings(pk_bench_run *bench)
{
    bodies++;
    assert_ptr_equal(pk_bench_user(bench), &set_ups);
    pass(5e4);
    PK_BENCH_LOOP {
        pass(70);
    }
    pass(5e4);
}

static void surroundings_are_not_timed(void **state)
{
    (void)state;
    struct pk_bench_options o = {.size = sizeof o,
                                 .max_samples = 25,
                                 .setup = set_up,
                                 .teardown = tear_down,
                                 .before = before,
                                 .after = after,
                                 .user = &set_ups};
    pk_bench_result r = measured(with_surroundings, &o);
    close_to(r.median, 70, 0.05);
    assert_int_equal(r.count, 25);
    assert_int_equal(set_ups, 1);
    assert_int_equal(tear_downs, 1);
    assert_int_equal(befores, bodies);
    assert_int_equal(afters, bodies);
    pk_bench_result_release(&r);
}

static int no_set_up(void *user)
{
    (void)user;
    return 1;
}

static void a_set_up_may_fail(void **state)
{
    (void)state;
    tear_downs = 0;
    struct pk_bench_options o = {.size = sizeof o, .setup = no_set_up, .teardown = tear_down};
    pk_bench_result r = measured(with_surroundings, &o);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_int_equal(tear_downs, 0);
    assert_string_equal(r.reason, "its set-up failed");
}

static void pausing(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pass(30);
        pk_bench_pause(bench);
        pass(1000);
        pk_bench_resume(bench);
        pass(10);
    }
}

static void pauses_are_not_timed(void **state)
{
    (void)state;
    pk_bench_result r = measured(pausing, few);
    close_to(r.median, 40, 1e-9); /* each pair of readings is subtracted */
    close_to(r.cpu, 40, 1e-9);
    pk_bench_result_release(&r);
}

static void pauses_at_the_end(pk_bench_run *bench)
{
    pk_bench_resume(bench); /* nothing is paused */
    uint64_t n = pk_bench_begin(bench);
    pass(30 * (double)n);
    pk_bench_pause(bench);
    pass(1e6);
    pk_bench_end(bench);
}

static void odd_pauses(void **state)
{
    (void)state;
    pk_bench_result r = measured(pauses_at_the_end, few);
    close_to(r.median, 30, 2.1); /* the reading that began the pause */
    pk_bench_result_release(&r);
}

/* -- which time counts -- */

static void waiting(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pass(40);
        script.now += 60; /* somebody else runs */
        pk_bench_add_time(bench, 7);
    }
}

static double median_by(uint32_t clock)
{
    struct pk_bench_options o = *few;
    o.clock = clock;
    pk_bench_result r = measured(waiting, &o);
    double median = r.median;
    close_to(r.cpu, 40, 1e-9);
    pk_bench_result_release(&r);
    return median;
}

static void clocks(void **state)
{
    (void)state;
    close_to(median_by(PK_BENCH_CLOCK_WALL), 100, 1e-9);
    close_to(median_by(PK_BENCH_CLOCK_CPU), 40, 1e-9);
    close_to(median_by(PK_BENCH_CLOCK_MANUAL), 7, 1e-9);
}

static void negative_time(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pk_bench_add_time(bench, -1);
    }
}

static void time_is_not_negative(void **state)
{
    (void)state;
    struct pk_bench_options o = *few;
    o.clock = PK_BENCH_CLOCK_MANUAL;
    pk_bench_result r = measured(negative_time, &o);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
}

static void no_gpu_is_a_reason(void **state)
{
    (void)state;
    struct pk_bench_options o = *few;
    const char *why_not = NULL;
    o.clock = PK_BENCH_CLOCK_GPU;
    if (pki_bench_device_find(&why_not))
        skip();
    pk_bench_result r = measured(waiting, &o);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_SKIPPED);
    assert_string_equal(r.reason, why_not);
}

/* -- mistakes -- */

static void without_a_loop(pk_bench_run *bench)
{
    (void)bench;
}

static void left_by_break(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        if (pk_bench_thread(bench) == 0)
            break;
    }
}

static void two_loops(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pass(1);
    }
    PK_BENCH_LOOP {
        pass(1);
    }
}

static void gives_up(pk_bench_run *bench)
{
    pk_bench_give_up(bench, PK_BENCH_OUTCOME_FAILED, "wrong result");
    pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "the first word counts");
    PK_BENCH_LOOP {
        fail_msg("a benchmark that has given up is measured");
    }
}

static void fails_with(void (*body)(pk_bench_run *), const char *reason)
{
    pk_bench_result r = measured(body, few);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_string_equal(r.reason, reason);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    fails_with(without_a_loop, "its body has no loop (PK_BENCH_LOOP)");
    fails_with(left_by_break, "its loop was left before its end");
    fails_with(two_loops, "its loop was begun twice in one run");
    fails_with(gives_up, "wrong result");
}

/* -- figures -- */

static void counting(pk_bench_run *bench)
{
    char name[8];
    pk_bench_set_work(bench, 1000, 200, 3);
    pk_bench_set_label(bench, "a label");
    PK_BENCH_LOOP {
        pass(1000);
        pk_bench_add_counter(bench, "hits", 2, PK_BENCH_UNIT_PER_ITERATION);
        pk_bench_add_counter(bench, "bits", 5, PK_BENCH_UNIT_PER_SECOND);
    }
    pk_bench_add_counter(bench, "depth", 42, PK_BENCH_UNIT_PLAIN);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "n%d", i);
        pk_bench_add_counter(bench, name, i, PK_BENCH_UNIT_PLAIN);
    }
}

static void figures(void **state)
{
    (void)state;
    pki_bench_case c = make("one", counting, few);
    run_together(&c, 1, true);
    assert_string_equal(c.label, "a label");
    assert_int_equal(c.series_count, PKI_BENCH_FIGURES);
    assert_string_equal(c.series[0].name, "hits");
    close_to(pki_bench_series_median(&c.series[0]), 2, 1e-12);
    close_to(pki_bench_series_median(&c.series[1]), 5 / 1000e-9, 1);
    close_to(pki_bench_series_median(&c.series[2]), 42, 0);
    pk_bench_result r = result_of(&c);
    close_to(r.bytes_per_second, 1e9, 1);
    close_to(r.flops_per_second, 2e8, 1);
    close_to(r.items_per_second, 3e6, 1);
    assert_non_null(strstr(r.note, "beyond 16 names"));
    pk_bench_result_release(&r);
}

static void arguments(pk_bench_run *bench)
{
    assert_int_equal(pk_bench_arg(bench, 0), 0);
    assert_int_equal(pk_bench_threads(bench), 1);
    assert_int_equal(pk_bench_thread(bench), 0);
    assert_null(pk_bench_user(bench));
    PK_BENCH_LOOP {
        pass(1000);
    }
}

static void nothing_is_given(void **state)
{
    (void)state;
    pk_bench_result r = measured(arguments, few);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_MEASURED);
    pk_bench_result_release(&r);
}

/* -- allocations -- */

static void allocating(pk_bench_run *bench)
{
    pk_bench_note_allocation(1000); /* before the loop */
    PK_BENCH_LOOP {
        pass(1000);
        pk_bench_note_allocation(24);
        pk_bench_note_allocation(40);
    }
    pk_bench_note_allocation(1000); /* behind it */
}

static void allocations_need_somebody_to_count(void **state)
{
    (void)state;
    struct pk_bench_options o = *few;
    o.allocations = 1;
    pk_bench_result r = measured(allocating, &o);
    assert_true(r.allocations < 0); /* nobody stands in front of this program's malloc */
    assert_non_null(strstr(r.note, "PK_BENCH_COUNT_ALLOCATIONS"));
    pk_bench_result_release(&r);
}

static void only_the_loop_s_are_counted(void **state)
{
    (void)state;
    uint64_t count, bytes;
    pki_bench_case c = make("one", allocating, few);
    pki_bench_sample sample;
    assert_int_equal(pki_bench_case_open(&c), PK_OK);
    c.counting_allocations = true;
    assert_true(pki_bench_case_run_sample(&c, 10, &sample));
    pki_bench_allocations_read(&count, &bytes);
    assert_int_equal(count, 20);
    assert_int_equal(bytes, 640);
    pki_bench_case_close(&c);
}

/* -- hardware counters -- */

static void counters_or_a_reason(void **state)
{
    (void)state;
    struct pk_bench_options o = *few;
    o.hardware = 1;
    pk_bench_result r = measured(arguments, &o);
    if (r.instructions < 0)
        assert_true(*r.note);
    else
        assert_true(r.instructions > 0);
    pk_bench_result_release(&r);
}

/* -- cold -- */

static void a_cold_sample_is_one_iteration(void **state)
{
    (void)state;
    pk_bench_result r = measured(arguments, pk_bench_options(.cold = 1, .max_samples = 30));
    assert_int_equal(r.iterations, 1);
    assert_int_equal(r.count, 30);
    assert_int_equal(r.warmup_iterations, 1);
    assert_int_equal(r.warmup_steady, 1);
    pk_bench_result_release(&r);
}

#define TEST(name) cmocka_unit_test_setup(name, start_script)

static const struct CMUnitTest bench_body_tests[] = {
    TEST(surroundings_are_not_timed),
    TEST(a_set_up_may_fail),
    TEST(pauses_are_not_timed),
    TEST(odd_pauses),
    TEST(clocks),
    TEST(time_is_not_negative),
    TEST(no_gpu_is_a_reason),
    TEST(mistakes_are_told),
    TEST(figures),
    TEST(nothing_is_given),
    TEST(allocations_need_somebody_to_count),
    TEST(only_the_loop_s_are_counted),
    TEST(counters_or_a_reason),
    TEST(a_cold_sample_is_one_iteration),
};

/* ---- benchmarks on a device's stream, with a device made of words ---- */

/* Its time is not the processor's. */

static struct {
    double now, start, end;
    unsigned opened, closed, begun, ended, flushed;
    bool refuse, fail_begin, fail_elapsed, cold;
    void *stream;
} device;

static void *open_timer(void *stream, bool cold, char *reason, size_t size)
{
    device.stream = stream;
    device.cold = cold;
    if (device.refuse) {
        snprintf(reason, size, "no context is current");
        return NULL;
    }
    device.opened++;
    return &device;
}

static void close_timer(void *timer)
{
    assert_ptr_equal(timer, &device);
    device.closed++;
}

static bool begin(void *timer)
{
    (void)timer;
    device.begun++;
    device.start = device.now;
    return !device.fail_begin;
}

static bool end(void *timer)
{
    (void)timer;
    device.ended++;
    device.end = device.now;
    return true;
}

static bool elapsed(void *timer, double *ns)
{
    (void)timer;
    *ns = device.end - device.start;
    return !device.fail_elapsed;
}

static const char *why(void *timer)
{
    (void)timer;
    return "an illegal address";
}

static bool flush(void *timer)
{
    (void)timer;
    device.flushed++;
    pass(20000); /* before the begin, so not in the sample */
    device.now += 1e6;
    return true;
}

static const char *cannot_hold(void *timer)
{
    (void)timer;
    return "words cannot wait";
}

static bool health(void *timer, pki_bench_health *now)
{
    (void)timer, (void)now;
    return false;
}

static const pki_bench_device table = {"words", 500,     open_timer, close_timer, begin,
                                       end,     elapsed, why,        flush,       cannot_hold,
                                       NULL,    NULL,    health};
#define NOT_QUEUED "launches are not queued (words cannot wait): gaps between them count"

static int start(void **state)
{
    memset(&device, 0, sizeof device);
    start_script(state);
    engine.device = &table;
    return 0;
}

/* A launch takes the processor 300 ns and the device 500. It warms up for 200 ms of the
 * processor's: were it faster, that would be millions of launches. */
static void launches(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pass(300);
        device.now += 500;
    }
}

static pk_bench_result run(uint32_t cold)
{
    int stream;
    struct pk_bench_options o = {.size = sizeof o,
                                 .clock = PK_BENCH_CLOCK_GPU,
                                 .stream = &stream,
                                 .cold = cold,
                                 .max_samples = 50,
                                 .bytes = 1000};
    pk_bench_result r = measured(launches, &o);
    assert_ptr_equal(device.stream, &stream);
    assert_int_equal(device.opened, device.closed);
    return r;
}

static void the_device_s_time_counts(void **state)
{
    (void)state;
    pk_bench_result r = run(0);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_MEASURED);
    close_to(r.median, 500, 1e-9);
    close_to(r.cpu, 300, 0.1);
    assert_int_equal(r.iterations, 400); /* 200 us of the device's */
    close_to(r.bytes_per_second, 2e9, 1);
    assert_int_equal(device.begun, device.ended);
    assert_int_equal(device.flushed, 0);
    assert_string_equal(r.note, NOT_QUEUED);
    assert_int_equal(r.queued, 0);
    assert_int_equal(r.bound, PK_BENCH_BOUND_DEVICE);
    close_to(r.launch, 300, 0.1);
    assert_true(r.warmup_time >= PKI_BENCH_CLOCKS_BLIND); /* nobody tells its clock */
    assert_int_equal(r.throttled, 0);
    pk_bench_result_release(&r);
}

static void cold_launches_are_single(void **state)
{
    (void)state;
    pk_bench_result r = run(1);
    assert_int_equal(r.iterations, 1);
    close_to(r.median, 500, 1e-9);
    close_to(r.cpu, 300, 1e-9);
    assert_int_equal(device.flushed, device.begun);
    assert_true(device.cold);
    pk_bench_result_release(&r);
}

static void errors_are_told(void **state)
{
    (void)state;
    device.refuse = true;
    pk_bench_result r = run(0);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_SKIPPED);
    assert_string_equal(r.reason, "no context is current");
    device.refuse = false;
    device.fail_begin = true;
    r = run(0);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_string_equal(r.reason, "an illegal address");
    device.fail_begin = false;
    device.fail_elapsed = true;
    r = run(0);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_string_equal(r.reason, "an illegal address");
}

static void pauses(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        pk_bench_pause(bench);
        pk_bench_resume(bench);
    }
}

static void a_stream_cannot_be_paused(void **state)
{
    (void)state;
    pk_bench_result r = measured(pauses, pk_bench_options(.clock = PK_BENCH_CLOCK_GPU));
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_string_equal(r.reason, "a stream's time cannot be paused");
}

#define BENCH_DEVICE_TEST(name) cmocka_unit_test_setup(name, start)

static const struct CMUnitTest bench_device_tests[] = {
    BENCH_DEVICE_TEST(the_device_s_time_counts),
    BENCH_DEVICE_TEST(cold_launches_are_single),
    BENCH_DEVICE_TEST(errors_are_told),
    BENCH_DEVICE_TEST(a_stream_cannot_be_paused),
};

int main(void)
{
    int failed = cmocka_run_group_tests(bench_body_tests, NULL, NULL);
    failed += cmocka_run_group_tests(bench_device_tests, NULL, NULL);
    return failed;
}
