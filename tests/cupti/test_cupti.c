/* CUPTI's records in a session: what they are joined to, which steps they are in, and when it is
 * on. */
#include "scene.h"

#include <math.h>
#include <time.h>

/* ---- cupti ---- */

/* Kernels, copies, calls and waits in the trace, tied to regions, by the mock of libcupti. */

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward"), matmul = PK_REGION("matmul");

static void a_kernel_in_its_region(void **state)
{
    (void)state;
    start_cupti(.rank = 3, .world_size = 8);
    pk_region_begin(&forward);
    pk_region_begin(&matmul);
    int64_t id = launch(.kernel = "_Z4gemmPf", .ns = 5000, .inner = 307);
    pk_region_end(&matmul);
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    const json_t *kernel = the_event(doc, "kernel", NULL);
    const json_t *call = the_event(doc, "cuda_runtime", "cudaLaunchKernel");
    assert_non_null(strstr(json_string_value(member(kernel, "name")), "gemm"));
    assert_true(number(kernel, "correlation") == id && number(call, "correlation") == id);
    assert_string_equal(text_of(kernel, "region"), "matmul");
    assert_string_equal(text_of(call, "region"), "matmul");
    assert_int_equal(number(kernel, "External id"), number(call, "External id"));
    assert_true(number(kernel, "External id") < INT64_C(1) << 53);
    assert_true(number(kernel, "device") == 0 && number(kernel, "stream") == 7 &&
                number(kernel, "registers per thread") == 32 &&
                number(kernel, "shared memory") == 1024);
    assert_int_equal(json_integer_value(json_array_get(arg(kernel, "grid"), 2)), 6);
    assert_string_equal(text_of(kernel, "cluster"), "2x1x1");
    assert_null(arg(call, "stream"));
    assert_true(ts_of(kernel) > end_of(call));
    assert_true(json_number_value(member(kernel, "dur")) == 5);
    assert_int_equal(count_of_cat(doc, "cuda_driver", NULL), 0); /* the same launch */
    assert_int_equal(fate(doc, "covered"), 1);
    const json_t *from = nth_event(doc, "ac2g", NULL, 0), *to = nth_event(doc, "ac2g", NULL, 1);
    int64_t flow = (INT64_C(3) << 32) + id;
    assert_true(json_integer_value(member(from, "id")) == flow &&
                json_integer_value(member(to, "id")) == flow);
    assert_string_equal(json_string_value(member(from, "ph")), "s");
    assert_string_equal(json_string_value(member(to, "ph")), "f");
    assert_true(ts_of(from) == ts_of(call) && ts_of(to) == ts_of(kernel));
    json_decref(doc);
}

/* The id says which call of the region it was. */
static void ids_tell_calls_apart(void **state)
{
    (void)state;
    start_tuned(",clock=monotonic", .rank = 0);
    for (int i = 0; i < 2; i++) {
        pk_region_begin(&forward);
        launch(.kernel = "a");
        launch(.kernel = "a");
        spend();
        pk_region_end(&forward);
    }
    launch(.kernel = "outside");
    fake->finish();
    json_t *doc = stop_and_load();
    const json_t *k[4];
    for (size_t i = 0; i < 4; i++)
        k[i] = nth_event(doc, "kernel", "a", i);
    assert_true(number(k[0], "External id") == number(k[1], "External id") &&
                number(k[2], "External id") == number(k[3], "External id") &&
                number(k[0], "External id") != number(k[2], "External id"));
    for (size_t i = 0; i < 2; i++) { /* and when that began */
        double us = ts_of(nth_event(doc, "cpu_op", "forward", i));
        assert_int_equal(number(k[2 * i], "External id") >> 16, (int64_t)us);
    }
    const json_t *outside = the_event(doc, "kernel", "outside");
    assert_null(arg(outside, "region"));
    assert_null(arg(outside, "External id"));
    json_decref(doc);
}

