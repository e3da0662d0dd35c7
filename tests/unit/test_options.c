/* Options and their environment variables. */
#include <pk/gpu.h>
#include <pk/pk.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "../kit/tuning.h"
#include "base/log.h"
#include "out/gz.h"
#include "session/options/config.h"

/* ---- options and their environment as a session would take them ---- */

/* options and their environment as a session would take them, for tests. */

static pki_config config;

/* But for those that tell tests what they run on. */
static bool is_option(const char *variable)
{
    return strncmp(variable, "PK_", 3) == 0 && strncmp(variable, "PK_TEST_", 8) != 0;
}

static int clear_environment(void **state)
{
    (void)state;
    for (char **at = environ; at && *at;) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (is_option(name) && unsetenv(name) == 0)
            at = environ; /* all of them have moved */
        else
            at++;
    }
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    return 0;
}

static void expect_taken(const pk_options *options)
{
    if (pki_config_read(&config, options))
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

/* ---- options and their environment variables ---- */

/* Each alone, both, and neither. */

/* Each with a value that is not the default. */
static const char *const variables[][2] = {
    {"PK_RING_RECORDS", "128"},
    {"PK_TRACE_PATH", "t.json"},
    {"PK_REPORT_PATH", "-"},
    {"PK_MEMORY_BYTES", "5M"},
    {"PK_BACKENDS", "-cupti"},
    {"PK_ARENA_PATH", "none"},
    {"PK_CLOCK", "monotonic"},
    {"PK_TRACE_MAX_BYTES", "1G"},
    {"PK_FLUSH_MS", "20"},
    {"PK_REPORT_THREADS", "1"},
    {"PK_WARMUP_STEPS", "3"},
    {"PK_RANK", "2"},
    {"PK_WORLD_SIZE", "4"},
    {"PK_LOG_LEVEL", "debug"},
    {"PK_LOG", "stderr"},
    {"PK_CUPTI_STEPS", "12"},
    {"PK_CUPTI_GRAPH_NODES", "1"},
    {"PK_NVTX_CONSUME", "1"},
    {"PK_NVTX_SHIM", "s.so"},
    {"PK_GPU_GRAPHS", "0"},
    {"PK_CUPTI_SYNC_EVENTS", "1"},
    {"PK_HISTORY_STEPS", "9"},
    {"PK_HISTORY_BYTES", "2M"},
    {"PK_CAPTURES_PER_HOUR", "5"},
    {"PK_CAPTURE_BYTES_PER_HOUR", "3M"},
    {"PK_CAPTURE", "every=10;request"},
    {"PK_CAPTURE_PATH", "c-%s-%r%%.json"},
    {"PK_HANG_COMMAND", "say %r"},
    {"PK_HANG_SECONDS", "30"},
    {"PK_MACHINE_PATH", "m-%r.txt"},
    {"PK_ENVIRONMENT", "0"},
};

static void defaults(void **state)
{
    const char *why_not;
    (void)state;
    expect_taken(NULL);
    assert_true(config.ring_records == 65536 && config.flush_ms == 1000 &&
                config.memory_bytes == 0);
    assert_true(config.trace_max_bytes == UINT64_MAX && config.report_threads == 0 &&
                config.warmup_steps == 0 && !config.cupti_window && !config.cupti_graph_nodes &&
                config.nvtx_consume == 0 && !config.nvtx_shim[0] && config.gpu_graphs &&
                !config.cupti_sync_events);
    assert_true(config.history_steps == 0 && config.history_bytes == 64 << 20 &&
                !config.history[0] && !config.capture_path[0]);
    assert_true(config.captures_per_hour == 12 && config.capture_bytes_per_hour == 256 << 20 &&
                !config.hang_command[0] && !config.hang_seconds && !config.machine[0]);
    assert_true(!config.trace[0] && !config.report[0] && !config.arena[0] && !config.backends[0]);
    assert_int_equal(config.monotonic, !pki_cycle_counter_trusted(&why_not));
    assert_true(config.world.pid > 0 && config.world.host[0] && config.world.program[0]);
    static pki_config from_empty;
    assert_int_equal(pki_config_read(&from_empty, pk_options(.tuning = "flush_ms=0")), PK_OK);
    assert_memory_equal(&from_empty, &config, sizeof config);
}

static void every_field(void **state)
{
    const char *trace = pki_gz_available() ? "t.json.gz" : "t.json";
    (void)state;
    expect_taken(
        pk_options(.trace_path = trace, .report_path = "r.json", .memory_bytes = 5 << 20,
                   .backends = "cuda,nccl", .warmup_steps = 3, .rank = 2, .world_size = 4,
                   .log_level = PK_LOG_DEBUG, .history_steps = 9, .capture = "every=10;request",
                   .capture_path = "c-%s-%r%%.json", .hang_command = "say %r", .hang_seconds = 30,
                   .tuning = "ring_records=128,arena_path=a,clock=monotonic,trace_max_bytes=70000,"
                             "flush_ms=20,report_threads=1,cupti_steps=7-9,cupti_graph_nodes=1,"
                             "nvtx_consume=1,nvtx_shim=s.so,gpu_graphs=0,cupti_sync_events=1,"
                             "history_bytes=2M,captures_per_hour=5,capture_bytes_per_hour=3M,"
                             "machine_path=m-%r.txt,peak=bf16:1.5e12"));
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
    assert_true(!config.gpu_graphs && config.cupti_sync_events == 1);
    assert_true(config.history_steps == 9 && config.history_bytes == 2 << 20);
    assert_true(config.captures_per_hour == 5 && config.capture_bytes_per_hour == 3 << 20);
    assert_true(config.capture.every == 10 && config.capture.request && config.hang_seconds == 30);
    assert_string_equal(config.capture_path, "c-%s-2%%.json");
    assert_string_equal(config.hang_command, "say 2");
    assert_string_equal(config.machine, "m-2.txt");
}

static void every_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 1);
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
    assert_true(!config.gpu_graphs && config.cupti_sync_events == 1);
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
    expect_taken(pk_options(.trace_path = "option.json",
                            .tuning = "ring_records=64,flush_ms=10,clock=monotonic"));
    assert_true(config.ring_records == 64 && config.flush_ms == 10);
    assert_string_equal(config.trace, "option.json");
    expect_taken(pk_options(.trace_path = "", .tuning = "flush_ms=10,clock=monotonic"));
    assert_string_equal(config.trace, ""); /* asked for none */
    assert_int_equal(config.ring_records, 256);
}

