/* CUPTI as captures want it: on for what they foresee and from a slow step on, off otherwise, any
 * number of times; and which steps of a capture have kernels. */
#include "scene.h"

#include "session/backend.h"
#include "session/session.h"

static pk_region forward = PK_REGION("forward");
static char names[64][16];
static int steps;

#define start_armed(...)                                                                           \
    (steps = 0, assert_int_equal(pk_start(pk_options(.backends = "cupti",                          \
                                                     .capture_path = "c-%s.json", __VA_ARGS__)),   \
                                 PK_OK))

static void nap(void)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

/* A step with a kernel that is named after it, and that has ended when it ends. */
static void step(void)
{
    char *name = names[steps % 64];
    snprintf(name, sizeof names[0], "k%d", steps++);
    pk_region_begin(&forward);
    launch(.kernel = name);
    fake->finish();
    pk_region_end(&forward);
    nap();
    pk_step(1);
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

static void await(bool on)
{
    for (int i = 0; i < 10000 && records() != on; i++)
        nap();
    assert_int_equal(records(), on);
}

static void await_given_back(void)
{
    for (int i = 0; i < 10000 && strcmp(status().reason, "waiting for a capture to want it"); i++)
        nap();
    assert_string_equal(status().reason, "waiting for a capture to want it");
    assert_int_equal(fake->outstanding, 0);
}

static json_t *await_capture(const char *path)
{
    for (int i = 0; i < 10000 && access(path, F_OK) != 0; i++)
        nap();
    return load_document(path);
}

static bool says_kernels_of(const json_t *doc, int64_t step)
{
    size_t i;
    json_t *number;
    json_array_foreach(member(member(doc, "perfkitCapture"), "kernels"), i,
                       number) if (json_integer_value(number) == step) return true;
    return false;
}

static void expect_kernels(const json_t *doc, int first, int last)
{
    char name[16];
    for (int i = first; i <= last; i++) {
        snprintf(name, sizeof name, "k%d", i);
        if (count_of_cat(doc, "kernel", name) != 1 || !says_kernels_of(doc, i))
            fail_msg("step %d: %zu kernels, and the head says %d", i,
                     count_of_cat(doc, "kernel", name), says_kernels_of(doc, i));
    }
}

static void steps_that_are_foreseen(void **state)
{
    (void)state;
    start_armed(.capture = "steps=1000000000;steps=40-43");
    assert_string_equal(status().reason, "waiting for a capture to want it");
    assert_string_equal(fake->log, ""); /* it is anybody's until then */
    step_until(39);
    await(true); /* before the first of them begins */
    assert_string_equal(status().reason, "recording for captures");
    step_until(50);
    json_t *doc = await_capture("c-40.json"); /* which has waited for what CUPTI had to tell */
    expect_kernels(doc, 40, 43);
    assert_false(says_kernels_of(doc, 39) || says_kernels_of(doc, 44));
    json_decref(doc);
    await(false);
    await_given_back();
    step_until(60);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->finalized, 0);
}

/* The last step before it, until it is on: a cycle's turns come while it waits. */
static void step_until_on(void)
{
    for (int i = 0; i < 10000 && !records(); i++)
        step();
    assert_true(records());
}

static void any_number_of_times(void **state)
{
    char path[32];
    (void)state;
    start_armed(.capture = "request");
    for (int i = 0; i < 4; i++) {
        step();
        assert_int_equal(pk_capture("again", 9000),
                         PK_OK); /* so many that it is still wanted at the stop */
        step_until_on();
        step();
        assert_int_equal(pk_stop(), PK_OK);
        assert_int_equal(fake->enabled, 0);
        assert_int_equal(fake->outstanding, 0);
        start_armed(.capture = "request");
    }
    for (int i = 1; i <= 5; i++) { /* of one session */
        assert_int_equal(pk_capture("again", 400), PK_OK);
        step_until_on();
        for (int n = 0; n < 401; n++)
            pk_step(1);
        await(false);
        if (i % 2)
            await_given_back(); /* else it is on again before that */
    }
    assert_int_equal(fake->clocks, 1); /* once per process */
    assert_int_equal(pk_stop(), PK_OK);
    snprintf(path, sizeof path, "c-%d.json", 0);
    assert_int_equal(access(path, F_OK), 0);
}

