/* Memory: what CUPTI tells of devices', and the backend without any. */
#include "scene.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/atomic.h"

/* ---- a program that allocates on the mock of a device, and the report ---- */

#define MIB ((uint64_t)1 << 20)
#define CALL(name) .id = CUPTI_RUNTIME_TRACE_CBID_##name
#define does(...)                                                                                  \
    .memory = &(const fake_memory)                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define take(at, ...)                                                                              \
    play(RUNTIME, CALL(cudaMalloc_v3020), .inner = CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,          \
         does(.what = FAKE_ALLOCATE, .address = (at), .bytes = __VA_ARGS__))
#define give(...)                                                                                  \
    play(RUNTIME, CALL(cudaFree_v3020), .inner = CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,             \
         does(.what = FAKE_FREE, .address = __VA_ARGS__))
#define from_pool(at, ...)                                                                         \
    play(RUNTIME, CALL(cudaMallocAsync_v11020),                                                    \
         does(.what = FAKE_ALLOCATE, .address = (at), .pool = 0x9000, .bytes = __VA_ARGS__))
#define to_pool(...)                                                                               \
    play(RUNTIME, CALL(cudaFreeAsync_v11020),                                                      \
         does(.what = FAKE_FREE, .pool = 0x9000, .address = __VA_ARGS__))

static pk_region forward = PK_REGION("forward"), cache = PK_REGION("cache");

#define begin_memory(...)                                                                          \
    assert_int_equal(pk_start(pk_options(.report_path = "run.report.json", .costs = "memory",      \
                                         .tuning = "flush_ms=3600000", __VA_ARGS__)),              \
                     PK_OK)

/* -- the report -- */

static json_t *stop_and_read(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.report.json");
}

static const json_t *row(const json_t *rows, const char *key, const char *name)
{
    size_t i;
    json_t *found;
    json_array_foreach(rows, i, found)
    {
        if (strcmp(json_string_value(member(found, key)), name) == 0)
            return found;
    }
    return NULL;
}

static const json_t *place_of(const json_t *report, const char *place)
{
    return row(member(member(report, "gpu_memory"), "places"), "place", place);
}

static const json_t *region_of(const json_t *place, const char *name)
{
    return row(member(place, "regions"), "name", name);
}

static uint64_t of(const json_t *object, const char *key)
{
    return (uint64_t)json_number_value(member(object, key));
}

static void is(const json_t *object, const char *key, uint64_t value)
{
    if (of(object, key) != value)
        fail_msg("%s: %" PRIu64 ", not %" PRIu64, key, of(object, key), value);
}

/* ---- what is allocated on devices, by region, as CUPTI tells of it (costs=memory) ---- */

static void regions_and_the_peak(void **state)
{
    (void)state;
    begin_memory(.trace_path = "run.json");
    assert_true(status().live && strstr(status().reason, "recording what is allocated"));
    take(0x1000, 100);
    pk_region_begin(&forward);
    take(0x2000, 1000);
    pk_region_begin(&cache);
    take(0x3000, 10000);
    pk_region_end(&cache);
    take(0x4000, 500); /* the peak: 11,600 */
    give(0x2000);
    give(0x4000);
    take(0x2000, 7); /* the address is used again */
    pk_region_end(&forward);
    take(0x5000, 40, .late = true);
    fake->finish();
    json_t *report = stop_and_read();
    const json_t *gpu = place_of(report, "gpu0"), *all = member(report, "gpu_memory");
    is(all, "operations", 8);
    is(all, "unknown_frees", 0);
    is(all, "untied", 0);
    is(gpu, "total", (uint64_t)80 << 30);
    is(gpu, "allocations", 6);
    is(gpu, "live", 10147);
    is(gpu, "peak", 11600);
    is(gpu, "most_held", 11600);
    is(region_of(gpu, "cache"), "at_peak", 10000);
    is(region_of(gpu, "forward"), "at_peak", 1500);
    is(region_of(gpu, "forward"), "peak", 1500);
    is(region_of(gpu, "forward"), "live", 7);
    is(region_of(gpu, "forward"), "freed", 1500);
    is(region_of(gpu, ""), "live", 140);
    is(region_of(gpu, ""), "at_peak", 100);
    json_t *doc = load_document("run.json");
    double most = 0;
    for (size_t i = 0; i < count_of_cat(doc, "counter", "gpu0.allocated"); i++) {
        double v = json_number_value(arg(nth_event(doc, "counter", "gpu0.allocated", i), "bytes"));
        most = v > most ? v : most;
    }
    assert_true(most == 11600);
    assert_null(nth_event(doc, "cuda_runtime", NULL, 0));
    json_decref(doc);
    json_decref(report);
}

