/* What devices say about themselves, through the mock in tests/fake. */
#include "document.h"
#include "session.h"
#include "valgrind.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "../fake/nvml.h"
#include "backend/nvml/reading.h"

/* ---- a session that asks the mock ---- */

/* a session that asks the mock of NVML in tests/fake, for tests. */

static fake_nvml *fake;

static void reset_fake(void)
{
    fake_device usual = {.name = "Double H1",
                         .busy = 87,
                         .memory_busy = 41,
                         .milliwatts = 345678,
                         .celsius = 66,
                         .sm_mhz = 1980,
                         .memory_mhz = 3201,
                         .used_bytes = 123456,
                         .gpm = 1,
                         .rates = {[2] = 81.5, [3] = 40, [5] = 62.25, [10] = 33, [21] = 16}};
    memset(fake, 0, sizeof *fake);
    fake->devices = 1;
    for (unsigned i = 0; i < FAKE_DEVICES; i++)
        fake->device[i] = usual;
}

static int set_up(void **state)
{
    reset_fake();
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("LOCAL_RANK");
    unsetenv("LOCAL_WORLD_SIZE");
    return enter_folder(state);
}

static int tear_down(void **state)
{
    fake_set(fake->stuck, false);
    pk_stop();
    return leave_folder(state);
}

static void start_sampling(void)
{
    assert_int_equal(
        pk_start(pk_options(.trace_path = "t.json", .report_path = "r.json", .backends = "nvml")),
        PK_OK);
}

static pk_backend_info status(void)
{
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_backend_status("nvml", &info), PK_OK);
    return info;
}

static void expect_words(const char *words)
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

static void await_rounds(unsigned device, unsigned n)
{
    unsigned before = calls(device, FAKE_REASONS);
    await(calls(device, FAKE_REASONS) >= before + n);
}

#define sampling(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* The mock in that library. NULL: it cannot be loaded, as where there is none. */
static fake_nvml *load_fake(const char *path)
{
    setenv("PK_NVML_LIBRARY", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    return library ? dlsym(library, FAKE_NVML_SCRIPT) : NULL;
}

/* ---- values ---- */

/* What arrives in trace, statistics and status. */

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

static const struct CMUnitTest nvml_tests[] = {
    sampling(a_library_of_another_kind), /* before the mock has been taken */
    sampling(before_any_session),        sampling(values_in_trace_and_report),
    sampling(energy_on_request),         sampling(held_down_clocks_are_told),
    sampling(what_is_not_supported),     sampling(sessions_one_after_the_other),
    sampling(a_session_without_it),      sampling(ranks_share_the_devices),
};

static const struct CMUnitTest fork_tests[] = {sampling(after_a_fork)};

static const struct CMUnitTest without[] = {
    cmocka_unit_test_setup_teardown(no_library, enter_folder, leave_folder)};

/* ---- when NVML fails, is slow, or does not come back ---- */

static void a_lost_device(void **state)
{
    (void)state;
    fake->devices = 2;
    start_sampling();
    await_rounds(0, 1);
    fake_set(fake->device[0].codes[FAKE_TEMPERATURE], 15);
    await(strstr(status().reason, "gpu0 was given up: GPU is lost"));
    unsigned before = calls(0, FAKE_POWER);
    await_rounds(1, 3);
    assert_int_equal(calls(0, FAKE_POWER), before);
    assert_true(status().live); /* the other one is */
    fake_set(fake->device[1].codes[FAKE_TEMPERATURE], 16);
    await(!status().live);
    assert_int_equal(pk_stop(), PK_OK);
}

static void failures_that_pass(void **state)
{
    (void)state;
    fake->device[0].codes[FAKE_POWER] = 999;
    start_sampling();
    await(strstr(status().reason, "gpu0.power every 0.4 s: Some Error")); /* but not off */
    fake_set(fake->device[0].codes[FAKE_POWER], 0);
    await(!strstr(status().reason, "Some Error"));
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("t.json");
    assert_true(count_events(doc, "C", "gpu0.power") >= 1);
    json_decref(doc);
}

static void slow_calls_are_made_more_rarely(void **state)
{
    (void)state;
    fake->device[0].slow[FAKE_POWER] = 20000;
    start_sampling();
    await(strstr(status().reason, "gpu0.power every ")); /* 0.8 s, or more where others are busy */
    assert_non_null(strstr(status().reason, " s: a call takes "));
    await(calls(0, FAKE_POWER) < calls(0, FAKE_REASONS)); /* which go on as often as before */
    assert_int_equal(pk_stop(), PK_OK);
}

static void nvml_that_is_not_ready(void **state)
{
    (void)state;
    fake->init_code = 9;
    start_sampling();
    await(!status().live);
    expect_words("nvmlInit_v2: Some Error");
    assert_int_equal(pk_stop(), PK_OK);
    fake->init_code = 0;
    fake->count_code = 999;
    start_sampling();
    await(!status().live);
    expect_words("looking for devices: Some Error");
    assert_int_equal(pk_stop(), PK_OK);
    fake->count_code = 0;
    fake->devices = 0;
    start_sampling();
    await(!status().live);
    expect_words("there is no device");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->inits, fake->shutdowns);
}

