/* Events per region: groups of them, which calls are sampled, and what their figures are. */
#include "event_report.h"
#include "valgrind.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "core/registry.h"
#include "core/events.h"
#include "core/thin.h"
#include "measure/costs/events.h"

/* ---- events per region ---- */

/* Which calls are sampled, what their figures are, what of descriptors stays open. On a mock of
 * the kernel that knows the truth, and on this machine's software events. */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), often = PK_REGION("often"),
                 after = PK_REGION("after"), alone = PK_REGION("alone");

static void pause_ms(long ms)
{
    const struct timespec rest = {0, ms * 1000000};
    nanosleep(&rest, NULL);
}

static void nest(void)
{
    PK_REGION_SCOPE(outer);
    mock_count(100, 50, 4, 2);
    {
        PK_REGION_SCOPE(inner);
        mock_count(1000, 2000, 10, 5);
    }
    pk_region_begin(&inner);
    mock_count(1000, 2000, 10, 5);
    pk_region_next(&inner, &after);
    mock_count(7, 7, 7, 7);
    pk_region_end(&after);
}

/* -- what is rare is counted whole -- */

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

/* -- what is frequent is sampled -- */

/* One of four calls is five times as long: whoever took every fourth would see one kind alone. */
static void a_share_of_what_is_frequent(void **state)
{
    const uint32_t wanted = is_slow() ? 100 : 800, most = is_slow() ? 200000 : 20000000;
    uint32_t calls = 0;
    (void)state;
    mock.pages = true;
    start("hardware");
    for (; calls < most && (calls < 20000 || mock_direct < wanted * 8); calls++) {
        PK_REGION_SCOPE(often);
        mock_count(calls % 4 ? 100 : 500, 100, 1, 1);
    }
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

/* -- threads, sessions, forks -- */

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
        pk_start(pk_options(.costs = "hardware,software", .backends = "none",
                            .report_path = "report.json",
                            .tuning = kit_tuning("clock=%s,ring_records=1024", the_clock))),
        PK_OK);
    {
        PK_REGION_SCOPE(alone);
        assert_int_equal(mock_open_now(), 8);
    }
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

/* -- what is refused -- */

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

/* -- this machine -- */

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
        {
            PK_REGION_SCOPE(inner);
            touch_pages();
        }
        PK_REGION_SCOPE(outer);
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

static const struct CMUnitTest real[] = {
    cmocka_unit_test_setup_teardown(software_events, begin_real, finish)};

