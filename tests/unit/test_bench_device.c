/* Benchmarks on a device's stream, with a device made of words: its time is not the processor's. */
#include "script_clock.h"

#include <stdio.h>

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

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_device_s_time_counts),
        TEST(cold_launches_are_single),
        TEST(errors_are_told),
        TEST(a_stream_cannot_be_paused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
