/* Options and their environment variables: each alone, both, and neither. */
#include "options.h"

#include "base/clock.h"
#include "out/gz.h"

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
    {"PK_GPU_CAPTURE", "off"},
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
    {"PK_ENVIRONMENT", "off"},
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
    expect_taken(pk_options(.ring_records = 256, .trace_path = "u.json", .report_path = "r.json",
                            .memory_bytes = 6 << 20, .backends = "cuda,nccl", .arena_path = "a",
                            .clock = "tsc", .trace_max_bytes = 70000, .flush_ms = 30,
                            .report_threads = 1, .warmup_steps = 4, .rank = 0, .world_size = 3,
                            .log_level = PK_LOG_ERROR, .cupti_steps = "7-9", .nvtx_shim = "t.so",
                            .gpu_capture = "on", .history_steps = 8, .history_bytes = 3 << 20,
                            .captures_per_hour = 6, .capture_bytes_per_hour = 4 << 20,
                            .capture = "every=11", .capture_path = "d-%s.json",
                            .hang_command = "tell", .hang_seconds = 31, .machine_path = "n.txt"));
    assert_memory_equal(&config, &by_environment, sizeof config);
    unsetenv("PK_TRACE_PATH");
    expect_taken(pk_options(.trace_path = "u.json"));
    assert_string_equal(config.trace, "u.json"); /* what the environment is silent about */
    setenv("PK_OVERRIDE", "0", 1);
    expect_taken(pk_options(.flush_ms = 30));
    assert_int_equal(config.flush_ms, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear_environment),
        cmocka_unit_test_setup(every_field, clear_environment),
        cmocka_unit_test_setup(every_variable, clear_environment),
        cmocka_unit_test_setup(override, clear_environment),
        cmocka_unit_test_setup(the_option_wins, clear_environment),
        cmocka_unit_test_setup(empty_variables_are_not_set, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
