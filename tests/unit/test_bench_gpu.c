/* Benchmarks on a GPU: what is said of them has to be the truth, whatever a body does to the
 * stream. */
#include "script_clock.h"

#include <pk/bench.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fake/driver.h"
#include "../fake/nvml.h"
#include "bench/counters.h"
#include "bench/queue.h"

/* ---- benchmarks on streams of the mock of the CUDA driver, with NVML's mock watching ---- */

/* Events and memory come and go in pairs, errors become reasons. The double's device does its work
 * as soon as it has it; what a real one would measure is not tested here. */

static const fake_cuda_script *gpu;
static fake_nvml *nvml;
static struct {
    unsigned blocks, fills;
    size_t filled;
    unsigned words;
} const *tally;
static CUcontext context;
static CUstream stream;

static int start(void **state)
{
    (void)state;
    gpu->reset();
    context = gpu->context_create(0);
    stream = gpu->stream_create(context);
    nvml->devices = 1;
    nvml->device[0].uuid = "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a";
    nvml->device[0].sm_mhz = 1980;
    nvml->device[0].reasons = 0;
    return 0;
}

static void work(void *arg)
{
    (void)arg;
    gpu->work(stream);
}

static void slower_later(void *arg)
{
    static unsigned calls;
    (void)arg;
    if (++calls == 300)
        fake_set(nvml->device[0].sm_mhz, 1200);
}

static pk_status run(struct pk_bench_options *o, pk_bench_result *r, void (*fn)(void *))
{
    o->size = sizeof *o;
    o->clock = PK_BENCH_CLOCK_GPU;
    o->iterations = 1;
    o->max_samples = 40;
    o->max_warmup = 1;
    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    unsigned events = gpu->events();
    pk_status status = pk_bench("work", fn, NULL, o, r);
    assert_int_equal(gpu->events(), events);
    assert_int_equal(tally->blocks, 0);
    assert_int_equal(tally->words, 0);
    return status;
}

static void two_events_around_each_sample(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = stream};
    assert_int_equal(run(&o, &r, work), PK_OK);
    assert_int_equal(r.count, 40);
    assert_true(r.min >= 0 && r.max < 1e9);
    assert_int_equal(r.queued, 1);
    assert_null(strstr(r.note, "clock"));
    assert_int_equal(tally->fills, 0);
    pk_bench_result_release(&r);
}

static void the_default_stream_needs_a_context(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = NULL};
    assert_int_equal(run(&o, &r, work), PK_OK);
    pk_bench_result_release(&r);
    gpu->context_current(NULL);
    assert_int_equal(run(&o, &r, work), PK_ENOTSUP);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_SKIPPED);
    assert_non_null(strstr(r.reason, "no CUDA context is current"));
}

static void cold_samples_flush_the_cache(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = stream, .cold = 1};
    assert_int_equal(run(&o, &r, work), PK_OK);
    assert_true(r.count > 0 && tally->fills >= r.count);
    assert_int_equal(tally->filled, 2 << 20); /* twice the mock's L2 */
    pk_bench_result_release(&r);
}

