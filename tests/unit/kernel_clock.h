/* tests/unit/kernel_clock.h - kernels whose times are known, on the mock of the CUDA driver, which
 * lives on the engine's own clock (script_clock.h), as the watchdog does. A test's program is given
 * the mocks of the driver and of NVML. */
#pragma once

#include "script_clock.h"

#include <dlfcn.h>

#include "../fake/driver.h"
#include "../fake/nvml.h"
#include "bench/clocks.h"
#include "bench/queue.h"

static const fake_cuda_script *gpu;
static fake_nvml *nvml;
static struct {
    unsigned blocks, fills;
    size_t filled;
    unsigned words;
} const *tally;
static CUstream stream;

/* ---- time ---- */

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

/* ---- what is measured ---- */

static struct {
    uint64_t launch_ns, ns;
    unsigned each; /* launches of an iteration */
    bool waits;
    unsigned filled;
} kernel;

static int start(void **state)
{
    start_script(state);
    engine.watchdog = &watchdog;
    memset(&dog, 0, sizeof dog);
    memset(&kernel, 0, sizeof kernel);
    kernel.each = 1;
    as_time_passes = NULL;
    gpu->reset();
    gpu->live_on(&time_of_test);
    stream = gpu->stream_create(gpu->context_create(0));
    memset(nvml, 0, sizeof *nvml);
    nvml->devices = 1;
    nvml->device[0].uuid = "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a";
    nvml->device[0].sm_mhz = 1980;
    return 0;
}

/* What the flush took from the cache comes back slowly. */
static uint64_t duration(void)
{
    bool flushed = kernel.filled != tally->fills;
    kernel.filled = tally->fills;
    return kernel.ns + (flushed ? 1000 : 0);
}

static void launches(pk_bench_run *bench)
{
    PK_BENCH_LOOP {
        for (unsigned i = 0; i < kernel.each; i++)
            assert_int_equal(gpu->kernel(stream, kernel.launch_ns, duration()), CUDA_SUCCESS);
        if (kernel.waits)
            gpu->synchronize(stream);
    }
}

static pk_bench_result run_with(struct pk_bench_options o, uint64_t launch_ns, uint64_t ns)
{
    kernel.launch_ns = launch_ns;
    kernel.ns = ns;
    o.size = sizeof o;
    o.clock = PK_BENCH_CLOCK_GPU;
    o.stream = stream;
    pk_bench_result r = measured(launches, &o);
    assert_int_equal(r.outcome, PK_BENCH_OUTCOME_MEASURED);
    assert_int_equal(gpu->hung(), 0);
    assert_int_equal(gpu->misused(), 0);
    assert_int_equal(dog.open, 0);
    assert_int_equal(tally->blocks, 0);
    assert_int_equal(tally->words, 0);
    assert_int_equal(gpu->events(), 0);
    return r;
}

static pk_bench_result run(uint64_t launch_ns, uint64_t ns)
{
    return run_with((struct pk_bench_options){.max_samples = 50}, launch_ns, ns);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

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
    gpu = dlsym(cuda, FAKE_CUDA_SCRIPT);
    tally = dlsym(cuda, "FAKE_CUDA_BENCH");
    nvml = dlsym(ml, FAKE_NVML_SCRIPT);
    return true;
}
