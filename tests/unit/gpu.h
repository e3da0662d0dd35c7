/* tests/unit/gpu.h - a session on the mock of the CUDA driver (tests/fake/driver.h), which is the
 * test's first argument. */
#ifndef TESTS_GPU_H
#define TESTS_GPU_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <time.h>

#include <pk/gpu.h>
#include <pk/pk.h>

#include "../fake/driver.h"

static const fake_cuda_script *gpu;
static CUcontext the_context;
static CUstream the_stream;
static pk_stats the_stats;

static inline void open_double(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    gpu = dlsym(library, FAKE_CUDA_SCRIPT);
    setenv("PK_CUDA_LIBRARY", path, 1);
}

/* A context with a stream, and a session that keeps statistics only. */
static inline int start_gpu(void **state)
{
    (void)state;
    gpu->reset();
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda"));
}

static inline pk_gpu_counts counts_now(void)
{
    pk_gpu_counts c = {.size = sizeof c};
    assert_int_equal(pk_get_gpu_counts(&c), PK_OK);
    return c;
}

/* What holds at the end of every session, whoever goes on recording; and no capture spoilt by
 * anybody. */
static inline pk_gpu_counts stop_amid_others(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    pk_gpu_counts c = counts_now();
    assert_int_equal(c.begun, c.recorded + c.dropped + c.skipped + c.lost);
    assert_int_equal(gpu->invalidated(), 0);
    return c;
}

/* Likewise, and every thread has the capture mode that it had. */
static inline pk_gpu_counts stop_and_count(void)
{
    pk_gpu_counts c = stop_amid_others();
    assert_int_equal(gpu->modes(), 0);
    return c;
}

static inline int stop_gpu(void **state)
{
    (void)state;
    gpu->hold(false);
    pk_stop();
    return 0;
}

static inline uint64_t spans_of(const pk_region *region)
{
    return pk_region_gpu_stats(region, &the_stats) == PK_OK ? the_stats.count : 0;
}

static inline const char *words(void)
{
    static pk_backend_info info;
    info = (pk_backend_info){.size = sizeof info};
    assert_int_equal(pk_backend_status("cuda", &info), PK_OK);
    return info.reason;
}

static inline void expect_words(const char *some)
{
    if (!strstr(words(), some))
        fail_msg("\"%s\" does not say \"%s\"", words(), some);
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* Until it is so; the test's time limit is the only one. */
#define await(condition)                                                                           \
    while (!(condition))                                                                           \
    sleep_ms(1)

static inline void span(pk_region *region)
{
    pk_gpu_begin(region, the_stream);
    pk_gpu_end(region, the_stream);
}

/* In gpu_per_thread.c, twice: stream 0 is another one there. */
void span_of_this_thread(pk_region *region);

#define with_gpu(test) cmocka_unit_test_setup_teardown(test, start_gpu, stop_gpu)

#endif