static void errors_are_reasons(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = stream};
    gpu->let_fail(FAKE_EVENT_CREATE, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(run(&o, &r, work), PK_ENOTSUP);
    assert_non_null(strstr(r.reason, "cuEventCreate"));
    gpu->let_fail(FAKE_EVENT_RECORD, 5, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(run(&o, &r, work), PK_ENOTSUP);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_non_null(strstr(r.reason, "cuEventRecord"));
    gpu->let_fail(FAKE_EVENT_ELAPSED, 5, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(run(&o, &r, work), PK_ENOTSUP);
    assert_non_null(strstr(r.reason, "cuEventElapsedTime"));
}

/* With the system's own watchdog, which lets go; how soon is not asked. */
static void waits(void *arg)
{
    (void)arg;
    assert_int_equal(gpu->synchronize(stream), CUDA_SUCCESS);
}

static void a_body_that_waits_is_let_go(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = stream};
    assert_int_equal(run(&o, &r, waits), PK_OK);
    assert_int_equal(r.queued, 0);
    assert_true(r.count >= 20);
    assert_non_null(strstr(r.note, "its body waits for the device"));
    pk_bench_result_release(&r);
}

/* Programs that were compiled before and after this perfkit. */
static void results_of_other_sizes(void **state)
{
    (void)state;
    union {
        pk_bench_result r;
        unsigned char bytes[2 * sizeof(pk_bench_result)];
    } given;
    const size_t sizes[] = {offsetof(pk_bench_result, launch), offsetof(pk_bench_result, marks),
                            sizeof(pk_bench_result), sizeof given};
    struct pk_bench_options o = {.size = sizeof o,
                                 .clock = PK_BENCH_CLOCK_GPU,
                                 .stream = stream,
                                 .iterations = 1,
                                 .max_samples = 3,
                                 .max_warmup = 1};
    for (int i = 0; i < 4; i++) {
        memset(&given, 0x55, sizeof given);
        given.r.size = (uint32_t)sizes[i];
        assert_int_equal(pk_bench("work", work, NULL, &o, &given.r), PK_OK);
        assert_true(given.r.size == sizes[i] && given.r.count == 3);
        if (sizes[i] < sizeof given)
            assert_int_equal(given.bytes[sizes[i]], 0x55);
        else
            assert_int_equal(given.bytes[sizeof given - 1], 0);
        pk_bench_result_release(&given.r);
    }
    given.r.size = (uint32_t)sizes[0] - 8;
    assert_int_equal(pk_bench("work", work, NULL, &o, &given.r), PK_EINVAL);
}

static void clocks_are_watched(void **state)
{
    (void)state;
    pk_bench_result r;
    struct pk_bench_options o = {.stream = stream};
    nvml->device[0].reasons = 0x4; /* the power cap */
    assert_int_equal(run(&o, &r, work), PK_OK);
    assert_non_null(strstr(r.note, "held down"));
    pk_bench_result_release(&r);
    nvml->device[0].reasons = 0;
    o.max_warmup = 1;
    o.size = sizeof o;
    o.clock = PK_BENCH_CLOCK_GPU;
    o.iterations = 10;
    o.max_samples = 100;
    r.size = sizeof r;
    assert_int_equal(pk_bench("slower", slower_later, NULL, &o, &r), PK_OK);
    assert_non_null(strstr(r.note, "the GPU's clock went between 1200 and 1980 MHz meanwhile"));
    assert_true(r.clock_low_mhz == 1200 && r.clock_high_mhz == 1980);
    pk_bench_result_release(&r);
    assert_int_equal(nvml->inits, nvml->shutdowns);
}

static const struct CMUnitTest bench_cuda_tests[] = {
    cmocka_unit_test_setup(two_events_around_each_sample, start),
    cmocka_unit_test_setup(the_default_stream_needs_a_context, start),
    cmocka_unit_test_setup(cold_samples_flush_the_cache, start),
    cmocka_unit_test_setup(errors_are_reasons, start),
    cmocka_unit_test_setup(a_body_that_waits_is_let_go, start),
    cmocka_unit_test_setup(results_of_other_sizes, start),
    cmocka_unit_test_setup(clocks_are_watched, start),
};

static int run_bench_cuda(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *cuda = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL),
         *ml = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    setenv("PK_CUDA_LIBRARY", argv[1], 1);
    setenv("PK_NVML_LIBRARY", argv[2], 1);
    if (!cuda || !ml)
        return 2;
    gpu = dlsym(cuda, FAKE_CUDA_SCRIPT);
    tally = dlsym(cuda, "FAKE_CUDA_BENCH");
    nvml = dlsym(ml, FAKE_NVML_SCRIPT);
    return cmocka_run_group_tests(bench_cuda_tests, NULL, NULL);
}

/* ---- kernels whose times are known ---- */

/* On the mock of the CUDA driver, which lives on the engine's own clock (script_clock.h), as the
 * watchdog does. A test's program is given the mocks of the driver and of NVML. */

static const fake_cuda_script *kernel_clock_gpu;
static fake_nvml *kernel_clock_nvml;
static struct {
    unsigned blocks, fills;
    size_t filled;
    unsigned words;
} const *kernel_clock_tally;
static CUstream kernel_clock_stream;

