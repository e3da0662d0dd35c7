/* What a run costs beside time: energy, the processors it had, and what perfkit itself took. */
#include "folder.h"

#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/processors.h"
#include "measure/costs/sums.h"
#include "measure/overhead.h"
#include "measure/summary.h"
#include "measure/verdict/verdict.h"
#include "session/costs/energy.h"
#include "session/report/summarise.h"

/* ---- energy ---- */

/* Counters that wrap, are reset, are missing or unreadable; shared out over steps by kind, with
 * what is too short refused. The counters are files of the test's. */

#define MS 1000000u
#define S 1000000000u

static pki_energy_account a;
static pki_energy_summary sum;

static const pki_energy_row *row_of(const char *counter, const char *kind)
{
    for (size_t i = 0; i < sum.row_count; i++)
        if (strcmp(sum.rows[i].counter, counter) == 0 && strcmp(sum.rows[i].step_kind, kind) == 0)
            return &sum.rows[i];
    fail_msg("no row of %s, %s", counter, kind);
    return NULL;
}

static void fill(void)
{
    pki_energy_sums sums = {0};
    memset(&sum, 0, sizeof sum);
    assert_true(pki_energy_sum_up(&a, "", &sums) && pki_energy_fill(&sums, &sum));
    pki_energy_sums_finish(&sums);
}

static void give_back(void)
{
    for (size_t i = 0; i < sum.row_count; i++) {
        free(sum.rows[i].counter);
        free(sum.rows[i].step_kind);
    }
    free(sum.rows);
    free(sum.held_by);
    free(sum.why_not);
}

static void expect_near(double got, double wanted)
{
    if (fabs(got - wanted) > 1e-6 * fabs(wanted) + 1e-9)
        fail_msg("%.9g, not %.9g", got, wanted);
}

static void wraps_and_resets(void **state)
{
    (void)state;
    pki_energy_begin(&a);
    int wraps = pki_energy_counter_of(&a, "wraps", 100),
        never = pki_energy_counter_of(&a, "never", 0);
    assert_int_equal(pki_energy_counter_of(&a, "wraps", 100), wraps);
    const double readings[] = {60, 90, 20,
                               45, 5,  15}; /* 45 to 5: no wrap, it was in the lower half */
    for (unsigned i = 0; i < 6; i++) {
        pki_energy_read(&a, wraps, readings[i], i * (uint64_t)S);
        pki_energy_read(&a, never, i < 3 ? 10.0 * i : 1.0 * i, i * (uint64_t)S);
        pki_energy_round(&a, i * (uint64_t)S);
    }
    pki_energy_read(&a, -1, 1, S);
    fill();
    expect_near(a.counters[wraps].joules, 30 + 30 + 25 + 10);
    assert_int_equal(a.counters[wraps].resets, 1);
    expect_near(a.counters[never].joules, 10 + 10 + 1 + 1);
    assert_int_equal(a.counters[never].resets, 1);
    assert_true(row_of("wraps", "(run)")->refused); /* 5 periods long */
    assert_true(row_of("wraps", "(run)")->joules == 0);
    give_back();
}

/* Training at 100 W in stretches of 10 s, evaluation at 50 W: of 2 s, and one step alone. */
static void kinds_of_steps(void **state)
{
    double joules = 0;
    uint64_t now = 0;
    (void)state;
    pki_energy_begin(&a);
    int c = pki_energy_counter_of(&a, "gpu", 0);
    pki_energy_read(&a, c, 0, 1);
    pki_energy_round(&a, 1);
    for (unsigned i = 0; i < 1200; i++) {
        bool evaluates = i % 120 >= 100, alone = i == 50;
        joules += evaluates ? 5 : 10;
        pki_energy_step(&a,
                        evaluates ? "evaluation"
                        : alone   ? "alone"
                                  : NULL,
                        now, now + 100 * MS, 8);
        now += 100 * MS;
        pki_energy_read(&a, c, joules, now);
        pki_energy_round(&a, now);
    }
    fill();
    const pki_energy_row *steps = row_of("gpu", ""), *eval = row_of("gpu", "evaluation");
    expect_near(steps->per_step, 10);
    expect_near(steps->per_item, 10.0 / 8);
    expect_near(steps->watts, 100);
    expect_near(eval->per_step, 5);
    expect_near(eval->joules, 200 * 5);
    expect_near(row_of("gpu", "(run)")->joules, joules);
    expect_near(row_of("gpu", "(run)")->error, 2 * 0.1 * 50);
    expect_near(eval->error, 10 * 2 * 0.1 * 50); /* ten stretches */
    assert_true(row_of("gpu", "alone")->refused && row_of("gpu", "alone")->per_step == 0);
    give_back();
}