static void copies_sets_and_graphs(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    play(RUNTIME, .id = 41, .device = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = 4000, .ns = 2000,
         .stream = 13);
    play(RUNTIME, .id = 51, .device = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = 64, .device_id = 1);
    play(RUNTIME, .id = 311, .device = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .graph = 12);
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    const json_t *copy = the_event(doc, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)");
    const json_t *set = the_event(doc, "gpu_memset", "Memset (Device)");
    const json_t *graph = the_event(doc, "kernel", "CUDA graph 12");
    assert_true(number(copy, "bytes") == 4000 && number(copy, "stream") == 13);
    assert_true(json_number_value(arg(copy, "memory bandwidth (GB/s)")) == 2);
    assert_true(number(set, "bytes") == 64 && number(set, "device") == 1);
    assert_int_equal(number(graph, "graph id"), 12);
    assert_true(json_integer_value(member(set, "pid")) ==
                json_integer_value(member(copy, "pid")) + 1);
    const json_t *all[] = {copy, set, graph};
    for (int i = 0; i < 3; i++)
        assert_string_equal(text_of(all[i], "region"), "forward");
    assert_int_equal(count_of_cat(doc, "cuda_runtime", "cudaMemcpyAsync"), 1);
    assert_int_equal(count_of_cat(doc, "cuda_runtime", "cudaMemsetAsync"), 1);
    assert_int_equal(count_of_cat(doc, "cuda_runtime", "cudaGraphLaunch"), 1);
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 6);
    json_decref(doc);
}

/* Each call once: the driver's where there is no runtime around it; none that only asks. */
static void calls(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    play(DRIVER, .id = 307, A_KERNEL, .kernel = "by_driver");
    play(DRIVER, .id = 277, .device = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = 1);
    play(DRIVER, .id = 119); /* cuEventRecord: ours, as a rule */
    play(RUNTIME, .id = 505, A_KERNEL, .kernel = "by_13", .inner = 307);
    play(RUNTIME, .id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000, A_KERNEL,
         .kernel = "by_thread", .inner = 307);
    play(RUNTIME, .id = 20);
    play(RUNTIME, .id = 10);                    /* cudaGetLastError */
    play(RUNTIME, .id = LAUNCH, .result = 700); /* launched nothing */
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "cuda_driver", "cuLaunchKernel"), 1);
    assert_int_equal(count_of_cat(doc, "cuda_driver", "cuMemcpyHtoDAsync"), 1);
    assert_int_equal(count_of_cat(doc, "cuda_driver", NULL), 2);
    assert_int_equal(count_of_cat(doc, "cuda_runtime", "cudaLaunchKernel"), 3);
    assert_int_equal(count_of_cat(doc, "cuda_runtime", "cudaMalloc"), 1);
    assert_int_equal(count_of_cat(doc, "cuda_runtime", NULL), 4);
    assert_int_equal(number(nth_event(doc, "cuda_runtime", "cudaLaunchKernel", 2), "error"), 700);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(text_of(nth_event(doc, "kernel", NULL, i), "region"), "forward");
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 8);
    json_decref(doc);
}

static void what_overlaps_on_a_stream(void **state)
{
    const json_t *e[4];
    (void)state;
    start_cupti(.rank = 0);
    launch(.kernel = "a", .delay = 1000000, .ns = 500000000);
    launch(.kernel = "b", .delay = 2000000, .ns = 600000000); /* begins within a, ends behind it */
    launch(.kernel = "c", .delay = 900000000, .ns = 50000);
    launch(.kernel = "d", .delay = 1000000, .ns = 50000, .stream = 8);
    fake->finish();
    json_t *doc = stop_and_load();
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        e[i] = the_event(doc, "kernel", names[i]);
    int64_t tid = json_integer_value(member(e[0], "tid"));
    assert_int_equal(tid, 7);
    assert_true(json_integer_value(member(e[1], "tid")) != tid);
    assert_int_equal(json_integer_value(member(e[2], "tid")), tid);
    assert_int_equal(json_integer_value(member(e[3], "tid")), 8);
    for (int i = 0; i < 3; i++)
        assert_int_equal(number(e[i], "stream"), 7);
    char *text = json_dumps(doc, 0);
    assert_non_null(strstr(text, "stream 7 (2)"));
    assert_non_null(strstr(text, "GPU 0"));
    assert_null(strstr(text, "stream 8 (2)"));
    free(text);
    json_decref(doc);
}