static void empty_variables_are_not_set(void **state)
{
    static pki_config plain;
    (void)state;
    assert_int_equal(pki_config_read(&plain, NULL), PK_OK);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], "", 1);
    expect_taken(NULL);
    assert_memory_equal(&config, &plain, sizeof config);
}

/* Whoever starts the program wins over its code, if asked to: each field is set to what would be
 * refused, and only its variable cures that or wins. */
static void override(void **state)
{
    (void)state;
    setenv("PK_OVERRIDE", "1", 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 1);
    expect_taken(NULL);
    static pki_config by_environment;
    by_environment = config;
    expect_taken(
        pk_options(.trace_path = "u.json", .report_path = "r.json", .memory_bytes = 6 << 20,
                   .backends = "cuda,nccl", .warmup_steps = 4, .rank = 0, .world_size = 3,
                   .log_level = PK_LOG_ERROR, .history_steps = 8, .capture = "every=11",
                   .capture_path = "d-%s.json", .hang_command = "tell", .hang_seconds = 31,
                   .tuning = "ring_records=256,arena_path=a,clock=tsc,trace_max_bytes=70000,"
                             "flush_ms=30,report_threads=1,cupti_steps=7-9,nvtx_shim=t.so,"
                             "gpu_graphs=1,history_bytes=3M,captures_per_hour=6,"
                             "capture_bytes_per_hour=4M,machine_path=n.txt"));
    assert_memory_equal(&config, &by_environment, sizeof config);
    unsetenv("PK_TRACE_PATH");
    expect_taken(pk_options(.trace_path = "u.json"));
    assert_string_equal(config.trace, "u.json"); /* what the environment is silent about */
    setenv("PK_OVERRIDE", "0", 1);
    expect_taken(pk_options(.tuning = "flush_ms=30"));
    assert_int_equal(config.flush_ms, 30);
}

static const struct CMUnitTest options_tests[] = {
    cmocka_unit_test_setup(defaults, clear_environment),
    cmocka_unit_test_setup(every_field, clear_environment),
    cmocka_unit_test_setup(every_variable, clear_environment),
    cmocka_unit_test_setup(override, clear_environment),
    cmocka_unit_test_setup(the_option_wins, clear_environment),
    cmocka_unit_test_setup(empty_variables_are_not_set, clear_environment),
};

/* ---- what options and variables may hold ---- */

