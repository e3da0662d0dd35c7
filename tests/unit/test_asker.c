/* Drivers that take their time: recording threads lose nothing by it. On the mocks of CUDA's driver
 * and of NVML. */
#include "gpu.h"

#include <pk/nccl.h>

#include <pthread.h>
#include <stdio.h>

#include "../fake/nvml.h"
#include "../kit/held.h"
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
    gpu->on_call(NULL);
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

/* ---- no call of a driver's under a lock that others wait for ---- */

static void told_of(fake_call call)
{
#define NAME(id, name, version) #name,
    static const char *const names[] = {FAKE_CUDA_CALLS(NAME)};
    kit_driver_called(names[call]);
}

static CUgraph capture(CUstream stream, CUstream side)
{
    static pk_region captured = PK_REGION("captured");
    CUgraph graph;
    gpu->capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    gpu->work(stream);
    gpu->capture_join(side, stream);
    for (int i = 0; i < 3; i++) {
        pk_gpu_begin(&captured, i ? stream : side);
        pk_gpu_end(&captured, i ? stream : side);
    }
    gpu->capture_end(stream, &graph);
    return graph;
}

static void replay(CUstream stream, CUstream side)
{
    CUgraph graph = capture(stream, side);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 3; i++) {
        pk_gpu_graph_launching(exec, graph, stream);
        gpu->launch(exec, stream);
    }
    gpu->exec_destroy(exec);
    gpu->graph_destroy(graph);
}

/* All that a thread can do without a control call, on a context that is new to perfkit. */
static void *do_all(void *of)
{
    CUcontext context = gpu->context_create(0);
    CUstream stream = gpu->stream_create(context), side = gpu->stream_create(context);
    pk_comm *comm = pk_comm_create("NCCL", "dp", 1, 0, 2);
    kit_records = true;
    for (int i = 0; i < 300; i++) {
        pk_gpu_begin(&around, i % 3 ? stream : NULL);
        {
            PK_REGION_SCOPE(kit_portion);
        }
        pk_gpu_end(&around, i % 3 ? stream : NULL);
    }
    pk_nccl_begin(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100, -1, stream);
    pk_nccl_end(comm, stream, 0);
    replay(stream, side);
    if (of)
        pk_step(1);
    return NULL;
}

static void control_all(void)
{
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_flush(), PK_OK);
    counts_now();
    pk_backend_status("cuda", &info);
    pk_backend_status("nvml", &info);
}

static void nothing_is_locked_amid_a_call(void **state)
{
    pthread_t threads[4];
    (void)state;
    pk_stop();
    gpu->on_call(told_of);
    __atomic_store_n(&nvml->on_call, kit_driver_called, __ATOMIC_RELEASE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            pk_start(pk_options(.backends = "cuda,nvml", .costs = i % 2 ? "energy" : "",
                                .tuning = KIT_RING_TUNING)),
            PK_OK);
        for (int t = 0; t < 4; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, do_all, t ? NULL : &slow), 0);
        control_all();
        for (int t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
        await(counts_now().recorded > 0);
        control_all();
        assert_int_equal(pk_stop(), PK_OK);
    }
    gpu->on_call(NULL);
    kit_expect_no_lock_amid_calls();
}

#define asked(test) cmocka_unit_test_setup_teardown(test, start_asked, stop_asked)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        asked(nothing_is_locked_amid_a_call), asked(an_event_takes_its_time),
        asked(the_last_event_takes_its_time), asked(what_the_device_does_not_reach),
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