static void waits(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    play(RUNTIME, .id = 131, .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
         .stream = 7);
    play(RUNTIME, .id = 165, .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    pk_region_end(&forward);
    json_t *doc = stop_and_load();
    const json_t *wait = the_event(doc, "cuda_sync", "Stream Sync");
    const json_t *call = the_event(doc, "cuda_runtime", "cudaStreamSynchronize");
    assert_int_equal(number(wait, "on_stream"), 7);
    assert_null(arg(wait, "wait_on_stream")); /* to HTA the stream of an event */
    assert_string_equal(text_of(wait, "cuda_sync_kind"), "Stream Sync");
    assert_string_equal(text_of(wait, "region"), "forward");
    assert_null(arg(wait, "stream"));
    assert_null(arg(wait, "correlation"));
    assert_true(ts_of(wait) > ts_of(call) && end_of(wait) < end_of(call));
    assert_int_equal(json_integer_value(member(wait, "tid")),
                     json_integer_value(member(call, "tid")));
    the_event(doc, "cuda_sync", "Context Sync");
    json_decref(doc);
}

#define RECORD .id = CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020
#define STREAM_WAIT                                                                                \
    .id = CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,                                      \
    .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT
#define EVENT_WAIT                                                                                 \
    .id = CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,                                     \
    .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE

static void event_waits_for(const json_t *doc, size_t n, uint32_t record, int64_t stream)
{
    const json_t *wait = nth_event(doc, "cuda_sync", "Event Sync", n);
    assert_int_equal(number(wait, "wait_on_cuda_event_record_corr_id"), record);
    assert_int_equal(number(wait, "wait_on_stream"), stream);
    assert_int_equal(number(wait, "wait_on_cuda_event_id"), 5);
    assert_null(arg(wait, "stream")); /* it is no stream that waits */
}

/* The newest recording before the wait, on another stream or in another buffer, and also when the
 * same event was recorded again before the records came. */
static void waits_for_events(void **state)
{
    (void)state;
    start_tuned(",cupti_sync_events=1", .rank = 0);
    launch(.kernel = "a", .stream = 13);
    uint32_t first = play(RUNTIME, RECORD, .records = 5, .stream = 13);
    uint32_t waited = play(RUNTIME, STREAM_WAIT, .waits_for = 5, .stream = 8);
    play(RUNTIME, EVENT_WAIT, .waits_for = 5);
    uint32_t second = play(RUNTIME, RECORD, .records = 5, .stream = 14);
    play(RUNTIME, EVENT_WAIT, .waits_for = 5);
    play(RUNTIME, EVENT_WAIT, .waits_for = 77); /* recorded before anybody listened */
    play(RUNTIME, .id = 131, .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
         .stream = 8);
    fake->finish();
    json_t *doc = stop_and_load();
    const json_t *wait = the_event(doc, "cuda_sync", "Stream Wait Event");
    assert_int_equal(number(wait, "stream"), 8);
    assert_int_equal(number(wait, "correlation"), waited);
    assert_int_equal(number(wait, "wait_on_stream"), 13);
    assert_int_equal(number(wait, "wait_on_cuda_event_record_corr_id"), first);
    assert_int_equal(json_integer_value(member(wait, "pid")),
                     json_integer_value(member(the_event(doc, "kernel", "a"), "pid")));
    event_waits_for(doc, 0, first, 13);
    event_waits_for(doc, 1, second, 14);
    const json_t *unknown = nth_event(doc, "cuda_sync", "Event Sync", 2);
    assert_null(arg(unknown, "wait_on_stream"));
    assert_null(arg(unknown, "wait_on_cuda_event_record_corr_id"));
    wait = the_event(doc, "cuda_sync", "Stream Sync");
    assert_int_equal(number(wait, "stream"), 8);
    assert_null(arg(wait, "wait_on_stream"));
    assert_int_equal(count_of_cat(doc, "cuda_event", "cudaEvent"), 2);
    const json_t *event = nth_event(doc, "cuda_event", "cudaEvent", 1);
    assert_int_equal(number(event, "event_id"), 5);
    assert_int_equal(number(event, "stream"), 14);
    assert_int_equal(number(event, "correlation"), second);
    json_decref(doc);
}

/* Nobody asked: CUPTI is not to make these records. */
static void no_events_unasked(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    assert_false(fake->enabled >> CUPTI_ACTIVITY_KIND_CUDA_EVENT & 1);
    play(RUNTIME, RECORD, .records = 5);
    play(RUNTIME, EVENT_WAIT, .waits_for = 5);
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "cuda_event", NULL), 0);
    const json_t *wait = the_event(doc, "cuda_sync", "Event Sync");
    assert_null(arg(wait, "correlation"));
    assert_int_equal(number(wait, "wait_on_cuda_event_id"), 5);
    json_decref(doc);
}