/* What is taken, what is refused, and that each refusal names its cause. */

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
    expect_refused(pk_options(.tuning = "ring_records=32"), "ring_records", "64");
    expect_refused(pk_options(.tuning = "ring_records=65"), "ring_records", "power of two");
    expect_refused(pk_options(.tuning = "ring_records=32M"), "ring_records", "16777216");
    expect_taken(pk_options(.tuning = "ring_records=16M"));
    expect_refused(pk_options(.memory_bytes = (4 << 20) - 1), "memory_bytes", "4194304");
    expect_taken(pk_options(.memory_bytes = 4 << 20));
    expect_taken(pk_options(.memory_bytes = (uint64_t)1 << 40));
    expect_refused(pk_options(.memory_bytes = ((uint64_t)1 << 40) + 1), "memory_bytes",
                   "1099511627776");
    expect_refused(pk_options(.tuning = "flush_ms=9"), "flush_ms", "10");
    expect_taken(pk_options(.tuning = "flush_ms=3600000"));
    expect_refused(pk_options(.tuning = "flush_ms=3600001"), "flush_ms", "3600000");
    expect_refused(pk_options(.tuning = "report_threads=2"), "report_threads", "1");
    expect_refused(pk_options(.tuning = "trace_max_bytes=1"), "trace_max_bytes", "65536");
    expect_refused(pk_options(.warmup_steps = UINT32_MAX), "warmup_steps", "1000000");
    expect_refused(pk_options(.tuning = "cupti_graph_nodes=2"), "cupti_graph_nodes", "1");
    expect_refused(pk_options(.tuning = "cupti_sync_events=2"), "cupti_sync_events", "1");
    expect_refused(pk_options(.tuning = "nvtx_consume=2"), "nvtx_consume", "1");
    expect_refused(pk_options(.tuning = "gpu_graphs=never"), "gpu_graphs", "never");
    expect_taken(pk_options(.tuning = "gpu_graphs=1"));
    assert_true(config.gpu_graphs);
    expect_refused(pk_options(.hang_seconds = 604801), "hang_seconds", "604800");
    expect_refused(pk_options(.hang_command = "date +%s"), "hang_command", "%s");
    expect_refused(pk_options(.log_level = 5), "log_level", "5");
    expect_refused_variable("PK_GPU_GRAPHS", "off", "neither 0 nor 1");
    expect_refused_variable("PK_FLUSH_MS", "3", "10");
    expect_refused_variable("PK_RING_RECORDS", "100", "power of two");
    expect_refused_variable("PK_RING_RECORDS", "32G", "16777216");
    expect_refused_variable("PK_MEMORY_BYTES", "1K", "4194304");
    expect_refused_variable("PK_TRACE_MAX_BYTES", "1K", "65536");
    expect_refused_variable("PK_REPORT_THREADS", "yes", "neither 0 nor 1");
    expect_refused_variable("PK_WARMUP_STEPS", "1000001", "1000000");
}

static void paths(void **state)
{
    char wanted[PATH_MAX], pattern[PATH_MAX + 10];
    (void)state;
    expect_taken(pk_options(.trace_path = "%h_%p-%r%%.pt.trace.json", .report_path = "%r.txt",
                            .rank = 3, .world_size = 5, .tuning = "arena_path=%p"));
    snprintf(wanted, sizeof wanted, "%s_%u-3%%.pt.trace.json", config.world.host, config.world.pid);
    assert_string_equal(config.trace, wanted);
    assert_string_equal(config.report, "3.txt");
    snprintf(wanted, sizeof wanted, "%u", config.world.pid);
    assert_string_equal(config.arena, wanted);
    expect_refused(pk_options(.trace_path = "run-%d.json"), "trace_path", "%d");
    expect_refused(pk_options(.report_path = "run-%s"), "report_path", "%s");
    expect_refused(pk_options(.tuning = "arena_path=%x"), "arena_path", "%x");
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
    expect_refused(pk_options(.trace_path = "%p", .tuning = "arena_path=%p"), "trace_path", "same");
    expect_taken(pk_options(.report_path = "none", .tuning = "arena_path=none"));
}

