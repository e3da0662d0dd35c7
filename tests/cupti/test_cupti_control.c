/* libcupti taken, armed, switched and given back, and by many threads. */
#include "scene.h"

#include "../kit/portions.h"
#include "backend/cupti/control.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "session/backend.h"
#include "session/captures/captures.h"
#include "session/session.h"

/* ---- taking CUPTI and giving it back ---- */

/* In which order, when not, and who else wants it. */

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
    start_cupti(.rank = 0);
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
        start_cupti(.rank = 0);
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
    start_cupti(.rank = 0);
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

/* -- another tool's buffers -- */

#define THEIR_BYTES 8192u

static struct {
    PKI_ALIGNED uint8_t data[4][THEIR_BYTES];
    uint32_t asked, back;
} theirs;

static void CUPTIAPI their_request(uint8_t **data, size_t *size, size_t *most)
{
    *data = theirs.data[theirs.asked++ % PKI_COUNT_OF(theirs.data)];
    *size = THEIR_BYTES;
    *most = 0;
}

static void CUPTIAPI their_completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                                     size_t valid)
{
    (void)context, (void)stream, (void)data, (void)size, (void)valid;
    theirs.back++;
}

/* A tool was there before and has not given it all back: its memory comes to whoever has registered
 * since. Nothing is written in front of it. */
static void what_is_not_ours_is_left_alone(void **state)
{
    uint8_t *lonely = malloc(4096);
    (void)state;
    start_cupti(.rank = 0);
    uint64_t before = pki_load(&pki_cupti_buffers.foreign);
    pki_cupti_buffer_completed(NULL, 0, lonely, 4096, 64);
    pki_cupti_buffer_completed(NULL, 0, lonely + 1, 4095, 64);
    free(lonely);
    assert_int_equal(pki_load(&pki_cupti_buffers.foreign), before + 2);
    launch(.kernel = "ours");
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    json_decref(doc);
}

/* Nor is one that comes back twice read twice. */
static void comes_back_once(void **state)
{
    uint8_t *data;
    size_t size, most;
    uint64_t before = pki_load(&pki_cupti_buffers.foreign);
    (void)state;
    pki_cupti_buffer_requested(&data, &size, &most);
    pki_cupti_buffer_completed(NULL, 0, data, size, 0);
    pki_cupti_buffer_completed(NULL, 0, data, size, 0);
    assert_int_equal(pki_load(&pki_cupti_buffers.foreign), before + 1);
    pki_cupti_buffers_walk();
    pki_cupti_buffer *b = pki_cupti_buffers_drain();
    assert_true(b && !b->next && b->data == data);
    pki_cupti_buffer_release(b);
}

/* As Kineto does as it starts. What there was before is in the trace; then it is off, and says why,
 * and nothing of the other tool's is switched. */
static void another_tool_takes_the_buffers(void **state)
{
    (void)state;
    memset(&theirs, 0, sizeof theirs);
    start_cupti(.rank = 0);
    launch(.kernel = "before");
    fake->finish();
    assert_int_equal(pk_flush(), PK_OK);
    fake->register_other(their_request, their_completed);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(status().live, 1); /* nobody has launched anything */
    for (int i = 0; i < 3; i++) {
        launch(.kernel = "theirs");
        fake->finish();
        pk_flush();
    }
    assert_int_equal(status().live, 1); /* so many threads may be within a call */
    for (int i = 0; i < 300; i++) {
        launch(.kernel = "theirs");
        fake->finish();
        if (i % 100 == 99)
            pk_flush();
    }
    assert_int_equal(status().live, 0);
    assert_non_null(strstr(status().reason, "another tool in this process has taken"));
    assert_true(theirs.asked > 0 && theirs.back > 0);
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", "before"), 1);
    assert_int_equal(count_of_cat(doc, "kernel", "theirs"), 0);
    assert_non_null(strstr(status().reason, "another tool in this process has taken"));
    json_decref(doc);
}

/* One launch, before the session ends: if its thread has called something after it, its record was
 * made, and somebody has it; else that is one of two things that can be. */