/* A program may call its steps whatever it likes: the run's row stays its own. */
static void kinds_called_as_the_run(void **state)
{
    static const char *const kinds[] = {"(run)", "(run)(run)", "(runner)"};
    (void)state;
    pki_energy_begin(&a);
    int c = pki_energy_counter_of(&a, "gpu", 0);
    pki_energy_read(&a, c, 0, 1);
    for (uint64_t i = 0; i < 90; i++) {
        pki_energy_step(&a, kinds[i / 30], i * 100 * MS, (i + 1) * 100 * MS, 1);
        pki_energy_read(&a, c, (double)(i + 1), (i + 1) * 100 * MS);
        pki_energy_round(&a, (i + 1) * 100 * MS);
    }
    fill();
    assert_int_equal(sum.row_count, 4);
    assert_int_equal(row_of("gpu", "(run)")->steps, 90);
    assert_int_equal(row_of("gpu", "(run)(run)")->steps, 30);
    assert_int_equal(row_of("gpu", "(run)(run)(run)")->steps, 30);
    assert_int_equal(row_of("gpu", "(runner)")->steps, 30);
    give_back();
}

/* Steps of 100 ms, and of 120 ms while GPU 1 is held down. */
static void clocks_held_down(void **state)
{
    pki_summary s;
    (void)state;
    pki_summary_init(&s);
    pki_energy_begin(&a);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t at = i * 200 * (uint64_t)MS;
        if (i == 60)
            pki_energy_held(&a, 1, "the power cap");
        pki_energy_step(&a, NULL, at, at + (i < 60 ? 100 : 120) * MS, 1);
    }
    pki_energy_step(&a, "evaluation", 0, S, 1);
    pki_energy_held(&a, 1, NULL);
    pki_energy_sums sums = {0};
    assert_true(pki_energy_sum_up(&a, "", &sums) && pki_energy_fill(&sums, &s.energy));
    pki_energy_sums_finish(&sums);
    assert_int_equal(s.energy.held_steps, 40);
    assert_int_equal(s.energy.free_steps, 60);
    assert_true(pki_verdicts_fill(&s));
    const pki_verdict *v = NULL;
    for (size_t i = 0; i < s.verdict_count; i++)
        v = strcmp(s.verdicts[i].name, "gpu-throttled") == 0 ? &s.verdicts[i] : v;
    assert_non_null(v);
    expect_near(v->value, 1.2);
    assert_non_null(strstr(v->text, "by the power cap in 40 of 100 steps"));
    s.energy.held_steps = 9; /* too few */
    assert_true(pki_verdicts_fill(&s));
    for (size_t i = 0; i < s.verdict_count; i++)
        assert_string_not_equal(s.verdicts[i].name, "gpu-throttled");
    pki_summary_finish(&s);
}

static pki_energy_sums so_far(void)
{
    pki_energy_sums sums = {0};
    assert_true(pki_energy_sum_up(&a, "why", &sums));
    return sums;
}