/* -- time -- */

static struct {
    void (*bark)(void *);
    void *arg;
    double due; /* 0: off */
    unsigned open, barks;
    bool barked, asleep;
} dog;

static void (*as_time_passes)(void);

static void bark(void)
{
    script.now = fmax(script.now, dog.due);
    dog.due = 0;
    dog.barked = true;
    dog.barks++;
    dog.bark(dog.arg);
}

static void spend(uint64_t ns)
{
    pass((double)ns);
    if (dog.due > 0 && script.now >= dog.due)
        bark();
    if (as_time_passes)
        as_time_passes();
}

static uint64_t look(void)
{
    return (uint64_t)script.now;
}

static bool wait_for_something(void)
{
    if (!(dog.due > 0))
        return false;
    bark();
    return true;
}

static const fake_cuda_time time_of_test = {look, spend, wait_for_something};

static void *open_dog(void (*function)(void *), void *arg)
{
    dog.bark = function;
    dog.arg = arg;
    dog.open++;
    return &dog;
}

static void close_dog(void *d)
{
    assert_ptr_equal(d, &dog);
    dog.open--;
}

static void set_dog(void *d, uint64_t ns)
{
    assert_ptr_equal(d, &dog);
    dog.barked = false;
    dog.due = dog.asleep ? 0 : script.now + (double)ns;
}

static bool call_off(void *d)
{
    assert_ptr_equal(d, &dog);
    dog.due = 0;
    return dog.barked;
}

static const pki_bench_watchdog watchdog = {open_dog, close_dog, set_dog, call_off};

/* -- what is measured -- */

static struct {
    uint64_t launch_ns, ns;
    unsigned each; /* launches of an iteration */
    bool waits;
    unsigned filled;
} kernel;

static int kernel_clock_start(void **state)
{
    start_script(state);
    engine.watchdog = &watchdog;
    memset(&dog, 0, sizeof dog);
    memset(&kernel, 0, sizeof kernel);
    kernel.each = 1;
    as_time_passes = NULL;
    kernel_clock_gpu->reset();
    kernel_clock_gpu->live_on(&time_of_test);
    kernel_clock_stream = kernel_clock_gpu->stream_create(kernel_clock_gpu->context_create(0));
    memset(kernel_clock_nvml, 0, sizeof *kernel_clock_nvml);
    kernel_clock_nvml->devices = 1;
    kernel_clock_nvml->device[0].uuid = "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a";
    kernel_clock_nvml->device[0].sm_mhz = 1980;
    return 0;
}

/* What the flush took from the cache comes back slowly. */
static uint64_t duration(void)
{
    bool flushed = kernel.filled != kernel_clock_tally->fills;
    kernel.filled = kernel_clock_tally->fills;
    return kernel.ns + (flushed ? 1000 : 0);
}

static void launches(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        for (unsigned i = 0; i < kernel.each; i++)
            assert_int_equal(
                kernel_clock_gpu->kernel(kernel_clock_stream, kernel.launch_ns, duration()),
                CUDA_SUCCESS);
        if (kernel.waits)
            kernel_clock_gpu->synchronize(kernel_clock_stream);
    }
}

static pk_bench_result run_with(struct pk_bench_options o, uint64_t launch_ns, uint64_t ns)
{
    kernel.launch_ns = launch_ns;
    kernel.ns = ns;
    o.size = sizeof o;
    o.clock = PK_BENCH_CLOCK_GPU;
    o.stream = kernel_clock_stream;
    pk_bench_result r = measured(launches, &o);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_MEASURED);
    assert_int_equal(kernel_clock_gpu->hung(), 0);
    assert_int_equal(kernel_clock_gpu->misused(), 0);
    assert_int_equal(dog.open, 0);
    assert_int_equal(kernel_clock_tally->blocks, 0);
    assert_int_equal(kernel_clock_tally->words, 0);
    assert_int_equal(kernel_clock_gpu->events(), 0);
    return r;
}

static pk_bench_result kernel_clock_run(uint64_t launch_ns, uint64_t ns)
{
    return run_with((struct pk_bench_options){.max_samples = 50}, launch_ns, ns);
}