static void expect_at_the_end(bool waits, const char *words)
{
    start_cupti(.rank = 0);
    launch(.kernel = "before");
    fake->finish();
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    fake->register_other(their_request, their_completed);
    launch(.kernel = "theirs");
    if (waits)
        play(RUNTIME, .id = CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_non_null(strstr(status().reason, words));
    assert_non_null(strstr(fake->misuse, "disable of")); /* it was not seen before */
    json_decref(doc);
    fake->reset();
}

static void another_tool_takes_the_last_launch(void **state)
{
    (void)state;
    memset(&theirs, 0, sizeof theirs);
    expect_at_the_end(true, "another tool in this process may have CUPTI's buffers");
    expect_at_the_end(false, "under way as CUPTI was switched off, or another tool");
}

/* -- a launch that is under way as records are switched off -- */

static struct {
    pthread_t thread;
    bool wanted, within;
} cut;

/* Between the callback as it begins and its records. */
static void linger(const char *function)
{
    const struct timespec nap = {0, 1000000};
    if (strcmp(function, "cuptiActivityPushExternalCorrelationId") != 0 ||
        !__atomic_exchange_n(&cut.wanted, false, __ATOMIC_SEQ_CST))
        return;
    __atomic_store_n(&cut.within, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&fake->enabled, __ATOMIC_SEQ_CST))
        nanosleep(&nap, NULL);
}

static void *launch_that_is_cut(void *arg)
{
    pk_region_begin(&forward);
    launch(.kernel = "cut");
    pk_region_end(&forward);
    return arg;
}

/* All that was launched before is known. */
static void begin_to_launch(void)
{
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    cut.within = false;
    __atomic_store_n(&cut.wanted, true, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_create(&cut.thread, NULL, launch_that_is_cut, NULL), 0);
    while (!__atomic_load_n(&cut.within, __ATOMIC_SEQ_CST))
        sched_yield();
}

static void a_launch_is_cut_off(void **state)
{
    (void)state;
    fake->on_call = linger;
    start_cupti(.rank = 0);
    launch(.kernel = "before");
    fake->finish();
    begin_to_launch();
    json_t *doc = stop_and_load();
    pthread_join(cut.thread, NULL);
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1);
    assert_non_null(strstr(status().reason, "under way as CUPTI was switched off"));
    json_decref(doc);
}