/* Of all else CUPTI is not asked for anything. */
static void nothing_else_is_turned_on(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    assert_true(fake->enabled == ((uint64_t)1 << CUPTI_ACTIVITY_KIND_MEMORY2 |
                                  (uint64_t)1 << CUPTI_ACTIVITY_KIND_MEMORY_POOL));
    pk_region_begin(&forward);
    launch(.kernel = "a");
    take(0x1000, 1);
    pk_region_end(&forward);
    assert_true(fake->pushes == 0);
    json_decref(stop_and_read());
    assert_true(fake->enabled == 0 && strstr(fake->log, "unsubscribe"));
    fake->log[0] = 0;
    assert_int_equal(pk_start(pk_options(.report_path = "r.json")), PK_OK);
    json_t *report = stop_and_read(); /* of the first */
    json_decref(report);
    assert_string_equal(fake->log, "");
}

static void kinds(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    pk_region_begin(&forward);
    play(RUNTIME, CALL(cudaMallocManaged_v6000),
         does(.what = FAKE_ALLOCATE, .kind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, .address = 0x100,
              .bytes = 10));
    play(RUNTIME, CALL(cudaMallocArray_v3020),
         does(.what = FAKE_ALLOCATE, .kind = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, .address = 0x200,
              .bytes = 20));
    play(RUNTIME, CALL(cudaHostAlloc_v3020),
         does(.what = FAKE_ALLOCATE, .kind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED, .address = 0x300,
              .bytes = 40));
    play(RUNTIME, CALL(cudaMalloc_v3020),
         does(.what = FAKE_ALLOCATE, .kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC,
              .address = 0x400, .bytes = 80));
    play(RUNTIME, CALL(cudaMalloc_v3020),
         does(.what = FAKE_ALLOCATE, .kind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, .address = 0x500,
              .bytes = 160));
    play(DRIVER, .id = CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, .device_id = 1,
         does(.what = FAKE_ALLOCATE, .address = 0x600, .bytes = 320));
    take(0x700, 0, .kind = 0);
    play(RUNTIME, CALL(cudaMalloc_v3020), .result = 2,
         does(.what = FAKE_ALLOCATE, .address = 0x800, .bytes = 640));
    pk_region_end(&forward);
    json_t *report = stop_and_read();
    const json_t *gpu = place_of(report, "gpu0"), *host = place_of(report, "host");
    is(row(member(gpu, "kinds"), "kind", "managed"), "live", 10);
    is(row(member(gpu, "kinds"), "kind", "array"), "live", 20);
    is(row(member(gpu, "kinds"), "kind", "static"), "live", 80);
    is(gpu, "live", 110);
    is(gpu, "most_held", 100); /* managed memory is wherever its pages are */
    is(host, "live", 40);
    is(host, "total", 0);
    is(region_of(host, "forward"), "live", 40);
    is(place_of(report, "gpu1"), "live", 320);
    json_decref(report);
}