static void expect_same_rows(const pki_energy_summary *b)
{
    assert_int_equal(sum.row_count, b->row_count);
    for (size_t i = 0; i < sum.row_count; i++) {
        pki_energy_row x = sum.rows[i], y = b->rows[i];
        assert_string_equal(x.counter, y.counter);
        assert_string_equal(x.step_kind, y.step_kind);
        x.counter = x.step_kind = y.counter = y.step_kind = NULL;
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* A step of 100 ms; the third counter is found late, as a GPU's is. */
static void make_step(uint64_t i)
{
    uint64_t now = (i + 1) * 100 * MS;
    double spent = 7.123456 * (double)i + (double)(i % 7) / 3;
    pki_energy_held(&a, 0, i % 5 == 3 ? "heat" : NULL);
    pki_energy_step(&a, i < 300 || i % 40 > 30 ? "evaluation" : NULL, now - 100 * MS, now, i % 9);
    pki_energy_read(&a, pki_energy_counter_of(&a, "package-0", 1000), fmod(spent, 1000), now);
    pki_energy_read(&a, pki_energy_counter_of(&a, "dram", 0), i % 1000 == 999 ? 0 : spent / 9, now);
    if (i > 700)
        pki_energy_read(&a, pki_energy_counter_of(&a, "gpu0", 0), 3 * spent, now);
    pki_energy_round(&a, now);
}

/* In parts as in one piece, to the last digit: what windows are for. */
static void parts_add_up(void **state)
{
    pki_energy_sums before = {0}, all = {0};
    (void)state;
    pki_energy_begin(&a);
    for (uint64_t i = 0; i < 2500; i++) {
        make_step(i);
        if (i % 97 != 96 && i != 2499)
            continue;
        pki_energy_sums now = so_far(), part;
        assert_true(pki_energy_more(&now, &before, &part) && pki_energy_add(&all, &part));
        pki_energy_sums_finish(&before);
        pki_energy_sums_finish(&part);
        before = now;
    }
    pki_energy_summary added = {0};
    assert_true(pki_energy_fill(&all, &added));
    fill();
    assert_int_equal(sum.row_count, 3 * 3);
    assert_true(row_of("gpu0", "")->joules > 0 && row_of("dram", "(run)")->resets == 2);
    expect_same_rows(&added);
    assert_int_equal(added.held_steps, sum.held_steps);
    assert_int_equal(added.free_time, sum.free_time);
    assert_string_equal(added.held_by, "heat");
    give_back();
    sum = added;
    give_back();
    pki_energy_sums_finish(&before);
    pki_energy_sums_finish(&all);
}

static void more_than_there_is_room_for(void **state)
{
    char name[16];
    (void)state;
    pki_energy_begin(&a);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "c%d", i);
        int c = pki_energy_counter_of(&a, name, 0);
        assert_int_equal(c, i < PKI_ENERGY_COUNTERS ? i : -1);
        pki_energy_step(&a, name, 0, MS, 1);
    }
    pki_energy_round(&a, S);
    fill();
    assert_true(sum.row_count <= PKI_ENERGY_COUNTERS * (PKI_ENERGY_KINDS + 1));
    give_back();
}

/* -- sessions, on files -- */

static void zone(const char *folder, const char *name, const char *joules)
{
    char path[128];
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/name", folder);
    write_file(path, name);
    snprintf(path, sizeof path, "%s/max_energy_range_uj", folder);
    write_file(path, "262143328850\n");
    snprintf(path, sizeof path, "%s/energy_uj", folder);
    if (joules)
        write_file(path, joules);
}

static char *report_of(const char *path)
{
    size_t n;
    pki_energy_folder = ".";
    assert_int_equal(pk_start(pk_options(.costs = "energy", .report_path = path, .backends = "none",
                                         .tuning = "arena_path=none")),
                     PK_OK);
    pk_step(4);
    zone("intel-rapl:0", "package-0\n", "7000000\n");
    assert_int_equal(pk_stop(), PK_OK);
    pki_energy_folder = "/sys/class/powercap";
    return read_file(path, &n);
}

static void counters_of_a_machine(void **state)
{
    (void)state;
    zone("intel-rapl:0", "package-0\n", "5000000\n");
    zone("intel-rapl:0:0", "dram\n", "100\n");
    zone("intel-rapl-mmio:0", "package-0\n", "5000000\n");
    zone("intel-rapl:1", "package-1\n", NULL); /* unreadable, as for all but root */
    char *report = report_of("report.json");
    assert_non_null(strstr(report, "\"energy\":{"));
    assert_non_null(strstr(report, "\"counter\":\"package-0\""));
    assert_non_null(strstr(report, "\"counter\":\"package-0 dram\""));
    assert_non_null(strstr(report, "1 of 3 counters of energy cannot be read"));
    free(report);
    report = report_of("report.txt");
    assert_non_null(strstr(report, "ENERGY\n"));
    free(report);
}