/* With the call in its thread's buffer, and region and kernel in others, in any order. */
static void regions_told_late(void **state)
{
    (void)state;
    fake->external_last = true;
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    launch(.kernel = "a");
    pk_region_end(&forward);
    fake->complete();
    assert_int_equal(pk_flush(), PK_OK);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_string_equal(text_of(the_event(doc, "kernel", "a"), "region"), "forward");
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 2);
    json_decref(doc);
}

/* Kernels first, their calls later: from a thread whose buffer comes back late. */
static void *launch_elsewhere(void *kernel)
{
    pk_region_begin(&forward);
    launch(.kernel = kernel);
    pk_region_end(&forward);
    return NULL;
}

static void many_threads_and_flushes(void **state)
{
    char names[20][8];
    (void)state;
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json", .backends = "cupti",
                                         .tuning = "flush_ms=100")),
                     PK_OK);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        snprintf(names[i], sizeof names[i], "k%d", i);
        assert_int_equal(pthread_create(&thread, NULL, launch_elsewhere, names[i]), 0);
        pthread_join(thread, NULL);
        fake->finish(); /* into this thread's buffer */
        if (i % 3 == 0)
            assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *doc = stop_and_load();
    for (int i = 0; i < 20; i++)
        assert_string_equal(text_of(the_event(doc, "kernel", names[i]), "region"), "forward");
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 40);
    assert_int_equal(fate(doc, "unlinked"), 0);
    json_decref(doc);
}

static void devices_are_described(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    launch(.kernel = "a");
    fake->finish();
    json_t *doc = stop_and_load();
    const json_t *all = member(doc, "deviceProperties");
    assert_int_equal(json_array_size(all), 2);
    const json_t *one = json_array_get(all, 1);
    assert_int_equal(json_integer_value(member(one, "id")), 1);
    assert_string_equal(json_string_value(member(one, "name")), "Double \"1\"");
    assert_true(json_integer_value(member(one, "totalGlobalMem")) == (json_int_t)80 << 30);
    assert_int_equal(json_integer_value(member(one, "numSms")), 1016);
    assert_int_equal(json_integer_value(member(one, "sharedMemPerBlockOptin")), 0);
    json_decref(doc);
}

#define A_QUESTION .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE

/* The collector's, by the driver, and the program's, by the runtime: of what is done, and of what
 * is not, as it comes where CUPTI cannot leave it out. */