static void pools(void **state)
{
    (void)state;
    begin_memory(.trace_path = "run.json");
    play(RUNTIME, CALL(cudaMemPoolCreate_v11020), does(.what = FAKE_POOL_CREATE, .pool = 0x9000));
    pk_region_begin(&forward);
    from_pool(0x1000, 3 * MIB);
    from_pool(0x2000, 2 * MIB); /* 6 MiB reserved, 5 in use */
    to_pool(0x1000);            /* 2 in use */
    from_pool(0x3000, MIB, .imported = true);
    pk_region_end(&forward);
    take(0x4000, MIB);
    json_t *report;
    assert_int_equal(pk_flush(), PK_OK);
    play(RUNTIME, CALL(cudaMemPoolTrimTo_v11020), does(.what = FAKE_POOL_TRIM, .pool = 0x9000));
    report = stop_and_read();
    const json_t *gpu = place_of(report, "gpu0");
    is(gpu, "most_reserved", 6 * MIB);
    is(gpu, "used_then", 5 * MIB);
    assert_float_equal(json_number_value(member(gpu, "unused")), 1.0 / 6, 1e-6);
    is(gpu, "pool_reserved", 2 * MIB);
    is(gpu, "pool_used", 2 * MIB);
    is(gpu, "live", 4 * MIB);
    is(gpu, "most_held", 7 * MIB);
    is(gpu, "held", 4 * MIB); /* of the imported pool, what is allocated */
    is(row(member(gpu, "kinds"), "kind", "pool"), "peak", 5 * MIB);
    json_t *doc = load_document("run.json");
    assert_true(count_of_cat(doc, "counter", "gpu0.pool_reserved") == 3);
    json_decref(doc);
    json_decref(report);
}

static void a_pool_that_is_gone(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    from_pool(0x1000, MIB);
    to_pool(0x1000);
    play(RUNTIME, CALL(cudaMemPoolDestroy_v11020), does(.what = FAKE_POOL_DESTROY, .pool = 0x9000));
    json_t *report = stop_and_read();
    const json_t *gpu = place_of(report, "gpu0");
    is(gpu, "pool_reserved", 0);
    is(gpu, "held", 0);
    is(gpu, "most_held", 2 * MIB);
    json_decref(report);
}

/* Its free is counted apart, and takes nothing off. */
static void what_was_there_before(void **state)
{
    (void)state;
    take(0x1000, 1000);
    begin_memory(.trace_path = NULL);
    take(0x2000, 10);
    give(0x1000);
    give(0x7000, .unknown = true, .bytes = 77);
    json_t *report = stop_and_read();
    is(member(report, "gpu_memory"), "unknown_frees", 2);
    is(member(report, "gpu_memory"), "unknown_freed", 1077);
    is(place_of(report, "gpu0"), "live", 10);
    is(place_of(report, "gpu0"), "frees", 0);
    json_decref(report);
}

/* Buffers come back in any order; each record finds its place, and who asked is known. */
static void late_records(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    pk_region_begin(&forward);
    take(0x1000, 100, .late = true);
    give(0x1000); /* read first, as is... */
    assert_int_equal(pk_flush(), PK_OK);
    pk_region_end(&forward);
    pk_region_begin(&cache);
    take(0x1000, 900); /* ...the next one at the same address */
    pk_region_end(&cache);
    assert_int_equal(pk_flush(), PK_OK);
    fake->finish();
    assert_int_equal(pk_flush(), PK_OK);
    pk_region_begin(&forward);
    take(0x2000, 5, .by_driver = true); /* the record has the driver's correlation */
    give(0x2000, .late = true);
    take(0x2000, 6);
    pk_region_end(&forward);
    assert_int_equal(pk_flush(), PK_OK);
    fake->finish();
    json_t *report = stop_and_read();
    const json_t *all = member(report, "gpu_memory"), *gpu = place_of(report, "gpu0");
    is(all, "unknown_frees", 0);
    is(all, "missed_frees", 0);
    is(all, "untied", 0);
    is(gpu, "live", 906);
    is(gpu, "allocations", 4);
    is(gpu, "frees", 2);
    is(region_of(gpu, "forward"), "bytes", 111);
    is(region_of(gpu, "forward"), "live", 6);
    is(region_of(gpu, "cache"), "live", 900);
    json_decref(report);
}