static void a_call_that_does_not_come_back(void **state)
{
    (void)state;
    fake->stuck = true;
    start_sampling();
    await(strstr(status().reason, "nvmlDeviceGetUtilizationRates has not returned for"));
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    start_sampling(); /* while it is still in there */
    expect_words("NVML has not come back from a call that the session before made");
    assert_false(status().live);
    assert_int_equal(pk_stop(), PK_OK);
    fake_set(fake->stuck, false);
    await((start_sampling(), status().live || pk_stop() != PK_OK));
    await_rounds(0, 2);
    assert_int_equal(pk_stop(), PK_OK);
}

static const struct CMUnitTest nvml_failures_tests[] = {
    sampling(a_lost_device),
    sampling(failures_that_pass),
    sampling(slow_calls_are_made_more_rarely),
    sampling(nvml_that_is_not_ready),
    sampling(a_call_that_does_not_come_back),
};

/* ---- GPM: what the device was busy with ---- */

static const json_t *load_row(const json_t *report, const char *metric, const char *kind)
{
    size_t i;
    json_t *row;
    json_array_foreach(member(member(report, "gpu_load"), "rows"), i, row)
    {
        if (strcmp(json_string_value(member(row, "metric")), metric) == 0 &&
            strcmp(json_string_value(member(row, "step_kind")), kind) == 0)
            return row;
    }
    fail_msg("the report has no row of %s in %s", metric, kind);
    return NULL;
}

static double mean_in(const json_t *report, const char *metric, const char *kind)
{
    return json_number_value(member(load_row(report, metric, kind), "mean"));
}

static void expect_near(double value, double truth, double off)
{
    if (!(value >= truth - off && value <= truth + off))
        fail_msg("%g is not %g within %g", value, truth, off);
}

static void await_samples(unsigned n)
{
    unsigned before = calls(0, FAKE_GPM);
    await(calls(0, FAKE_GPM) >= before + n);
}

static json_t *stop_and_load(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->samples, 0);
    assert_int_equal(fake->misused, 0);
    assert_int_equal(fake->device[0].too_close, 0);
    return load_document("r.json");
}

