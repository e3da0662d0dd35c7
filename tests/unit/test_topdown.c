/* What became of pipeline slots: which events count them, and by region (costs=topdown). */
#include "event_report.h"
#include "topdown_machine.h"
#include "valgrind.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---- which events count pipeline slots ---- */

/* As the kernel describes them, or as AMD's manuals do; and groups of them, on a mock of the
 * kernel that refuses what the documentation forbids. */

static pki_topdown found;
static char why_not[256];
static pki_perf_group group;
static pki_perf_reading from, to;
static double value[PKI_PERF_EVENTS];

/* -- what is described -- */

static void descriptions(void **state)
{
    uint64_t config = 0;
    (void)state;
    assert_true(pki_topdown_config("event=0x00,umask=0x4", &config) && config == 0x400);
    assert_true(pki_topdown_config("event=0x00,umask=0x83\n", &config) && config == 0x8300);
    assert_true(pki_topdown_config("event=0x9C,umask=0x1\n", &config) && config == 0x19c);
    config = 7;
    const char *const wrong[] = {"",
                                 "\n",
                                 "event=0x00",
                                 "umask=0x4",
                                 "event=0x00,umask=0x",
                                 "event=0x,umask=0x4",
                                 "event=0,umask=4",
                                 "event=-0x1,umask=0x4",
                                 "event=0x-1,umask=0x4",
                                 "event= 0x1,umask=0x4",
                                 "event=0x100,umask=0x4",
                                 "event=0x00,umask=0x400",
                                 "event=0x00,umask=0x4,cmask=1",
                                 "event=0x00,umask=0x4,",
                                 "event=0x00,umask=0x4 ",
                                 "event=0x00,umask=0x4\n\n",
                                 "event=0xc2,umask=0x0;event=0x00,umask=0x80",
                                 "event=0x00;umask=0x4",
                                 "Event=0x00,umask=0x4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (pki_topdown_config(wrong[i], &config) || config != 7)
            fail_msg("\"%s\" is taken", wrong[i]);
}

static bool find(void)
{
    why_not[0] = '\0';
    bool any = pki_topdown_find(&found, why_not, sizeof why_not);
    assert_true(any == (found.count > 0) && any == !why_not[0]);
    return any;
}

static void intel(void **state)
{
    (void)state;
    machine_intel("cpu");
    assert_true(find());
    assert_int_equal(found.count, 5);
    assert_false(found.counts_dispatched);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(found.event[i].config, 0x8000 + 0x100 * i);
    assert_int_equal(found.event[4].config, 0x400);
    assert_int_equal(found.event[4].type, 4);
    assert_true(pki_perf_open(&group, found.event, found.count, true));
    pki_perf_close(&group);
    /* of two sorts of cores those that have them, whatever the kernel calls them */
    machine_file(DEVICE "cpu/events/slots", NULL);
    machine_intel("cpu_core");
    machine_file(DEVICE "cpu_core/type", "10\n");
    assert_true(find());
    assert_int_equal(found.event[0].type, 10);
}

static void amd(void **state)
{
    (void)state;
    static const unsigned known[][2] = {{25, 0x11}, {25, 0x61}, {25, 0x74}, {25, 0xa0}, {26, 0x02},
                                        {26, 0x11}, {26, 0x24}, {26, 0x44}, {26, 0x60}, {26, 0x70}};
    static const unsigned other[][2] = {{23, 0x31}, {25, 0x01}, {25, 0x21}, {25, 0x50},
                                        {26, 0x50}, {26, 0x90}, {27, 0x02}, {6, 0x11}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        machine_amd(known[i][0], known[i][1]);
        assert_true(find());
        assert_int_equal(found.count, 4);
        assert_true(found.counts_dispatched);
        assert_true(pki_perf_open(&group, found.event, found.count, true));
        assert_int_equal(group.count, 4);
        pki_perf_close(&group);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        machine_amd(other[i][0], other[i][1]);
        assert_false(find());
        assert_non_null(strstr(why_not, "no counters of pipeline slots that are known here"));
    }
}

static void expect_none(const char *path, const char *text)
{
    machine_intel("cpu");
    machine_file(path, text);
    if (find())
        fail_msg("%s: \"%s\" is taken", path, text ? text : "nothing");
}

static void none(void **state)
{
    (void)state;
    assert_false(find()); /* no processor with counters at all */
    assert_non_null(strstr(why_not, "virtual machines often hide them"));
    assert_true(why_not[strlen(why_not) - 1] != '.');
    expect_none(DEVICE "cpu/type", "x4\n");
    expect_none(DEVICE "cpu/type", "");
    expect_none(DEVICE "cpu/type", "4 4\n");
    expect_none(DEVICE "cpu/events/slots", NULL);
    expect_none(DEVICE "cpu/events/slots", "event=0x3c,umask=0x0,any=1\n");
    expect_none(DEVICE "cpu/events/topdown-be-bound", NULL);
    expect_none(DEVICE "cpu/events/topdown-retiring", "event=0x00,umask=0x80,x=1\n");
    machine_file("/proc/cpuinfo", "vendor_id\t: AuthenticAMD\ncpu family\t: 26\n");
    assert_false(find()); /* which one, it does not say */
    machine_file("/proc/cpuinfo", "vendor_id\t: HygonGenuine\ncpu family\t: 26\nmodel\t: 2\n");
    assert_false(find());
}

/* -- groups -- */

/* 255 parts of slots, so that Intel's shares are exact. */
static void expect_slots(double scale)
{
    const double slots[] = {1020, 510, 260, 760};
    assert_true(pki_perf_read(&group, &from));
    mock_spend(1020, 510, 260, 760);
    assert_true(pki_perf_read(&group, &to));
    assert_true(pki_perf_between(&from, &to, value));
    if (found.counts_dispatched)
        value[1] -= value[0];
    for (int i = 0; i < 4; i++)
        if (value[i] < slots[i] - scale || value[i] > slots[i] + scale)
            fail_msg("%d: %g", i, value[i]);
}

static void open_found(void)
{
    assert_true(find());
    assert_true(pki_perf_open(&group, found.event, found.count, true));
    assert_int_equal(group.count, found.count);
    assert_int_equal(pki_perf_mask(&group), 15);
}

static void are_read_by_the_kernel(void **state)
{
    (void)state;
    mock.pages = true; /* could be, but not decoded */
    machine_intel("cpu");
    for (int vendor = 0; vendor < 2; vendor++) {
        mock_spend(3, 1, 4, 1); /* of before */
        open_found();
        expect_slots(0);
        expect_slots(0);
        assert_false(to.direct);
        assert_int_equal(mock_direct, 0);
        pki_perf_close(&group);
        machine_file(DEVICE "cpu/events/slots", NULL);
        machine_amd(26, 2);
    }
    assert_int_equal(mock_reads, 8);
}

/* A quarter of the time: each count is a quarter, and stands for four; each is off by one half. */
static void others_have_the_counters(void **state)
{
    (void)state;
    machine_amd(25, 0x11);
    mock.share = 0.25;
    open_found();
    expect_slots(4.1);
    mock.share = 0; /* never, in between */
    pki_perf_read(&group, &from);
    mock_spend(1, 1, 1, 1);
    pki_perf_read(&group, &to);
    assert_false(pki_perf_between(&from, &to, value));
    pki_perf_close(&group);
    mock.share = 0.25;
    machine_intel("cpu");
    open_found();
    expect_slots(4 * 1.1 + 2550 / 255.0);
    pki_perf_close(&group);
}

/* Opened one after the other, or as hardware events are, they are refused. */
static void slots_have_to_lead(void **state)
{
    pki_perf_event wrong[4];
    (void)state;
    machine_intel("cpu");
    assert_true(find());
    assert_false(pki_perf_open(&group, found.event, 4, true));
    assert_int_equal(errno, EINVAL);
    memcpy(wrong, found.event + 1, sizeof wrong); /* slots, but not first */
    assert_true(pki_perf_open(&group, found.event + 4, 1, true));
    pki_perf_close(&group);
    assert_false(pki_perf_open(&group, wrong, 3, true));
    memcpy(wrong, pki_perf_hardware, 2 * sizeof *wrong);
    wrong[2] = found.event[4];
    wrong[3] = found.event[0];
    assert_true(pki_perf_open(&group, wrong, 4, true));
    assert_int_equal(group.count, 2); /* those of hardware */
    pki_perf_close(&group);
}

/* Nothing is without its leader, and why is the leader's reason. */
static void refused(void **state)
{
    (void)state;
    machine_intel("cpu");
    assert_true(find());
    mock.most = 3;
    assert_true(pki_perf_open(&group, found.event, found.count, true));
    assert_int_equal(group.count, 3);
    assert_int_equal(group.error, EMFILE);
    pki_perf_close(&group);
    mock.most = 0;
    mock.core = MOCK_OTHER;
    assert_false(pki_perf_open(&group, found.event, found.count, true));
    assert_int_equal(errno, ENOENT);
    mock.core = MOCK_INTEL;
    mock.paranoid = true; /* user mode alone is what it asks for */
    assert_true(pki_perf_open(&group, found.event, found.count, true));
    pki_perf_close(&group);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_machine, leave_machine)

static const struct CMUnitTest topdown_tests[] = {
    cmocka_unit_test(descriptions),
    TEST(intel),
    TEST(amd),
    TEST(none),
    TEST(are_read_by_the_kernel),
    TEST(others_have_the_counters),
    TEST(slots_have_to_lead),
    TEST(refused),
};

/* ---- what became of pipeline slots, by region ---- */

/* On a mock of both vendors' counters that knows the truth (costs=topdown). */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), often = PK_REGION("often");