#define TEST(name) cmocka_unit_test_setup(name, kernel_clock_start)

static bool open_mocks(int argc, char **argv)
{
    if (argc < 3)
        return false;
    void *cuda = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL),
         *ml = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    setenv("PK_CUDA_LIBRARY", argv[1], 1);
    setenv("PK_NVML_LIBRARY", argv[2], 1);
    if (!cuda || !ml)
        return false;
    kernel_clock_gpu = dlsym(cuda, FAKE_CUDA_SCRIPT);
    kernel_clock_tally = dlsym(cuda, "FAKE_CUDA_BENCH");
    kernel_clock_nvml = dlsym(ml, FAKE_NVML_SCRIPT);
    return true;
}

/* ---- kernels and launches on a GPU ---- */

/* What is said of them has to be the truth, exactly, whatever a body does to the stream. */

/* -- which of the two -- */

static void a_kernel_shorter_than_its_launch(void **state)
{
    (void)state;
    pk_bench_result r = kernel_clock_run(5000, 2000);
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
    pk_bench_result r = kernel_clock_run(5000, 20000);
    close_to(r.median, 20000, 0.1);
    close_to(r.launch, 5000, 5);
    assert_int_equal(r.bound, PK_BENCH_BOUND_DEVICE);
    assert_int_equal(r.iterations, 10);
    pk_bench_result_release(&r);
}

static void times_between_the_events_steps(void **state)
{
    (void)state;
    pk_bench_result r = kernel_clock_run(100, 2345);
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
    kernel_clock_gpu->no_waits();
    pk_bench_result r = kernel_clock_run(5000, 2000);
    close_to(r.median, 5000, 60);
    assert_int_equal(r.queued, 0);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_non_null(strstr(r.note, "launches are not queued (the d"));
    pk_bench_result_release(&r);
}

/* -- the watchdog -- */

static void a_body_that_waits_for_the_device(void **state)
{
    (void)state;
    kernel.waits = true;
    pk_bench_result r = kernel_clock_run(5000, 2000);
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
    struct pk_bench_options o = {.size = sizeof o,
                                 .clock = PK_BENCH_CLOCK_GPU,
                                 .stream = kernel_clock_stream,
                                 .max_samples = 20};
    pk_bench_result r = measured(launches, &o);
    assert_true(kernel_clock_gpu->hung() > 0);
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
    pk_bench_result r = measured(leaves_its_loop, pk_bench_options(.clock = PK_BENCH_CLOCK_GPU,
                                                                   .stream = kernel_clock_stream));
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_FAILED);
    assert_int_equal(kernel_clock_gpu->synchronize(kernel_clock_stream), CUDA_SUCCESS);
    assert_int_equal(kernel_clock_gpu->hung(), 0);
}

/* -- the mock is as strict as the documentation -- */

static void a_wait_holds_back_one_stream(void **state)
{
    (void)state;
    CUstream other = kernel_clock_gpu->stream_create(kernel_clock_gpu->context_create(0));
    struct pk_bench_options whole = {.size = sizeof whole};
    const char *why_not;
    const pki_bench_device *device = pki_bench_device_find(&why_not);
    char reason[128];
    void *timer = device->open(kernel_clock_stream, false, reason, sizeof reason);
    assert_non_null(timer);
    kernel_clock_gpu->kernel(kernel_clock_stream, 0, 10);
    kernel_clock_gpu->kernel(other, 0, 10);
    assert_true(device->hold(timer));
    kernel_clock_gpu->kernel(kernel_clock_stream, 0, 10);
    assert_int_equal(kernel_clock_gpu->kernel(other, 0, 10), CUDA_SUCCESS);
    assert_int_equal(kernel_clock_gpu->synchronize(other), CUDA_SUCCESS);
    assert_int_equal(kernel_clock_gpu->synchronize(kernel_clock_stream), CUDA_ERROR_UNKNOWN);
    assert_int_equal(kernel_clock_gpu->hung(), 1);
    for (int i = 1; i < 1024; i++)
        assert_int_equal(kernel_clock_gpu->kernel(kernel_clock_stream, 0, 10), CUDA_SUCCESS);
    assert_int_equal(kernel_clock_gpu->kernel(kernel_clock_stream, 0, 10),
                     CUDA_ERROR_UNKNOWN); /* the queue is full */
    device->release(timer);
    assert_int_equal(kernel_clock_gpu->synchronize(kernel_clock_stream), CUDA_SUCCESS);
    device->close(timer);
}

