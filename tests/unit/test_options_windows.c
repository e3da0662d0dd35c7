/* The options of windows and metrics, and their environment variables. */
#include "options.h"

#include "out/gz.h"

static void defaults(void **state)
{
    (void)state;
    expect_taken(NULL);
    assert_true(!config.windows[0] && !config.metrics[0]);
    expect_taken(pk_options(.windows_path = "w.jsonl", .metrics_path = "m.prom"));
    assert_true(config.window_steps == 0 && config.window_seconds == 60);
    assert_true(config.windows_max_bytes == (uint64_t)256 << 20 && config.metrics_seconds == 15);
    expect_taken(pk_options(.windows_path = "w.jsonl", .window_steps = 5));
    assert_true(config.window_steps == 5 && config.window_seconds == 0);
}

static void traces_in_several_files(void **state)
{
    (void)state;
    expect_taken(NULL);
    assert_true(config.trace_rotate_bytes == 0 && config.trace_keep == 0);
    expect_taken(pk_options(.trace_rotate_bytes = 3 << 20, .trace_keep = 4));
    assert_true(config.trace_rotate_bytes == 3 << 20 && config.trace_keep == 4);
    setenv("PK_TRACE_ROTATE_BYTES", "5M", 1);
    setenv("PK_TRACE_KEEP", "7", 1);
    expect_taken(NULL);
    assert_true(config.trace_rotate_bytes == 5 << 20 && config.trace_keep == 7);
    expect_taken(pk_options(.trace_keep = 2));
    assert_true(config.trace_keep == 2);
    expect_refused(pk_options(.trace_rotate_bytes = 1 << 20), "trace_rotate_bytes", "2097152");
    expect_refused(pk_options(.trace_keep = 70000), "trace_keep", "65536");
    expect_refused(pk_options(.costs = "io,time"), "costs",
                   "'time' is not io, energy, memory, hardware");
}

static void every_field(void **state)
{
    (void)state;
    expect_taken(pk_options(.windows_path = "w.jsonl", .window_steps = 10, .window_seconds = 20,
                            .windows_max_bytes = 3 << 20, .metrics_path = "m.prom",
                            .metrics_seconds = 5, .goodput_path = "g.goodput",
                            .costs = "energy,hardware,topdown"));
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

static void every_variable(void **state)
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
    expect_taken(pk_options(.windows_path = "given", .metrics_seconds = 3));
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
    expect_refused(pk_options(.windows_path = "w", .windows_max_bytes = 1000), "windows_max_bytes",
                   "1048576");
    expect_refused(pk_options(.metrics_path = "m", .metrics_seconds = 90000), "metrics_seconds",
                   "86400");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear_environment),
        cmocka_unit_test_setup(traces_in_several_files, clear_environment),
        cmocka_unit_test_setup(every_field, clear_environment),
        cmocka_unit_test_setup(a_state_file_of_each_rank, clear_environment),
        cmocka_unit_test_setup(every_variable, clear_environment),
        cmocka_unit_test_setup(what_is_refused, clear_environment),
        cmocka_unit_test_setup(compressed, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
