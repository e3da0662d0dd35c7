/* Options and their environment variables: what is taken, what is refused, and that each refusal
 * names its cause. */
#include "session/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "out/gz.h"

static pki_config config;

static const char *const variables[] = {"PK_RING_RECORDS",
                                        "PK_TRACE_PATH",
                                        "PK_REPORT_PATH",
                                        "PK_MEMORY_BYTES",
                                        "PK_BACKENDS",
                                        "PK_ARENA_PATH",
                                        "PK_CLOCK",
                                        "PK_TRACE_MAX_BYTES",
                                        "PK_FLUSH_MS",
                                        "PK_REPORT_THREADS",
                                        "PK_WARMUP_STEPS",
                                        "PK_RANK",
                                        "PK_WORLD_SIZE",
                                        "PK_LOG_LEVEL",
                                        "PK_LOG",
                                        "PK_CUPTI_STEPS",
                                        "PK_CUPTI_GRAPH_NODES",
                                        "PK_NVTX_CONSUME",
                                        "PK_NVTX_SHIM",
                                        "PK_GPU_CAPTURE",
                                        "PK_CUPTI_SYNC_EVENTS",
                                        "PK_HISTORY_STEPS",
                                        "PK_HISTORY_BYTES",
                                        "PK_CAPTURES_PER_HOUR",
                                        "PK_CAPTURE_BYTES_PER_HOUR",
                                        "PK_CAPTURE",
                                        "PK_CAPTURE_PATH",
                                        "PK_HANG_COMMAND",
                                        "PK_HANG_SECONDS",
                                        "PK_MACHINE_PATH",
                                        "PK_ENVIRONMENT"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    return 0;
}

static void expect_taken(const pk_options *options)
{
    pk_status status = pki_config_read(&config, options);
    if (status)
        fail_msg("%s", pk_error_message());
}

/* Refused, by a sentence that holds these two. */
static void expect_refused(const pk_options *options, const char *culprit, const char *why)
{
    assert_int_equal(pki_config_read(&config, options), PK_EINVAL);
    if (!strstr(pk_error_message(), culprit) || !strstr(pk_error_message(), why))
        fail_msg("'%s' does not say %s and %s", pk_error_message(), culprit, why);
}

static void expect_refused_variable(const char *name, const char *value, const char *why)
{
    setenv(name, value, 1);
    expect_refused(NULL, name, why);
    unsetenv(name);
}

static void defaults(void **state)
{
    const char *why_not;
    (void)state;
    expect_taken(NULL);
    assert_true(config.ring_records == 65536 && config.flush_ms == 1000 &&
                config.memory_bytes == 0);
    assert_true(config.trace_max_bytes == UINT64_MAX && config.report_threads == 0 &&
                config.warmup_steps == 0 && !config.cupti_window && !config.cupti_graph_nodes &&
                config.nvtx_consume == 0 && !config.nvtx_shim[0] && !config.gpu_capture_off &&
                !config.cupti_sync_events);
    assert_true(config.history_steps == 0 && config.history_bytes == 64 << 20 &&
                !config.history[0] && !config.capture_path[0]);
    assert_true(config.captures_per_hour == 12 && config.capture_bytes_per_hour == 256 << 20 &&
                !config.hang_command[0] && !config.hang_seconds && !config.machine[0]);
    assert_true(!config.trace[0] && !config.report[0] && !config.arena[0] && !config.backends[0]);
    assert_int_equal(config.monotonic, !pki_cycle_counter_trusted(&why_not));
    assert_true(config.world.pid > 0 && config.world.host[0] && config.world.program[0]);
    static pki_config from_empty;
    assert_int_equal(pki_config_read(&from_empty, pk_options(.flush_ms = 0)), PK_OK);
    assert_memory_equal(&from_empty, &config, sizeof config);
}