static void questions_are_no_waits(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    assert_non_null(strstr(fake->log, "all_waits:0"));
    play(DRIVER, .id = CUPTI_DRIVER_TRACE_CBID_cuEventQuery, A_QUESTION);
    play(RUNTIME, .id = CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
         .inner = CUPTI_DRIVER_TRACE_CBID_cuEventQuery, A_QUESTION);
    fake->all_waits(1);
    play(DRIVER, .id = CUPTI_DRIVER_TRACE_CBID_cuEventQuery, A_QUESTION,
         .result = CUDA_ERROR_NOT_READY);
    play(RUNTIME, .id = 131, .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "cuda_sync", NULL), 1);
    the_event(doc, "cuda_sync", "Stream Sync");
    the_event(doc, "cuda_runtime", "cudaEventQuery");
    json_decref(doc);
}

#define cupti_test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)

static const struct CMUnitTest cupti_tests[] = {
    cupti_test(a_kernel_in_its_region),    cupti_test(ids_tell_calls_apart),
    cupti_test(copies_sets_and_graphs),    cupti_test(calls),
    cupti_test(what_overlaps_on_a_stream), cupti_test(waits),
    cupti_test(waits_for_events),          cupti_test(no_events_unasked),
    cupti_test(questions_are_no_waits),    cupti_test(regions_told_late),
    cupti_test(many_threads_and_flushes),  cupti_test(devices_are_described),
};

/* ---- steps that CUPTI measures ---- */

/* Which ones they are, and that none is done with before CUPTI has told all of it. */

static pk_region steps_forward = PK_REGION("forward");

static void nap(void)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

static void step(void)
{
    pk_region_begin(&steps_forward);
    launch(.kernel = "one", .ns = 50000);
    launch(.kernel = "two", .ns = 5000);
    pk_region_end(&steps_forward);
    nap();
    fake->finish();
    pk_step(1);
}

static const json_t *report_of(const json_t *doc)
{
    return member(doc, "perfkitReport");
}

static const json_t *figure(const json_t *doc, const char *name)
{
    const json_t *gpu = json_array_get(member(report_of(doc), "gpus"), 0);
    return member(member(gpu, "per_step"), name);
}

static int64_t of(const json_t *object, const char *key)
{
    return json_integer_value(member(object, key));
}

static void all_steps(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    for (int i = 0; i < 30; i++) {
        step();
        if (i % 7 == 0)
            assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *doc = stop_and_load();
    assert_int_equal(of(member(report_of(doc), "activities"), "late"), 0);
    assert_true(
        json_is_true(member(json_array_get(member(report_of(doc), "gpus"), 0), "measured")));
    /* All but the warm-up: CUPTI came amid the first one. */
    int64_t steady = 30 - of(member(report_of(doc), "steps"), "warmup");
    assert_int_equal(of(figure(doc, "kernels"), "count"), steady);
    assert_int_equal(of(figure(doc, "kernels"), "sum"), 2 * steady);
    assert_int_equal(of(figure(doc, "short_kernels"), "sum"), steady);
    const json_t *kernel = json_array_get(member(report_of(doc), "kernels"), 0);
    assert_string_equal(json_string_value(member(kernel, "name")), "one");
    assert_string_equal(json_string_value(member(kernel, "region")), "forward");
    json_decref(doc);
}

static void a_window_of_steps(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json", .report_path = "run.report.json",
                                         .tuning = "cupti_steps=200-204")),
                     PK_OK);
    for (int i = 0; i < 240; i++)
        step();
    json_t *doc = stop_and_load();
    assert_int_equal(of(member(report_of(doc), "activities"), "late"), 0);
    assert_int_equal(of(figure(doc, "kernels"), "count"), 5);
    assert_int_equal(of(figure(doc, "kernels"), "sum"), 10);
    assert_int_equal(of(figure(doc, "step"), "count"), 5);
    json_decref(doc);
}

