/* Kernels and launches on a GPU: what is said of them has to be the truth, exactly, whatever a body
 * does to the stream. */
#include "kernel_clock.h"

/* ---- which of the two ---- */

static void a_kernel_shorter_than_its_launch(void **state)
{
    (void)state;
    pk_bench_result r = run(5000, 2000);
    close_to(r.median, 2000, 0.01);
    close_to(r.launch, 5000, 1);
    assert_int_equal(r.queued, 1);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_int_equal(r.iterations, 100); /* 200 us of the device's */
    assert_int_equal(r.stopped, PK_BENCH_STOP_SAMPLES);
    assert_string_equal(r.note, "");
    assert_int_equal(dog.barks, 0);
    pk_bench_result_release(&r);
}

static void a_kernel_longer_than_its_launch(void **state)
{
    (void)state;
    pk_bench_result r = run(5000, 20000);
    close_to(r.median, 20000, 0.1);
    close_to(r.launch, 5000, 5);
    assert_int_equal(r.bound, PK_BENCH_BOUND_DEVICE);
    assert_int_equal(r.iterations, 10);
    pk_bench_result_release(&r);
}

static void times_between_the_events_steps(void **state)
{
    (void)state;
    pk_bench_result r = run(100, 2345);
    close_to(r.median, 2345, 500.0 / (double)r.iterations);
    pk_bench_result_release(&r);
}

static void unqueued_the_launch_is_measured(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .unqueued = 1};
    pk_bench_result r = run_with(o, 5000, 2000);
    close_to(r.median, 5000, 60); /* the last one's end is 2 us behind its launch */
    assert_int_equal(r.queued, 0);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
    r = run_with(o, 5000, 20000);
    assert_int_equal(r.bound, PK_BENCH_BOUND_DEVICE);
    close_to(r.median, 20000, 600); /* the first one waits for its launch */
    pk_bench_result_release(&r);
}

static void a_device_without_waits(void **state)
{
    (void)state;
    gpu->no_waits();
    pk_bench_result r = run(5000, 2000);
    close_to(r.median, 5000, 60);
    assert_int_equal(r.queued, 0);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_non_null(strstr(r.note, "launches are not queued (the d"));
    pk_bench_result_release(&r);
}

/* ---- the watchdog ---- */

static void a_body_that_waits_for_the_device(void **state)
{
    (void)state;
    kernel.waits = true;
    pk_bench_result r = run(5000, 2000);
    close_to(r.median, 7000, 1);
    assert_int_equal(r.queued, 0);
    assert_int_equal(r.bound, PK_BENCH_BOUND_UNKNOWN);
    assert_non_null(strstr(r.note, "its body waits for the device"));
    assert_int_equal(dog.barks, 1);
    pk_bench_result_release(&r);
}

/* It begins to wait in the middle: what was queued is forgotten. */
static void wait_later(void)
{
    kernel.waits = script.now > 1e9 + 400e6;
}

static void a_body_that_waits_later(void **state)
{
    (void)state;
    as_time_passes = wait_later;
    struct pk_bench_options o = {
        .max_samples = 2000, .min_samples = 2000, .max_time = 100000000000};
    pk_bench_result r = run_with(o, 5000, 2000);
    close_to(r.min, 7000, 20); /* one of the events' steps in each sample */
    close_to(r.max, 7000, 20);
    assert_int_equal(r.count, 2000);
    assert_int_equal(r.queued, 0);
    assert_int_equal(dog.barks, PKI_BENCH_LOST + 1);
    pk_bench_result_release(&r);
}

static void more_launches_than_a_queue_takes(void **state)
{
    (void)state;
    kernel.each = 4;
    struct pk_bench_options o = {.max_samples = 50, .sample_time = 2000000};
    pk_bench_result r = run_with(o, 5000, 1000);
    close_to(r.median, 4000, 0.01);
    close_to(r.launch, 20000, 1);
    assert_int_equal(r.queued, 1);
    assert_int_equal(r.iterations, 100); /* the last number that fitted; 500 would take 2 ms */
    assert_int_equal(dog.barks, 1);
    pk_bench_result_release(&r);
}

/* A number of the caller's own that does not fit. */
static void too_many_iterations(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .iterations = 2000};
    pk_bench_result r = run_with(o, 5000, 2000);
    assert_int_equal(r.iterations, 2000);
    assert_int_equal(r.queued, 0);
    close_to(r.median, 5000, 5);
    pk_bench_result_release(&r);
}

/* The mock's part: without the watchdog those would hang. */
static void what_would_hang(void **state)
{
    (void)state;
    dog.asleep = true;
    kernel.waits = true;
    kernel.launch_ns = kernel.ns = 1000;
    struct pk_bench_options o = {
        .size = sizeof o, .clock = PK_BENCH_CLOCK_GPU, .stream = stream, .max_samples = 20};
    pk_bench_result r = measured(launches, &o);
    assert_true(gpu->hung() > 0);
    pk_bench_result_release(&r);
}

static void leaves_its_loop(pk_bench_run *bench)
{
    static unsigned runs;
    for (uint64_t left = pk_bench_begin(bench); left; left--)
        if (++runs > 1000)
            return;
    pk_bench_end(bench);
}

static void a_body_that_does_not_end_lets_go(void **state)
{
    (void)state;
    pk_bench_result r =
        measured(leaves_its_loop, pk_bench_options(.clock = PK_BENCH_CLOCK_GPU, .stream = stream));
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_int_equal(gpu->synchronize(stream), CUDA_SUCCESS);
    assert_int_equal(gpu->hung(), 0);
}

/* ---- the mock is as strict as the documentation ---- */

static void a_wait_holds_back_one_stream(void **state)
{
    (void)state;
    CUstream other = gpu->stream_create(gpu->context_create(0));
    struct pk_bench_options whole = {.size = sizeof whole};
    const char *why_not;
    const pki_bench_device *device = pki_bench_device_find(&why_not);
    char reason[128];
    void *timer = device->open(stream, false, reason, sizeof reason);
    assert_non_null(timer);
    gpu->kernel(stream, 0, 10);
    gpu->kernel(other, 0, 10);
    assert_true(device->hold(timer));
    gpu->kernel(stream, 0, 10);
    assert_int_equal(gpu->kernel(other, 0, 10), CUDA_SUCCESS);
    assert_int_equal(gpu->synchronize(other), CUDA_SUCCESS);
    assert_int_equal(gpu->synchronize(stream), CUDA_ERROR_UNKNOWN);
    assert_int_equal(gpu->hung(), 1);
    for (int i = 1; i < 1024; i++)
        assert_int_equal(gpu->kernel(stream, 0, 10), CUDA_SUCCESS);
    assert_int_equal(gpu->kernel(stream, 0, 10), CUDA_ERROR_UNKNOWN); /* the queue is full */
    device->release(timer);
    assert_int_equal(gpu->synchronize(stream), CUDA_SUCCESS);
    device->close(timer);
}

int main(int argc, char **argv)
{
    if (!open_mocks(argc, argv))
        return 2;
    const struct CMUnitTest tests[] = {
        TEST(a_kernel_shorter_than_its_launch),
        TEST(a_kernel_longer_than_its_launch),
        TEST(times_between_the_events_steps),
        TEST(unqueued_the_launch_is_measured),
        TEST(a_device_without_waits),
        TEST(a_body_that_waits_for_the_device),
        TEST(a_body_that_waits_later),
        TEST(more_launches_than_a_queue_takes),
        TEST(too_many_iterations),
        TEST(what_would_hang),
        TEST(a_body_that_does_not_end_lets_go),
        TEST(a_wait_holds_back_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