static void every_field(void **state)
{
    const char *trace = pki_gz_available() ? "t.json.gz" : "t.json";
    (void)state;
    expect_taken(pk_options(.ring_records = 128, .trace_path = trace, .report_path = "r.json",
                            .memory_bytes = 5 << 20, .backends = "cuda,nccl", .arena_path = "a",
                            .clock = "monotonic", .trace_max_bytes = 70000, .flush_ms = 20,
                            .report_threads = 1, .warmup_steps = 3, .rank = 2, .world_size = 4,
                            .log_level = PK_LOG_DEBUG, .cupti_steps = "7-9", .cupti_graph_nodes = 1,
                            .nvtx_consume = 1, .nvtx_shim = "s.so", .gpu_capture = "off",
                            .cupti_sync_events = 1, .history_steps = 9, .history_bytes = 2 << 20,
                            .captures_per_hour = 5, .capture_bytes_per_hour = 3 << 20,
                            .capture = "every=10;request", .capture_path = "c-%s-%r%%.json",
                            .hang_command = "say %r", .hang_seconds = 30,
                            .machine_path = "m-%r.txt", .peak = "bf16:1.5e12"));
    assert_true(config.ring_records == 128 && config.memory_bytes == 5 << 20);
    assert_string_equal(config.trace, trace);
    assert_string_equal(config.report, "r.json");
    assert_string_equal(config.arena, "a");
    assert_string_equal(config.backends, "cuda,nccl");
    assert_true(config.compressed == pki_gz_available());
    assert_true(config.report_json && config.monotonic == 1 && config.peak.flops == 1.5e12);
    assert_true(config.trace_max_bytes == 70000 && config.flush_ms == 20);
    assert_true(config.report_threads == 1 && config.warmup_steps == 3);
    assert_true(config.world.rank == 2 && config.world.size == 4);
    assert_true(config.cupti_window && config.cupti_first == 7 && config.cupti_last == 9);
    assert_true(config.cupti_graph_nodes == 1 && config.nvtx_consume == 1);
    assert_string_equal(config.nvtx_shim, "s.so");
    assert_true(config.gpu_capture_off && config.cupti_sync_events == 1);
    assert_true(config.history_steps == 9 && config.history_bytes == 2 << 20);
    assert_true(config.captures_per_hour == 5 && config.capture_bytes_per_hour == 3 << 20);
    assert_true(config.capture.every == 10 && config.capture.request && config.hang_seconds == 30);
    assert_string_equal(config.capture_path, "c-%s-2%%.json");
    assert_string_equal(config.hang_command, "say 2");
    assert_string_equal(config.machine, "m-2.txt");
}

static void every_variable(void **state)
{
    static const char *const values[] = {"128",
                                         "t.json",
                                         "-",
                                         "5M",
                                         "-cupti",
                                         "none",
                                         "monotonic",
                                         "1G",
                                         "20",
                                         "1",
                                         "3",
                                         "2",
                                         "4",
                                         "debug",
                                         "stderr",
                                         "12",
                                         "1",
                                         "1",
                                         "s.so",
                                         "off",
                                         "1",
                                         "9",
                                         "2M",
                                         "5",
                                         "3M",
                                         "every=10;request",
                                         "c-%s-%r%%.json",
                                         "say %r",
                                         "30",
                                         "m-%r.txt",
                                         "off"};
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i], values[i], 1);
    expect_taken(NULL);
    assert_true(config.ring_records == 128 && config.memory_bytes == 5 << 20);
    assert_string_equal(config.trace, "t.json");
    assert_string_equal(config.report, "-");
    assert_string_equal(config.arena, "none");
    assert_string_equal(config.backends, "-cupti");
    assert_true(!config.compressed && !config.report_json && config.monotonic == 1);
    assert_true(config.trace_max_bytes == 1 << 30 && config.flush_ms == 20);
    assert_true(config.report_threads == 1 && config.warmup_steps == 3);
    assert_true(config.world.rank == 2 && config.world.size == 4 && config.environment_off);
    assert_true(config.cupti_window && config.cupti_first == 12 && config.cupti_last == 12);
    assert_true(config.cupti_graph_nodes == 1 && config.nvtx_consume == 1);
    assert_string_equal(config.nvtx_shim, "s.so");
    assert_true(config.gpu_capture_off && config.cupti_sync_events == 1);
    assert_true(config.history_steps == 9 && config.history_bytes == 2 << 20);
    assert_true(config.captures_per_hour == 5 && config.capture_bytes_per_hour == 3 << 20);
    assert_true(config.capture.every == 10 && config.capture.request);
    assert_string_equal(config.capture_path, "c-%s-2%%.json");
    assert_string_equal(config.hang_command, "say 2");
    assert_int_equal(config.hang_seconds, 30);
    assert_string_equal(config.machine, "m-2.txt");
}

static void the_option_wins(void **state)
{
    (void)state;
    setenv("PK_RING_RECORDS", "256", 1);
    setenv("PK_TRACE_PATH", "environment.json", 1);
    setenv("PK_FLUSH_MS", "not a number", 1);
    setenv("PK_CLOCK", "sundial", 1);
    expect_taken(pk_options(.ring_records = 64, .trace_path = "option.json", .flush_ms = 10,
                            .clock = "monotonic"));
    assert_true(config.ring_records == 64 && config.flush_ms == 10);
    assert_string_equal(config.trace, "option.json");
    expect_taken(pk_options(.trace_path = "", .flush_ms = 10, .clock = "monotonic"));
    assert_string_equal(config.trace, ""); /* asked for none */
    assert_int_equal(config.ring_records, 256);
}

