/* Events per region when the n-th call to the kernel fails, for every n: what is sampled is right
 * or not there, all calls are counted, errno stays, and no descriptor does.
 *
 * Built with the linker's --wrap: what a region costs is not measured anew for each of two hundred
 * sessions, which took half of the time. */
#include "event_report.h"
#include "topdown_machine.h"

#include <pthread.h>

double __wrap_pki_measure_region_ns(uint32_t monotonic);

double __wrap_pki_measure_region_ns(uint32_t monotonic)
{
    return monotonic ? 60 : 30;
}

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");

#define INSIDE 2007 /* instructions in a call of outer */
#define NESTS 3     /* in all */

static void nest(void)
{
    errno = 77;
    {
        PK_REGION_SCOPE(outer);
        mock_count(7, 5, 3, 1);
        for (int i = 0; i < 2; i++) {
            PK_REGION_SCOPE(inner);
            mock_count(1000, 2000, 10, 5);
        }
        mock_spend(1000, 500, 300, 200);
    }
    assert_int_equal(errno, 77);
}

static void *nest_there(void *none)
{
    nest();
    return none;
}

/* Known and right, or not known. */
static void check_figure(const char *report, const char *region, const char *key, double wanted)
{
    char row[64];
    snprintf(row, sizeof row, "\"region\":\"%s\"", region);
    const char *events = strstr(report, "\"events\":");
    if (!events || !strstr(events, row))
        return;
    double got = number(report, region, key);
    if (got >= 0 && fabs(got - wanted) > 1e-6 * wanted)
        fail_msg("call %d, fails at %u: %s of %s: %.9g, not %.9g", (int)mock_failure.call,
                 mock_failure.left, key, region, got, wanted);
}

static void check_counts(void)
{
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, 3 * NESTS);
    assert_int_equal(counts.recorded + counts.dropped, counts.begun);
}

/* A descriptor of which the kernel does not say whose it is stays: it may be the program's. */
static void close_strangers(void)
{
    for (int fd = 3; fd < 1100 && mock_failure.call == MOCK_ID; fd++)
        if (mock_find(fd))
            close(fd);
}

/* Is there such a call? */
static bool run(mock_call call, uint32_t n, int error)
{
    pthread_t thread;
    size_t size;
    memset(mock_events, 0, sizeof mock_events); /* all of them are closed */
    mock_made = 0;
    mock_failure.call = call;
    mock_failure.left = n;
    mock_failure.error = error;
    mock_failure.hit = false;
    assert_int_equal(
        pk_start(pk_options(.costs = "hardware,software,topdown", .backends = "none",
                            .report_path = "report.json", .tuning = "clock=monotonic")),
        PK_OK);
    nest();
    assert_int_equal(pthread_create(&thread, NULL, nest_there, NULL), 0);
    pthread_join(thread, NULL);
    nest();
    assert_int_equal(pk_stop(), PK_OK);
    close_strangers();
    assert_int_equal(mock_open_now(), 0);
    check_counts();
    char *report = read_file("report.json", &size);
    check_figure(report, "outer", "instructions", INSIDE);
    check_figure(report, "outer", "branch_misses", 11);
    check_figure(report, "outer", "slots", 2000);
    check_figure(report, "outer", "retiring", 0.5);
    check_figure(report, "inner", "ipc", 0.5);
    check_figure(report, "inner", "instructions", 1000);
    free(report);
    return mock_failure.hit;
}

/* From the 30th on every `stride`-th: the same places come again. */
static uint32_t sweep(mock_call call, int error, uint32_t stride)
{
    uint32_t n = 1, runs = 0;
    for (; run(call, n, error); n += n < 30 ? 1 : stride)
        runs++;
    return runs;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    assert_in_range(sweep(MOCK_OPEN, EMFILE, 1), 16, 200);
    assert_in_range(sweep(MOCK_OPEN, EACCES, 1), 16, 200);
    assert_in_range(sweep(MOCK_TURN, EINVAL, 1), 1, 50);
    assert_in_range(sweep(MOCK_READ, EIO, 7), 10, 200);
    assert_in_range(sweep(MOCK_ID, ENOTTY, 7), 16, 200);
}

static void every_page_may_be_refused(void **state)
{
    (void)state;
    mock.pages = true;
    assert_in_range(sweep(MOCK_MAP, ENOMEM, 1), 4, 100);
}

static int begin(void **state)
{
    if (enter_machine(state))
        return -1;
    machine_amd(26, 2);
    return 0;
}

static int finish(void **state)
{
    mock_failure.call = MOCK_NONE;
    pk_stop();
    return leave_machine(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_call_may_fail, begin, finish),
        cmocka_unit_test_setup_teardown(every_page_may_be_refused, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
