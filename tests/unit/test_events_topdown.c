/* What became of pipeline slots, by region: costs=topdown, on a mock of both vendors' counters that
 * knows the truth. */
#include "event_report.h"
#include "topdown_machine.h"
#include "valgrind.h"

#include <pthread.h>
#include <sys/wait.h>

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner"), often = PK_REGION("often");

static const char *const shares[] = {"retiring", "bad_speculation", "frontend_bound",
                                     "backend_bound"};
static const double of_outer[] = {204, 203, 104, 254}; /* of 765 slots, with what is inside */
static const double of_inner[] = {51, 76, 39, 89};     /* of 255 */

static void nest(void)
{
    PK_SCOPE(outer) {
        mock_spend(102, 51, 26, 76);
        for (int i = 0; i < 2; i++)
            PK_SCOPE(inner)
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

/* ---- shares ---- */

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
    PK_SCOPE(outer) {
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
    for (; calls < most && (calls < 20000 || mock_reads < wanted * 2); calls++)
        PK_SCOPE(often)
            mock_spend(calls % 4 ? 100 : 1000, 0, calls % 4 ? 50 : 500, calls % 4 ? 105 : 6150);
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
static void others_have_the_counters(void **state)
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
    PK_SCOPE(outer)
        mock_spend(100, (uint64_t)-20, 60, 40);
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
    assert_int_equal(pk_start(pk_options(.costs = "topdown", .clock = the_clock, .backends = "none",
                                         .report_path = "report.txt")),
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

/* ---- where there are none ---- */

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

static void refused(void **state)
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

/* ---- threads, sessions, forks ---- */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_machine, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_each_region),
        TEST(beside_the_others),
        TEST(of_a_share_of_the_calls),
        TEST(others_have_the_counters),
        TEST(none_are_below_zero),
        TEST(in_words),
        TEST(refused),
        TEST(threads_close_what_they_opened),
        TEST(a_child_has_none),
        TEST(closed_by_the_program),
    };
    int failed = cmocka_run_group_tests_name("fastest clock", tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", tests, NULL, NULL);
}
