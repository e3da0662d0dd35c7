/* What is read of a machine, from a made-up one, and what is warned of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/environment.h"

static char root[] = "/tmp/perfkit-test-XXXXXX";
static pki_bench_environment e;

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/perfkit-test-XXXXXX");
    unsetenv("container");
    unsetenv("KUBERNETES_SERVICE_HOST");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

#define CPU "/sys/devices/system/cpu/"

static void a_server(void **state)
{
    (void)state;
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Big CPU 9000\ncpu MHz\t\t: 1234.567\n"
                         "flags\t\t: fpu sse2 hypervisor avx\n");
    put(CPU "cpu0/cpufreq/scaling_governor", "powersave\n");
    put(CPU "cpu0/cpufreq/base_frequency", "2500000\n");
    put(CPU "intel_pstate/no_turbo", "0\n");
    put(CPU "smt/active", "1\n");
    put("/sys/devices/system/node/online", "0-1,4\n");
    put("/proc/loadavg", "1.50 0.75 0.01 1/234 5678\n");
    put("/proc/sys/kernel/randomize_va_space", "0\n");
    put("/proc/self/cgroup", "12:cpu:/x\n0::/jobs/one\n");
    put("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    put("/sys/fs/cgroup/jobs/memory.max", "1073741824\n");
    put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    put("/.dockerenv", "");
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n");
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 5\n");
    pki_bench_environment_read(&e, root);
    assert_string_equal(e.cpu, "Big CPU 9000");
    assert_string_equal(e.governor, "powersave");
    assert_true(e.mhz == 2500);
    assert_string_equal(e.turbo, "on");
    assert_string_equal(e.smt, "on");
    assert_int_equal(e.numa_nodes, 3);
    assert_true(e.load[0] == 1.5 && e.load[1] == 0.75 && e.load[2] == 0.01);
    assert_string_equal(e.aslr, "off");
    assert_true(e.cgroup_cpus == 1.5);
    assert_true(e.cgroup_memory_bytes == 1073741824);
    assert_string_equal(e.container, "docker");
    assert_string_equal(e.virtual_machine, "QEMU");
    assert_string_equal(e.driver, "580.65.06");
    assert_string_equal(e.gpu, "NVIDIA H200");
}

static void others(void **state)
{
    (void)state;
    put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
    put(CPU "cpufreq/boost", "0\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/proc/self/cgroup", "4:memory:/kubepods/burstable/pod1\n");
    pki_bench_environment_read(&e, root);
    assert_string_equal(e.cpu, "implementer 0x41 part 0xd40");
    assert_string_equal(e.turbo, "off");
    assert_string_equal(e.smt, "unknown");
    assert_true(e.cgroup_cpus == 0.5);
    assert_true(e.cgroup_memory_bytes == 0);
    assert_string_equal(e.container, "kubernetes");
    assert_string_equal(e.virtual_machine, "");
    assert_string_equal(e.gpu, "");
}

/* Files with nothing, or with something else, in them. */
static void nonsense(void **state)
{
    (void)state;
    put("/proc/cpuinfo", "model name\n:\n");
    put("/proc/loadavg", "x y z\n");
    put(CPU "smt/active", "yes\n");
    put("/sys/fs/cgroup/cpu.max", "5\n");
    put("/sys/devices/system/node/online", "zero\n");
    pki_bench_environment_read(&e, root);
    assert_string_equal(e.cpu, "");
    assert_true(e.load[0] == 0);
    assert_string_equal(e.smt, "unknown");
    assert_true(e.cgroup_cpus == 0);
    assert_int_equal(e.numa_nodes, 0);
}

static void this_machine(void **state)
{
    (void)state;
    pki_bench_environment_read(&e, "");
    assert_true(*e.architecture && *e.kernel && *e.host);
    assert_true(e.cpus_online >= 1 && e.cpus_allowed >= 1);
}

/* ---- fingerprint ---- */

static void fingerprints(void **state)
{
    (void)state;
    pki_bench_environment other = e;
    uint64_t is = pki_bench_fingerprint(&e);
    strcpy(other.host, "elsewhere");
    strcpy(other.kernel, "Linux 99");
    other.load[0] = 7;
    assert_true(pki_bench_fingerprint(&other) == is);
    strcpy(other.governor, "ondemand");
    assert_true(pki_bench_fingerprint(&other) != is);
    other = e;
    other.cgroup_cpus = 1.25;
    assert_true(pki_bench_fingerprint(&other) != is);
}

/* ---- warnings ---- */

static bool warned(const pki_bench_environment *of, const pki_bench_overhead *o, const char *name)
{
    pki_bench_warning warnings[PKI_BENCH_WARNINGS];
    size_t count = pki_bench_warnings(of, o, warnings);
    for (size_t i = 0; i < count; i++)
        if (strcmp(warnings[i].name, name) == 0)
            return true;
    return false;
}

static void warnings(void **state)
{
    (void)state;
    pki_bench_warning none[PKI_BENCH_WARNINGS];
    pki_bench_overhead o = {.clock = 20, .step = 1};
    const pki_bench_environment quiet = {.optimized = true,
                                         .library_optimized = true,
                                         .cpus_online = 8,
                                         .cpus_allowed = 8,
                                         .governor = "performance",
                                         .turbo = "off",
                                         .smt = "off"};
    pki_bench_environment bad = quiet;
    assert_int_equal(pki_bench_warnings(&quiet, &o, none), 0);
    bad.optimized = false;
    bad.sanitized = true;
    strcpy(bad.governor, "powersave");
    strcpy(bad.turbo, "on");
    strcpy(bad.smt, "on");
    bad.load[0] = 3;
    bad.cpus_allowed = 1;
    bad.cgroup_cpus = 0.5;
    strcpy(bad.virtual_machine, "QEMU");
    o.step = 1000;
    o.unsure = 0.4;
    const char *const names[] = {
        "debug-build", "sanitizer",    "governor",        "turbo",        "smt",        "load",
        "one-cpu",     "cgroup-limit", "virtual-machine", "clock-coarse", "calibration"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!warned(&bad, &o, names[i]))
            fail_msg("no warning of %s", names[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server),
        TEST(others),
        TEST(nonsense),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(fingerprints),
        cmocka_unit_test(warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