/* Many launches on one thread whose buffer stays with CUPTI, since the first of them still runs. */
static void a_long_kernel_is_no_other_tool(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    for (int i = 0; i < 1000; i++) {
        launch(.kernel = "k");
        if (i % 100 == 99)
            assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(status().live, 1);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_int_equal(count_of_cat(doc, "kernel", NULL), 1000);
    json_decref(doc);
}

static void node_by_node(void **state)
{
    (void)state;
    start_tuned(",cupti_graph_nodes=1", .rank = 0);
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

/* -- refusals -- */

static void expect_off(const char *why)
{
    start_cupti(.rank = 0); /* the session starts all the same */
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
    start_cupti(.rank = 0); /* once they are gone */
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
    start_cupti(.rank = 0);
    pk_region_begin(&forward);
    launch(.kernel = "a");
    pk_region_end(&forward);
    fake->finish();
    json_t *doc = stop_and_load();
    assert_null(arg(the_event(doc, "kernel", "a"), "region")); /* nothing told of it */
    json_decref(doc);
}

/* -- locks -- */

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
    start_cupti(.rank = 0);
    fake->on_flush = look_whether_locked;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(looked, 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(looked, fake->flushes);
    assert_true(looked >= 2);
}

/* -- forks -- */

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
    start_cupti(.rank = 0);
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

#define test(name) cmocka_unit_test_setup_teardown(name, reset_fake, stop_and_leave)

static const struct CMUnitTest first_session[] = {test(the_order_of_things)};

static const struct CMUnitTest control_tests[] = {
    test(the_clock_is_registered_once),
    test(node_by_node),
    test(what_is_not_ours_is_left_alone),
    test(comes_back_once),
    test(another_tool_takes_the_buffers),
    test(another_tool_takes_the_last_launch),
    test(a_launch_is_cut_off),
    test(a_long_kernel_is_no_other_tool),
    test(somebody_else_has_it),
    test(what_cannot_do_without),
    test(kinds_that_are_missing),
    test(no_lock_is_held_while_flushing),
    test(forks),
    test(somebody_elses_clock),
};

/* ---- CUPTI as captures want it ---- */

/* On for what they foresee and from a slow step on, off otherwise, any number of times; and which
 * steps of a capture have kernels. */

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
    const char *waits = "waiting for a capture to want it";
    for (int i = 0; i < 10000 && (strcmp(status().reason, waits) ||
                                  __atomic_load_n(&fake->outstanding, __ATOMIC_RELAXED));
         i++)
        nap(); /* a buffer may be given back before its thread has counted it */
    assert_string_equal(status().reason, waits);
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

/* It is on again the next time, and no step is called measured in which a kernel may be missing. */
static void armed_a_launch_is_cut_off(void **state)
{
    (void)state;
    fake->on_call = linger;
    start_armed(.capture = "request");
    assert_int_equal(pk_capture("cut", 60), PK_OK);
    step_until_on();
    int begun = steps;
    step();
    begin_to_launch();
    for (int i = 0; i < 61; i++)
        pk_step(1);
    await(false);
    pthread_join(cut.thread, NULL);
    json_t *doc = await_capture("c-0.json");
    int64_t last = json_integer_value(member(member(doc, "perfkitCapture"), "last"));
    assert_true(last > begun + 2);
    assert_false(says_kernels_of(doc, last) || says_kernels_of(doc, begun + 2));
    json_decref(doc);
    await_given_back();
    assert_int_equal(pk_capture("again", 9000), PK_OK);
    step_until_on();
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
    for (int i = 0; i < 10000 && strcmp(status().reason, "recording for captures"); i++)
        nap(); /* all of it is on */
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
    expect_kernels(doc, slow + 3, slow + 5); /* the two after it may have begun before */
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
/* The host is ahead of the device for longer than a capture waits: it says which steps lack
 * kernels, and not that they have none. */
static void what_has_not_come_is_said(void **state)
{
    (void)state;
    start_armed(.capture = "steps=5-6;kernels=always");
    step_until(6);
    launch(.kernel = "long"); /* in step 6, and on */
    nap();
    pk_step(1);
    nap();
    pk_step(1);
    json_t *doc = await_capture("c-5.json");
    /* Step 5's lies in the same buffer. */
    assert_int_equal(json_integer_value(member(member(doc, "perfkitCapture"), "kernels_late")), 2);
    assert_false(says_kernels_of(doc, 5) || says_kernels_of(doc, 6));
    fake->finish();
    assert_int_equal(pk_stop(), PK_OK);
    json_decref(doc);
}

static void armed_somebody_else_has_it(void **state)
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
    while (pki_arming_now())
        nap();
    assert_int_equal(pk_flush(), PK_OK); /* a look at which nothing is wanted */
    assert_int_equal(pk_capture("now", 9000), PK_OK);
    step_until_on();
}

static const struct CMUnitTest armed_tests[] = {
    test(steps_that_are_foreseen),
    test(any_number_of_times),
    test(armed_a_launch_is_cut_off),
    test(a_round_behind_the_last_flush),
    test(the_warm_up_of_a_cycle),
    test(from_a_slow_step_on),
    test(all_the_time),
    test(what_has_not_come_is_said),
    test(armed_somebody_else_has_it),
};

/* ---- cupti threads ---- */

/* Threads that launch while sessions come and go, buffers come back from a worker, and flushes
 * come from several sides. Best under ThreadSanitizer. */

#define THREADS 4

static pk_region threads_forward = PK_REGION("forward"), inner = PK_REGION("inner");
static bool over;

/* So that two processors can do what comes of it. */
static void threads_nap(void)
{
    struct timespec t = {0, is_slow() ? 500000 : 100000};
    nanosleep(&t, NULL);
}

static bool goes_on(void)
{
    return !__atomic_load_n(&over, __ATOMIC_RELAXED);
}

static void *program(void *arg)
{
    unsigned n = 0;
    while (goes_on()) {
        pk_region_begin(&threads_forward);
        launch(.kernel = "a", .inner = 307);
        if (n % 3 == 0) {
            pk_region_begin(&inner);
            play(RUNTIME, .id = 41, .device = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = n);
            pk_region_end(&inner);
        }
        if (arg && n % 7 == 0)
            pk_step(1);
        pk_region_end(&threads_forward);
        launch(.kernel = "outside");
        n++;
        threads_nap();
    }
    return NULL;
}

static void *worker(void *arg)
{
    (void)arg;
    while (goes_on()) {
        fake->finish();
        fake->complete();
        threads_nap();
    }
    return NULL;
}

static void *flusher(void *arg)
{
    pk_backend_info info = {.size = sizeof info};
    (void)arg;
    while (goes_on()) {
        pk_flush();
        pk_backend_status("cupti", &info);
        threads_nap();
    }
    return NULL;
}

/* Every kernel whose launch is there has that call's region, and no other one. */
static void expect_regions(const json_t *doc)
{
    size_t i;
    json_t *event;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        const char *name = json_string_value(member(event, "name"));
        const char *region = json_object_get(event, "args") ? text_of(event, "region") : "";
        if (!cat || *region == 0)
            continue;
        if (strcmp(name, "outside") == 0 ||
            (strcmp(cat, "gpu_memcpy") == 0 && strcmp(region, "inner") != 0))
            fail_msg("%s %s is of %s", cat, name, region);
    }
}

static void sessions_come_and_go(void **state)
{
    pthread_t threads[THREADS + 2];
    (void)state;
    over = false;
    for (long i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, program, i ? NULL : &over), 0);
    assert_int_equal(pthread_create(&threads[THREADS], NULL, worker, NULL), 0);
    assert_int_equal(pthread_create(&threads[THREADS + 1], NULL, flusher, NULL), 0);
    for (int i = is_slow() ? 16 : 0; i < 20; i++) {
        struct timespec t = {0, 5000000};
        if (i % 4 == 3)
            start_tuned(",cupti_steps=0-50", .rank = 0);
        else
            start_cupti(.rank = 0);
        nanosleep(&t, NULL);
        json_t *doc = stop_and_load();
        expect_regions(doc);
        json_decref(doc);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS + 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(fake->nulls == 0 && fake->misaligned == 0 && fake->clocks == 1);
    assert_true(fake->pushes >= fake->pops && fake->pushes - fake->pops <= THREADS);
}

static bool flushing, recorded;

static void hang_in_flush(uint32_t flag)
{
    const struct timespec nap = {0, 1000000};
    (void)flag;
    __atomic_store_n(&flushing, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&recorded, __ATOMIC_ACQUIRE))
        nanosleep(&nap, NULL);
}

