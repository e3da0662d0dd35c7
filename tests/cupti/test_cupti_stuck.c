/* A flush of CUPTI's that does not come back: pk_stop and captures go on without it. And no call of
 * CUPTI's is made under a lock that others wait for. */
#include "scene.h"

#include "../kit/held.h"
#include "session/collector/collect.h"

#define PATIENCE_NS 300000000u

static bool hangs, within;

static void on_flush(uint32_t flag)
{
    (void)flag;
    while (__atomic_load_n(&hangs, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&within, true, __ATOMIC_RELEASE);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    __atomic_store_n(&within, false, __ATOMIC_RELEASE);
}

static void let_hang(bool yes)
{
    __atomic_store_n(&hangs, yes, __ATOMIC_RELEASE);
}

static int set_up(void **state)
{
    let_hang(false);
    int failed = reset_fake(state);
    fake->on_flush = on_flush;
    pki_asker_patience_ns = PATIENCE_NS;
    return failed;
}

/* Whatever it has left behind has come back. */
static void await_return(void)
{
    for (bool off = true; off;) {
        start_cupti(.warmup_steps = 0);
        off = strncmp(status().reason, "off", 3) == 0;
        assert_int_equal(pk_stop(), PK_OK);
    }
}

static int tear_down(void **state)
{
    let_hang(false);
    pk_stop();
    await_return();
    return stop_and_leave(state);
}

static void await_hang(void)
{
    while (!__atomic_load_n(&within, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void expect_reason(const char *words)
{
    pk_backend_info info = status();
    if (!strstr(info.reason, words))
        fail_msg("\"%s\" does not say \"%s\"", info.reason, words);
}

static pk_region work = PK_REGION("work");

static void step_of_work(void)
{
    pk_region_begin(&work);
    launch(.kernel = "kernel");
    pk_region_end(&work);
    pk_step(1);
}

static void a_flush_that_never_comes_back(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.trace_path = "run.json", .backends = "cupti",
                                         .warmup_steps = 0, .tuning = "flush_ms=100")),
                     PK_OK);
    for (int i = 0; i < 8; i++)
        step_of_work();
    fake->finish();
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_flush(), PK_OK); /* up to here all is known */
    let_hang(true);
    await_hang();
    for (int i = 0; i < 8; i++)
        step_of_work();
    fake->finish();
    fake->complete(); /* these have come back, by a worker of CUPTI's */
    uint64_t from = pki_monotonic_ns();
    json_t *doc = stop_and_load();
    assert_true(pki_monotonic_ns() - from >= PATIENCE_NS);
    assert_int_equal(count_events(doc, "X", "work"), 16);
    assert_true(count_of_cat(doc, "kernel", "kernel") >= 8); /* what there is of the others, too */
    json_decref(doc);
    expect_reason("has not come back, for 0.3 s of pk_stop");
    assert_true(status().live);

    size_t before = fake->outstanding;
    for (int i = 0; i < 4000; i++) /* nobody reads them: they find no room */
        launch(.kernel = "later");
    fake->finish();
    fake->complete();
    assert_true(fake->outstanding <= before + 1);
    start_cupti(.warmup_steps = 0);
    expect_reason("off: a call that an earlier session made");
    assert_false(status().live);
    assert_int_equal(pk_stop(), PK_OK);

    let_hang(false); /* it comes back, and gives CUPTI back */
    await_return();
    start_cupti(.warmup_steps = 0);
    step_of_work();
    fake->finish();
    doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "kernel"), 1);
    assert_int_equal(count_of_cat(doc, "kernel", "later"), 0);
    json_decref(doc);
    assert_int_equal(fake->enabled, 0);
    assert_int_equal(fake->outstanding, 0);
}

/* The last one, which is forced. */
static void the_last_flush(void **state)
{
    (void)state;
    start_cupti(.warmup_steps = 0);
    for (int i = 0; i < 8; i++)
        step_of_work();
    fake->finish();
    let_hang(true);
    json_t *doc = stop_and_load();
    assert_int_equal(count_events(doc, "X", "work"), 8);
    json_decref(doc);
    expect_reason("has not come back");
}

/* ---- captures ---- */

static json_t *load_capture(int step)
{
    char path[32];
    snprintf(path, sizeof path, "c-%d.json", step);
    while (access(path, F_OK) != 0)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return load_document(path);
}

static int64_t says(const json_t *doc, const char *what)
{
    return json_integer_value(member(member(doc, "perfkitCapture"), what));
}

static size_t kernels_said(const json_t *doc)
{
    return json_array_size(member(member(doc, "perfkitCapture"), "kernels"));
}

