/* Events per region: which calls are sampled, what their figures are, what of descriptors stays
 * open. On a mock of the kernel that knows the truth, and on this machine's software events. */
#include "event_report.h"
#include "perf_mock.h"
#include "valgrind.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "core/sampler.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), often = PK_REGION("often"),
                 after = PK_REGION("after"), alone = PK_REGION("alone");

static void pause_ms(long ms)
{
    const struct timespec rest = {0, ms * 1000000};
    nanosleep(&rest, NULL);
}

static void nest(void)
{
    PK_SCOPE(outer) {
        mock_count(100, 50, 4, 2);
        PK_SCOPE(inner)
            mock_count(1000, 2000, 10, 5);
        pk_region_begin(&inner);
        mock_count(1000, 2000, 10, 5);
        pk_region_next(&inner, &after);
        mock_count(7, 7, 7, 7);
        pk_region_end(&after);
    }
}

/* ---- what is rare is counted whole ---- */

static void every_call_of_what_is_rare(void **state)
{
    (void)state;
    start("hardware");
    for (int i = 0; i < 4; i++) {
        nest();
        pause_ms(20);
    }
    char *report = stop();
    double outers = number(report, "outer", "sampled"), inners = number(report, "inner", "sampled");
    assert_true(outers >= 1 && outers <= 4 && inners >= 1 && inners <= 8);
    expect(report, "outer", "calls", 4);
    expect(report, "outer", "instructions", 2107); /* with what is inside */
    expect(report, "outer", "cycles", 4057);
    expect(report, "inner", "instructions", 1000);
    expect(report, "inner", "ipc", 0.5);
    expect(report, "inner", "cache_misses_per_1000", 10);
    expect(report, "inner", "branch_misses_per_1000", 5);
    expect(report, "after", "branch_misses", 7);
    expect(report, "inner", "page_faults", -1);
    if (outers == 4)
        expect(report, "outer", "instructions_error", 0);
    expect(report, WHOLE, "threads", 1);
    free(report);
}

/* ---- what is frequent is sampled ---- */

/* One of four calls is five times as long: whoever took every fourth would see one kind alone. */
static void a_share_of_what_is_frequent(void **state)
{
    const uint32_t wanted = is_slow() ? 100 : 800, most = is_slow() ? 200000 : 20000000;
    uint32_t calls = 0;
    (void)state;
    mock.pages = true;
    start("hardware");
    for (; calls < most && (calls < 20000 || mock_direct < wanted * 8); calls++)
        PK_SCOPE(often)
            mock_count(calls % 4 ? 100 : 500, 100, 1, 1);
    char *report = stop();
    double sampled = number(report, "often", "sampled");
    expect(report, "often", "calls", calls);
    if (sampled <= 10 || sampled >= calls)
        fail_msg("%g samples of %u calls", sampled, calls);
    double mean = number(report, "often", "instructions");
    if (!is_slow() && (mean < 140 || mean > 260)) /* 200 +- 6 at 800 samples of like weight */
        fail_msg("%g of %g samples of %u calls", mean, sampled, calls);
    assert_true(number(report, "often", "instructions_error") > 0);
    expect(report, "often", "cycles", 100);
    expect(report, "often", "cycles_error", 0);
    free(report);
    assert_int_equal(mock_reads, 0);
}

/* ---- threads, sessions, forks ---- */

static void *one_thread(void *count)
{
    for (int i = 0; i < *(int *)count; i++)
        nest();
    return NULL;
}

static void threads_close_what_they_opened(void **state)
{
    pthread_t threads[8];
    int count = 3;
    (void)state;
    /* So small that each thread has one, also where valgrind's arena is: no call is dropped. */
    assert_int_equal(
        pk_start(pk_options(.costs = "hardware,software", .clock = the_clock, .backends = "none",
                            .report_path = "report.json", .ring_records = 1024)),
        PK_OK);
    PK_SCOPE(alone)
        assert_int_equal(mock_open_now(), 8);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, one_thread, &count), 0);
        for (size_t i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(mock_open_now(), 8);
    }
    char *report = stop();
    double sampled = number(report, WHOLE, "threads");
    assert_true(sampled >= 2 && sampled <= 25); /* as many as opening them may take */
    expect(report, "outer", "calls", 3 * 8 * 3);
    expect(report, "inner", "instructions", 1000);
    assert_true(number(report, "outer", "sampled") > 1);
    free(report);
    nest(); /* of no session */
    start(NULL);
    nest();
    report = stop();
    assert_null(strstr(report, "\"events\":"));
    free(report);
    start("hardware"); /* the thread's events are opened anew */
    nest();
    report = stop();
    expect(report, "outer", "instructions", 2107);
    free(report);
}

/* A thread that has its events as the session ends. */
static void *goes_on(void *stopped)
{
    nest();
    pki_store_release((int *)stopped, 1);
    while (pki_load_acquire((int *)stopped) < 2)
        nest();
    return NULL;
}

static void ended_by_another_thread(void **state)
{
    pthread_t thread;
    int stopped = 0;
    (void)state;
    start("hardware");
    assert_int_equal(pthread_create(&thread, NULL, goes_on, &stopped), 0);
    while (!pki_load_acquire(&stopped))
        sched_yield();
    assert_int_equal(pk_stop(), PK_OK);
    pki_store_release(&stopped, 2);
    pthread_join(thread, NULL);
    assert_int_equal(mock_open_now(), 0);
}

