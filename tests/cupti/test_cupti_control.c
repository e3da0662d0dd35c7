/* Taking CUPTI and giving it back: in which order, when not, and who else wants it. */
#include "scene.h"

#include "session/session.h"

static pk_region forward = PK_REGION("forward");

/* Does the word come, and all of these before it? */
static void expect_before(const char *word, const char *const before[])
{
    const char *at = strstr(fake->log, word);
    assert_non_null(at);
    for (size_t i = 0; before[i]; i++) {
        const char *b = strstr(fake->log, before[i]);
        if (!b || b > at)
            fail_msg("%s is not before %s in: %s", before[i], word, fake->log);
    }
}

static void the_order_of_things(void **state)
{
    static const char *const first[] = {"subscribe",   "threads:1", "attribute:5",
                                        "attribute:9", "buffers",   NULL};
    static const char *const last[] = {"disable:10", "disable:5", "disable:39",
                                       "disable:51", "flush:1",   NULL};
    (void)state;
    start_cupti(.clock = NULL);
    expect_before("clock", (const char *const[]){"subscribe", NULL});
    expect_before("enable:39", first);
    expect_before("enable:10", (const char *const[]){"clock", NULL});
    assert_null(strstr(fake->log, "enable:3 ")); /* which runs kernels one by one */
    assert_string_equal(status().reason, "recording");
    assert_int_equal(status().live, 1);
    assert_non_null(strstr(status().version, "13.0"));
    assert_int_equal(pk_stop(), PK_OK);
    expect_before("unsubscribe", last);
    assert_true(strstr(fake->log, "disable:10") < strstr(fake->log, "flush:1"));
    assert_true(fake->forced == 1 && fake->finalized == 0 && fake->enabled == 0);
}

static void the_clock_is_registered_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        start_cupti(.clock = NULL);
        assert_int_equal(pk_stop(), PK_OK);
    }
    assert_int_equal(fake->clocks, 1);
    uint64_t now = pki_monotonic_ns();
    assert_in_range(fake->clock(), now, now + 60000000000); /* ours, in ns */
}

static uint64_t ticks_of_somebody(void)
{
    return pki_monotonic_ns() * 3;
}

/* Theirs is left to them: nothing is placed by it, and the status says why. */
static void somebody_elses_clock(void **state)
{
    (void)state;
    start_cupti(.clock = NULL);
    fake->set_clock(ticks_of_somebody);
    unsigned clocks = fake->clocks;
    launch(.kernel = "lost");
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 0);
    assert_non_null(strstr(status().reason, "another tool has given it its own"));
    assert_int_equal(fake->clocks, clocks);
    json_decref(doc);
}

static void node_by_node(void **state)
{
    (void)state;
    start_cupti(.cupti_graph_nodes = 1);
    assert_null(strstr(fake->log, "enable:51"));
    pk_region_begin(&forward);
    play(RUNTIME, .id = 311, A_KERNEL, .kernel = "node", .kernels = 3, .graph = 5);
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "node"), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *node = nth_event(doc, "kernel", "node", i);
        assert_string_equal(text_of(node, "region"), "forward");
        assert_int_equal(number(node, "graph id"), 5);
    }
    assert_int_equal(count_of_cat(doc, "ac2g", NULL), 2); /* one arrow for a launch */
    json_decref(doc);
}

/* ---- refusals ---- */

static void expect_off(const char *why)
{
    start_cupti(.clock = NULL); /* the session starts all the same */
    pk_backend_info info = status();
    if (info.live || !strstr(info.reason, why))
        fail_msg("live %u, '%s' does not say %s", info.live, info.reason, why);
    pk_region_begin(&forward);
    launch(.kernel = "a");
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "cpu_op", "forward"), 1);
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 0);
    json_decref(doc);
}

static void somebody_else_has_it(void **state)
{
    (void)state;
    fake->subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    expect_off("another tool in this process uses CUPTI (39, 12)");
    fake->holder = "CUPTI for somebody";
    expect_off("another tool in this process uses CUPTI: CUPTI for somebody");
    fake->subscribe = CUPTI_ERROR_MAX_LIMIT_REACHED; /* as older ones say */
    fake->holder = NULL;
    expect_off("another tool");
    assert_int_equal(fake->flushes, 0); /* nothing of theirs is touched */
    assert_null(strstr(fake->log, "enable"));
    fake->subscribe = CUPTI_SUCCESS;
    start_cupti(.clock = NULL); /* once they are gone */
    assert_int_equal(status().live, 1);
}