static const struct CMUnitTest bench_gpu_tests[] = {
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

static int run_bench_gpu(int argc, char **argv)
{
    if (!open_mocks(argc, argv))
        return 2;
    return cmocka_run_group_tests(bench_gpu_tests, NULL, NULL);
}

/* ---- a GPU's samples ---- */

/* Cold, long enough, enough of them; and its clock while they are taken. */

/* -- samples -- */

static void cold_kernels(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .cold = 1};
    unsigned fills = kernel_clock_tally->fills;
    pk_bench_result r = run_with(o, 5000, 2000);
    close_to(r.median, 3000, 0.01); /* the fill is not in it */
    assert_int_equal(r.iterations, 1);
    assert_int_equal(r.bound, PK_BENCH_BOUND_LAUNCH);
    assert_true(kernel_clock_tally->fills > fills + 50);
    assert_int_equal(kernel_clock_tally->filled, 2 << 20); /* twice the mock's L2 */
    assert_string_equal(r.note, "a sample is 3.0 us, and known to 0.5 us (the events' steps)");
    pk_bench_result_release(&r);
}

static void the_precision_makes_the_sample(void **state)
{
    (void)state;
    struct pk_bench_options o = {.max_samples = 50, .precision = 0.0005};
    pk_bench_result r = run_with(o, 5000, 10000);
    assert_int_equal(r.iterations, 200); /* 2 x 0.5 us / 0.0005 */
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
    o.precision = 0.0001;
    r = run_with(o, 5000, 2000);
    assert_int_equal(r.iterations, PKI_BENCH_QUEUED);
    assert_string_equal(r.note, "a sample is 1024.0 us, and known to 0.5 us (the events' steps)");
    pk_bench_result_release(&r);
}

static void the_stop_rule_is_the_processor_s(void **state)
{
    (void)state;
    pk_bench_result r = run_with((struct pk_bench_options){.size = 0}, 5000, 2000);
    assert_int_equal(r.stopped, PK_BENCH_STOP_PRECISE);
    assert_true(r.count >= 20 && r.at[r.count - 1] >= 90e6);
    pk_bench_result_release(&r);
}

/* -- clocks -- */

/* From 300 MHz, 6 MHz in each ms; kernels take as many cycles. */
static void clock_rises(void)
{
    unsigned mhz = (unsigned)fmin(300 + (script.now - 1e9) / 1e6 * 6, 1980);
    fake_set(kernel_clock_nvml->device[0].sm_mhz, mhz);
    kernel.ns = 1980u * 10000 / mhz;
}

static void warm_when_the_clock_has_risen(void **state)
{
    (void)state;
    as_time_passes = clock_rises;
    struct pk_bench_options o = {.max_samples = 50, .max_warmup = 2000000000};
    pk_bench_result r = run_with(o, 5000, 66000);
    close_to(r.max, 10000, 25);
    assert_int_equal(r.warmup_steady, 1);
    assert_true(r.warmup_time >= 350000000);
    assert_int_equal(r.clock_low_mhz, 1980);
    assert_int_equal(r.clock_high_mhz, 1980);
    pk_bench_result_release(&r);
    assert_int_equal(kernel_clock_nvml->inits, kernel_clock_nvml->shutdowns);
}

static void warm_by_time_without_nvml(void **state)
{
    (void)state;
    kernel_clock_nvml->device[0].uuid = "GPU-another";
    pk_bench_result r = kernel_clock_run(5000, 2000);
    assert_true(r.warmup_time >= PKI_BENCH_CLOCKS_BLIND);
    assert_true(r.warmup_time < PKI_BENCH_CLOCKS_BLIND + 20000000);
    assert_int_equal(r.clock_high_mhz, 0);
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
    assert_int_equal(kernel_clock_nvml->inits, kernel_clock_nvml->shutdowns);
}

#define HOT_FROM 1500e6
#define HOT_TO 1700e6

