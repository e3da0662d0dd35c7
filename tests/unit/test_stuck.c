/* Calls of the driver that do not come back: pk_stop and pk_flush go on without them, and lose
 * nothing else. On the mocks of CUDA's driver; cupti/test_cupti_stuck.c has those of CUPTI. */
#include "gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "document.h"
#include "folder.h"
#include "session/activity.h"
#include "session/collector/collect.h"

#define PATIENCE_NS 300000000u
#define FOR_GOOD_NS 60000000000u /* no busy machine takes as long */

static char *program_name, *library; /* this program's arguments, wherever it has gone since */
static pk_region around = PK_REGION("around");
static pk_region other = PK_REGION("other");
static pk_region program = PK_REGION("program");

#define RECORDED 6144 /* calls of it, which a ring has room for */

static void record(void)
{
    for (unsigned i = 0; i < RECORDED; i++) {
        PK_REGION_SCOPE(program);
    }
}

/* ---- a call of the thread that asks, which comes back when it is let ---- */

static fake_call which;
static bool within, over;

static void hang_in(fake_call call)
{
    char name[16] = "";
    if (__atomic_load_n(&which, __ATOMIC_ACQUIRE) != call ||
        __atomic_load_n(&over, __ATOMIC_ACQUIRE))
        return;
    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (strcmp(name, "pk-asker") != 0)
        return;
    __atomic_store_n(&within, true, __ATOMIC_RELEASE);
    await(__atomic_load_n(&over, __ATOMIC_ACQUIRE));
    __atomic_store_n(&within, false, __ATOMIC_RELEASE);
}

static void let_hang(fake_call call)
{
    __atomic_store_n(&over, false, __ATOMIC_RELEASE);
    __atomic_store_n(&which, call, __ATOMIC_RELEASE);
}

static void let_go(void)
{
    __atomic_store_n(&which, FAKE_CALLS, __ATOMIC_RELEASE);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
}

static int set_up(void **state)
{
    gpu->reset();
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    within = false;
    let_go();
    gpu->on_call(hang_in);
    pki_asker_patience_ns = PATIENCE_NS;
    return enter_folder(state);
}

/* The thread that was left behind has given everything back: a session has the backend again. */
static void await_return(void)
{
    let_go();
    for (bool off = true; off;) {
        assert_int_equal(pk_start(pk_options(.backends = "cuda")), PK_OK);
        off = strncmp(words(), "off", 3) == 0;
        assert_int_equal(pk_stop(), PK_OK);
        sleep_ms(1);
    }
}

static int tear_down(void **state)
{
    gpu->hold(false);
    pk_stop();
    await_return();
    gpu->on_call(NULL);
    return leave_folder(state);
}

static void start_here(const char *trace)
{
    assert_int_equal(pk_start(pk_options(.backends = "cuda", .trace_path = trace)), PK_OK);
}

/* ns */
static uint64_t stop_in_time(void)
{
    uint64_t from = pki_monotonic_ns();
    assert_int_equal(pk_stop(), PK_OK);
    return pki_monotonic_ns() - from;
}

static void expect_all_of_the_program(const char *trace)
{
    pk_counts c = {.size = sizeof c};
    assert_int_equal(pk_get_counts(&c), PK_OK);
    assert_int_equal(c.dropped + c.unwritten, 0);
    assert_int_equal(c.recorded, c.begun);
    json_t *doc = load_document(trace);
    assert_int_equal(count_events(doc, "X", "program"), RECORDED);
    json_decref(doc);
}

static pk_gpu_counts expect_sums(void)
{
    pk_gpu_counts c = counts_now();
    assert_int_equal(c.begun, c.recorded + c.dropped + c.skipped + c.lost);
    return c;
}

/* ---- whatever the call ---- */

/* Spans whose events the thread has to ask about, make, place and read. On a busy machine those
 * that come before it has made any events find none. */
static unsigned give_spans(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        span(&around);
    return n;
}

/* So many until the thread is within the call. */
static unsigned give_work(fake_call call)
{
    gpu->hold(call == FAKE_EVENT_CREATE); /* so that many pairs are out, and more are made */
    unsigned given = give_spans(60);
    for (; !__atomic_load_n(&within, __ATOMIC_ACQUIRE); sleep_ms(1))
        given += give_spans(1);
    return given;
}

static bool all_read(unsigned given)
{
    pk_gpu_counts c = counts_now();
    return c.recorded + c.dropped == given;
}

static void never_comes_back(fake_call call)
{
    let_hang(call); /* before the thread begins, which asks some things but once */
    start_here("stuck.json");
    unsigned given = give_work(call);
    record();
    assert_true(stop_in_time() >= PATIENCE_NS);
    assert_true(__atomic_load_n(&within, __ATOMIC_ACQUIRE));
    expect_all_of_the_program("stuck.json");
    assert_int_equal(expect_sums().begun, given);
    expect_words("has not come back");

    pki_asker_patience_ns = FOR_GOOD_NS;
    start_here("without.json"); /* which does without it */
    expect_words("off: a call that an earlier session made");
    span(&around);
    record();
    assert_true(stop_in_time() < FOR_GOOD_NS);
    pki_asker_patience_ns = PATIENCE_NS;
    expect_all_of_the_program("without.json");
    assert_int_equal(counts_now().begun, 0);
    expect_words("off: a call that an earlier session made");

    gpu->hold(false);
    await_return();
    start_here("again.json");
    span(&other);
    await(counts_now().recorded == 1);
    stop_and_count();
}