/* Who records meanwhile loses nothing. */
static void a_flush_takes_its_time(void **state)
{
    (void)state;
    flushing = recorded = false;
    fake->on_flush = hang_in_flush;
    assert_int_equal(
        pk_start(pk_options(.backends = "cupti", .tuning = "flush_ms=100," KIT_RING_TUNING)),
        PK_OK);
    while (!__atomic_load_n(&flushing, __ATOMIC_ACQUIRE))
        sched_yield();
    kit_record_portions();
    uint64_t dropped = kit_dropped();
    __atomic_store_n(&recorded, true, __ATOMIC_RELEASE);
    assert_int_equal(dropped, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(kit_dropped(), 0);
}

static const struct CMUnitTest threads_tests[] = {
    cmocka_unit_test_setup_teardown(a_flush_takes_its_time, reset_fake, stop_and_leave),
    cmocka_unit_test_setup_teardown(sessions_come_and_go, reset_fake, stop_and_leave),
};

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    int failed = cmocka_run_group_tests(first_session, NULL, NULL);
    failed += cmocka_run_group_tests(threads_tests, NULL, NULL);
    failed += cmocka_run_group_tests(armed_tests, NULL, NULL);
    /* The last, since somebody else has CUPTI in it, whom perfkit remembers. */
    failed += cmocka_run_group_tests(control_tests, NULL, NULL);
    return failed;
}