static void power_cap(void)
{
    bool hot = script.now >= HOT_FROM && script.now < HOT_TO;
    fake_set(kernel_clock_nvml->device[0].reasons, hot ? 0x4 : 0);
    fake_set(kernel_clock_nvml->device[0].sm_mhz, hot ? 1410 : 1980);
}

/* Also those of the stretches in which it goes down and comes up. */
static void expect_none_in(const pk_bench_result *r, double from, double to)
{
    double first = 1e9 + (double)r->warmup_time;
    for (uint64_t i = 0; i < r->count; i++)
        if (first + r->at[i] >= from && first + r->at[i] < to)
            fail_msg("sample %zu is of a moment at which the clock was another", (size_t)i);
}

static const struct pk_bench_options of_a_second = {.min_time = 1000000000, .max_time = 1000000000};

static void expect_note(const pk_bench_result *r, const char *words)
{
    if (!strstr(r->note, words))
        fail_msg("\"%s\" does not say \"%s\"", r->note, words);
}

static void throttled_samples_are_left_out(void **state)
{
    (void)state;
    as_time_passes = power_cap;
    pk_bench_result r = run_with(of_a_second, 5000, 20000);
    expect_none_in(&r, HOT_FROM, HOT_TO);
    assert_true(r.throttled > 0);
    for (uint64_t i = 0; i < r.count; i++)
        assert_int_equal(r.marks[i], 0);
    assert_int_equal(r.clock_low_mhz, 1980);
    assert_int_equal(r.clock_high_mhz, 1980);
    expect_note(&r, "samples are left out: the GPU's clock was held down (the power cap)");
    pk_bench_result_release(&r);
}

/* Nobody says why; kernels take as many cycles. */
static void clock_dips(void)
{
    bool low = script.now >= HOT_FROM && script.now < HOT_TO;
    unsigned mhz = low ? 1410 : 1980;
    fake_set(kernel_clock_nvml->device[0].sm_mhz, mhz);
    kernel.ns = 1980u * 10000 / mhz;
}

static void samples_at_another_clock_are_left_out(void **state)
{
    (void)state;
    as_time_passes = clock_dips;
    kernel_clock_nvml->device[0].codes[FAKE_REASONS] = 3; /* not supported */
    pk_bench_result r = run_with(of_a_second, 5000, 10000);
    expect_none_in(&r, HOT_FROM, HOT_TO);
    close_to(r.max, 10000, 25);
    assert_int_equal(r.throttled, 0);
    assert_int_equal(r.clock_low_mhz, 1980);
    assert_int_equal(r.clock_high_mhz, 1980);
    expect_note(&r, "samples are left out: the GPU's clock was not at 1980 MHz");
    pk_bench_result_release(&r);
}

/* Others are taken in their place: as many stay as were asked for. */
static void samples_are_taken_for_those_left_out(void **state)
{
    (void)state;
    as_time_passes = clock_dips;
    pk_bench_result r = run_with((struct pk_bench_options){.min_samples = 800,
                                                           .max_samples = 800,
                                                           .max_time = 20000000000,
                                                           .sample_time = 1000000},
                                 5000, 10000);
    assert_true(r.count >= 800 && r.count < 1600);
    assert_int_equal(r.stopped, PK_BENCH_STOP_SAMPLES);
    assert_int_equal(r.clock_low_mhz, 1980);
    expect_none_in(&r, HOT_FROM, HOT_TO);
    expect_note(&r, "samples are left out: the GPU's clock was not at 1980 MHz");
    pk_bench_result_release(&r);
}

/* Where the time is over before so many are there, that is said. */
static void fewer_stay_than_asked_for(void **state)
{
    (void)state;
    as_time_passes = clock_dips;
    pk_bench_result r = run_with(
        (struct pk_bench_options){
            .min_samples = 900, .max_samples = 900, .max_time = 900000000, .sample_time = 1000000},
        5000, 10000);
    assert_true(r.count < 900);
    assert_int_equal(r.stopped, PK_BENCH_STOP_TIME);
    expect_note(&r, "samples are left out, fewer stay than asked for: the GPU's clock was not at");
    pk_bench_result_release(&r);
}