static const char *const shares[] = {"retiring", "bad_speculation", "frontend_bound",
                                     "backend_bound"};
static const double of_outer[] = {204, 203, 104, 254}; /* of 765 slots, with what is inside */
static const double of_inner[] = {51, 76, 39, 89};     /* of 255 */

static void nest(void)
{
    PK_REGION_SCOPE(outer);
    mock_spend(102, 51, 26, 76);
    for (int i = 0; i < 2; i++) {
        PK_REGION_SCOPE(inner);
        mock_spend(51, 76, 39, 89);
    }
}

/* All four and their sum, which is 1 whatever was counted. */
static void expect_shares(const char *report, const char *region, const double *slots,
                          double within)
{
    double sum = 0, all = slots[0] + slots[1] + slots[2] + slots[3];
    for (int i = 0; i < 4; i++) {
        double got = number(report, region, shares[i]);
        if (fabs(got - slots[i] / all) > within)
            fail_msg("%s of %s: %.9g, not %.9g", shares[i], region, got, slots[i] / all);
        sum += got;
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

/* As exact as they are counted: Intel's in 255 parts of what lies between two readings. */
static void expect_nest(const char *report, bool exact)
{
    expect_shares(report, "outer", of_outer, exact ? 1e-12 : 1 / 255.0);
    expect_shares(report, "inner", of_inner, exact ? 1e-12 : 1 / 255.0);
    assert_true(fabs(number(report, "outer", "slots") - 765) < (exact ? 1e-9 : 5));
    assert_true(fabs(number(report, "inner", "slots") - 255) < (exact ? 1e-9 : 5));
}

static void vendor(int which)
{
    if (which)
        machine_amd(26, 2);
    else
        machine_intel("cpu");
}

static void forget(void)
{
    machine_file(DEVICE "cpu/events/slots", NULL);
}

/* -- shares -- */

static void of_each_region(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++, forget()) {
        vendor(which);
        start("topdown");
        nest();
        assert_int_equal(mock_open_now(), which ? 4 : 5);
        nest();
        char *report = stop();
        expect(report, "outer", "calls", 2);
        expect_nest(report, which);
        if (number(report, "outer", "sampled") == 2)
            expect(report, "outer", "retiring_error", 0);
        expect(report, "outer", "instructions", -1);
        expect(report, "outer", "page_faults", -1);
        assert_non_null(strstr(report, "\"why_not_topdown\":\"\""));
        free(report);
    }
}

static void beside_the_others(void **state)
{
    (void)state;
    machine_intel("cpu");
    start("software,topdown,hardware");
    {
        PK_REGION_SCOPE(outer);
        mock_count(3000, 1000, 2, 1);
        mock_spend(102, 51, 26, 76);
    }
    assert_int_equal(mock_open_now(), 4 + 4 + 5);
    char *report = stop();
    const double slots[] = {102, 51, 26, 76};
    expect(report, "outer", "ipc", 3);
    expect(report, "outer", "instructions", 3000);
    expect_shares(report, "outer", slots, 1e-12);
    free(report);
}

/* Calls of two sorts, of which the longer one is one of four: shares are those of all slots, not
 * the mean of each call's; within the error that is told. */
static void of_a_share_of_the_calls(void **state)
{
    const uint32_t wanted = is_slow() ? 100 : 800, most = is_slow() ? 200000 : 20000000;
    const double slots[] = {3 * 100 + 1000, 0, 3 * 50 + 500, 3 * 105 + 6150};
    uint32_t calls = 0;
    (void)state;
    machine_intel("cpu");
    start("topdown");
    for (; calls < most && (calls < 20000 || mock_reads < wanted * 2); calls++) {
        PK_REGION_SCOPE(often);
        mock_spend(calls % 4 ? 100 : 1000, 0, calls % 4 ? 50 : 500, calls % 4 ? 105 : 6150);
    }
    char *report = stop();
    double sampled = number(report, "often", "sampled"), within = is_slow() ? 1 : 0.25;
    if (sampled <= 10 || sampled >= calls)
        fail_msg("%g samples of %u calls", sampled, calls);
    expect_shares(report, "often", slots, within);
    double error = number(report, "often", "backend_bound_error");
    assert_true(error > 0 && error < within);
    free(report);
}

/* Counted for a part of the time alone, it stands for all of it; never: the call has no figures. */
static void events_topdown_others_have_the_counters(void **state)
{
    (void)state;
    machine_amd(25, 0x11);
    mock.share = 0.5;
    start("topdown");
    nest();
    char *report = stop();
    expect_shares(report, "outer", of_outer, 0.01);
    assert_true(fabs(number(report, "outer", "slots") - 765) < 10);
    free(report);
    mock.share = 0;
    start("topdown");
    nest();
    report = stop();
    expect(report, "outer", "sampled", 0);
    expect(report, "outer", "missed", 1);
    expect(report, "outer", "slots", -1);
    expect(report, "outer", "retiring", -1);
    free(report);
}

/* More retired than was dispatched: of what was under way as the call began. */
static void none_are_below_zero(void **state)
{
    (void)state;
    machine_amd(26, 2);
    start("topdown");
    {
        PK_REGION_SCOPE(outer);
        mock_spend(100, (uint64_t)-20, 60, 40);
    }
    char *report = stop();
    const double slots[] = {100, 0, 60, 40};
    expect_shares(report, "outer", slots, 1e-12);
    free(report);
}

static void in_words(void **state)
{
    size_t n;
    (void)state;
    machine_amd(25, 0x11);
    assert_int_equal(
        pk_start(pk_options(.costs = "topdown", .backends = "none", .report_path = "report.txt",
                            .tuning = kit_tuning("clock=%s", the_clock))),
        PK_OK);
    nest();
    assert_int_equal(pk_stop(), PK_OK);
    char *report = read_file("report.txt", &n);
    const char *table = strstr(report, "slots retiring bad spec front-end back-end      +-\n");
    assert_non_null(table);
    assert_non_null(strstr(
        table,
        "outer                    1       1     765   26.7 %   26.5 %   13.6 %   33.2 %     0 %"));
    assert_non_null(strstr(table, " 255   20.0 %   29.8 %   15.3 %   34.9 %"));
    free(report);
}

/* -- where there are none -- */

static void expect_off(const char *sentence)
{
    start("topdown,software");
    nest();
    assert_int_equal(mock_open_now(), 4); /* those of software */
    char *report = stop();
    if (!strstr(report, sentence))
        fail_msg("no \"%s\" in %s", sentence, report);
    expect(report, "outer", "slots", -1);
    assert_true(number(report, "outer", "page_faults") >= 0);
    free(report);
}

static void events_topdown_refused(void **state)
{
    (void)state;
    expect_off("\"why_not_topdown\":\"this machine shows no hardware counters");
    machine_amd(25, 0x21); /* Zen 3 */
    expect_off("\"why_not_topdown\":\"this processor shows no counters of pipeline slots");
    machine_amd(26, 2);
    mock.pmu = 3; /* fewer than it takes: what is left would be no shares */
    start("topdown");
    nest();
    assert_int_equal(mock_open_now(), 0);
    char *report = stop();
    assert_non_null(strstr(report, "\"why_not_topdown\":\"the kernel refuses them (the processor"));
    expect(report, WHOLE, "threads", 0);
    free(report);
}

/* -- threads, sessions, forks -- */

static void *one_thread(void *none)
{
    nest();
    return none;
}

static void threads_close_what_they_opened(void **state)
{
    pthread_t threads[4];
    (void)state;
    machine_intel("cpu");
    for (int session = 0; session < 2; session++) {
        start("topdown");
        nest();
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, one_thread, NULL), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(mock_open_now(), 5);
        char *report = stop();
        expect_nest(report, false);
        free(report);
    }
}