static void loads_in_trace_and_report(void **state)
{
    (void)state;
    start_sampling();
    await_samples(4);
    json_t *report = stop_and_load(), *doc = load_document("t.json");
    expect_near(mean_in(report, "sm_active", "(run)"), 81.5, 1e-9);
    expect_near(mean_in(report, "sm_occupancy", "(run)"), 40, 1e-9);
    expect_near(mean_in(report, "tensor_active", "(run)"), 62.25, 1e-9);
    expect_near(mean_in(report, "fp64_active", "(run)"), 0, 0); /* that is known, too */
    expect_near(mean_in(report, "dram_bandwidth", "(run)"), 33, 1e-9);
    expect_near(mean_in(report, "pcie_in", "(run)"), 16 * 1048576.0, 1e-3);
    expect_near(value_in(find_event(doc, "gpu0.sm_active")), 81.5, 1e-9);
    assert_string_equal(json_string_value(member(counter_in(report, "gpu0.pcie_in"), "unit")),
                        "B/s");
    assert_int_equal(count_events(doc, "C", "gpu0.tensor_active"), calls(0, FAKE_GPM) - 1);
    json_decref(doc);
    json_decref(report);
}

/* What it was told to do changes amid the run: the mean is that of all it did, but for what lies
 * between the mock's look at the clock and ours. */
static void the_mean_is_the_truth(void **state)
{
    const fake_device *d = &fake->device[0];
    double rates[] = {90, 10, 55, 0};
    (void)state;
    start_sampling();
    for (unsigned i = 0; i < 4; i++) {
        __atomic_store(&fake->device[0].rates[2], &rates[i], __ATOMIC_SEQ_CST);
        await_samples(2 + i);
    }
    json_t *report = stop_and_load();
    double truth = d->sums[2] / (double)(d->at - d->first);
    expect_near(mean_in(report, "sm_active", "(run)"), truth, 0.5);
    const json_t *row = load_row(report, "sm_active", "(run)");
    expect_near(json_number_value(member(row, "time")), (double)(d->at - d->first), 2e7);
    assert_int_equal(json_integer_value(member(row, "intervals")), calls(0, FAKE_GPM) - 1);
    json_decref(report);
}

/* Values that wrapped, are none, or are refused, one by one: the others stand. */
static void metrics_that_fail(void **state)
{
    fake_device *d = &fake->device[0];
    (void)state;
    d->metric_codes[60] = d->metric_codes[61] = 3;
    d->wrong[3] = 0.0 / 0.0;
    d->wrong[5] = 4294967295.0;
    d->wrong[10] = -1;
    d->wrong[21] = 1.8e19;
    start_sampling();
    await_samples(3);
    expect_words("; gpu0: GPM without nvlink_in (Not Supported), nvlink_out (Not Supported)");
    expect_words("; gpu0: GPM gave ");
    json_t *report = stop_and_load();
    expect_near(mean_in(report, "sm_active", "(run)"), 81.5, 1e-9);
    const json_t *rows = member(member(report, "gpu_load"), "rows");
    assert_int_equal(json_array_size(rows), 5); /* sm, three pipes, PCIe out */
    json_decref(report);
}

static void a_device_without_gpm(void **state)
{
    (void)state;
    fake->device[0].gpm = 0;
    start_sampling();
    await_rounds(0, 3);
    expect_words("gpu0; gpu0: no GPM (Not Supported)");
    json_t *report = stop_and_load();
    assert_null(json_object_get(report, "gpu_load"));
    assert_int_equal(calls(0, FAKE_GPM), 0);
    json_decref(report);
}

/* The time around the failure is in no interval. */
static void samples_that_fail(void **state)
{
    fake_device *d = &fake->device[0];
    (void)state;
    start_sampling();
    await_samples(3);
    fake_set(d->codes[FAKE_GPM], 999);
    await_samples(1);
    fake_set(d->codes[FAKE_GPM], 0);
    await_samples(3);
    fake_set(d->gpm_code, 999);
    await_samples(2);
    fake_set(d->gpm_code, 0);
    await_samples(2);
    json_t *report = stop_and_load();
    expect_near(mean_in(report, "sm_active", "(run)"), 81.5, 1e-9);
    const json_t *row = load_row(report, "sm_active", "(run)");
    assert_true(json_number_value(member(row, "time")) < (double)(d->at - d->first) - 3e8);
    json_decref(report);
}