/* Then nobody knows at which clock they were: all are kept. */
static void a_clock_that_is_refused_leaves_nothing_out(void **state)
{
    (void)state;
    as_time_passes = clock_dips;
    kernel_clock_nvml->device[0].codes[FAKE_SM_CLOCK] = 4; /* no permission */
    pk_bench_result r = run_with(of_a_second, 5000, 10000);
    close_to(r.max, 14042, 60);
    close_to(r.median, 10000, 25);
    assert_int_equal(r.clock_high_mhz, 0);
    assert_string_equal(r.note, "");
    pk_bench_result_release(&r);
}

#define REFUSED_FROM 1400e6
#define REFUSED_TO 1450e6

/* For a moment: what lies beside it is judged by what the clock is then. */
static void clock_refused_for_a_moment(void)
{
    bool refused = script.now >= REFUSED_FROM && script.now < REFUSED_TO;
    fake_set(kernel_clock_nvml->device[0].codes[FAKE_SM_CLOCK], refused ? 4 : 0);
    clock_dips();
}

static void a_clock_that_is_refused_for_a_moment(void **state)
{
    (void)state;
    as_time_passes = clock_refused_for_a_moment;
    pk_bench_result r = run_with(of_a_second, 5000, 10000);
    uint64_t within = 0;
    double first = 1e9 + (double)r.warmup_time;
    for (uint64_t i = 0; i < r.count; i++)
        within += first + r.at[i] >= REFUSED_FROM && first + r.at[i] < REFUSED_TO;
    expect_none_in(&r, HOT_FROM, HOT_TO);
    assert_true(within > 0);
    expect_note(&r, "the GPU's clock was not at 1980 MHz");
    pk_bench_result_release(&r);
}

/* Of a device that is held down for most of it there would be little left. */
static void power_cap_for_long(void)
{
    bool hot = script.now >= HOT_FROM;
    fake_set(kernel_clock_nvml->device[0].reasons, hot ? 0x4 : 0);
    fake_set(kernel_clock_nvml->device[0].sm_mhz, hot ? 1410 : 1980);
}

static void most_of_the_time_throttled(void **state)
{
    (void)state;
    as_time_passes = power_cap_for_long;
    pk_bench_result r = run_with(of_a_second, 5000, 20000);
    uint64_t marked = 0;
    double first = 1e9 + (double)r.warmup_time;
    for (uint64_t i = 0; i < r.count; i++) {
        double at = first + r.at[i], far = PKI_BENCH_CLOCKS_EVERY + 1e6;
        bool mark = r.marks[i] & PK_BENCH_MARK_THROTTLED;
        marked += mark;
        if (at >= HOT_FROM)
            assert_true(mark);
        if (at < HOT_FROM - far)
            assert_false(mark);
    }
    assert_true(marked > 0 && marked < r.count);
    assert_int_equal(r.throttled, marked);
    assert_int_equal(r.clock_low_mhz, 1410);
    assert_int_equal(r.clock_high_mhz, 1980);
    expect_note(&r, "the GPU's clock was held down (the power cap)");
    pk_bench_result_release(&r);
}

static const struct CMUnitTest bench_gpu_clocks_tests[] = {
    TEST(cold_kernels),
    TEST(the_precision_makes_the_sample),
    TEST(the_stop_rule_is_the_processor_s),
    TEST(warm_when_the_clock_has_risen),
    TEST(warm_by_time_without_nvml),
    TEST(throttled_samples_are_left_out),
    TEST(samples_at_another_clock_are_left_out),
    TEST(samples_are_taken_for_those_left_out),
    TEST(fewer_stay_than_asked_for),
    TEST(a_clock_that_is_refused_leaves_nothing_out),
    TEST(a_clock_that_is_refused_for_a_moment),
    TEST(most_of_the_time_throttled),
};

static int run_bench_gpu_clocks(int argc, char **argv)
{
    if (!open_mocks(argc, argv))
        return 2;
    return cmocka_run_group_tests(bench_gpu_clocks_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = run_bench_cuda(argc, argv);
    failed += run_bench_gpu(argc, argv);
    failed += run_bench_gpu_clocks(argc, argv);
    return failed;
}