static void a_child_has_none(void **state)
{
    int status = -1;
    (void)state;
    machine_intel("cpu");
    start("topdown");
    nest();
    pid_t child = fork();
    if (child == 0)
        _exit(mock_open_now() == 0 ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(mock_open_now(), 5);
    char *report = stop();
    expect(report, "outer", "sampled", 1);
    free(report);
}

/* The leader's descriptor alone: what is read is the group. */
static void closed_by_the_program(void **state)
{
    (void)state;
    machine_intel("cpu");
    start("topdown");
    nest();
    for (int fd = 3; fd < 1100; fd++)
        if (mock_find(fd) && !mock_events[mock_find(fd)].leader)
            close(fd);
    errno = 5;
    nest();
    assert_int_equal(errno, 5);
    char *report = stop();
    expect(report, WHOLE, "threads_lost", 1);
    expect(report, "outer", "sampled", 1);
    free(report);
}

static int finish(void **state)
{
    pk_stop();
    return leave_machine(state);
}

#define EVENTS_TOPDOWN_TEST(name) cmocka_unit_test_setup_teardown(name, enter_machine, finish)

static const struct CMUnitTest events_topdown_tests[] = {
    EVENTS_TOPDOWN_TEST(of_each_region),
    EVENTS_TOPDOWN_TEST(beside_the_others),
    EVENTS_TOPDOWN_TEST(of_a_share_of_the_calls),
    EVENTS_TOPDOWN_TEST(events_topdown_others_have_the_counters),
    EVENTS_TOPDOWN_TEST(none_are_below_zero),
    EVENTS_TOPDOWN_TEST(in_words),
    EVENTS_TOPDOWN_TEST(events_topdown_refused),
    EVENTS_TOPDOWN_TEST(threads_close_what_they_opened),
    EVENTS_TOPDOWN_TEST(a_child_has_none),
    EVENTS_TOPDOWN_TEST(closed_by_the_program),
};

static int run_events_topdown(void)
{
    int failed = cmocka_run_group_tests_name("fastest clock", events_topdown_tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", events_topdown_tests, NULL, NULL);
}

int main(void)
{
    int failed = cmocka_run_group_tests(topdown_tests, NULL, NULL);
    failed += run_events_topdown();
    return failed;
}
