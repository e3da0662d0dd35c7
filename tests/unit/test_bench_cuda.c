/* Benchmarks on streams of the mock of the CUDA driver, with NVML's mock watching: events and
 * memory come and go in pairs, errors become reasons. The double's device does its work as soon as
 * it has it; what a real one would measure is not tested here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include <pk/bench.h>
#include <pk/pk.h>

#include "../fake/driver.h"
#include "../fake/nvml.h"

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
    assert_true(r.clock_low == 1200 && r.clock_high == 1980);
    pk_bench_result_release(&r);
    assert_int_equal(nvml->inits, nvml->shutdowns);
}

int main(int argc, char **argv)
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_events_around_each_sample, start),
        cmocka_unit_test_setup(the_default_stream_needs_a_context, start),
        cmocka_unit_test_setup(cold_samples_flush_the_cache, start),
        cmocka_unit_test_setup(errors_are_reasons, start),
        cmocka_unit_test_setup(a_body_that_waits_is_let_go, start),
        cmocka_unit_test_setup(results_of_other_sizes, start),
        cmocka_unit_test_setup(clocks_are_watched, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