static void what_cannot_do_without(void **state)
{
    (void)state;
    fake->kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    expect_off("only root");
    assert_non_null(strstr(fake->log, "disable:39")); /* what had been enabled before it */
    assert_non_null(strstr(fake->log, "unsubscribe"));
    fake->kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = CUPTI_SUCCESS;
    fake->register_buffers = CUPTI_ERROR_UNKNOWN;
    expect_off("999");
    fake->register_buffers = CUPTI_ERROR_INVALID_KIND;
    expect_off("CUPTI_ERROR_INVALID_KIND"); /* a result that only the library has words for */
    fake->register_buffers = CUPTI_SUCCESS;
    fake->subscribe = CUPTI_ERROR_NOT_INITIALIZED;
    expect_off("newer than the driver");
    fake->subscribe = CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
    expect_off("virtual");
}

static void kinds_that_are_missing(void **state)
{
    static const int optional[] = {
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE,     CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_MEMORY_POOL,     CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
    (void)state;
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        fake->kinds[optional[i]] = CUPTI_ERROR_INVALID_KIND;
    start_cupti(.clock = NULL);
    pk_region_begin(&forward);
    launch(.kernel = "a");
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_null(arg(the_event(doc, "kernel", "a"), "region")); /* nothing told of it */
    json_decref(doc);
}

/* ---- locks ---- */

static void *take_drain_lock(void *got)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 20;
    *(bool *)got = pthread_mutex_timedlock(&pki_drain_lock, &t) == 0;
    if (*(bool *)got)
        pthread_mutex_unlock(&pki_drain_lock);
    return NULL;
}

static unsigned looked;

/* Somebody else, whom CUPTI waits for, wants the lock. */
static void look_whether_locked(uint32_t flag)
{
    bool got = false;
    pthread_t thread;
    (void)flag;
    if (pthread_create(&thread, NULL, take_drain_lock, &got) != 0)
        return;
    pthread_join(thread, NULL);
    if (got)
        __atomic_fetch_add(&looked, 1, __ATOMIC_RELAXED);
}

static void no_lock_is_held_while_flushing(void **state)
{
    (void)state;
    start_cupti(.clock = NULL);
    fake->on_flush = look_whether_locked;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(looked, 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(looked, fake->flushes);
    assert_true(looked >= 2);
}

/* ---- forks ---- */

static int in_child(void)
{
    pk_backend_info info = {.size = sizeof info};
    if (pk_start(pk_options(.trace_path = "child.json", .backends = "cupti")) != PK_OK)
        return 1;
    pk_backend_status("cupti", &info);
    if (info.live || !strstr(info.reason, "forked while CUPTI was in use"))
        return 2;
    pk_region_begin(&forward);
    launch(.kernel = "child"); /* the parent's subscription is still there */
    pk_region_end(&forward);
    return pk_stop() != PK_OK || fake->pushes != fake->pops ? 3 : 0;
}

static void forks(void **state)
{
    int result = -1;
    (void)state;
    if (strstr(SANITIZERS, "thread"))
        skip(); /* ThreadSanitizer loses a fork's threads */
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user dies of threads that a fork's child starts */
    start_cupti(.clock = NULL);
    pk_region_begin(&forward);
    launch(.kernel = "before");
    pid_t child = fork();
    if (child == 0)
        _exit(in_child());
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    launch(.kernel = "after");
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_string_equal(text_of(the_event(doc, "kernel", "before"), "region"), "forward");
    assert_string_equal(text_of(the_event(doc, "kernel", "after"), "region"), "forward");
    json_decref(doc);
}

int main(int argc, char **argv)
{
#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)
    const struct CMUnitTest tests[] = {
        test(the_order_of_things),
        test(the_clock_is_registered_once),
        test(node_by_node),
        test(somebody_else_has_it),
        test(what_cannot_do_without),
        test(kinds_that_are_missing),
        test(no_lock_is_held_while_flushing),
        test(forks),
        test(somebody_elses_clock), /* the last: it stays for the process's life */
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