static void some_steps(int n)
{
    for (int i = 0; i < n; i++) {
        step_of_work();
        fake->finish();
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

/* Of both of its steps; it has the rest of them. */
static void expect_without_kernels(int first, int64_t late)
{
    json_t *doc = load_capture(first);
    assert_int_equal(says(doc, "first"), first);
    assert_int_equal(says(doc, "last"), first + 1);
    assert_int_equal(says(doc, "kernels_late"), late);
    assert_int_equal(kernels_said(doc), 0);
    assert_int_equal(count_events(doc, "X", "work"), 2);
    json_decref(doc);
}

static void expect_with_kernels(int first)
{
    json_t *doc = load_capture(first);
    assert_int_equal(says(doc, "kernels_late"), 0);
    assert_int_equal(kernels_said(doc), 2);
    assert_in_range(count_of_cat(doc, "kernel", "kernel"), 2, 3); /* one may lie on the border */
    json_decref(doc);
}

static void start_captures(const char *which)
{
    assert_int_equal(
        pk_start(pk_options(.capture_path = "c-%s.json", .capture = which, .backends = "cupti",
                            .warmup_steps = 0, .tuning = "flush_ms=100")),
        PK_OK);
}

/* Written after their patience, while it hangs, and say what they lack; those of steps after it has
 * come back are complete. */
static void captures_of_all_kernels(void **state)
{
    (void)state;
    start_captures("steps=2-3;steps=8-9;steps=20-21;kernels=always");
    some_steps(7);
    expect_with_kernels(2);
    let_hang(true);
    await_hang();
    some_steps(5);
    expect_without_kernels(8, 2);
    let_hang(false);
    some_steps(16);
    expect_with_kernels(20);
    assert_int_equal(pk_stop(), PK_OK);
}

/* pk_stop does not wait for it, either. */
static void captures_at_the_stop(void **state)
{
    (void)state;
    start_captures("steps=8-9;kernels=always");
    some_steps(7);
    let_hang(true);
    await_hang();
    some_steps(5);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(access("c-8.json", F_OK), 0);
    expect_without_kernels(8, 2);
}

static bool records(void)
{
    return __atomic_load_n(&fake->enabled, __ATOMIC_RELAXED) >> CUPTI_ACTIVITY_KIND_RUNTIME & 1;
}

static unsigned flushes(void)
{
    return __atomic_load_n(&fake->flushes, __ATOMIC_RELAXED);
}

/* It hangs while CUPTI is on for a capture, so it cannot be switched off behind it. */
static void armed_captures(void **state)
{
    (void)state;
    start_captures("steps=200-201;steps=210-211;kernels=armed");
    some_steps(199);
    while (!records()) /* by now it is foreseen for sure */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    for (unsigned first = flushes(); flushes() < first + 3;)
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* it is known from when on it was */
    let_hang(true);
    await_hang();
    some_steps(15);
    expect_without_kernels(200, 2);
    expect_without_kernels(210, 2);
    let_hang(false);
    assert_int_equal(pk_stop(), PK_OK);
}

static void hang_in_call(const char *function)
{
    if (strcmp(function, "cuptiSubscribe") == 0 || strcmp(function, "cuptiSubscribe_v2") == 0)
        on_flush(0);
}

/* It has not been switched on: no step is said to have its kernels. */
static void never_on(void **state)
{
    (void)state;
    fake->on_call = hang_in_call;
    let_hang(true);
    start_captures("steps=100-101;kernels=armed");
    some_steps(104);
    expect_without_kernels(100, 0);
    assert_true(__atomic_load_n(&within, __ATOMIC_ACQUIRE));
    let_hang(false);
    assert_int_equal(pk_stop(), PK_OK);
}

/* ---- locks ---- */

static void *launch_all(void *of)
{
    kit_records = true;
    for (int i = 0; i < 200; i++) {
        pk_region_begin(&work);
        launch(.kernel = "kernel", .inner = 307);
        play(RUNTIME, .id = 41, .device = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = 8);
        pk_region_end(&work);
        if (of)
            pk_step(1);
        if (i % 20 == 0)
            fake->finish();
    }
    return NULL;
}

static void nothing_is_locked_amid_a_call(void **state)
{
    static const char *const captures[] = {"", "steps=10-20;kernels=always",
                                           "steps=10-20;kernels=armed"};
    pthread_t threads[3];
    (void)state;
    fake->on_flush = NULL;
    fake->on_call = kit_driver_called;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(
            pk_start(pk_options(.capture_path = "c-%s.json", .capture = captures[i % 3],
                                .trace_path = "run.json", .backends = "cupti",
                                .costs = i < 3 ? "memory" : "", .tuning = "flush_ms=100")),
            PK_OK);
        for (int t = 0; t < 3; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, launch_all, t ? NULL : &hangs), 0);
        pk_flush();
        status();
        for (int t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
        nanosleep(&(struct timespec){0, 150000000}, NULL);
        assert_int_equal(pk_stop(), PK_OK);
    }
    kit_expect_no_lock_amid_calls();
}

#define stuck(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        stuck(nothing_is_locked_amid_a_call),
        stuck(a_flush_that_never_comes_back),
        stuck(the_last_flush),
        stuck(captures_of_all_kernels),
        stuck(captures_at_the_stop),
        stuck(armed_captures),
        stuck(never_on),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
