/* A range of steps: CUPTI is on for them, somewhat ahead, and not otherwise. */
#include "scene.h"

#include <time.h>

static pk_region forward = PK_REGION("forward");
static char names[64][16];
static int steps;

#define start_window(...)                                                                          \
    (steps = 0,                                                                                    \
     assert_int_equal(pk_start(pk_options(.trace_path = "run.json", __VA_ARGS__)), PK_OK))

static void nap(void)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

/* A step with a kernel that is named after it. */
static void step(void)
{
    char *name = names[steps % 64];
    snprintf(name, sizeof names[0], "k%d", steps++);
    pk_region_begin(&forward);
    launch(.kernel = name);
    pk_region_end(&forward);
    nap();
    pk_step(1);
    fake->finish();
}

static void step_until(int n)
{
    while (steps < n)
        step();
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
    start_window(.cupti_steps = "12-14");
    assert_string_equal(status().reason, "waiting for its steps");
    assert_string_equal(fake->log, ""); /* it is anybody's until then */
    step_until(11);
    await(true); /* before the first of them begins */
    step_until(20);
    await(false);
    step_until(30);
    await_status("its steps are over");
    assert_non_null(strstr(fake->log, "unsubscribe"));
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
    start_window(.cupti_steps = "3-100");
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
    start_window(.cupti_steps = "1000000000-2000000000");
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
    start_window(.cupti_steps = "0-9", .backends = "-cupti");
    assert_string_equal(status().reason, "not asked for");
    assert_int_equal(pk_stop(), PK_OK);
    start_window(.cupti_steps = "0-9", .backends = "none");
    assert_int_equal(pk_stop(), PK_OK);
    assert_string_equal(fake->log, "");
    start_window(.cupti_steps = "0-9", .backends = "nvtx"); /* beside what is named */
    await(true);
}

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(only_these_steps),      test(from_the_first_step_on), test(a_session_that_ends_within),
        test(steps_that_never_come), test(lists_that_exclude_it),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