static const struct CMUnitTest events_tests[] = {
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

static int run_events(void)
{
    int failed = cmocka_run_group_tests_name("software", real, NULL, NULL);
    failed += cmocka_run_group_tests_name("fastest clock", events_tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", events_tests, NULL, NULL);
}

/* ---- sums of sampled calls ---- */

/* They become means, quotients and their errors, by hand on the other side. */

static void sums_make_figures(void **state)
{
    pki_event_sums sums = {0};
    pki_events_row row = {0};
    (void)state;
    /* 20 calls of 100 instructions and 50 cycles, each for 1; 20 of 300 and 100, each for 3 */
    for (int i = 0; i < 40; i++) {
        double w = i < 20 ? 1 : 3, x[2] = {i < 20 ? 100 : 300, i < 20 ? 50 : 100};
        sums.sampled++;
        sums.weight += w;
        sums.weight2 += w * w;
        for (int j = 0; j < 2; j++) {
            sums.sum[j] += w * x[j];
            sums.sum2[j] += w * w * x[j];
            sums.square[j] += w * w * x[j] * x[j];
            sums.beside[j] += w * w * x[j] * x[0];
        }
    }
    pki_event_sums_fill(&sums, 80, 3, &row);
    assert_true(row.value[0] == 250 && row.value[1] == 87.5 && row.value[2] == -1);
    assert_true(fabs(row.ratio[PKI_EVENT_IPC] - 250 / 87.5) < 1e-12);
    /* sum(w^2 (x - m)^2) = 20 x 150^2 + 20 x 9 x 50^2; of the quotient with x = a - R b */
    double mean = 2 * sqrt(40.0 / 39 * (20 * 22500.0 + 180 * 2500.0) * 0.5) / 80;
    double r = 250 / 87.5, one = 100 - r * 50, other = 300 - r * 100;
    double ratio = 2 * sqrt(40.0 / 39 * (20 * one * one + 180 * other * other) * 0.5) / 7000;
    assert_true(fabs(row.error[0] / mean - 1) < 1e-9);
    assert_true(fabs(row.ratio_error[PKI_EVENT_IPC] / ratio - 1) < 1e-9);
    pki_event_sums_fill(&sums, 40, 3, &row); /* all of them: that is no sample */
    assert_true(row.error[0] == 0);
    sums.sampled = 9;
    pki_event_sums_fill(&sums, 80, 3, &row);
    assert_true(row.error[0] == -1);
}

/* 20 calls of 10, 20, 30, 40 slots, each for 1; 20 of 100, 50, 40, 10, each for 3. */
static void slots_make_shares(void **state)
{
    static const double one[4] = {10, 20, 30, 40}, other[4] = {100, 50, 40, 10};
    pki_event_sums sums = {.sampled = 40, .weight = 80, .weight2 = 200};
    pki_events_row row = {0};
    double sum = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        int at = PKI_EVENT_AT(PKI_TOPDOWN, i);
        sums.sum[at] = 20 * one[i] + 60 * other[i];
        sums.sum2[at] = 20 * one[i] + 180 * other[i];
        sums.square[at] = 20 * one[i] * one[i] + 180 * other[i] * other[i];
        sums.beside[at] = 20 * one[i] * 100 + 180 * other[i] * 200;
    }
    pki_event_sums_fill(&sums, 80, PKI_EVENT_MASK(PKI_TOPDOWN), &row);
    assert_true(row.value[PKI_EVENT_SLOTS] == 175); /* 20 x 100 and 60 x 200, of 80 */
    double mean = 2 * sqrt(40.0 / 39 * (20 * 75.0 * 75 + 180 * 25.0 * 25) * 0.5) / 80;
    assert_true(fabs(row.error[PKI_EVENT_SLOTS] / mean - 1) < 1e-9);
    for (int i = 0; i < 4; i++) {
        double share = (20 * one[i] + 60 * other[i]) / 14000;
        double a = one[i] - share * 100, b = other[i] - share * 200;
        double error = 2 * sqrt(40.0 / 39 * (20 * a * a + 180 * b * b) * 0.5) / 14000;
        assert_true(fabs(row.ratio[PKI_EVENT_RETIRING + i] / share - 1) < 1e-12);
        assert_true(fabs(row.ratio_error[PKI_EVENT_RETIRING + i] / error - 1) < 1e-9);
        sum += row.ratio[PKI_EVENT_RETIRING + i];
    }
    assert_true(fabs(sum - 1) < 1e-12);
    assert_true(row.value[0] == -1 && row.value[4] == -1 && row.ratio[PKI_EVENT_IPC] == -1);
    pki_event_sums_fill(&sums, 80, PKI_EVENT_MASK(PKI_HARDWARE), &row);
    assert_true(row.value[PKI_EVENT_SLOTS] == -1 && row.ratio[PKI_EVENT_RETIRING] == -1);
}

static const struct CMUnitTest event_figures_tests[] = {cmocka_unit_test(sums_make_figures),
                                                        cmocka_unit_test(slots_make_shares)};

/* ---- events of a region that is thinned ---- */

/* It is called so often that looks pick its samples, and is thinned from then on: of its timed
 * calls a few are sampled, each with the weight with which it was drawn. */

#define THIN 16

static pk_region events_thinned_often = PK_REGION("often");

static void call(uint64_t instructions)
{
    PK_REGION_SCOPE(events_thinned_often);
    mock_count(instructions, 100, 1, 1);
}

/* As session/collector/thinning.c does. */
static void thin(uint32_t n)
{
    pki_thin_set(pki_region_id(&events_thinned_often), n);
    pki_registry_lock();
    pki_thin_watch(pki_registry_now(), true);
    pki_registry_unlock();
}

/* Half of the calls before, and half with, which count three times as much: a mean of 200 says that
 * either half has its weight. */
static void half_of_the_calls(void **state)
{
    const uint32_t wanted = is_slow() ? 100 : 400, most = is_slow() ? 100000 : 10000000;
    uint32_t calls = 0, i;
    (void)state;
    mock.pages = true;
    start("hardware");
    for (; calls < most && (calls < 20000 || mock_direct < wanted * 8); calls++)
        call(100);
    uint32_t before = mock_direct / 8;
    thin(THIN);
    for (i = 0; i < calls; i++)
        call(300);
    uint32_t with = mock_direct / 8 - before;
    thin(0);
    char *report = stop();
    expect(report, "often", "calls", 2.0 * calls);
    if (with > calls / THIN) /* of two in THIN that are timed */
        fail_msg("%u samples of %u calls", with, calls);
    double mean = number(report, "often", "instructions");
    if (!is_slow() && (mean < 150 || mean > 250))
        fail_msg("%g: %u samples, and %u of %u calls", mean, before, with, calls);
    free(report);
}

static const struct CMUnitTest events_thinned_tests[] = {
    cmocka_unit_test_setup_teardown(half_of_the_calls, begin, finish)};

static int run_events_thinned(void)
{
    int failed = cmocka_run_group_tests_name("fastest clock", events_thinned_tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", events_thinned_tests, NULL, NULL);
}

/* ---- groups of events ---- */

/* Opened, read through their pages or by the kernel, scaled, refused, and left alone when the
 * program has closed them. The kernel is a mock that knows the truth. */

static pki_perf_group perf_group;
static pki_perf_reading from, to;
static double value[PKI_PERF_EVENTS];

static void open_hardware(void)
{
    assert_true(pki_perf_open(&perf_group, pki_perf_hardware, PKI_PERF_EVENTS, true));
}

/* 300 instructions, 200 cycles, 7 and 3 misses. */
static void expect_counted(double scale)
{
    const double wanted[] = {300, 200, 7, 3};
    assert_true(pki_perf_read(&perf_group, &from));
    mock_count(300, 200, 7, 3);
    assert_true(pki_perf_read(&perf_group, &to));
    assert_true(pki_perf_between(&from, &to, value));
    for (unsigned i = 0; i < perf_group.count; i++) {
        double off = value[perf_group.which[i]] - wanted[perf_group.which[i]];
        if (off > scale || off < -scale)
            fail_msg("event %u: %g", perf_group.which[i], value[perf_group.which[i]]);
    }
}

static void by_the_kernel(void **state)
{
    (void)state;
    mock_count(5, 5, 5, 5); /* of before */
    open_hardware();
    assert_int_equal(perf_group.count, 4);
    expect_counted(0);
    assert_int_equal(mock_reads, 2);
    assert_int_equal(mock_direct, 0);
    pki_perf_close(&perf_group);
}

static void by_pages(void **state)
{
    (void)state;
    mock.pages = true;
    open_hardware();
    expect_counted(0);
    assert_true(from.direct && to.direct);
    assert_int_equal(mock_reads, 0);
    assert_int_equal(mock_direct, 8);
    mock.moves = 3; /* three readings are torn: they are made again */
    expect_counted(0);
    assert_int_equal(mock_direct, 19);
    pki_perf_close(&perf_group);
}

/* A page that never holds still is left to the kernel. */
static void pages_that_move(void **state)
{
    (void)state;
    mock.pages = true;
    open_hardware();
    mock.moves = UINT32_MAX;
    expect_counted(0);
    assert_int_equal(mock_reads, 2);
    pki_perf_close(&perf_group);
}

/* The 48 bits of the processor's counter go through their highest bit, and through 0. */
static void counters_wrap(void **state)
{
    const uint64_t step = (uint64_t)1 << 46;
    (void)state;
    mock.pages = true;
    open_hardware();
    for (int i = 0; i < 7; i++) {
        pki_perf_read(&perf_group, &from);
        mock_count(step, step / 2, 0, 0);
        mock_page[0].offset += (int64_t)(i % 2 ? 0 : 1); /* the kernel's part counts, too */
        pki_perf_read(&perf_group, &to);
        assert_true(pki_perf_between(&from, &to, value));
        if (i < 1)
            assert_true(value[0] == (double)(step + 1));
        assert_true(value[1] == (double)(step / 2));
    }
    pki_perf_close(&perf_group);
}

static void others_have_the_counters(void **state)
{
    (void)state;
    mock.pages = true;
    mock.share = 0.25;
    open_hardware();
    for (int i = 0; i < PKI_PERF_EVENTS; i++)
        mock_page[i].time_running = 1; /* so pages do not tell it all */
    expect_counted(2.1);               /* 0.5 of a count is 2 */
    assert_int_equal(mock_reads, 2);
    mock.share = 0; /* never, in between */
    pki_perf_read(&perf_group, &from);
    pki_perf_read(&perf_group, &to);
    assert_false(pki_perf_between(&from, &to, value));
    pki_perf_close(&perf_group);
}

/* One way at the beginning and the other at the end: it lost its place in between. */
static void a_place_is_lost(void **state)
{
    (void)state;
    mock.pages = true;
    open_hardware();
    pki_perf_read(&perf_group, &from);
    mock_page[2].index = 0;
    pki_perf_read(&perf_group, &to);
    assert_false(pki_perf_between(&from, &to, value));
    pki_perf_close(&perf_group);
}

static void some_are_missing(void **state)
{
    (void)state;
    mock.missing = 1u << PERF_COUNT_HW_CACHE_MISSES;
    open_hardware();
    assert_int_equal(perf_group.count, 3);
    assert_int_equal(perf_group.error, ENOENT);
    expect_counted(0);
    assert_true(value[2] == 0);
    pki_perf_close(&perf_group);
    mock.missing = 1u << PERF_COUNT_HW_INSTRUCTIONS; /* another one leads */
    open_hardware();
    expect_counted(0);
    pki_perf_close(&perf_group);
    mock.missing = 0;
    mock.pmu = 2; /* a group beyond is refused */
    open_hardware();
    assert_int_equal(perf_group.count, 2);
    expect_counted(0);
    pki_perf_close(&perf_group);
}

static void expect_refused(int error, const char *word)
{
    char text[256];
    mock.refuses = error;
    assert_false(pki_perf_open(&perf_group, pki_perf_hardware, PKI_PERF_EVENTS, true));
    assert_int_equal(errno, error);
    assert_false(pki_perf_read(&perf_group, &from));
    pki_perf_turn(&perf_group, true);
    pki_perf_close(&perf_group);
    pki_perf_explain(error, text, sizeof text);
    if (!strstr(text, word) || text[strlen(text) - 1] == '.')
        fail_msg("%s", text);
}

static void refusals_say_why(void **state)
{
    (void)state;
    expect_refused(EACCES, "kernel.perf_event_paranoid");
    expect_refused(EPERM, "container");
    expect_refused(ENOENT, "virtual machines");
    expect_refused(EOPNOTSUPP, "virtual machines");
    expect_refused(ENOSYS, "perf_event_open");
    expect_refused(EMFILE, "ulimit");
    expect_refused(EINVAL, "too few counters");
}

static void as_much_as_the_kernel_allows(void **state)
{
    (void)state;
    mock.paranoid = true;
    open_hardware(); /* user mode alone is what it asks for anyway */
    assert_int_equal(perf_group.count, 4);
    pki_perf_close(&perf_group);
    assert_true(pki_perf_open(&perf_group, pki_perf_software, PKI_PERF_EVENTS, true));
    assert_int_equal(perf_group.count, 2); /* what happens in the kernel cannot be counted so */
    assert_int_equal(perf_group.error, EACCES);
    assert_int_equal(perf_group.which[1], 1);
    pki_perf_close(&perf_group);
}

static void too_few_descriptors(void **state)
{
    (void)state;
    mock.most = 3;
    open_hardware();
    assert_int_equal(perf_group.count, 3);
    assert_int_equal(perf_group.error, EMFILE);
    expect_counted(0);
    pki_perf_close(&perf_group);
}

/* The program closes it, and has a file of its own under that number: nothing is read of it, and it
 * stays open. */
static void perf_closed_by_the_program(void **state)
{
    uint64_t one = 1;
    (void)state;
    open_hardware();
    int fd = perf_group.own[0].fd, theirs = eventfd(1, EFD_CLOEXEC);
    assert_true(theirs >= 0 && dup3(theirs, fd, O_CLOEXEC) == fd);
    assert_false(pki_perf_read(&perf_group, &from));
    assert_true(write(theirs, &one, sizeof one) == sizeof one);
    pki_perf_close(&perf_group);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_true(read(fd, &one, sizeof one) == sizeof one && one == 2);
    close(fd);
    close(theirs);
}

/* A mapping keeps its event. */
static void closed_but_mapped(void **state)
{
    (void)state;
    mock.pages = true;
    open_hardware();
    for (unsigned i = 0; i < perf_group.count; i++)
        close(perf_group.own[i].fd);
    expect_counted(0);
    pki_perf_close(&perf_group);
}

static void waits_to_be_turned_on(void **state)
{
    const pki_perf_reading none = {{0}, 0, 0, false};
    (void)state;
    assert_true(pki_perf_open(&perf_group, pki_perf_hardware, 1, false));
    mock_count(1000, 0, 0, 0);
    pki_perf_turn(&perf_group, true);
    mock_count(30, 0, 0, 0);
    pki_perf_turn(&perf_group, false);
    mock_count(1000, 0, 0, 0);
    assert_true(pki_perf_read(&perf_group, &to) && pki_perf_between(&none, &to, value));
    assert_true(value[0] == 30);
    pki_perf_close(&perf_group);
}

#define PERF_TEST(name) cmocka_unit_test_setup_teardown(name, use_mock, end_mock)

static const struct CMUnitTest perf_tests[] = {
    PERF_TEST(by_the_kernel),
    PERF_TEST(by_pages),
    PERF_TEST(pages_that_move),
    PERF_TEST(counters_wrap),
    PERF_TEST(others_have_the_counters),
    PERF_TEST(a_place_is_lost),
    PERF_TEST(some_are_missing),
    PERF_TEST(refusals_say_why),
    PERF_TEST(as_much_as_the_kernel_allows),
    PERF_TEST(too_few_descriptors),
    PERF_TEST(perf_closed_by_the_program),
    PERF_TEST(closed_but_mapped),
    PERF_TEST(waits_to_be_turned_on),
};

int main(void)
{
    int failed = run_events();
    failed += cmocka_run_group_tests(event_figures_tests, NULL, NULL);
    failed += run_events_thinned();
    failed += cmocka_run_group_tests(perf_tests, NULL, NULL);
    return failed;
}
