/* A flush of CUPTI's that does not come back: pk_stop goes on without it. */
#include "scene.h"

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

static int tear_down(void **state)
{
    let_hang(false);
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
    for (bool off = true; off;) {
        start_cupti(.warmup_steps = 0);
        off = !status().live;
        if (!off)
            step_of_work();
        fake->finish();
        doc = stop_and_load();
        if (!off)
            assert_int_equal(count_of_cat(doc, "kernel", "kernel"), 1);
        assert_int_equal(count_of_cat(doc, "kernel", "later"), 0);
        json_decref(doc);
    }
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

#define stuck(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {stuck(a_flush_that_never_comes_back), stuck(the_last_flush)};
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