/* CUPTI says that records are missing, and so does the report; nothing is negative. */
static void dropped_records(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    take(0x1000, 100);
    give(0x1000, .dropped = true);
    take(0x1000, 300);
    json_t *report = stop_and_read();
    const json_t *all = member(report, "gpu_memory");
    is(all, "dropped", 1);
    is(all, "missed_frees", 1);
    is(place_of(report, "gpu0"), "live", 300);
    json_decref(report);
}

static void *free_elsewhere(void *unused)
{
    pk_region_begin(&cache);
    play(RUNTIME, CALL(cudaFree_v3020), .device_id = 1, does(.what = FAKE_FREE, .address = 0x1000));
    pk_region_end(&cache);
    return unused;
}

/* By another thread, in another region, with another device current. */
static void freed_elsewhere(void **state)
{
    pthread_t thread;
    (void)state;
    begin_memory(.trace_path = NULL);
    pk_region_begin(&forward);
    take(0x1000, 100);
    pk_region_end(&forward);
    assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    json_t *report = stop_and_read();
    is(place_of(report, "gpu0"), "live", 0);
    is(region_of(place_of(report, "gpu0"), "forward"), "freed", 100);
    assert_null(place_of(report, "gpu1"));
    json_decref(report);
}

/* One window, and the last metrics: the run's own figures. */
static void in_windows_and_metrics(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL, .windows_path = "run.jsonl", .metrics_path = "run.prom");
    take(0x1000, 100);
    take(0x2000, 1000);
    give(0x2000);
    from_pool(0x3000, 20);
    fake->finish();
    json_t *report = stop_and_read(), *window = load_document("run.jsonl");
    const json_t *of_run = place_of(report, "gpu0"), *of_window = place_of(window, "gpu0");
    static const char *const same[] = {"allocations", "bytes", "frees",     "freed",        "live",
                                       "held",        "peak",  "most_held", "most_reserved"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        is(of_window, same[i], (uint64_t)json_integer_value(member(of_run, same[i])));
    is(of_window, "peak", 1100);
    assert_int_equal(json_array_size(member(of_run, "pools")), 1);
    size_t n;
    char *metrics = read_file("run.prom", &n);
    assert_non_null(strstr(metrics, "pk_device_memory_max_bytes{"));
    assert_non_null(strstr(metrics, "device=\"gpu0\"} 1100\n"));
    assert_non_null(strstr(metrics, "device=\"gpu0\"} 120\n"));
    free(metrics);
    json_decref(window);
    json_decref(report);
}

#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)

static const struct CMUnitTest allocations_tests[] = {
    test(regions_and_the_peak),
    test(nothing_else_is_turned_on),
    test(kinds),
    test(pools),
    test(a_pool_that_is_gone),
    test(what_was_there_before),
    test(late_records),
    test(dropped_records),
    test(freed_elsewhere),
    test(in_windows_and_metrics),
};

/* ---- recording what is allocated ---- */

/* Beside kernels, without CUPTI, with an older one, verdicts, fork. */

/* Kernels for some steps only, with all that is allocated. */
static void beside_kernels(void **state)
{
    (void)state;
    setenv("PK_CUPTI_STEPS", "2-3", 1);
    begin_memory(.trace_path = "run.json");
    for (int i = 0; i < 6; i++) {
        pk_region_begin(&forward);
        launch(.kernel = "a");
        take((uint64_t)0x1000 * (uint64_t)(i + 1), 10);
        pk_region_end(&forward);
        fake->finish();
        pk_step(1);
        assert_int_equal(pk_flush(), PK_OK);
    }
    json_t *report = stop_and_read();
    json_t *doc = load_document("run.json");
    is(region_of(place_of(report, "gpu0"), "forward"), "live", 60);
    assert_int_equal(count_of_cat(doc, "kernel", "a"), 2);
    assert_string_equal(text_of(nth_event(doc, "kernel", "a", 0), "region"), "forward");
    json_decref(doc);
    json_decref(report);
}