static void empty_variables_are_not_set(void **state)
{
    static pki_config plain;
    (void)state;
    assert_int_equal(pki_config_read(&plain, NULL), PK_OK);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i], "", 1);
    expect_taken(NULL);
    assert_memory_equal(&config, &plain, sizeof config);
}

static void numbers_of_variables(void **state)
{
    (void)state;
    setenv("PK_MEMORY_BYTES", "8192K", 1);
    expect_taken(NULL);
    assert_int_equal(config.memory_bytes, 8 << 20);
    setenv("PK_MEMORY_BYTES", "2G", 1);
    expect_taken(NULL);
    assert_int_equal(config.memory_bytes, (uint64_t)2 << 30);
    setenv("PK_MEMORY_BYTES", "0", 1); /* the default */
    expect_taken(NULL);
    assert_int_equal(config.memory_bytes, 0);
    static const char *const bad[] = {"x",
                                      "-1",
                                      "+64",
                                      " 64",
                                      "64 ",
                                      "6 4",
                                      "0x40",
                                      "64k",
                                      "64KB",
                                      "1e6",
                                      "64.",
                                      "M",
                                      "99999999999999999999",
                                      "17179869185G",
                                      "\xD9\xA3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused_variable("PK_RING_RECORDS", bad[i], "not a number");
}

static void bounds(void **state)
{
    (void)state;
    expect_refused(pk_options(.ring_records = 32), "ring_records", "64");
    expect_refused(pk_options(.ring_records = 65), "ring_records", "power of two");
    expect_refused(pk_options(.ring_records = 1u << 25), "ring_records", "16777216");
    expect_taken(pk_options(.ring_records = 1u << 24));
    expect_refused(pk_options(.memory_bytes = (4 << 20) - 1), "memory_bytes", "4194304");
    expect_taken(pk_options(.memory_bytes = 4 << 20));
    expect_taken(pk_options(.memory_bytes = (uint64_t)1 << 40));
    expect_refused(pk_options(.memory_bytes = ((uint64_t)1 << 40) + 1), "memory_bytes",
                   "1099511627776");
    expect_refused(pk_options(.flush_ms = 9), "flush_ms", "10");
    expect_taken(pk_options(.flush_ms = 3600000));
    expect_refused(pk_options(.flush_ms = 3600001), "flush_ms", "3600000");
    expect_refused(pk_options(.report_threads = 2), "report_threads", "1");
    expect_refused(pk_options(.trace_max_bytes = 1), "trace_max_bytes", "65536");
    expect_refused(pk_options(.warmup_steps = UINT32_MAX), "warmup_steps", "1000000");
    expect_refused(pk_options(.cupti_graph_nodes = 2), "cupti_graph_nodes", "1");
    expect_refused(pk_options(.cupti_sync_events = 2), "cupti_sync_events", "1");
    expect_refused(pk_options(.nvtx_consume = 2), "nvtx_consume", "1");
    expect_refused(pk_options(.gpu_capture = "never"), "gpu_capture", "never");
    expect_taken(pk_options(.gpu_capture = "on"));
    assert_false(config.gpu_capture_off);
    expect_refused(pk_options(.hang_seconds = 604801), "hang_seconds", "604800");
    expect_refused(pk_options(.hang_command = "date +%s"), "hang_command", "%s");
    expect_refused(pk_options(.log_level = 5), "log_level", "5");
    expect_refused_variable("PK_GPU_CAPTURE", "0", "neither on nor off");
    expect_refused_variable("PK_FLUSH_MS", "3", "10");
    expect_refused_variable("PK_RING_RECORDS", "100", "power of two");
    expect_refused_variable("PK_RING_RECORDS", "32G", "16777216");
    expect_refused_variable("PK_MEMORY_BYTES", "1K", "4194304");
    expect_refused_variable("PK_TRACE_MAX_BYTES", "1K", "65536");
    expect_refused_variable("PK_REPORT_THREADS", "yes", "not a number");
    expect_refused_variable("PK_WARMUP_STEPS", "1000001", "1000000");
}

static void paths(void **state)
{
    char wanted[PATH_MAX], pattern[PATH_MAX + 10];
    (void)state;
    expect_taken(pk_options(.trace_path = "%h_%p-%r%%.pt.trace.json", .report_path = "%r.txt",
                            .arena_path = "%p", .rank = 3, .world_size = 5));
    snprintf(wanted, sizeof wanted, "%s_%u-3%%.pt.trace.json", config.world.host, config.world.pid);
    assert_string_equal(config.trace, wanted);
    assert_string_equal(config.report, "3.txt");
    snprintf(wanted, sizeof wanted, "%u", config.world.pid);
    assert_string_equal(config.arena, wanted);
    expect_refused(pk_options(.trace_path = "run-%d.json"), "trace_path", "%d");
    expect_refused(pk_options(.report_path = "run-%s"), "report_path", "%s");
    expect_refused(pk_options(.arena_path = "%x"), "arena_path", "%x");
    expect_refused(pk_options(.trace_path = "run%"), "trace_path", "at its end");
    expect_refused_variable("PK_TRACE_PATH", "%i", "%i");
    expect_refused_variable("PK_REPORT_PATH", "%", "at its end");
    expect_refused_variable("PK_ARENA_PATH", "%q", "%q");
    memset(pattern, 'a', sizeof pattern);
    pattern[PATH_MAX - 1] = 0;
    expect_taken(pk_options(.trace_path = pattern));
    pattern[PATH_MAX - 1] = 'a';
    pattern[PATH_MAX] = 0;
    expect_refused(pk_options(.trace_path = pattern), "trace_path", "longer");
}

static void files_that_would_overwrite_each_other(void **state)
{
    (void)state;
    expect_refused(pk_options(.trace_path = "a", .report_path = "a"), "trace_path", "same");
    expect_refused(pk_options(.trace_path = "%p", .arena_path = "%p"), "trace_path", "same");
    expect_taken(pk_options(.arena_path = "none", .report_path = "none"));
}

static void clocks(void **state)
{
    const char *why_not = "";
    (void)state;
    expect_refused(pk_options(.clock = "sundial"), "clock", "sundial");
    expect_refused(pk_options(.clock = "TSC"), "clock", "TSC");
    expect_refused_variable("PK_CLOCK", "hpet", "hpet");
    bool trusted = pki_cycle_counter_trusted(&why_not);
    const char *const names[] = {"tsc", "cntvct"};
    for (int i = 0; i < 2; i++) { /* known, but perhaps not here: and then it is said why */
        bool here = trusted && strcmp(names[i], PKI_CYCLE_COUNTER_NAME) == 0;
        assert_int_equal(pki_config_read(&config, pk_options(.clock = names[i])),
                         here ? PK_OK : PK_ENOTSUP);
        assert_true(here ? config.monotonic == 0 : strlen(strchr(pk_error_message(), ':')) > 8);
    }
}

static void lists_of_backends(void **state)
{
    static const char *const good[] = {
        "cuda", "cuda,cupti,nvtx,nccl", "-cupti", "-cupti,-nccl", "none", "nvtx,"};
    static const char *const bad[] = {"all",   "cuda,opencl", "Cuda",      "cud",        "cudaa",
                                      ",cuda", "--cuda",      "none,cuda", "cuda cupti", "-"};
    char many[300] = "";
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_taken(pk_options(.backends = good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_refused(pk_options(.backends = bad[i]), "backends",
                       "cuda, cupti, nvtx, nccl and nvml");
        expect_refused_variable("PK_BACKENDS", bad[i], "cuda, cupti, nvtx, nccl and nvml");
    }
    while (strlen(many) < 280)
        strcat(many, "cuda,");
    expect_refused(pk_options(.backends = many), "backends", "longer");
}

static void windows_of_steps(void **state)
{
    static const char *const bad[] = {"-",   "-3",    "3-",  "9-7", "a",
                                      "1-b", "1-2-3", "1,2", " 1",  "99999999999999999999"};
    (void)state;
    expect_taken(pk_options(.cupti_steps = "0-18446744073709551615"));
    assert_true(config.cupti_first == 0 && config.cupti_last == UINT64_MAX);
    expect_taken(pk_options(.cupti_steps = ""));
    assert_false(config.cupti_window);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_refused(pk_options(.cupti_steps = bad[i]), "cupti_steps", "100-104");
        expect_refused_variable("PK_CUPTI_STEPS", bad[i], "100-104");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear_environment),
        cmocka_unit_test_setup(every_field, clear_environment),
        cmocka_unit_test_setup(every_variable, clear_environment),
        cmocka_unit_test_setup(the_option_wins, clear_environment),
        cmocka_unit_test_setup(empty_variables_are_not_set, clear_environment),
        cmocka_unit_test_setup(numbers_of_variables, clear_environment),
        cmocka_unit_test_setup(bounds, clear_environment),
        cmocka_unit_test_setup(paths, clear_environment),
        cmocka_unit_test_setup(files_that_would_overwrite_each_other, clear_environment),
        cmocka_unit_test_setup(clocks, clear_environment),
        cmocka_unit_test_setup(lists_of_backends, clear_environment),
        cmocka_unit_test_setup(windows_of_steps, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
