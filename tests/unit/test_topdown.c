/* Which events count pipeline slots: as the kernel describes them, or as AMD's manuals do; and
 * groups of them, on a mock of the kernel that refuses what the documentation forbids. */
#include "topdown_machine.h"

#include <stdlib.h>

static pki_topdown found;
static char why_not[256];
static pki_perf_group group;
static pki_perf_reading from, to;
static double value[PKI_PERF_EVENTS];

/* ---- what is described ---- */

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

/* ---- groups ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions),
        TEST(intel),
        TEST(amd),
        TEST(none),
        TEST(are_read_by_the_kernel),
        TEST(others_have_the_counters),
        TEST(slots_have_to_lead),
        TEST(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