static void clocks(void **state)
{
    const char *why_not = "";
    (void)state;
    expect_refused(pk_options(.tuning = "clock=sundial"), "clock", "sundial");
    expect_refused(pk_options(.tuning = "clock=TSC"), "clock", "TSC");
    expect_refused_variable("PK_CLOCK", "hpet", "hpet");
    bool trusted = pki_cycle_counter_trusted(&why_not);
    assert_true(pki_cycle_counter_constant() || !trusted);
    const char *const names[] = {"tsc", "cntvct"};
    for (int i = 0; i < 2; i++) { /* known, but perhaps not here: and then it is said why */
        bool here = pki_cycle_counter_constant() && strcmp(names[i], PKI_CYCLE_COUNTER_NAME) == 0;
        assert_int_equal(
            pki_config_read(&config, pk_options(.tuning = kit_tuning("clock=%s", names[i]))),
            here ? PK_OK : PK_ENOTSUP);
        assert_true(here ? config.monotonic == 0 : strlen(strchr(pk_error_message(), ':')) > 8);
        assert_true(!here || trusted == !config.clock_reason);
    }
    assert_int_equal(pki_config_read(&config, pk_options(.tuning = "clock=monotonic")), PK_OK);
    assert_true(config.monotonic && !config.clock_reason);
    assert_int_equal(pki_config_read(&config, pk_options()), PK_OK);
    assert_true(config.monotonic ? config.clock_reason == why_not : !config.clock_reason);
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
    expect_taken(pk_options(.tuning = "cupti_steps=0-18446744073709551615"));
    assert_true(config.cupti_first == 0 && config.cupti_last == UINT64_MAX);
    expect_taken(pk_options(.tuning = "cupti_steps="));
    assert_false(config.cupti_window);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_refused(pk_options(.tuning = kit_tuning("cupti_steps='%s'", bad[i])), "cupti_steps",
                       "100-104");
        expect_refused_variable("PK_CUPTI_STEPS", bad[i], "100-104");
    }
}

static const struct CMUnitTest options_values_tests[] = {
    cmocka_unit_test_setup(numbers_of_variables, clear_environment),
    cmocka_unit_test_setup(bounds, clear_environment),
    cmocka_unit_test_setup(paths, clear_environment),
    cmocka_unit_test_setup(files_that_would_overwrite_each_other, clear_environment),
    cmocka_unit_test_setup(clocks, clear_environment),
    cmocka_unit_test_setup(lists_of_backends, clear_environment),
    cmocka_unit_test_setup(windows_of_steps, clear_environment),
};

/* ---- the structs that callers size ---- */

/* The structs that callers size, the log that they ask for, and which rank of which job this is. */

static pki_config options_struct_config;

static const char *const launchers[][2] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "PMIX_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PALS_RANKID", "PALS_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};
#define LAUNCHERS (sizeof launchers / sizeof *launchers)

static int options_struct_clear_environment(void **state)
{
    static const char *const ours[] = {"PK_RANK", "PK_WORLD_SIZE", "PK_LOG", "PK_LOG_LEVEL",
                                       "PK_BACKENDS"};
    (void)state;
    for (size_t i = 0; i < LAUNCHERS; i++) {
        unsetenv(launchers[i][0]);
        unsetenv(launchers[i][1]);
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        unsetenv(ours[i]);
    return 0;
}

static int stop_session(void **state)
{
    (void)state;
    pk_stop();
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    return 0;
}

/* -- sizes -- */

typedef struct tomorrow {
    pk_options known;
    uint64_t unknown[4];
} tomorrow;

static pk_status read_as(const void *options)
{
    return pki_config_read(&options_struct_config, options);
}

static void larger_structs(void **state)
{
    tomorrow t;
    (void)state;
    memset(&t, 0, sizeof t);
    t.known.size = sizeof t;
    t.known.tuning = "flush_ms=77";
    assert_int_equal(read_as(&t), PK_OK);
    assert_int_equal(options_struct_config.flush_ms, 77);
    for (size_t i = 0; i < sizeof t.unknown;
         i++) { /* any byte of it is a wish that would be lost */
        ((char *)t.unknown)[i] = 1;
        assert_int_equal(read_as(&t), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "does not know"));
        ((char *)t.unknown)[i] = 0;
    }
    t.unknown[3] = 1;
    t.known.size = sizeof t - 8; /* outside what it says it is */
    assert_int_equal(read_as(&t), PK_OK);
}

static void smaller_structs(void **state)
{
    pk_options o;
    (void)state;
    memset(&o, 0xFF, sizeof o); /* what lies beyond the size is not looked at */
    o.size = offsetof(pk_options, report_path);
    o.trace_path = "t.json";
    assert_int_equal(read_as(&o), PK_OK);
    assert_string_equal(options_struct_config.trace, "t.json");
    assert_true(options_struct_config.flush_ms == 1000 && !options_struct_config.report[0]);
}

static void sizes_that_no_struct_has(void **state)
{
    static const uint32_t bad[] = {
        0, 4, 8, 12, 15, 17, sizeof(pk_options) - 4, sizeof(pk_options) + 1, 65544, UINT32_MAX};
    pk_options o;
    (void)state;
    memset(&o, 0, sizeof o);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.size = bad[i];
        assert_int_equal(read_as(&o), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "size"));
    }
}

