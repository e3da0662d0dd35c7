/* What devices say about themselves, through the mock in tests/fake: what arrives in trace,
 * statistics and status. What fails is in test_nvml_failures.c. */
#include "nvml.h"

#include <sys/wait.h>

static double value_in(const json_t *event)
{
    const json_t *args = member(event, "args");
    return json_number_value(json_object_iter_value(json_object_iter((json_t *)(uintptr_t)args)));
}

static void expect_sample(const json_t *doc, const char *counter, double value)
{
    assert_true(value_in(find_event(doc, counter)) == value);
}

static const json_t *counter_in(const json_t *report, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(member(report, "counters"), i, row)
    {
        if (strcmp(json_string_value(member(row, "name")), name) == 0)
            return row;
    }
    fail_msg("the report has no counter %s", name);
    return NULL;
}

/* Its counter is read where it is asked for, and nowhere else. */
static void energy_on_request(void **state)
{
    (void)state;
    start_sampling();
    await_rounds(0, 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls(0, FAKE_ENERGY), 0);
    assert_int_equal(
        pk_start(pk_options(.report_path = "r.json", .backends = "nvml", .costs = "energy")),
        PK_OK);
    await(calls(0, FAKE_ENERGY) >= 3);
    pk_step(10);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *report = load_document("r.json");
    const json_t *rows = member(member(report, "energy"), "rows");
    const json_t *run = json_array_get(rows, json_array_size(rows) - 2);
    assert_string_equal(json_string_value(member(run, "counter")), "gpu0");
    assert_true(json_is_true(member(run, "refused"))); /* of three readings: no figure */
    assert_true(json_number_value(member(run, "joules")) == 0);
    json_decref(report);
}

static void values_in_trace_and_report(void **state)
{
    (void)state;
    start_sampling();
    await_rounds(0, 3);
    pk_backend_info info = status();
    assert_true(info.live);
    assert_string_equal(info.version, "999.11.22");
    assert_memory_equal(info.reason, "gpu0", 4);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("t.json"), *report = load_document("r.json");
    expect_sample(doc, "gpu0.utilization", 87);
    expect_sample(doc, "gpu0.memory_utilization", 41);
    expect_sample(doc, "gpu0.power", 345.678);
    expect_sample(doc, "gpu0.temperature", 66);
    expect_sample(doc, "gpu0.sm_clock", 1980);
    expect_sample(doc, "gpu0.memory_clock", 3201);
    expect_sample(doc, "gpu0.memory", 123456);
    expect_sample(doc, "gpu0.throttle", 0);
    const json_t *power = counter_in(report, "gpu0.power");
    assert_string_equal(json_string_value(member(power, "unit")), "W");
    assert_int_equal(count_events(doc, "C", "gpu0.power"), calls(0, FAKE_POWER));
    assert_true(json_number_value(member(member(report, "overhead"), "backends")) > 0);
    assert_true(calls(0, FAKE_POWER) >= 1);
    json_decref(doc);
    json_decref(report);
    assert_true(status().live); /* the report of a run says what it was */
    assert_int_equal(fake->inits, fake->shutdowns);
}

static void held_down_clocks_are_told(void **state)
{
    (void)state;
    fake->device[0].reasons = 0x4 | 0x1;
    start_sampling();
    await_rounds(0, 2);
    expect_words("gpu0: clocks held down by the power cap in 100 % of ");
    fake_set(fake->device[0].reasons, 0x40ull);
    await_rounds(0, 2);
    expect_words("; gpu0: clocks held down by temperature (hardware) in ");
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("t.json");
    expect_sample(doc, "gpu0.throttle", 5);
    json_decref(doc);
}

static void what_is_not_supported(void **state)
{
    (void)state;
    fake->device[0].mig = 1;
    fake->device[0].codes[FAKE_UTILIZATION] = 3;
    fake->device[0].codes[FAKE_POWER] = 3;
    start_sampling();
    await_rounds(0, 3);
    expect_words("gpu0; gpu0 (MIG): no utilization (Not Supported), power (Not Supported)");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls(0, FAKE_UTILIZATION), 1); /* never asked again */
    json_t *doc = load_document("t.json");
    assert_int_equal(count_events(doc, "C", "gpu0.power"), 0);
    assert_int_equal(count_events(doc, "C", "gpu0.memory"), calls(0, FAKE_MEMORY));
    json_decref(doc);
}

