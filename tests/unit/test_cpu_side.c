/* What of the processors a run could have, and what it had: the kernel's files, forged; looks at
 * them; verdicts at their thresholds; and a real machine with more threads than processors. */
#include "folder.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <pk/pk.h>

#include "base/clock.h"
#include "base/processors.h"
#include "measure/verdict/verdict.h"
#include "session/report/cpu_side.h"

/* ---- a forged tree, in the working directory ---- */

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

/* ---- looks ---- */

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

/* ---- verdicts ---- */

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

/* ---- a real one ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