static void counts_of_any_size(void **state)
{
    pk_counts counts;
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    {
        PK_REGION_SCOPE_NAMED("one");
    }
    memset(&counts, 0xEE, sizeof counts);
    counts.size = offsetof(pk_counts, recorded);
    assert_int_equal((pk_get_counts)(&counts), PK_OK);
    assert_true(counts.begun == 1 && counts.threads == 1 &&
                counts.size == offsetof(pk_counts, recorded));
    assert_int_equal(counts.recorded, 0xEEEEEEEEEEEEEEEEu); /* not touched */
    static const uint32_t bad[] = {0, 7, sizeof(pk_counts) + 8};
    for (size_t i = 0; i < 3; i++) {
        counts.size = bad[i];
        assert_int_equal((pk_get_counts)(&counts), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "pk_counts.size"));
    }
    assert_int_equal((pk_get_counts)(NULL), PK_EINVAL);
    assert_int_equal(pk_region_stats(NULL, NULL), PK_EINVAL);
    assert_int_equal(pk_step_stats(NULL), PK_EINVAL);
}

/* The functions themselves, as other languages call them. */
static void stats_of_any_size(void **state)
{
    static pk_stats stats;
    pk_region *one = pk_region_named("one");
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    {
        PK_REGION_SCOPE(*one);
    }
    memset(&stats, 0xEE, sizeof stats);
    stats.size = offsetof(pk_stats, buckets);
    assert_int_equal((pk_region_stats)(one, &stats), PK_OK);
    assert_true(stats.count == 1 && stats.sum == stats.max && stats.spare[3] == 0);
    assert_int_equal(stats.size, offsetof(pk_stats, buckets));
    assert_int_equal(stats.buckets[0], 0xEEEEEEEEEEEEEEEEu); /* not touched */
    assert_int_equal(pk_stats_quantile(&stats, 0.5), 0);
    memset(&stats, 0xEE, sizeof stats);
    assert_int_equal(pk_region_stats(one, &stats), PK_OK); /* the macro knows the size */
    assert_true(stats.size == sizeof stats && stats.count == 1 && stats.buckets[0] <= 1);
    assert_int_equal(pk_stats_quantile(&stats, 0.5), stats.max);
    static const uint32_t bad[] = {0, 7, sizeof stats + 8};
    for (size_t i = 0; i < 3; i++) {
        stats.size = bad[i];
        assert_int_equal((pk_region_stats)(one, &stats), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "pk_stats.size"));
        assert_int_equal((pk_step_stats)(&stats), PK_EINVAL);
        assert_int_equal((pk_region_gpu_stats)(one, &stats), PK_EINVAL);
    }
}

/* What pk_stats_quantile says of a copy, without a copy. */
static void a_quantile_without_a_copy(void **state)
{
    static const double quantiles[] = {-1, 0, 0.25, 0.5, 0.99, 1, 2};
    static pk_stats stats;
    static pk_region many = PK_REGION("many"), never = PK_REGION("never");
    uint64_t ns = 7;
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    for (int i = 0; i < 3000; i++) {
        PK_REGION_SCOPE(many);
        for (volatile int turns = i; turns > 0; turns--)
            ;
    }
    assert_int_equal(pk_region_stats(&many, &stats), PK_OK);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        assert_int_equal(pk_region_quantile(&many, quantiles[i], &ns), PK_OK);
        assert_int_equal(ns, pk_stats_quantile(&stats, quantiles[i]));
    }
    assert_true(ns == stats.max && ns > 0);
    assert_int_equal(pk_region_quantile(&never, 0.5, &ns), PK_ENOENT);
    assert_int_equal(ns, 0);
    assert_int_equal(pk_region_quantile(&many, 0.5, NULL), PK_EINVAL);
    assert_int_equal(pk_region_quantile(NULL, 0.5, &ns), PK_EINVAL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_region_quantile(&many, 1, &ns), PK_OK);
    assert_int_equal(ns, stats.max);
}

/* -- the log -- */

static char heard[2000];

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)level;
    assert_ptr_equal(user, heard);
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static void the_log_hears_what_was_refused(void **state)
{
    (void)state;
    heard[0] = 0;
    assert_int_equal(
        pk_start(pk_options(.log = listen, .log_user = heard, .tuning = "ring_records=3")),
        PK_EINVAL);
    assert_non_null(strstr(heard, "ring_records"));
    heard[0] = 0;
    pk_stop(); /* that start has failed: nobody listens any more */
    assert_string_equal(heard, "");
}

static void the_log_ends_with_the_session(void **state)
{
    (void)state;
    heard[0] = 0;
    assert_int_equal(pk_start(pk_options(.backends = "none", .log = listen, .log_user = heard,
                                         .log_level = PK_LOG_INFO)),
                     PK_OK);
    assert_non_null(strstr(heard, pk_version()));
    assert_int_equal(pk_start(pk_options(.log = NULL)), PK_EBUSY);
    assert_non_null(strstr(heard, "already started"));
    assert_int_equal(pk_stop(), PK_OK);
    heard[0] = 0;
    assert_int_equal(pk_stop(), PK_EOFF);
    assert_string_equal(heard, "");
}