static void in_any_call(void **state)
{
    static const fake_call calls[] = {
        FAKE_EVENT_CREATE, /* the first: later there are pairs enough */
        FAKE_EVENT_QUERY,     FAKE_EVENT_ELAPSED, FAKE_CTX_PUSH,
        FAKE_CTX_API_VERSION, FAKE_EXCHANGE_MODE}; /* it need not record any event by itself */
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        never_comes_back(calls[i]);
}

/* ---- when it comes back ---- */

/* Amid another session, which has nothing of it. */
static void after_the_bound(void **state)
{
    (void)state;
    start_here("stuck.json");
    let_hang(FAKE_EVENT_ELAPSED);
    give_work(FAKE_EVENT_ELAPSED);
    stop_in_time();
    start_here("next.json");
    let_go();
    await(!__atomic_load_n(&within, __ATOMIC_ACQUIRE));
    record();
    sleep_ms(50);
    assert_int_equal(pki_activity_counted().added, 0);
    stop_in_time();
    expect_all_of_the_program("next.json");
    json_t *doc = load_document("next.json");
    assert_int_equal(count_events(doc, "X", "around"), 0);
    json_decref(doc);
}

static void *release(void *none)
{
    (void)none;
    sleep_ms(PATIENCE_NS / 3000000);
    let_go();
    return NULL;
}

/* All of it is there, then. */
static void within_the_bound(void **state)
{
    pthread_t thread;
    (void)state;
    start_here("late.json");
    let_hang(FAKE_EVENT_QUERY);
    unsigned given = give_work(FAKE_EVENT_QUERY);
    assert_int_equal(pthread_create(&thread, NULL, release, NULL), 0);
    stop_in_time();
    pthread_join(thread, NULL);
    pk_gpu_counts c = expect_sums();
    assert_int_equal(c.recorded + c.dropped, given);
    assert_true(c.recorded > 0);
}

/* Between the last look and pk_stop: the call that hangs is one of pk_stop's. */
static void in_the_last_look(void **state)
{
    (void)state;
    start_here("stuck.json");
    unsigned given = give_spans(60);
    await(all_read(given));
    while (counts_now().recorded == 0)
        given += give_spans(1);
    await(all_read(given));
    gpu->hold(true);
    span(&other);
    let_hang(FAKE_EVENT_QUERY);
    record();
    stop_in_time();
    gpu->hold(false);
    expect_all_of_the_program("stuck.json");
    pk_gpu_counts c = expect_sums();
    assert_int_equal(c.recorded + c.dropped, given);
    assert_int_equal(c.lost, 1);
}

/* ---- pk_flush, pk_backend_status, exit ---- */

/* What the program has recorded is in the file; the next ones do not wait. */
static void a_flush(void **state)
{
    (void)state;
    start_here("flushed.json");
    let_hang(FAKE_EVENT_QUERY);
    unsigned given = give_work(FAKE_EVENT_QUERY);
    record();
    uint64_t from = pki_monotonic_ns();
    assert_int_equal(pk_flush(), PK_OK);
    assert_true(pki_monotonic_ns() - from >= PATIENCE_NS);
    json_t *doc = load_document("flushed.json");
    assert_int_equal(count_events(doc, "X", "program"), RECORDED);
    json_decref(doc);
    from = pki_monotonic_ns();
    assert_int_equal(pk_flush(), PK_OK);
    assert_true(pki_monotonic_ns() - from < PATIENCE_NS);
    await(strstr(words(), "a call of its library has not come back for "));
    let_go();
    await(all_read(given));
    assert_int_equal(pk_flush(), PK_OK);
    stop_and_count();
}

/* The whole of it is written, as if pk_stop had been called. */
static void exit_amid_it(void)
{
    start_here("exited.json");
    let_hang(FAKE_EVENT_QUERY);
    give_work(FAKE_EVENT_QUERY);
    record();
    exit(0);
}

static void an_exit(void **state)
{
    int status = -1;
    (void)state;
#ifdef EMULATED
    skip(); /* the kernel starts no program of another machine */
#endif
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", program_name, library, "exit", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    json_t *doc = load_document("exited.json");
    assert_int_equal(count_events(doc, "X", "program"), RECORDED);
    json_decref(doc);
    assert_false(exists("exited.json.arena"));
}

#define stuck(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        stuck(in_any_call),      stuck(after_the_bound), stuck(within_the_bound),
        stuck(in_the_last_look), stuck(a_flush),         stuck(an_exit),
    };
    if (argc < 2)
        return 2;
    program_name = argv[0];
    library = realpath(argv[1], NULL);
    if (!library)
        return 2;
    open_double(library);
    if (argc > 2) {
        gpu->on_call(hang_in);
        the_context = gpu->context_create(0);
        the_stream = gpu->stream_create(the_context);
        pki_asker_patience_ns = PATIENCE_NS;
        exit_amid_it();
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(library);
    return failed;
}
