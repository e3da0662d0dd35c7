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
    assert_string_equal(r.note, "");
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
    assert_true(tally->fills >= 40);
    assert_int_equal(tally->filled, 1 << 20); /* the mock's L2 */
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
    assert_string_equal(r.note, "the GPU's clock went from 1980 to 1200 MHz meanwhile");
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
        cmocka_unit_test_setup(clocks_are_watched, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