static void a_slice_of_a_device(void **state)
{
    (void)state;
    fake->device[6].uuid = "MIG-dd55";
    fake->device[6].rates[2] = 12;
    fake->device[6].codes[FAKE_UTILIZATION] = 3;
    setenv("CUDA_VISIBLE_DEVICES", "MIG-dd55", 1);
    start_sampling();
    await(calls(6, FAKE_GPM) >= 3);
    json_t *report = stop_and_load();
    expect_near(mean_in(report, "sm_active", "(run)"), 12, 1e-9);
    assert_int_equal(calls(0, FAKE_GPM), 0);
    json_decref(report);
}

/* One long step of each kind: none of it is given to the other. What is of both is of none. */
static void by_kind_of_step(void **state)
{
    double low = 5, high = 95;
    (void)state;
    start_sampling();
    await_samples(10);
    pk_step(1);
    __atomic_store(&fake->device[0].rates[2], &low, __ATOMIC_SEQ_CST);
    pk_step_kind("checkpoint");
    await_samples(10);
    pk_step(1);
    __atomic_store(&fake->device[0].rates[2], &high, __ATOMIC_SEQ_CST);
    await_samples(2);
    json_t *report = stop_and_load();
    expect_near(mean_in(report, "sm_active", ""), 81.5, 1e-9);
    expect_near(mean_in(report, "sm_active", "checkpoint"), 5, 1e-9);
    assert_true(json_integer_value(member(member(report, "gpu_load"), "mixed")) >= 2);
    const json_t *steps = member(load_row(report, "sm_active", "(run)"), "per_step");
    assert_int_equal(json_integer_value(member(steps, "count")), 1);
    expect_near(json_number_value(member(steps, "mean")), 81.5, 1e-9);
    json_decref(report);
}

static void loads_in_words(void **state)
{
    char text[16384] = "";
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.report_path = "r.txt", .tuning = "peak=1e12", .backends = "nvml")),
        PK_OK);
    await_samples(5);
    pk_step_add_flops(1e9, 0);
    pk_step(1);
    await_samples(2);
    assert_int_equal(pk_stop(), PK_OK);
    FILE *file = fopen("r.txt", "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "GPU 0: what it was busy with"));
    assert_non_null(strstr(text, "SMs active                    81.5 %    81.5 %\n"));
    assert_non_null(strstr(text, "PCIe in                    16.8 MB/s 16.8 MB/s\n"));
    assert_null(strstr(text, "NVLink in"));
    assert_non_null(strstr(text, "tensor cores active 62.3 %, SMs 81.5 % of the time."));
}

static const struct CMUnitTest nvml_gpm_tests[] = {
    sampling(loads_in_words),        sampling(loads_in_trace_and_report),
    sampling(the_mean_is_the_truth), sampling(metrics_that_fail),
    sampling(a_device_without_gpm),  sampling(samples_that_fail),
    sampling(a_slice_of_a_device),   sampling(by_kind_of_step),
};

/* ---- what devices say of themselves ---- */

static const json_t *said_in(const json_t *report, const char *text)
{
    size_t i;
    json_t *row;
    json_array_foreach(member(member(report, "gpu_events"), "rows"), i, row)
    {
        if (strcmp(json_string_value(member(row, "text")), text) == 0)
            return row;
    }
    fail_msg("no device said %s", text);
    return NULL;
}