/* The collector goes on for a moment when a stop has given it back, and captures still want it. */
static void a_round_behind_the_last_flush(void **state)
{
    (void)state;
    start_armed(.capture = "request");
    step();
    assert_int_equal(pk_capture("on", 9000), PK_OK);
    step_until_on();
    pki_backends_flush(PKI_FLUSH_LAST); /* as a stop begins */
    for (int i = 0; i < 3; i++)
        pki_backends_flush(PKI_FLUSH_ROUND);
    assert_int_equal(fake->enabled, 0);
    assert_int_equal(fake->outstanding, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->enabled, 0);
}

static void the_warm_up_of_a_cycle(void **state)
{
    (void)state;
    start_armed(.capture = "cycle=skip:20,wait:2,warmup:10,active:3,repeat:1");
    step_until(22);
    await(true);
    step_until(32);
    assert_true(records());
    step_until(40);
    json_t *doc = await_capture("c-32.json");
    expect_kernels(doc, 32, 34);
    json_decref(doc);
    await(false);
}

/* From the slow one on: it has none itself, unless another was slow before it. */
static void from_a_slow_step_on(void **state)
{
    (void)state;
    start_armed(.capture = "slow=2,floor:200000;kernels=armed,steps:5", .history_steps = 200);
    step_until(20);
    pk_region_begin(&forward);
    struct timespec t = {0, 400000000};
    nanosleep(&t, NULL);
    pk_region_end(&forward);
    step();
    int slow = steps - 1;
    await(true);
    step_until(steps + 10);
    char path[32];
    json_t *doc = NULL;
    for (int first = slow - 3; !doc && first >= 0; first--) { /* or merged with one before it */
        snprintf(path, sizeof path, "c-%d.json", first);
        doc = first == slow - 3 ? NULL : doc;
        for (int i = 0; i < (first == slow - 3 ? 3000 : 1) && access(path, F_OK); i++)
            nap();
        if (access(path, F_OK) == 0)
            doc = load_document(path);
    }
    assert_non_null(doc);
    const json_t *about = member(doc, "perfkitCapture");
    assert_int_equal(json_integer_value(member(about, "slow_step")), slow);
    assert_in_range(json_integer_value(member(about, "last")), slow + 5, slow + 5 + 32);
    expect_kernels(doc, slow + 2, slow + 5); /* the one after it may have begun before */
    json_decref(doc);
    await(false);
    await_given_back();
}

static void all_the_time(void **state)
{
    (void)state;
    start_armed(.capture = "steps=5-6;kernels=always");
    assert_string_equal(status().reason, "recording");
    step_until(10);
    json_t *doc = await_capture("c-5.json");
    expect_kernels(doc, 5, 6);
    json_decref(doc);
    assert_int_equal(pk_stop(), PK_OK);
    start_armed(.capture = "steps=5-6", .trace_path = "run.json"); /* a trace shows all of them */
    assert_string_equal(status().reason, "recording");
    assert_int_equal(pk_stop(), PK_OK);
    start_armed(.history_steps = 10); /* nobody says which */
    assert_string_equal(status().reason, "recording");
    assert_int_equal(pk_stop(), PK_OK);
    start_armed(.capture = "steps=5-6;kernels=armed", .trace_path = "run.json");
    assert_string_equal(status().reason, "waiting for a capture to want it");
}

/* Who cannot have it this time may the next. */
static void somebody_else_has_it(void **state)
{
    (void)state;
    fake->subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    fake->holder = "CUPTI for somebody";
    start_armed(.capture = "request");
    assert_int_equal(pk_capture("now", 100), PK_OK);
    for (int i = 0; i < 10000 && !strstr(status().reason, "for somebody"); i++)
        step();
    assert_non_null(strstr(status().reason, "for somebody"));
    step_until(101);
    json_t *doc = await_capture("c-0.json");
    assert_int_equal(json_array_size(member(member(doc, "perfkitCapture"), "kernels")), 0);
    json_decref(doc);
    assert_null(strstr(fake->log, "enable"));
    fake->subscribe = CUPTI_SUCCESS;
    for (int i = 0; i < 200; i++) /* rounds in which nothing is wanted */
        nap();
    assert_int_equal(pk_capture("now", 9000), PK_OK);
    step_until_on();
}

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(steps_that_are_foreseen),       test(any_number_of_times),
        test(a_round_behind_the_last_flush), test(the_warm_up_of_a_cycle),
        test(from_a_slow_step_on),           test(all_the_time),
        test(somebody_else_has_it),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