static void wait_for_late_records(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    for (int i = 0; i < 10; i++) {
        launch(.kernel = "one");
        nap();
        pk_step(1);
    }
    assert_int_equal(pk_flush(), PK_OK); /* the steps are known, their kernels have not ended */
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(json_array_size(member(report_of(doc), "kernels")), 1);
    json_decref(doc);
}

/* From when till when, in ns. */
typedef struct times {
    int64_t start, end;
} times;

static times times_of(const json_t *event)
{
    int64_t start = llround(1000 * json_number_value(member(event, "ts")));
    return (times){start, start + llround(1000 * json_number_value(member(event, "dur")))};
}

static int64_t common(times a, times b)
{
    int64_t start = a.start > b.start ? a.start : b.start, end = a.end < b.end ? a.end : b.end;
    return end > start ? end - start : 0;
}

/* One while a kernel runs on another stream, as far as the machine lets it, and one after that. */
static void collectives_beside_kernels(void **state)
{
    (void)state;
    start_cupti(.report_path = "run.report.json");
    launch(.kernel = "first");
    fake->finish();
    pk_step(1);
    launch(.kernel = "gemm", .ns = 20000000);
    launch(.kernel = "ncclDevKernel_AllReduce", .stream = 20, .ns = 4000000);
    launch(.kernel = "ncclDevKernel_AllGather", .stream = 20, .ns = 3000000, .delay = 30000000);
    fake->finish();
    for (int i = 0; i < 20; i++)
        nap();
    pk_step(1);
    json_t *doc = stop_and_load();
    times gemm = times_of(the_event(doc, "kernel", "gemm"));
    times one = times_of(the_event(doc, "kernel", "ncclDevKernel_AllReduce"));
    times two = times_of(the_event(doc, "kernel", "ncclDevKernel_AllGather"));
    times step = times_of(the_event(doc, "user_annotation", "ProfilerStep#1"));
    int64_t hidden = common(one, gemm) + common(two, gemm);
    assert_int_equal(common(one, step) + common(two, step),
                     one.end - one.start + two.end - two.start);
    assert_int_equal(of(figure(doc, "comm"), "sum"), 7000000);
    assert_int_equal(of(figure(doc, "comm_hidden"), "sum"), hidden);
    assert_int_equal(of(figure(doc, "comm_exposed"), "sum"), 7000000 - hidden);
    json_decref(doc);
}

#define with_fake(test) cmocka_unit_test_setup_teardown(test, reset_fake, stop_and_leave)

static const struct CMUnitTest steps_tests[] = {
    with_fake(all_steps),
    with_fake(a_window_of_steps),
    with_fake(wait_for_late_records),
    with_fake(collectives_beside_kernels),
};

/* ---- a range of steps ---- */

/* CUPTI is on for them, somewhat ahead, and not otherwise. */

static pk_region window_forward = PK_REGION("forward");
static char names[64][16];
static int steps;

#define start_window(...)                                                                          \
    (steps = 0,                                                                                    \
     assert_int_equal(pk_start(pk_options(.trace_path = "run.json", __VA_ARGS__)), PK_OK))

/* A step with a kernel that is named after it. */
static void window_step(void)
{
    char *name = names[steps % 64];
    snprintf(name, sizeof names[0], "k%d", steps++);
    pk_region_begin(&window_forward);
    launch(.kernel = name);
    pk_region_end(&window_forward);
    nap();
    pk_step(1);
    fake->finish();
}

static void step_until(int n)
{
    while (steps < n)
        window_step();
}

static bool records(void)
{
    return __atomic_load_n(&fake->enabled, __ATOMIC_RELAXED) >> CUPTI_ACTIVITY_KIND_RUNTIME & 1;
}

/* The collector is as far as that: it may have been kept waiting. */
static void await(bool on)
{
    for (int i = 0; i < 10000 && records() != on; i++)
        nap();
    assert_int_equal(records(), on);
}

