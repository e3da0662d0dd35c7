/* tests/unit/nvml.h - a session that asks the mock of NVML in tests/fake, for tests. */
#ifndef TESTS_NVML_H
#define TESTS_NVML_H

#include "document.h"
#include "session.h"

#include <dlfcn.h>
#include <time.h>

#include "../fake/nvml.h"

static fake_nvml *fake;

static inline void reset_fake(void)
{
    fake_device usual = {.name = "Double H1",
                         .busy = 87,
                         .memory_busy = 41,
                         .milliwatts = 345678,
                         .celsius = 66,
                         .sm_mhz = 1980,
                         .memory_mhz = 3201,
                         .used_bytes = 123456};
    memset(fake, 0, sizeof *fake);
    fake->devices = 1;
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        fake->device[i] = usual;
}

static inline int set_up(void **state)
{
    reset_fake();
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("LOCAL_RANK");
    unsetenv("LOCAL_WORLD_SIZE");
    return enter_folder(state);
}

static inline int tear_down(void **state)
{
    fake_set(fake->stuck, false);
    pk_stop();
    return leave_folder(state);
}

static inline void start_sampling(void)
{
    assert_int_equal(
        pk_start(pk_options(.trace_path = "t.json", .report_path = "r.json", .backends = "nvml")),
        PK_OK);
}

static inline pk_backend_info status(void)
{
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_backend_status("nvml", &info), PK_OK);
    return info;
}

static inline void expect_words(const char *words)
{
    pk_backend_info info = status();
    if (!strstr(info.reason, words))
        fail_msg("\"%s\" does not say \"%s\"", info.reason, words);
}

/* Until it is so; the test's time limit is the only one. */
#define await(condition)                                                                           \
    for (const struct timespec ms = {0, 1000000}; !(condition);)                                   \
    nanosleep(&ms, NULL)

#define calls(i, reading) fake_get(fake->device[i].calls[reading])

static inline void await_rounds(unsigned device, unsigned n)
{
    unsigned before = calls(device, FAKE_REASONS);
    await(calls(device, FAKE_REASONS) >= before + n);
}

#define sampling(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* The mock in that library. NULL: it cannot be loaded, as where there is none. */
static inline fake_nvml *load_fake(const char *path)
{
    setenv("PK_NVML_LIBRARY", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    return library ? dlsym(library, FAKE_NVML_SCRIPT) : NULL;
}

#endif