static void a_machine_without_counters(void **state)
{
    size_t n;
    (void)state;
    pki_energy_folder = "nothing";
    assert_int_equal(
        pk_start(pk_options(.costs = "energy", .report_path = "r.txt", .backends = "none")), PK_OK);
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    pki_energy_folder = "/sys/class/powercap";
    char *report = read_file("r.txt", &n);
    assert_non_null(strstr(report, "this machine has no counters of energy"));
    assert_null(strstr(report, "a step  an item"));
    free(report);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

static const struct CMUnitTest energy_tests[] = {
    cmocka_unit_test(wraps_and_resets),        cmocka_unit_test(kinds_of_steps),
    cmocka_unit_test(kinds_called_as_the_run), cmocka_unit_test(parts_add_up),
    cmocka_unit_test(clocks_held_down),        cmocka_unit_test(more_than_there_is_room_for),
    IN_FOLDER(counters_of_a_machine),          IN_FOLDER(a_machine_without_counters),
};

/* ---- what of the processors a run could have, and what it had ---- */

/* The kernel's files, forged; looks at them; verdicts at their thresholds; and a real machine with
 * more threads than processors. */

/* -- a forged tree, in the working directory -- */

static void put(const char *path, const char *text)
{
    char folder[256] = ".";
    for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
        snprintf(folder, sizeof folder, "./%.*s", (int)(slash - path), path);
        mkdir(folder, 0755);
    }
    snprintf(folder, sizeof folder, "./%s", path);
    FILE *file = fopen(folder, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_thread(unsigned tid, uint64_t running, uint64_t ready, uint64_t forced,
                       const char *allowed)
{
    char path[128], text[256];
    snprintf(path, sizeof path, "proc/self/task/%u/schedstat", tid);
    snprintf(text, sizeof text, "%llu %llu 12\n", (unsigned long long)running,
             (unsigned long long)ready);
    put(path, text);
    snprintf(path, sizeof path, "proc/self/task/%u/status", tid);
    snprintf(text, sizeof text,
             "Name:\tloop\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n"
             "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t%llu\n",
             allowed, (unsigned long long)forced);
    put(path, text);
}

static void sets(void **state)
{
    const pki_cpus set = pki_cpus_in("0-3,8,64-65,1023-1030\n"), eight = pki_cpus_in("8");
    const pki_cpus none = pki_cpus_in(""), far = pki_cpus_in("9-63");
    (void)state;
    assert_int_equal(pki_cpus_count(&set), 8);
    assert_true(pki_cpus_have(&set, 0) && pki_cpus_have(&set, 65) && !pki_cpus_have(&set, 4));
    assert_true(pki_cpus_meet(&set, &eight) && !pki_cpus_meet(&set, &far));
    assert_int_equal(pki_cpus_count(&none), 0);
}

static void threads(void **state)
{
    pki_thread_cpu t;
    uint32_t tids[4];
    (void)state;
    put_thread(12, 5000, 700, 31, "0-2,5");
    put_thread(13, 1, 2, 3, "1");
    assert_true(pki_thread_cpu_read(".", 12, true, &t));
    assert_true(t.running == 5000 && t.ready == 700 && t.forced == 31 && t.own == 7);
    assert_int_equal(pki_cpus_count(&t.allowed), 4);
    assert_true(pki_thread_cpu_read(".", 12, false, &t) && t.forced == 0);
    assert_false(pki_thread_cpu_read(".", 99, true, &t));
    put("proc/self/task/14/schedstat", "nonsense");
    assert_false(pki_thread_cpu_read(".", 14, true, &t));
    assert_int_equal(pki_thread_ids(".", tids, 4), 3);
    assert_int_equal(pki_thread_ids(".", tids, 2), 2);
    assert_int_equal(pki_thread_ids("nowhere", tids, 4), 0);
}

static void clocks_and_heat(void **state)
{
    double now, most;
    const pki_cpus two = pki_cpus_in("0-1"), other = pki_cpus_in("7");
    (void)state;
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4000000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4500000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/base_frequency", "2700000\n");
    put("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    put("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n");
    assert_true(pki_clock_rates_read(".", &two, &now, &most));
    assert_true(now == 2500000 && most == 4000000);
    assert_false(pki_clock_rates_read(".", &other, &now, &most));
    assert_true(pki_heat_read(".", &two) == 7 && pki_heat_read(".", &other) == 0);
}

static void quotas(void **state)
{
    pki_quota q;
    (void)state;
    assert_false(pki_quota_read(".", &q));
    /* Version 2: the tightest of the groups above counts, with its own counts. */
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    put("sys/fs/cgroup/a/cpu.stat",
        "usage_usec 9\nnr_periods 100\nnr_throttled 41\nthrottled_usec 12\n");
    assert_true(pki_quota_read(".", &q) && q.processors == 2.5);
    assert_true(q.periods == 100 && q.throttled == 41 && q.throttled_ns == 12000);
    put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_false(pki_quota_read(".", &q));
    /* Version 1, seen from a container: its group is the mount's root. */
    put("proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/x/y\n2:cpuset:/\n0::/\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.stat",
        "nr_periods 8\nnr_throttled 2\nthrottled_time 5000\n");
    assert_true(pki_quota_read(".", &q) && q.processors == 0.5);
    assert_true(q.periods == 8 && q.throttled == 2 && q.throttled_ns == 5000);
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    assert_false(pki_quota_read(".", &q));
}

static void nodes(void **state)
{
    pki_nodes n;
    const pki_cpus first = pki_cpus_in("0-3");
    (void)state;
    put("sys/devices/system/node/online", "0\n");
    assert_false(pki_nodes_read(".", &first, &n)); /* one: there is nothing to say */
    put("sys/devices/system/node/online", "0-1\n");
    put("sys/devices/system/node/node0/cpulist", "0-3\n");
    put("sys/devices/system/node/node1/cpulist", "4-7\n");
    put("proc/self/numa_maps",
        "7f00 default file=/lib/N5=9.so mapped=9 N0=900 kernelpagesize_kB=4\n"
        "7f10 default anon=12 dirty=12 N0=4 N1=8 kernelpagesize_kB=4\n"
        "7f20 default huge anon=1 dirty=1 N1=1 kernelpagesize_kB=2048\n"
        "7f30 default file=/model anon=8 dirty=8 mapped=800 N0=600 N1=200 kernelpagesize_kB=4\n"
        "7f40 default anon=0 N0=7 kernelpagesize_kB=4\n");
    assert_true(pki_nodes_read(".", &first, &n));
    assert_true(n.count == 2 && n.ours[0] && !n.ours[1]);
    /* of the model, which is a file's, what the process has written to */
    assert_true(n.bytes[0] == (4 + 6) * 4096);
    assert_true(n.bytes[1] == (8 + 2) * 4096 + (2 << 20) && n.bytes[5] == 0);
}

static void names(void **state)
{
    char text[64];
    (void)state;
    assert_false(pki_cpu_name(".", text, sizeof text));
    put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
    assert_true(pki_cpu_name(".", text, sizeof text));
    assert_string_equal(text, "implementer 0x41 part 0xd40");
    put("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n");
    assert_true(pki_cpu_name(".", text, sizeof text));
    assert_string_equal(text, "implementer 0x41 part 0xd40 variant 0x1");
    put("proc/cpuinfo", "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Big CPU\nflags\t\t: a b\n");
    assert_true(pki_cpu_name(".", text, sizeof text));
    assert_string_equal(text, "Big CPU");
    assert_true(pki_cpu_info(".", "flags", text, sizeof text) && strcmp(text, "a b") == 0);
    assert_false(pki_cpu_info(".", "cpu MHz", text, sizeof text));
}

/* -- looks -- */

static void wait_ns(uint64_t ns)
{
    uint64_t until = pki_monotonic_ns() + ns;
    while (pki_monotonic_ns() < until)
        usleep(1000);
}

/* Times so large that any real interval is exceeded: two of three threads are busy. */
static void a_look(void **state)
{
    const uint64_t much = UINT64_C(1) << 50;
    (void)state;
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "200000 100000\n");
    put("sys/fs/cgroup/cpu.stat", "nr_periods 100\nnr_throttled 10\nthrottled_usec 5\n");
    put_thread(12, 0, 0, 5, "0-3");
    put_thread(13, 0, 0, 0, "3");
    put_thread(14, 0, 0, 0, "0-3");
    pki_cpu_side_begin(".");
    pki_cpu_side_poll(0, true); /* nobody makes steps */
    assert_int_equal(pki_cpu_side_end().looks, 0);
    pki_cpu_side_poll(12, false);
    pki_cpu_side_poll(12, true); /* too early */
    assert_int_equal(pki_cpu_side_end().looks, 0);
    wait_ns(110000000);
    put_thread(12, 1, much, 47, "0-3");
    put_thread(13, much, 0, 0, "3");
    put("sys/fs/cgroup/cpu.stat", "nr_periods 200\nnr_throttled 60\nthrottled_usec 9\n");
    pki_cpu_side_poll(12, true);
    pki_cpu_side c = pki_cpu_side_end();
    assert_true(c.looks == 1 && c.busy == 2 && c.busy_most == 2 && c.threads == 3);
    assert_true(c.forced == 42 && c.own == 0 && c.allowed == 4 && c.allowed_busy == 4);
    assert_true(c.quota == 2 && c.quota_periods == 100 && c.quota_throttled == 50);
    assert_true(c.quota_throttled_time == 4000 && c.nodes == 0 && c.clock_most == 0);
}

/* -- verdicts -- */

static pki_summary a_run(double ready)
{
    pki_summary s = {.run.complete = true};
    s.steps.count = s.steps.broken_down = 1000;
    s.steps.steady = (pki_dist){.count = 1000, .sum = 1e6, .p50 = 1000, .p99 = 1000};
    s.steps.kinds[PK_COMPUTE] = 1000000;
    s.steps.processor = (pki_processor){1000000000, 900000000, (uint64_t)(ready * 1e9)};
    s.cpu_side = (pki_cpu_side){.looks = 9, .busy = 2, .allowed = 8, .allowed_busy = 8};
    return s;
}

/* Its text, or "". Finishes s. */
static const char *says(pki_summary s, const char *name)
{
    static char text[1024];
    text[0] = '\0';
    assert_true(pki_verdicts_fill(&s));
    for (size_t i = 0; i < s.verdict_count; i++)
        if (strcmp(s.verdicts[i].name, name) == 0)
            snprintf(text, sizeof text, "%s", s.verdicts[i].text);
    pki_summary_finish(&s);
    return text;
}

static void too_many_threads(void **state)
{
    pki_summary s = a_run(0.06);
    (void)state;
    s.cpu_side.busy = 12;
    s.cpu_side.forced = 31000;
    const char *text = says(s, "oversubscribed");
    assert_non_null(strstr(text, "not on a processor for 6.0 % of the step"));
    assert_non_null(strstr(text, "12 threads of this process want one at the same time"));
    assert_non_null(strstr(text, "It may use 8."));
    assert_non_null(strstr(text, "31 times a step"));
    s = a_run(0.06); /* others' threads: that is cpu-starved's to say */
    assert_string_equal(says(s, "oversubscribed"), "");
    s = a_run(0.03);
    s.cpu_side.busy = 12;
    assert_string_equal(says(s, "oversubscribed"), "");
    s = a_run(0.5); /* all on one of eight */
    s.cpu_side.allowed_busy = 1;
    text = says(s, "oversubscribed");
    assert_non_null(strstr(text, "bound to 1 of the 8"));
    assert_non_null(strstr(text, "share one processor"));
}

static void a_bound(void **state)
{
    pki_summary s = a_run(0);
    (void)state;
    s.cpu_side.quota = 2;
    s.cpu_side.quota_periods = 100;
    s.cpu_side.quota_throttled = 5;
    assert_string_equal(says(s, "throttled"), "");
    s = a_run(0);
    s.cpu_side.quota = 2;
    s.cpu_side.quota_periods = 100;
    s.cpu_side.quota_throttled = 41;
    s.cpu_side.quota_throttled_time = 12300000000;
    const char *text = says(s, "throttled");
    assert_non_null(strstr(text, "2 processors stopped the process in 41.0 %"));
    assert_non_null(strstr(text, "12.3 s"));
}

static void far_memory(void **state)
{
    const uint64_t gib = UINT64_C(1) << 30;
    pki_summary s = a_run(0);
    (void)state;
    s.cpu_side.near_bytes = gib; /* one node: silent, whatever stands there */
    s.cpu_side.far_bytes = gib;
    assert_string_equal(says(s, "memory-far"), "");
    s.cpu_side.nodes = 2;
    s.cpu_side.own_nodes = 1;
    assert_non_null(strstr(says(s, "memory-far"), "50.0 % of this process's memory"));
    s = a_run(0);
    s.cpu_side.nodes = s.cpu_side.own_nodes = 2;
    s.cpu_side.near_bytes = gib;
    s.cpu_side.largest_node = 0.6;
    assert_string_equal(says(s, "memory-far"), "");
    s = a_run(0);
    s.cpu_side.nodes = s.cpu_side.own_nodes = 2;
    s.cpu_side.near_bytes = gib;
    s.cpu_side.largest_node = 0.97;
    assert_non_null(strstr(says(s, "memory-far"), "97.0 % of this process's memory"));
}

static void a_low_clock(void **state)
{
    pki_summary s = a_run(0);
    (void)state;
    assert_string_equal(says(s, "clock-low"), "");
    s = a_run(0);
    s.cpu_side.clock_mean = 2.4e9;
    s.cpu_side.clock_most = 3e9;
    assert_string_equal(says(s, "clock-low"), "");
    s = a_run(0);
    s.cpu_side.clock_mean = 1.5e9;
    s.cpu_side.clock_most = 3e9;
    assert_non_null(strstr(says(s, "clock-low"), "1.50 GHz in the mean, 50.0 % of the 3.00 GHz"));
    s = a_run(0);
    s.cpu_side.heat_events = 4;
    assert_non_null(strstr(says(s, "clock-low"), "4 times for heat"));
}

/* -- a real one -- */

static bool over;

static void *spin(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        ;
    return NULL;
}

/* Three threads and a loop on one processor: it is looked at until the kernel has told of it. */
static void a_crowd(void **state)
{
    cpu_set_t before, one;
    pthread_t threads_of[3];
    pki_cpu_side c = {0};
    (void)state;
    if (access("/proc/self/schedstat", R_OK) != 0)
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        skip();
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads_of[i], NULL, spin, NULL), 0);
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    uint64_t until = pki_monotonic_ns() + UINT64_C(60000000000);
    pki_cpu_side_begin("");
    while ((c.busy_most < 2 || c.forced == 0) && pki_monotonic_ns() < until) {
        uint64_t next = pki_monotonic_ns() + 120000000;
        while (pki_monotonic_ns() < next)
            ;
        pki_cpu_side_poll(tid, true);
        c = pki_cpu_side_end();
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads_of[i], NULL);
    sched_setaffinity(0, sizeof before, &before);
    assert_true(c.forced > 0 && c.busy_most >= 2 && c.threads >= 4);
    assert_true(c.allowed == 1 && c.allowed_busy == 1);
}

