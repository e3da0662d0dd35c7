/* Recording what is allocated: beside kernels, without CUPTI, with an older one, verdicts, fork. */
#include "allocations.h"

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

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(beside_kernels),  test(beside_all_kernels), test(without_it),
        test(shorter_records), test(verdicts),           test(forked),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