static void log_of_the_environment(void **state)
{
    (void)state;
    setenv("PK_LOG", "file.txt", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_LOG=file.txt"));
    setenv("PK_LOG", "stderr", 1);
    setenv("PK_LOG_LEVEL", "loud", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_LOG_LEVEL=loud"));
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        setenv("PK_LOG_LEVEL", levels[i], 1);
        assert_int_equal(read_as(NULL), PK_OK);
    }
}

/* -- rank and world -- */

static void set_launcher(size_t i, const char *rank, const char *size)
{
    setenv(launchers[i][0], rank, 1);
    if (size)
        setenv(launchers[i][1], size, 1);
}

static void expect_world(int rank, int size)
{
    assert_int_equal(read_as(NULL), PK_OK);
    assert_int_equal(options_struct_config.world.rank, rank);
    assert_int_equal(options_struct_config.world.size, size);
}

static void each_launcher(void **state)
{
    (void)state;
    expect_world(0, 0);
    for (size_t i = 0; i < LAUNCHERS; i++) {
        set_launcher(i, "3", "8");
        expect_world(3, 8);
        options_struct_clear_environment(NULL);
    }
}

/* Under mpirun inside sbatch every rank has SLURM_PROCID=0; and torchrun may run under anything. */
static void the_most_specific_launcher_wins(void **state)
{
    (void)state;
    for (size_t i = LAUNCHERS; i-- > 0;) {
        char rank[32];
        snprintf(rank, sizeof rank, "%zu", i);
        set_launcher(i, rank, "16");
        expect_world((int)i, 16);
    }
}

static void odd_launchers(void **state)
{
    (void)state;
    setenv("RANK", "2", 1); /* too common a word to stand for itself */
    expect_world(0, 0);
    set_launcher(8, "1", "4");
    expect_world(1, 4);
    options_struct_clear_environment(NULL);
    set_launcher(1, "5", NULL); /* at least that many there are */
    expect_world(5, 6);
    set_launcher(1, "5", "3");
    expect_world(5, 6);
    static const char *const bad[] = {"", "x", "-1", "1x", "99999999999", " 1", "2147483647"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_launcher(1, bad[i], "8");
        expect_world(0, 0);
        set_launcher(8, "1", "2"); /* the next one that makes sense */
        expect_world(1, 2);
        options_struct_clear_environment(NULL);
    }
}

static void rank_by_option(void **state)
{
    (void)state;
    set_launcher(0, "3", "8");
    assert_int_equal(read_as(pk_options(.rank = 1, .world_size = 2)), PK_OK);
    assert_true(options_struct_config.world.rank == 1 && options_struct_config.world.size == 2);
    assert_int_equal(read_as(pk_options(.rank = 7)), PK_OK); /* read only with world_size */
    assert_true(options_struct_config.world.rank == 3 && options_struct_config.world.size == 8);
    setenv("PK_WORLD_SIZE", "5", 1);
    expect_world(0, 5);
    setenv("PK_RANK", "4", 1);
    expect_world(4, 5);
    assert_int_equal(read_as(pk_options(.rank = 2, .world_size = 2)), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "rank 2 of world_size 2"));
    assert_int_equal(read_as(pk_options(.rank = -1, .world_size = 2)), PK_EINVAL);
    assert_int_equal(read_as(pk_options(.world_size = -2)), PK_EINVAL);
    setenv("PK_RANK", "5", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    setenv("PK_RANK", "first", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_RANK=first"));
    setenv("PK_WORLD_SIZE", "many", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_WORLD_SIZE=many"));
}

/* -- backends -- */

static void backends_say_why_they_are_off(void **state)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nccl"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        pk_backend_info info = {.size = sizeof info};
        assert_int_equal((pk_backend_status)(names[i], &info), PK_OK);
        assert_true(info.size == sizeof info && (info.live || info.reason[0]));
        info.size = 8;
        info.version[0] = 'x';
        assert_int_equal((pk_backend_status)(names[i], &info), PK_OK);
        assert_true(info.size == 8 && info.version[0] == 'x');
        info.size = sizeof info + 1;
        assert_int_equal((pk_backend_status)(names[i], &info), PK_EINVAL);
        assert_int_equal((pk_backend_status)(names[i], NULL), PK_EINVAL);
    }
    assert_int_equal((pk_backend_status)("opencl", NULL), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "opencl"));
    assert_int_equal((pk_backend_status)(NULL, NULL), PK_ENOENT);
}