static void an_xid_during_the_run(void **state)
{
    (void)state;
    fake->devices = 2;
    start_sampling();
    await(fake_get(fake->device[1].watched));
    for (unsigned i = 0; i < 2; i++) {
        fake_set(fake->device[1].xid, 79u);
        await(fake_get(fake->device[1].xid) == 0);
    }
    await_rounds(0, 2);
    json_t *report = stop_and_load(), *doc = load_document("t.json");
    const json_t *row = said_in(report, "XID 79: the device has fallen off the bus");
    assert_int_equal(json_integer_value(member(row, "device")), 1);
    assert_int_equal(json_integer_value(member(row, "number")), 79);
    assert_int_equal(json_integer_value(member(row, "count")), 2);
    assert_int_equal(count_events(doc, "X", "XID 79: the device has fallen off the bus"), 2);
    size_t i, found = 0;
    json_t *verdict;
    json_array_foreach(member(report, "verdicts"), i, verdict) found +=
        strcmp(json_string_value(member(verdict, "name")), "gpu-error") == 0;
    assert_int_equal(found, 1);
    assert_int_equal(fake->sets, 0);
    json_decref(doc);
    json_decref(report);
}

static void xids_that_are_refused(void **state)
{
    (void)state;
    fake->device[0].event_code = 3;
    start_sampling();
    await_rounds(0, 2);
    expect_words("; XID errors are not told (Not Supported)");
    json_t *report = stop_and_load();
    assert_null(json_object_get(report, "gpu_events"));
    assert_int_equal(fake->sets, 0);
    assert_int_equal(fake->looks, 0);
    json_decref(report);
}

static void clocks_and_rows(void **state)
{
    (void)state;
    fake->device[0].rows[1] = 3;
    fake->device[0].rows[2] = 1;
    fake->device[0].reasons = 0x4;
    start_sampling();
    await_rounds(0, 3);
    fake_set(fake->device[0].reasons, 0ull);
    await_rounds(0, 2);
    fake_set(fake->device[0].reasons, 0x40ull);
    await_rounds(0, 3);
    json_t *report = stop_and_load(), *doc = load_document("t.json");
    const json_t *row = said_in(report, "clocks held down by the power cap");
    assert_int_equal(json_integer_value(member(row, "count")), 1);
    assert_true(json_integer_value(member(row, "time")) > 50000000);
    said_in(report, "clocks held down by temperature (hardware)"); /* until the end */
    said_in(report, "a row of memory is to be replaced: it waits for a reset");
    assert_int_equal(count_events(doc, "X", "clocks held down by the power cap"), 1);
    expect_sample(doc, "gpu0.remapped_rows", 3);
    json_decref(doc);
    json_decref(report);
}

static const struct CMUnitTest nvml_event_tests[] = {
    sampling(an_xid_during_the_run), sampling(xids_that_are_refused), sampling(clocks_and_rows)};

/* ---- which devices are the process's, by what CUDA_VISIBLE_DEVICES and launchers say ---- */

static const pki_nvml *nvml;