/* All the time, which turns the same two kinds on once. */
static void beside_all_kernels(void **state)
{
    (void)state;
    begin_memory(.trace_path = "run.json", .backends = "cupti");
    launch(.kernel = "a");
    take(0x1000, 10);
    fake->finish();
    json_t *report = stop_and_read();
    json_t *doc = load_document("run.json");
    is(place_of(report, "gpu0"), "live", 10);
    assert_int_equal(count_of_cat(doc, "kernel", "a"), 1);
    json_decref(doc);
    json_decref(report);
}

static void says_why_not(const char *backends, const char *why)
{
    begin_memory(.backends = backends);
    json_t *report = stop_and_read();
    const char *text = json_string_value(member(member(report, "gpu_memory"), "why_not"));
    if (!strstr(text, why))
        fail_msg("%s", text);
    json_decref(report);
}

static void without_it(void **state)
{
    (void)state;
    says_why_not("-cupti", "not asked for");
    fake->kinds[CUPTI_ACTIVITY_KIND_MEMORY2] = CUPTI_ERROR_INVALID_KIND;
    says_why_not(NULL, "INVALID_KIND");
    says_why_not("cupti", "no records of it");
    assert_true(fake->enabled == 0 && strstr(fake->log, "unsubscribe"));
    fake->kinds[CUPTI_ACTIVITY_KIND_MEMORY2] = CUPTI_SUCCESS;
    fake->subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    fake->holder = "torch";
    says_why_not(NULL, "torch");
    assert_int_equal(pk_start(pk_options(.costs = "memory,files")), PK_EINVAL);
}

/* Records of a library that is older: without the members that came since. */
static void shorter_records(void **state)
{
    (void)state;
    fake->lengths[CUPTI_ACTIVITY_KIND_MEMORY2] = sizeof(CUpti_ActivityMemory3);
    fake->lengths[CUPTI_ACTIVITY_KIND_MEMORY_POOL] = sizeof(CUpti_ActivityMemoryPool2);
    begin_memory(.trace_path = NULL);
    for (uint64_t i = 1; i < 100; i++)
        from_pool(0x1000 * i, i);
    play(RUNTIME, CALL(cudaMemPoolTrimTo_v11020), does(.what = FAKE_POOL_TRIM, .pool = 0x9000));
    json_t *report = stop_and_read();
    is(place_of(report, "gpu0"), "live", 4950);
    is(place_of(report, "gpu0"), "used_then", 4950);
    json_decref(report);
}

/* Another region, another address in each step: the leak is named, with its device; so is who asks
 * the driver in each step. pk_flush looks at memory, so no time has to pass. */
static void verdicts(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    for (uint64_t i = 1; i <= 100; i++) {
        pk_region_begin(&cache);
        take(0x100000 * i, 20000);
        pk_region_end(&cache);
        pk_region_begin(&forward);
        take(0x90000000, 100000000);
        give(0x90000000);
        pk_region_end(&forward);
        pk_step(1);
        assert_int_equal(pk_flush(), PK_OK);
    }
    take(0xA0000000, (uint64_t)75 << 30);
    json_t *report = stop_and_read();
    const json_t *leak = row(member(report, "verdicts"), "name", "gpu-leak"),
                 *near = row(member(report, "verdicts"), "name", "gpu-near-memory-limit"),
                 *allocates = row(member(report, "verdicts"), "name", "gpu-allocates");
    assert_true(leak && near && allocates);
    assert_non_null(strstr(json_string_value(member(leak, "text")), "on gpu0 in \"cache\""));
    assert_non_null(strstr(json_string_value(member(near, "text")), "outside of all regions"));
    assert_float_equal(json_number_value(member(allocates, "value")), 2, 0.2);
    const json_t *grown = member(region_of(place_of(report, "gpu0"), "cache"), "growth");
    assert_float_equal(json_number_value(member(grown, "per_step")), 20000, 200);
    json_decref(report);
}