#define alone(test)                                                                                \
    cmocka_unit_test_setup_teardown(test, options_struct_clear_environment, stop_session)

static const struct CMUnitTest options_struct_tests[] = {
    alone(larger_structs),
    alone(smaller_structs),
    alone(sizes_that_no_struct_has),
    alone(counts_of_any_size),
    alone(stats_of_any_size),
    alone(a_quantile_without_a_copy),
    alone(the_log_hears_what_was_refused),
    alone(the_log_ends_with_the_session),
    alone(log_of_the_environment),
    alone(each_launcher),
    alone(the_most_specific_launcher_wins),
    alone(odd_launchers),
    alone(rank_by_option),
    alone(backends_say_why_they_are_off),
};

/* ---- when captures arm CUPTI ---- */

/* Where nothing else would show what it tells. */

static bool arms(const pk_options *options)
{
    expect_taken(options);
    return config.cupti_armed;
}

static void when_captures_arm_cupti(void **state)
{
    (void)state;
    assert_true(arms(pk_options(.capture = "slow=1.2")) && config.capture.behind == 4);
    assert_false(arms(pk_options(.capture = "slow=1.2", .trace_path = "run.json")));
    assert_false(arms(pk_options(.capture = "slow=1.2;kernels=always")));
    assert_true(arms(pk_options(.capture = "request;kernels=armed", .trace_path = "run.json")));
    assert_false(arms(pk_options(.capture = "request", .tuning = "cupti_steps=5-6")));
    assert_false(arms(pk_options(.history_steps = 20)));
    assert_false(arms(NULL));
}

static void as_many_behind_as_there_is_room_for(void **state)
{
    (void)state;
    assert_true(arms(pk_options(.capture = "slow=1.2", .history_steps = 6)));
    assert_int_equal(config.capture.behind, 2);
    assert_true(arms(pk_options(.capture = "slow=1.2;kernels=armed,steps:9")));
    assert_int_equal(config.capture.behind, 9);
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    expect_refused(pk_options(.capture = "kernels=never"), "capture", "always nor armed");
    expect_refused(pk_options(.capture = "slow=2;kernels=armed,steps:9", .history_steps = 12),
                   "capture", "history_steps is 12");
}

static const struct CMUnitTest options_captures_tests[] = {
    cmocka_unit_test_setup(when_captures_arm_cupti, clear_environment),
    cmocka_unit_test_setup(as_many_behind_as_there_is_room_for, clear_environment),
    cmocka_unit_test_setup(what_is_malformed_is_refused, clear_environment),
};

/* ---- the options of windows and metrics, and their environment variables ---- */

static void options_windows_defaults(void **state)
{
    (void)state;
    expect_taken(NULL);
    assert_true(!config.windows[0] && !config.metrics[0]);
    expect_taken(pk_options(.windows_path = "w.jsonl", .metrics_path = "m.prom"));
    assert_true(config.window_steps == 0 && config.window_seconds == 60);
    assert_true(config.windows_max_bytes == (uint64_t)256 << 20 && config.metrics_seconds == 15);
    expect_taken(pk_options(.windows_path = "w.jsonl", .tuning = "window_steps=5"));
    assert_true(config.window_steps == 5 && config.window_seconds == 0);
}

static void traces_in_several_files(void **state)
{
    (void)state;
    expect_taken(NULL);
    assert_true(config.trace_rotate_bytes == 0 && config.trace_keep == 0);
    expect_taken(pk_options(.tuning = "trace_rotate_bytes=3M,trace_keep=4"));
    assert_true(config.trace_rotate_bytes == 3 << 20 && config.trace_keep == 4);
    setenv("PK_TRACE_ROTATE_BYTES", "5M", 1);
    setenv("PK_TRACE_KEEP", "7", 1);
    expect_taken(NULL);
    assert_true(config.trace_rotate_bytes == 5 << 20 && config.trace_keep == 7);
    expect_taken(pk_options(.tuning = "trace_keep=2"));
    assert_true(config.trace_keep == 2);
    expect_refused(pk_options(.tuning = "trace_rotate_bytes=1M"), "trace_rotate_bytes", "2097152");
    expect_refused(pk_options(.tuning = "trace_keep=70000"), "trace_keep", "65536");
    expect_refused(pk_options(.costs = "io,time"), "costs",
                   "'time' is not io, energy, memory, hardware");
}

