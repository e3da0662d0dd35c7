/* Groups of events: opened, read through their pages or by the kernel, scaled, refused, and left
 * alone when the program has closed them. The kernel is a mock that knows the truth. */
#include "perf_mock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

static pki_perf_group group;
static pki_perf_reading from, to;
static double value[PKI_PERF_EVENTS];

static void open_hardware(void)
{
    assert_true(pki_perf_open(&group, pki_perf_hardware, PKI_PERF_EVENTS, true));
}

/* 300 instructions, 200 cycles, 7 and 3 misses. */
static void expect_counted(double scale)
{
    const double wanted[] = {300, 200, 7, 3};
    assert_true(pki_perf_read(&group, &from));
    mock_count(300, 200, 7, 3);
    assert_true(pki_perf_read(&group, &to));
    assert_true(pki_perf_between(&from, &to, value));
    for (unsigned i = 0; i < group.count; i++) {
        double off = value[group.which[i]] - wanted[group.which[i]];
        if (off > scale || off < -scale)
            fail_msg("event %u: %g", group.which[i], value[group.which[i]]);
    }
}

static void by_the_kernel(void **state)
{
    (void)state;
    mock_count(5, 5, 5, 5); /* of before */
    open_hardware();
    assert_int_equal(group.count, 4);
    expect_counted(0);
    assert_int_equal(mock_reads, 2);
    assert_int_equal(mock_direct, 0);
    pki_perf_close(&group);
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
    pki_perf_close(&group);
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
    pki_perf_close(&group);
}

/* The 48 bits of the processor's counter go through their highest bit, and through 0. */
static void counters_wrap(void **state)
{
    const uint64_t step = (uint64_t)1 << 46;
    (void)state;
    mock.pages = true;
    open_hardware();
    for (int i = 0; i < 7; i++) {
        pki_perf_read(&group, &from);
        mock_count(step, step / 2, 0, 0);
        mock_page[0].offset += (int64_t)(i % 2 ? 0 : 1); /* the kernel's part counts, too */
        pki_perf_read(&group, &to);
        assert_true(pki_perf_between(&from, &to, value));
        if (i < 1)
            assert_true(value[0] == (double)(step + 1));
        assert_true(value[1] == (double)(step / 2));
    }
    pki_perf_close(&group);
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
    pki_perf_read(&group, &from);
    pki_perf_read(&group, &to);
    assert_false(pki_perf_between(&from, &to, value));
    pki_perf_close(&group);
}

/* One way at the beginning and the other at the end: it lost its place in between. */
static void a_place_is_lost(void **state)
{
    (void)state;
    mock.pages = true;
    open_hardware();
    pki_perf_read(&group, &from);
    mock_page[2].index = 0;
    pki_perf_read(&group, &to);
    assert_false(pki_perf_between(&from, &to, value));
    pki_perf_close(&group);
}

static void some_are_missing(void **state)
{
    (void)state;
    mock.missing = 1u << PERF_COUNT_HW_CACHE_MISSES;
    open_hardware();
    assert_int_equal(group.count, 3);
    assert_int_equal(group.error, ENOENT);
    expect_counted(0);
    assert_true(value[2] == 0);
    pki_perf_close(&group);
    mock.missing = 1u << PERF_COUNT_HW_INSTRUCTIONS; /* another one leads */
    open_hardware();
    expect_counted(0);
    pki_perf_close(&group);
    mock.missing = 0;
    mock.pmu = 2; /* a group beyond is refused */
    open_hardware();
    assert_int_equal(group.count, 2);
    expect_counted(0);
    pki_perf_close(&group);
}

static void expect_refused(int error, const char *word)
{
    char text[256];
    mock.refuses = error;
    assert_false(pki_perf_open(&group, pki_perf_hardware, PKI_PERF_EVENTS, true));
    assert_int_equal(errno, error);
    assert_false(pki_perf_read(&group, &from));
    pki_perf_turn(&group, true);
    pki_perf_close(&group);
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
    assert_int_equal(group.count, 4);
    pki_perf_close(&group);
    assert_true(pki_perf_open(&group, pki_perf_software, PKI_PERF_EVENTS, true));
    assert_int_equal(group.count, 2); /* what happens in the kernel cannot be counted so */
    assert_int_equal(group.error, EACCES);
    assert_int_equal(group.which[1], 1);
    pki_perf_close(&group);
}

static void too_few_descriptors(void **state)
{
    (void)state;
    mock.most = 3;
    open_hardware();
    assert_int_equal(group.count, 3);
    assert_int_equal(group.error, EMFILE);
    expect_counted(0);
    pki_perf_close(&group);
}

/* The program closes it, and has a file of its own under that number: nothing is read of it, and it
 * stays open. */
static void closed_by_the_program(void **state)
{
    uint64_t one = 1;
    (void)state;
    open_hardware();
    int fd = group.own[0].fd, theirs = eventfd(1, EFD_CLOEXEC);
    assert_true(theirs >= 0 && dup3(theirs, fd, O_CLOEXEC) == fd);
    assert_false(pki_perf_read(&group, &from));
    assert_true(write(theirs, &one, sizeof one) == sizeof one);
    pki_perf_close(&group);
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
    for (unsigned i = 0; i < group.count; i++)
        close(group.own[i].fd);
    expect_counted(0);
    pki_perf_close(&group);
}

static void waits_to_be_turned_on(void **state)
{
    const pki_perf_reading none = {{0}, 0, 0, false};
    (void)state;
    assert_true(pki_perf_open(&group, pki_perf_hardware, 1, false));
    mock_count(1000, 0, 0, 0);
    pki_perf_turn(&group, true);
    mock_count(30, 0, 0, 0);
    pki_perf_turn(&group, false);
    mock_count(1000, 0, 0, 0);
    assert_true(pki_perf_read(&group, &to) && pki_perf_between(&none, &to, value));
    assert_true(value[0] == 30);
    pki_perf_close(&group);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, use_mock, end_mock)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_the_kernel),
        TEST(by_pages),
        TEST(pages_that_move),
        TEST(counters_wrap),
        TEST(others_have_the_counters),
        TEST(a_place_is_lost),
        TEST(some_are_missing),
        TEST(refusals_say_why),
        TEST(as_much_as_the_kernel_allows),
        TEST(too_few_descriptors),
        TEST(closed_by_the_program),
        TEST(closed_but_mapped),
        TEST(waits_to_be_turned_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