static int nvml_visible_set_up(void **state)
{
    static const char *const uuids[] = {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"};
    (void)state;
    memset(fake, 0, sizeof *fake);
    fake->devices = 4;
    for (unsigned i = 0; i < 4; i++)
        fake->device[i].uuid = uuids[i];
    fake->device[6].uuid = "MIG-dd55";
    return nvml->init();
}

static int nvml_visible_tear_down(void **state)
{
    (void)state;
    return nvml->shutdown();
}

/* The devices that are found, as "ordinal:device " each. */
static void expect(const pki_nvml_wish *wish, const char *wanted)
{
    pki_nvml_visible v;
    char text[200] = "";
    assert_int_equal(pki_nvml_find(nvml, wish, &v), PKI_NVML_OK);
    for (unsigned i = 0; i < v.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u:%d ", v.devices[i].ordinal,
                 (int)((fake_device *)(void *)v.devices[i].handle - fake->device));
    assert_string_equal(text, wanted);
}

static void expect_list(const char *list, const char *wanted)
{
    expect(&(pki_nvml_wish){.list = list}, wanted);
}

static void all_devices(void **state)
{
    (void)state;
    expect_list(NULL, "0:0 1:1 2:2 3:3 ");
    fake->device[1].open_code = PKI_NVML_NO_PERMISSION; /* CUDA does not count it, either */
    expect_list(NULL, "0:0 1:2 2:3 ");
    expect_list("1", "0:2 ");
}

static void lists(void **state)
{
    (void)state;
    expect_list("2,0", "0:2 1:0 ");
    expect_list(" 3 , 1", "0:3 1:1 ");
    expect_list("0,9,1", "0:0 "); /* what comes behind something that is none does not count */
    expect_list("0,-1,1", "0:0 ");
    expect_list("-1", "");
    expect_list("", "");
    expect_list("NoDevFiles", "");
    expect_list("1x", "");
    expect_list("99999999999999999999", "");
}

static void uuids(void **state)
{
    (void)state;
    expect_list("GPU-bb33,GPU-aa11", "0:2 1:0 ");
    expect_list("GPU-c,0", "0:3 1:0 ");
    expect_list("GPU-a", ""); /* fits two */
    expect_list("MIG-dd55", "0:6 ");
    expect_list("MIG-dd", "");
}

static void models_that_differ(void **state)
{
    pki_nvml_visible v;
    (void)state;
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = NULL}, &v);
    assert_false(v.doubtful);
    fake->device[2].name = "another one";
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = NULL}, &v);
    assert_true(v.doubtful);
    pki_nvml_find(nvml, &(pki_nvml_wish){.order = "PCI_BUS_ID"}, &v);
    assert_false(v.doubtful);
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = "GPU-bb33"}, &v);
    assert_false(v.doubtful);
}

static void ranks_of_one_node(void **state)
{
    (void)state;
    expect(&(pki_nvml_wish){.local_rank = 1, .local_size = 2}, "1:1 3:3 ");
    expect(&(pki_nvml_wish){.local_rank = 3, .local_size = 4}, "3:3 ");
    /* More ranks than devices, or a list of one's own: nobody else can be relied on. */
    expect(&(pki_nvml_wish){.local_rank = 5, .local_size = 8}, "0:0 1:1 2:2 3:3 ");
    expect(&(pki_nvml_wish){.list = "2,3", .local_rank = 1, .local_size = 2}, "0:2 1:3 ");
    fake->device[0].open_code = PKI_NVML_NO_PERMISSION;
    expect(&(pki_nvml_wish){.local_rank = 1, .local_size = 2}, "0:1 1:2 2:3 ");
}

#define visible(test)                                                                              \
    cmocka_unit_test_setup_teardown(test, nvml_visible_set_up, nvml_visible_tear_down)

static int open_library(void **state)
{
    char reason[200] = "";
    (void)state;
    nvml = pki_nvml_open(reason, sizeof reason);
    if (!nvml)
        print_message("%s\n", reason);
    return nvml ? 0 : -1;
}

static const struct CMUnitTest nvml_visible_tests[] = {
    visible(all_devices),       visible(lists), visible(uuids), visible(models_that_differ),
    visible(ranks_of_one_node),
};

/* test_nvml LIBRARY: the mock, or a file that is not there. */
int main(int argc, char **argv)
{
    bool forks = !strstr(SANITIZERS, "thread") && !getenv("PK_TEST_QEMU") && !under_valgrind();
    if (argc != 2)
        return 2;
    fake = load_fake(argv[1]);
    if (!fake)
        return cmocka_run_group_tests(without, NULL, NULL);
    int failed = cmocka_run_group_tests(nvml_tests, NULL, NULL);
    failed += forks ? cmocka_run_group_tests(fork_tests, NULL, NULL) : 0;
    failed += cmocka_run_group_tests(nvml_failures_tests, NULL, NULL);
    failed += cmocka_run_group_tests(nvml_gpm_tests, NULL, NULL);
    failed += cmocka_run_group_tests(nvml_event_tests, NULL, NULL);
    return failed + cmocka_run_group_tests(nvml_visible_tests, open_library, NULL);
}