static void a_child_has_none(void **state)
{
    int status = -1;
    (void)state;
    start("hardware");
    nest();
    assert_int_equal(mock_open_now(), 4);
    pid_t child = fork();
    if (child == 0)
        _exit(mock_open_now() == 0 ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(mock_open_now(), 4);
    nest();
    char *report = stop();
    expect(report, "outer", "sampled", 2);
    free(report);
}

/* ---- what is refused ---- */

static void expect_off(const char *sentence)
{
    start("hardware");
    nest();
    assert_int_equal(mock_open_now(), 0);
    char *report = stop();
    if (!strstr(report, sentence))
        fail_msg("no \"%s\" in %s", sentence, report);
    expect(report, WHOLE, "threads", 0);
    free(report);
}

static void refused(void **state)
{
    (void)state;
    mock.refuses = ENOENT;
    expect_off("virtual machines often hide them");
    mock.refuses = EACCES;
    expect_off("kernel.perf_event_paranoid is ");
    mock.refuses = ENOSYS;
    expect_off("this kernel has no perf_event_open");
    mock.refuses = EMFILE;
    expect_off("ulimit -n");
}

static void some_are_named(void **state)
{
    (void)state;
    mock.missing = 1u << PERF_COUNT_HW_CACHE_MISSES | 1u << PERF_COUNT_HW_BRANCH_MISSES;
    start("hardware");
    nest();
    char *report = stop();
    assert_non_null(strstr(report, "not counted: cache misses, branch misses"));
    expect(report, "inner", "cache_misses", -1);
    expect(report, "inner", "cache_misses_per_1000", -1);
    expect(report, "inner", "ipc", 0.5);
    free(report);
}

/* A thread gets all or nothing: figures of threads are added up. */
static void a_thread_gets_none(void **state)
{
    pthread_t thread;
    int count = 1;
    (void)state;
    start("hardware");
    nest();
    mock.most = 6;
    assert_int_equal(pthread_create(&thread, NULL, one_thread, &count), 0);
    pthread_join(thread, NULL);
    assert_int_equal(mock_open_now(), 4);
    char *report = stop();
    expect(report, WHOLE, "threads_without", 1);
    assert_non_null(strstr(report, "\"why_threads\":\"too many files are open"));
    expect(report, "outer", "sampled", 1);
    free(report);
}

static void closed_by_the_program(void **state)
{
    (void)state;
    start("hardware");
    nest();
    for (int fd = 3; fd < 1100; fd++) /* as close_range would */
        if (mock_find(fd))
            close(fd);
    errno = 5;
    nest();
    assert_int_equal(errno, 5);
    nest();
    char *report = stop();
    expect(report, WHOLE, "threads_lost", 1);
    expect(report, "outer", "sampled", 1);
    free(report);
}

/* The counters were others' all the time: such calls have no figures, and are counted. */
static void never_on_the_processor(void **state)
{
    (void)state;
    mock.share = 0;
    start("hardware");
    nest();
    char *report = stop();
    expect(report, "outer", "sampled", 0);
    expect(report, "outer", "missed", 1);
    expect(report, "outer", "instructions", -1);
    free(report);
}

/* ---- this machine ---- */

#define PAGES 64

static void touch_pages(void)
{
    long size = sysconf(_SC_PAGESIZE);
    volatile char *p = mmap(NULL, (size_t)size * PAGES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise((void *)(uintptr_t)p, (size_t)size * PAGES, MADV_NOHUGEPAGE);
    for (long i = 0; i < PAGES; i++)
        p[i * size] = 1;
    munmap((void *)(uintptr_t)p, (size_t)size * PAGES);
}

static void software_events(void **state)
{
    pki_perf_group group;
    (void)state;
    if (is_slow() || !pki_perf_open(&group, pki_perf_software, PKI_PERF_EVENTS, true)) {
        print_message("this kernel counts no software events here\n");
        skip();
    }
    unsigned count = group.count;
    pki_perf_close(&group);
    start("software");
    for (int i = 0; i < 10; i++) {
        PK_SCOPE(inner)
            touch_pages();
        PK_SCOPE(outer)
            pause_ms(2);
    }
    char *report = stop();
    double faults = number(report, "inner", "page_faults");
    if (faults < PAGES || faults > 20 * PAGES) /* sanitizers touch pages of their own */
        fail_msg("%g page faults", faults);
    if (count == PKI_PERF_EVENTS)
        assert_true(number(report, "outer", "context_switches") >= 1);
    free(report);
}

static int begin(void **state)
{
    return enter_folder(state) || use_mock(state);
}

static int begin_real(void **state)
{
    static const pki_perf_calls *kernel;
    kernel = kernel ? kernel : pki_perf_system;
    pki_perf_system = kernel;
    return enter_folder(state);
}

static int finish(void **state)
{
    pk_stop();
    return leave_folder(state) || end_mock(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest real[] = {
        cmocka_unit_test_setup_teardown(software_events, begin_real, finish)};
    const struct CMUnitTest tests[] = {
        TEST(every_call_of_what_is_rare),
        TEST(a_share_of_what_is_frequent),
        TEST(threads_close_what_they_opened),
        TEST(ended_by_another_thread),
        TEST(a_child_has_none),
        TEST(refused),
        TEST(some_are_named),
        TEST(a_thread_gets_none),
        TEST(closed_by_the_program),
        TEST(never_on_the_processor),
    };
    int failed = cmocka_run_group_tests_name("software", real, NULL, NULL);
    failed += cmocka_run_group_tests_name("fastest clock", tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", tests, NULL, NULL);
}
