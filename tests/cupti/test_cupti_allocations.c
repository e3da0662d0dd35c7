/* What is allocated on devices, by region, as CUPTI tells of it (costs=memory). */
#include "allocations.h"

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

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
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
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
