/* Drivers that take their time: recording threads lose nothing by it. On the mocks of CUDA's driver
 * and of NVML. */
#include "gpu.h"

#include <pthread.h>

#include "../fake/nvml.h"
#include "../kit/portions.h"

static fake_nvml *nvml;
static bool slow, within, over; /* the next question hangs; one does; it may end */

static void hang(CUresult answer)
{
    (void)answer;
    if (!__atomic_exchange_n(&slow, false, __ATOMIC_ACQ_REL))
        return;
    __atomic_store_n(&within, true, __ATOMIC_RELEASE);
    await(__atomic_load_n(&over, __ATOMIC_ACQUIRE));
    __atomic_store_n(&within, false, __ATOMIC_RELEASE);
}

static int start_asked(void **state)
{
    (void)state;
    gpu->reset();
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    slow = within = over = false;
    gpu->on_query(hang);
    memset(nvml, 0, sizeof *nvml);
    nvml->devices = 1;
    return pk_start(pk_options(.backends = "cuda,nvml", .tuning = KIT_RING_TUNING));
}

static int stop_asked(void **state)
{
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    fake_set(nvml->stuck, false);
    stop_gpu(state);
    gpu->on_query(NULL);
    return 0;
}

static pk_region around = PK_REGION("around");

static void an_event_takes_its_time(void **state)
{
    (void)state;
    span(&around);
    await(counts_now().recorded == 1);
    __atomic_store_n(&slow, true, __ATOMIC_RELEASE);
    span(&around);
    await(__atomic_load_n(&within, __ATOMIC_ACQUIRE));
    kit_record_portions();
    assert_int_equal(kit_dropped(), 0);
    assert_int_equal(counts_now().recorded, 1); /* it hangs still */
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    await(counts_now().recorded == 2);
    stop_and_count();
    assert_int_equal(kit_dropped(), 0);
}

/* ---- the end, for which drivers are waited for longer ---- */

static void *record(void *none)
{
    (void)none;
    kit_record_portions();
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    return NULL;
}

static void stop_while_another_records(void)
{
    pthread_t thread;
    uint64_t before = kit_rounds();
    assert_int_equal(pthread_create(&thread, NULL, record, NULL), 0);
    while (kit_rounds() == before)
        sched_yield();
    assert_int_equal(pk_stop(), PK_OK);
    pthread_join(thread, NULL);
    assert_int_equal(kit_dropped(), 0);
}

static void the_last_event_takes_its_time(void **state)
{
    (void)state;
    span(&around);
    await(counts_now().recorded == 1);
    __atomic_store_n(&slow, true, __ATOMIC_RELEASE);
    span(&around);
    await(__atomic_load_n(&within, __ATOMIC_ACQUIRE));
    stop_while_another_records();
    assert_int_equal(counts_now().recorded, 2);
}

/* pk_stop gives it a tenth of a second. */
static void what_the_device_does_not_reach(void **state)
{
    (void)state;
    gpu->hold(true);
    span(&around);
    stop_while_another_records();
    assert_int_equal(counts_now().lost, 1);
}

/* pk_stop gives it a second. */
static void nvml_does_not_come_back(void **state)
{
    pk_backend_info info = {.size = sizeof info};
    (void)state;
    fake_set(nvml->stuck, true);
    do
        assert_int_equal(pk_backend_status("nvml", &info), PK_OK);
    while (!strstr(info.reason, "has not returned"));
    stop_while_another_records();
}

#define asked(test) cmocka_unit_test_setup_teardown(test, start_asked, stop_asked)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        asked(an_event_takes_its_time),
        asked(the_last_event_takes_its_time),
        asked(what_the_device_does_not_reach),
        asked(nvml_does_not_come_back),
    };
    if (argc < 3)
        return 2;
    open_double(argv[1]);
    void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    nvml = library ? dlsym(library, FAKE_NVML_SCRIPT) : NULL;
    if (!nvml)
        return 2;
    setenv("PK_NVML_LIBRARY", argv[2], 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