/* In a child nothing is recorded, and nobody minds. */
static void forked(void **state)
{
    (void)state;
    begin_memory(.trace_path = NULL);
    take(0x1000, 10);
    pid_t child = fork();
    if (child == 0) {
        take(0x2000, 10);
        _exit(pk_stop() == PK_OK);
    }
    int how;
    assert_true(waitpid(child, &how, 0) == child && WIFEXITED(how));
    json_t *report = stop_and_read();
    is(place_of(report, "gpu0"), "live", 10);
    json_decref(report);
}

static const struct CMUnitTest allocating_tests[] = {
    test(beside_kernels),  test(beside_all_kernels), test(without_it),
    test(shorter_records), test(verdicts),           test(forked),
};

/* ---- when memory is out ---- */

/* CUPTI never gets a NULL to write to, the program's errno stays, and what cannot be kept is
 * counted. */

static pk_region memory_forward = PK_REGION("forward");

/* Of perfkit's own calls; the rest of the program has memory. */
static bool no_buffers;
static long left = -1; /* calls of realloc and calloc until one fails */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

/* On the collector's thread, too. */
static bool fails(void)
{
    if (pki_load(&left) < 0)
        return false;
    errno = ENOMEM;
    return pki_fetch_add(&left, -1) == 0;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    bool none = pki_load(&no_buffers);
    if (none)
        errno = ENOMEM;
    return none ? NULL : __real_aligned_alloc(alignment, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

static int memory_is_back(void **state)
{
    pki_store(&no_buffers, false);
    pki_store(&left, -1);
    return stop_and_leave(state);
}

static void no_buffer_to_be_had(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    pk_region_begin(&memory_forward);
    pki_store(&no_buffers, true);
    errno = 4711;
    launch(.kernel = "a");
    assert_int_equal(errno, 4711);
    assert_true(fake->nulls == 0 && fake->buffers > 0 && fake->smallest == 8);
    pki_store(&no_buffers, false);
    launch(.kernel = "b");
    fake->complete();
    launch(.kernel = "c");
    pk_region_end(&memory_forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "c"), 1);
    assert_string_equal(text_of(the_event(doc, "kernel", "c"), "region"), "forward");
    assert_true(fate(doc, "buffers_refused") > 0 && fate(doc, "dropped_by_cupti") > 0);
    json_decref(doc);
}

/* That nothing comes is then our own memory's fault, and no other tool's. */
static void without_buffers_nobody_is_accused(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    pki_store(&no_buffers, true);
    for (int i = 0; i < 5; i++) {
        launch(.kernel = "a");
        assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(status().live, 1);
    pki_store(&no_buffers, false);
}

/* Whatever allocation it is that fails: the trace is whole, and so is the next session's. */
static void every_allocation_once(void **state)
{
    bool failed = true;
    (void)state;
    for (long n = 0; failed && n < 200; n++) {
        start_cupti(.rank = 0);
        pk_region_begin(&memory_forward);
        for (int i = 0; i < 20; i++)
            launch(.kernel = i % 2 ? "a" : "_Z1bv", .stream = (uint32_t)i + 1);
        pk_region_end(&memory_forward);
        fake->finish();
        pki_store(&left, n);
        assert_int_equal(pk_flush(), PK_OK);
        failed = pki_load(&left) < 0;
        pki_store(&left, -1);
        json_t *doc = stop_and_load();
        assert_true(count_of_cat(doc, "kernel", NULL) <= 20);
        assert_true(failed || count_of_cat(doc, "kernel", NULL) == 20);
        json_decref(doc);
    }
    assert_false(failed);
}

static const struct CMUnitTest memory_tests[] = {
    cmocka_unit_test_setup_teardown(no_buffer_to_be_had, reset_fake, memory_is_back),
    cmocka_unit_test_setup_teardown(without_buffers_nobody_is_accused, reset_fake, memory_is_back),
    cmocka_unit_test_setup_teardown(every_allocation_once, reset_fake, memory_is_back),
};

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    int failed = cmocka_run_group_tests(allocations_tests, NULL, NULL);
    failed += cmocka_run_group_tests(allocating_tests, NULL, NULL);
    failed += cmocka_run_group_tests(memory_tests, NULL, NULL);
    return failed;
}