static void options_windows_every_field(void **state)
{
    (void)state;
    expect_taken(
        pk_options(.windows_path = "w.jsonl", .metrics_path = "m.prom", .goodput_path = "g.goodput",
                   .costs = "energy,hardware,topdown",
                   .tuning =
                       "window_steps=10,window_seconds=20,windows_max_bytes=3M,metrics_seconds=5"));
    assert_true(config.costs_energy && !config.costs_io);
    assert_true(config.costs_hardware && !config.costs_software && config.costs_topdown);
    assert_string_equal(config.goodput, "g.goodput");
    assert_false(config.goodput_of_each);
    assert_string_equal(config.windows, "w.jsonl");
    assert_true(config.window_steps == 10 && config.window_seconds == 20);
    assert_true(config.windows_max_bytes == 3 << 20 && !config.windows_compressed);
    assert_string_equal(config.metrics, "m.prom");
    assert_int_equal(config.metrics_seconds, 5);
}

static void a_state_file_of_each_rank(void **state)
{
    (void)state;
    expect_taken(pk_options(.goodput_path = "g-%r.goodput"));
    assert_true(config.goodput_of_each);
    expect_taken(pk_options(.goodput_path = "g-%%r.goodput"));
    assert_false(config.goodput_of_each);
}

static void options_windows_every_variable(void **state)
{
    (void)state;
    setenv("PK_WINDOWS_PATH", "w-%r.jsonl", 1);
    setenv("PK_WINDOW_STEPS", "7", 1);
    setenv("PK_WINDOW_SECONDS", "30", 1);
    setenv("PK_WINDOWS_MAX_BYTES", "2M", 1);
    setenv("PK_METRICS_PATH", "m-%r.prom", 1);
    setenv("PK_METRICS_SECONDS", "60", 1);
    setenv("PK_GOODPUT_PATH", "g-%r.goodput", 1);
    setenv("PK_RANK", "2", 1);
    setenv("PK_WORLD_SIZE", "4", 1);
    expect_taken(NULL);
    assert_string_equal(config.windows, "w-2.jsonl");
    assert_true(config.window_steps == 7 && config.window_seconds == 30);
    assert_int_equal(config.windows_max_bytes, 2 << 20);
    assert_string_equal(config.metrics, "m-2.prom");
    assert_string_equal(config.goodput, "g-2.goodput");
    assert_true(config.goodput_of_each);
    assert_int_equal(config.metrics_seconds, 60);
    expect_taken(pk_options(.windows_path = "given", .tuning = "metrics_seconds=3"));
    assert_string_equal(config.windows, "given");
    assert_int_equal(config.metrics_seconds, 3);
}

static void what_is_refused(void **state)
{
    (void)state;
    expect_refused(pk_options(.windows_path = "same", .trace_path = "same"), "windows_path",
                   "have the same");
    expect_refused(pk_options(.windows_path = "same", .metrics_path = "same"), "metrics_path",
                   "have the same");
    expect_refused(pk_options(.windows_path = "same", .goodput_path = "same"), "goodput_path",
                   "has the same");
    expect_refused(pk_options(.goodput_path = "%q"), "goodput_path", "%q is none");
    expect_refused(pk_options(.windows_path = "w", .tuning = "windows_max_bytes=1000"),
                   "windows_max_bytes", "1048576");
    expect_refused(pk_options(.metrics_path = "m", .tuning = "metrics_seconds=90000"),
                   "metrics_seconds", "86400");
    setenv("PK_WINDOW_STEPS", "many", 1);
    expect_refused(NULL, "PK_WINDOW_STEPS", "not a number");
}

static void compressed(void **state)
{
    (void)state;
    if (!pki_gz_available())
        skip();
    expect_taken(pk_options(.windows_path = "w.jsonl.gz"));
    assert_true(config.windows_compressed);
}

static const struct CMUnitTest options_windows_tests[] = {
    cmocka_unit_test_setup(options_windows_defaults, clear_environment),
    cmocka_unit_test_setup(traces_in_several_files, clear_environment),
    cmocka_unit_test_setup(options_windows_every_field, clear_environment),
    cmocka_unit_test_setup(a_state_file_of_each_rank, clear_environment),
    cmocka_unit_test_setup(options_windows_every_variable, clear_environment),
    cmocka_unit_test_setup(what_is_refused, clear_environment),
    cmocka_unit_test_setup(compressed, clear_environment),
};

int main(void)
{
    int failed = cmocka_run_group_tests(options_tests, NULL, NULL);
    failed += cmocka_run_group_tests(options_values_tests, NULL, NULL);
    failed += cmocka_run_group_tests(options_struct_tests, NULL, NULL);
    failed += cmocka_run_group_tests(options_captures_tests, NULL, NULL);
    failed += cmocka_run_group_tests(options_windows_tests, NULL, NULL);
    return failed;
}