static void await_status(const char *words)
{
    for (int i = 0; i < 10000 && strcmp(status().reason, words) != 0; i++)
        nap();
    assert_string_equal(status().reason, words);
}

static void expect_kernels(const json_t *doc, int first, int last)
{
    char name[16];
    for (int i = 0; i < steps; i++) {
        snprintf(name, sizeof name, "k%d", i);
        size_t count = count_of_cat(doc, "kernel", name);
        if (count != (size_t)(i >= first && i <= last))
            fail_msg("%zu kernels of step %d", count, i);
    }
    assert_int_equal(count_of_cat(doc, "cuda_runtime", NULL), last - first + 1);
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 2 * (last - first + 1));
}

static void only_these_steps(void **state)
{
    (void)state;
    start_window(.tuning = "cupti_steps=12-14");
    assert_string_equal(status().reason, "waiting for its steps");
    assert_string_equal(fake->log, ""); /* it is anybody's until then */
    step_until(11);
    await(true); /* before the first of them begins */
    step_until(20);
    await(false);
    step_until(30);
    await_status("its steps are over");
    for (int i = 0; i < 10000 && !fake->noted("unsubscribe"); i++)
        nap(); /* it is over before all of CUPTI is off */
    assert_true(fake->noted("unsubscribe"));
    step_until(35);
    json_t *doc = stop_and_load();
    expect_kernels(doc, 12, 14);
    for (int i = 12; i <= 14; i++)
        assert_string_equal(text_of(the_event(doc, "kernel", names[i]), "region"), "forward");
    assert_int_equal(fake->forced, 1);
    json_decref(doc);
}

static void from_the_first_step_on(void **state)
{
    (void)state;
    setenv("PK_CUPTI_STEPS", "0-1", 1);
    start_window(.backends = "-nvtx");
    await(true);
    step_until(9);
    json_t *doc = stop_and_load();
    /* The collector may have come too late for what was before it, not for what was behind. */
    for (int i = 2; i < 9; i++)
        assert_int_equal(count_of_cat(doc, "kernel", names[i]), 0);
    assert_int_equal(count_of_cat(doc, "kernel", "k1"), 1);
    json_decref(doc);
}

static void a_session_that_ends_within(void **state)
{
    (void)state;
    start_window(.tuning = "cupti_steps=3-100");
    step_until(2);
    await(true);
    step_until(6);
    json_t *doc = stop_and_load();
    expect_kernels(doc, 3, 5);
    json_decref(doc);
}

static void steps_that_never_come(void **state)
{
    (void)state;
    start_window(.tuning = "cupti_steps=1000000000-2000000000");
    step_until(5);
    assert_int_equal(pk_flush(), PK_OK);
    json_t *doc = stop_and_load();
    expect_kernels(doc, 1, 0);
    assert_string_equal(fake->log, "");
    json_decref(doc);
}

static void lists_that_exclude_it(void **state)
{
    (void)state;
    start_window(.backends = "-cupti", .tuning = "cupti_steps=0-9");
    assert_string_equal(status().reason, "not asked for");
    assert_int_equal(pk_stop(), PK_OK);
    start_window(.backends = "none", .tuning = "cupti_steps=0-9");
    assert_int_equal(pk_stop(), PK_OK);
    assert_string_equal(fake->log, "");
    start_window(.backends = "nvtx", .tuning = "cupti_steps=0-9"); /* beside what is named */
    await(true);
}

#define window_test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)

static const struct CMUnitTest window_tests[] = {
    window_test(only_these_steps),           window_test(from_the_first_step_on),
    window_test(a_session_that_ends_within), window_test(steps_that_never_come),
    window_test(lists_that_exclude_it),
};

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    int failed = cmocka_run_group_tests(cupti_tests, NULL, NULL);
    failed += cmocka_run_group_tests(steps_tests, NULL, NULL);
    failed += cmocka_run_group_tests(window_tests, NULL, NULL);
    return failed;
}