static void sessions_one_after_the_other(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        unsigned before = calls(0, FAKE_REASONS);
        start_sampling();
        await(fake_get(fake->inits) == i + 1);
        assert_int_equal(pk_stop(), PK_OK); /* what has not been read yet is */
        assert_true(calls(0, FAKE_REASONS) > before);
        assert_int_equal(fake->shutdowns, i + 1);
    }
}

static void a_session_without_it(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.report_path = "r.json", .backends = "-nvml")), PK_OK);
    expect_words("not asked for");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->inits, 0);
}

static void before_any_session(void **state)
{
    (void)state;
    fake->devices = 3;
    expect_words("3 devices");
    assert_true(status().live);
    fake->init_code = 9;
    expect_words("nvmlInit_v2: Some Error");
    assert_false(status().live);
    assert_int_equal(fake->inits, fake->shutdowns);
}

static void a_library_of_another_kind(void **state)
{
    const char *path = getenv("PK_NVML_LIBRARY");
    char saved[4096];
    (void)state;
    snprintf(saved, sizeof saved, "%s", path);
    setenv("PK_NVML_LIBRARY", "libm.so.6", 1);
    expect_words("the library has no nvmlInit_v2");
    assert_false(status().live);
    setenv("PK_NVML_LIBRARY", saved, 1);
}

static void no_library(void **state)
{
    (void)state;
    expect_words("cannot open shared object file");
    start_sampling();
    expect_words("cannot open shared object file");
    assert_false(status().live);
    assert_int_equal(pk_stop(), PK_OK);
    expect_words("cannot open shared object file");
}

static void after_a_fork(void **state)
{
    int code = 0;
    (void)state;
    start_sampling();
    await_rounds(0, 1);
    pid_t child = fork();
    if (child == 0) {
        pk_backend_info info = {.size = sizeof info};
        unsigned before = fake->inits;
        bool off = pk_start(pk_options(.backends = "nvml")) == PK_OK &&
                   pk_backend_status("nvml", &info) == PK_OK && !info.live &&
                   strstr(info.reason, "forked") && pk_stop() == PK_OK && fake->inits == before;
        _exit(off ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    await_rounds(0, 1);
    assert_int_equal(pk_stop(), PK_OK);
}

static void ranks_share_the_devices(void **state)
{
    (void)state;
    fake->devices = 8;
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    start_sampling();
    await_rounds(5, 1);
    expect_words("gpu1, gpu5 of 8 (the node's ranks share them)");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls(0, FAKE_POWER), 0);
}

int main(int argc, char **argv)
{
    const char *preloaded = getenv("LD_PRELOAD");
    bool forks = !strstr(SANITIZERS, "thread") && !getenv("PK_TEST_QEMU") &&
                 !(preloaded && strstr(preloaded, "vgpreload"));
    const struct CMUnitTest tests[] = {
        sampling(a_library_of_another_kind), /* before the mock has been taken */
        sampling(before_any_session),        sampling(values_in_trace_and_report),
        sampling(energy_on_request),         sampling(held_down_clocks_are_told),
        sampling(what_is_not_supported),     sampling(sessions_one_after_the_other),
        sampling(a_session_without_it),      sampling(ranks_share_the_devices),
    };
    const struct CMUnitTest fork_tests[] = {sampling(after_a_fork)};
    const struct CMUnitTest without[] = {
        cmocka_unit_test_setup_teardown(no_library, enter_folder, leave_folder)};
    if (argc != 2)
        return 2;
    fake = load_fake(argv[1]);
    if (!fake)
        return cmocka_run_group_tests(without, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL) +
           (forks ? cmocka_run_group_tests(fork_tests, NULL, NULL) : 0);
}