static const struct CMUnitTest cpu_side_tests[] = {
    cmocka_unit_test(sets),
    cmocka_unit_test_setup_teardown(threads, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(clocks_and_heat, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(quotas, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(names, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(nodes, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(a_look, enter_folder, leave_folder),
    cmocka_unit_test(too_many_threads),
    cmocka_unit_test(a_bound),
    cmocka_unit_test(far_memory),
    cmocka_unit_test(a_low_clock),
    cmocka_unit_test(a_crowd),
};

/* ---- what perfkit itself took ---- */

/* All of it in one figure, and the verdict at its thresholds. */

static const pki_verdict *verdict_of(pki_summary *s)
{
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++)
        if (strcmp(s->verdicts[i].name, "overhead") == 0)
            return &s->verdicts[i];
    return NULL;
}

static const int NOT_GIVEN = -1;

/* Of a run with so much in the collector. */
static int severity_of(uint64_t wall, uint64_t collector, uint64_t process)
{
    pki_summary s = {.run.complete = true, .run.wall = wall};
    pki_overhead_fill(&(pki_toll){.process = process, .collector = collector}, &s);
    const pki_verdict *verdict = verdict_of(&s);
    int severity = verdict ? (int)verdict->severity : NOT_GIVEN;
    pki_summary_finish(&s);
    return severity;
}

static void at_its_threshold(void **state)
{
    (void)state;
    assert_int_equal(severity_of(1000000000, 10000000, 1000000000), NOT_GIVEN);
    assert_int_equal(severity_of(1000000000, 10000001, 1000000000), PKI_WARN);
    /* of a run so short that its start and end are most of it */
    assert_int_equal(severity_of(10000000, 4999999, 10000000), NOT_GIVEN);
    assert_int_equal(severity_of(10000000, 5000000, 10000000), PKI_WARN);
}

/* The collector's wake-ups alone are a share of a process that sleeps: a note. */
static void of_a_process_that_hardly_runs(void **state)
{
    (void)state;
    assert_int_equal(severity_of(4000000000, 20000001, 100000000), PKI_WARN);
    assert_int_equal(severity_of(4000000000, 20000000, 100000000), PKI_NOTE);
}

static void all_of_it(void **state)
{
    pki_summary s = {.run.complete = true,
                     .run.wall = 1000000000,
                     .run.trace_path = (char *)(uintptr_t) "run.json"};
    (void)state;
    const pki_toll toll = {.region_ns = 20,
                           .process = 1000000000,
                           .collector = 40000000,
                           .callers = 30000000,
                           .backends = 20000000};
    s.counts.begun = 1000000;
    s.counts.points = 500000;
    pki_overhead_fill(&toll, &s);
    assert_true(s.run.cpu == 1000000000);
    assert_true(s.overhead.recording == 30e6 && s.overhead.collector == 40e6);
    assert_true(s.overhead.callers == 30e6 && s.overhead.backends == 20e6);
    assert_true(s.overhead.total == 120e6 && s.overhead.share == 0.12);
    const char *text = verdict_of(&s)->text;
    assert_non_null(strstr(text, "12.0 % of the process's CPU time (threshold 1 %), 120 ms in all: "
                                 "30.0 ms recording (20 ns per region), 40.0 ms in its collector "
                                 "thread, 30.0 ms in the program's threads"));
    assert_non_null(strstr(text, "20.0 ms in threads of backends. What is not recording"));
    s.run.trace_path = NULL;
    pki_summary_finish(&s);
}

static void the_advice_fits(void **state)
{
    pki_region_row row = {.time = {.count = 900000, .mean = 9999},
                          .name = (char *)(uintptr_t) "dot"};
    pki_summary s = {.run.complete = true,
                     .run.wall = 1000000000,
                     .run.trace_path = (char *)(uintptr_t) "run.json"};
    const pki_toll toll = {.region_ns = 20, .process = 1000000000, .collector = 40000000};
    (void)state;
    s.regions = &row;
    s.region_count = 1;
    s.counts.begun = 40000; /* at 1000 ns each: it writes */
    pki_overhead_fill(&toll, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "formatting and writing the trace"));
    assert_non_null(
        strstr(verdict_of(&s)->text, "to \"dot\" (900K, 10.0 us each): a region around"));
    row.time.mean = 10000;
    assert_null(strstr(verdict_of(&s)->text, "dot"));
    s.counts.begun = 39999;
    pki_overhead_fill(&toll, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "waking up, at least twice a second"));
    assert_null(strstr(verdict_of(&s)->text, "formatting"));
    s.counts.begun = 40000;
    s.run.trace_path = (char *)(uintptr_t) ""; /* there is none to write less of */
    pki_overhead_fill(&toll, &s);
    assert_null(strstr(verdict_of(&s)->text, "formatting"));
    pki_overhead_fill(
        &(pki_toll){.process = 1000000000, .callers = 42000000, .captures = 878000000}, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "878 ms writing captures. Most of it is writing"));
    pki_overhead_fill(&(pki_toll){.process = 1000000000, .readings = 50000000}, &s);
    assert_non_null(strstr(verdict_of(&s)->text, "50.0 ms in the program's threads reading what"));
    s.run.trace_path = NULL;
    s.regions = NULL;
    s.region_count = 0;
    pki_summary_finish(&s);
}

static pki_processor told_of(pki_processor seen)
{
    pki_summary s = {.run.wall = 1000000000, .steps.count = 10};
    pki_overhead_fill(&(pki_toll){.stepper = seen}, &s);
    return s.steps.processor;
}

/* The kernel tells of a wait when it is over: a loop of microseconds may have waited for a tick. */
static void of_no_time_no_share_is_told(void **state)
{
    const uint64_t least = PKI_PROCESSOR_LEAST_NS;
    (void)state;
    assert_int_equal(told_of((pki_processor){5000, 0, 927150}).observed, 0);
    assert_int_equal(told_of((pki_processor){5000, 0, 927150}).ready, 0);
    assert_int_equal(told_of((pki_processor){least - 1, 10, 10}).observed, 0);
    pki_processor p = told_of((pki_processor){least, 10, 20});
    assert_true(p.observed == least && p.running == 10 && p.ready == 20);
    p = told_of((pki_processor){least, least - 5, 20});
    assert_true(p.observed == least && p.running == least - 5 && p.ready == 5);
    p = told_of((pki_processor){least, least + 5, 20});
    assert_true(p.observed == least && p.running == least && p.ready == 0);
}

static const struct CMUnitTest overhead_tests[] = {
    cmocka_unit_test(at_its_threshold),
    cmocka_unit_test(of_a_process_that_hardly_runs),
    cmocka_unit_test(all_of_it),
    cmocka_unit_test(the_advice_fits),
    cmocka_unit_test(of_no_time_no_share_is_told),
};

int main(void)
{
    int failed = cmocka_run_group_tests(energy_tests, NULL, NULL);
    failed += cmocka_run_group_tests(cpu_side_tests, NULL, NULL);
    failed += cmocka_run_group_tests(overhead_tests, NULL, NULL);
    return failed;
}
