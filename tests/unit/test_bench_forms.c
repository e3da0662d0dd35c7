/* What is read of the machine that benchmarks ran on, and each form of their results, to the byte.
 */
#include "golden.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/environment.h"
#include "bench/forms/document.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"
#include "out/json_write.h"

/* ---- a program's results that are always the same: every kind of row ---- */

enum { ROWS = 7 };

static pki_bench_environment machine(void)
{
    pki_bench_environment e = {
        .host = "node7",
        .cpu = "Some CPU @ 2.00GHz",
        .architecture = "x86_64",
        .cpus_online = 8,
        .cpus_allowed = 4,
        .numa_nodes = 2,
        .mhz = 2000,
        .cache_count = 2,
        .governor = "powersave",
        .turbo = "on",
        .smt = "off",
        .aslr = "on",
        .load = {0.25, 0.5, 0.75},
        .cgroup_cpus = 2.5,
        .cgroup_memory_bytes = 1u << 30,
        .container = "docker",
        .virtual_machine = "",
        .kernel = "Linux 6.1.0",
        .libc = "glibc 2.36",
        .clock_source = "tsc",
        .gpu = "Some GPU",
        .driver = "580.1",
        .compiler = "gcc 12.2.0",
        .flags = "-O2",
        .optimized = true,
        .library_optimized = true,
    };
    e.caches[0] = (pki_bench_cache){"Data", 1, 1, 32768};
    e.caches[1] = (pki_bench_cache){"Unified", 3, 8, 16777216};
    return e;
}

static double *copy(const double *values, size_t n)
{
    double *made = malloc(n * sizeof *made);
    if (made)
        memcpy(made, values, n * sizeof *made);
    return made;
}

/* Samples around `ns`, `spread` wide, that do not change from run to run. */
static void measure(pki_bench_row *row, double ns, double spread, uint64_t seed)
{
    double time[12], cpu[12], at[12], overhead[12];
    pki_bench_engine none = {0};
    struct pk_bench_options o;
    pki_bench_case c;
    pki_random random = {seed};
    pki_bench_options_fill(&o, NULL);
    pki_bench_case_init(&c, &none, row->name, &o);
    for (int i = 0; i < 12; i++) {
        time[i] = ns + spread * (double)(pki_random_below(&random, 2001)) / 1000 - spread;
        cpu[i] = time[i] * 0.5;
        at[i] = 250000.0 * i;
        overhead[i] = 0.25;
    }
    c.time = copy(time, 12);
    c.cpu = copy(cpu, 12);
    c.at = copy(at, 12);
    c.overhead = copy(overhead, 12);
    c.count = 12;
    c.iterations = 1000;
    c.result.warmup_iterations = 12345;
    c.result.warmup_time = 10000000;
    c.result.warmup_steady = true;
    c.result.stopped = PK_BENCH_STOP_PRECISE;
    c.options.threads = row->result.threads ? row->result.threads : 1;
    c.bytes = row->bytes;
    c.flops = row->flops;
    c.items = row->items;
    const char *name = row->name;
    char label[sizeof row->label];
    memcpy(label, row->label, sizeof label);
    pki_bench_row_fill(row, &c);
    row->name = name;
    memcpy(row->label, label, sizeof label);
    pki_bench_case_finish(&c);
}

static void fill_noisy(pki_bench_row *row)
{
    row->name = "hostile <\"|`,\\\x01\xff name/threads:2";
    row->family = 1;
    row->bytes = 4096;
    row->flops = 100;
    row->items = 3;
    row->result.threads = 2;
    snprintf(row->label, sizeof row->label, "a & b");
    measure(row, 123456.789, 60000, 4);
    row->result.instructions = 1000.5;
    row->result.cycles = 500.25;
    row->result.cache_misses = 3;
    row->result.branch_misses = 0;
    row->result.allocations = 2;
    row->result.allocated_bytes = 128;
    row->result.stopped = PK_BENCH_STOP_TIME;
    row->result.warmup_steady = 0;
    row->figure_count = 2;
    snprintf(row->figures[0].name, sizeof row->figures[0].name, "hit rate");
    row->figures[0].value = 0.975;
    snprintf(row->figures[1].name, sizeof row->figures[1].name, "depth");
    row->figures[1].value = 12;
    snprintf(row->result.note, sizeof row->result.note, "something was unavailable");
}

static void fill_kernel(pki_bench_row *row)
{
    pk_bench_result *r = &row->result;
    row->name = "kernel";
    row->family = 5;
    measure(row, 2000, 10, 5);
    row->clock = PK_BENCH_CLOCK_GPU;
    r->launch = 5000;
    r->queued = 1;
    r->bound = PK_BENCH_BOUND_LAUNCH;
    r->clock_low_mhz = 1410;
    r->clock_high_mhz = 1980;
    r->throttled = 2;
    r->marks = calloc(r->count, 1);
    for (int i = 3; r->marks && i < 5; i++)
        r->marks[i] = PK_BENCH_MARK_THROTTLED;
}

static void fill_rows(pki_bench_row *rows)
{
    for (int i = 0; i < 2; i++) {
        rows[i].name = "sum/n:1024";
        rows[i].repetition = (uint32_t)i;
        rows[i].bytes = 4096;
        measure(&rows[i], 250 + i, 1, (uint64_t)i + 1);
        rows[i].arguments = (pki_bench_arguments){{1024}, {"n"}, 1};
    }
    fill_noisy(&rows[2]);
    rows[3].name = "empty";
    rows[3].family = 2;
    measure(&rows[3], 0.125, 0, 9); /* of a loop without work */
    rows[4].name = "on a GPU";
    rows[4].family = 3;
    rows[4].clock = PK_BENCH_CLOCK_GPU;
    rows[4].result.threads = 1;
    rows[4].result.outcome = PK_BENCH_OUTCOME_SKIPPED;
    snprintf(rows[4].result.reason, sizeof rows[4].result.reason, "no <GPU> is live");
    rows[5].name = "broken";
    rows[5].family = 4;
    rows[5].result.threads = 1;
    rows[5].result.outcome = PK_BENCH_OUTCOME_FAILED;
    snprintf(rows[5].result.reason, sizeof rows[5].result.reason, "wrong result");
    fill_kernel(&rows[6]);
}

static void fixture_bench(pki_bench_document *d)
{
    static pki_bench_environment e;
    memset(d, 0, sizeof *d);
    e = machine();
    d->executable = "./bench-all";
    d->version = "1.2.3";
    d->began = 1767225600; /* 2026-01-01 */
    d->elapsed = 1234567890;
    snprintf(d->run_id, sizeof d->run_id, "0123456789abcdef0123456789abcdef");
    d->environment = &e;
    d->fingerprint = pki_bench_fingerprint(&e);
    d->overhead = (pki_bench_overhead){20, 500, 1, 0.08, 0.01, 0.9, 0.02, 0.03};
    d->configuration.repetitions = 2;
    d->configuration.interleaved = true;
    d->configuration.over.min_time = 50000000;
    d->configuration.over.precision = 0.005;
    d->warning_count = pki_bench_warnings(&e, &d->overhead, d->warnings);
    d->rows = calloc(ROWS, sizeof *d->rows);
    d->row_count = d->rows ? ROWS : 0;
    if (d->rows)
        fill_rows(d->rows);
}

static void fixture_bench_finish(pki_bench_document *d)
{
    for (size_t i = 0; i < d->row_count; i++)
        pki_bench_row_finish(&d->rows[i]);
    free(d->rows);
}

/* ---- what is read of a machine, from a made-up one, and what is warned of ---- */

static char root[] = "/tmp/perfkit-test-XXXXXX";
static pki_bench_environment e;

static void bench_environment_put(const char *name, const char *text)
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
    bench_environment_put("/proc/cpuinfo",
                          "processor\t: 0\nmodel name\t: Big CPU 9000\ncpu MHz\t\t: 1234.567\n"
                          "flags\t\t: fpu sse2 hypervisor avx\n");
    bench_environment_put(CPU "cpu0/cpufreq/scaling_governor", "powersave\n");
    bench_environment_put(CPU "cpu0/cpufreq/base_frequency", "2500000\n");
    bench_environment_put(CPU "intel_pstate/no_turbo", "0\n");
    bench_environment_put(CPU "smt/active", "1\n");
    bench_environment_put("/sys/devices/system/node/online", "0-1,4\n");
    bench_environment_put("/proc/loadavg", "1.50 0.75 0.01 1/234 5678\n");
    bench_environment_put("/proc/sys/kernel/randomize_va_space", "0\n");
    bench_environment_put("/proc/self/cgroup", "12:cpu:/x\n0::/jobs/one\n");
    bench_environment_put("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
    bench_environment_put("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
    bench_environment_put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    bench_environment_put("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
    bench_environment_put("/sys/fs/cgroup/jobs/memory.max", "1073741824\n");
    bench_environment_put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    bench_environment_put("/.dockerenv", "");
    bench_environment_put("/proc/driver/nvidia/version",
                          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n");
    bench_environment_put("/proc/driver/nvidia/gpus/0000:01:00.0/information",
                          "Model: \t\t NVIDIA H200\nIRQ: 5\n");
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
    bench_environment_put("/proc/cpuinfo",
                          "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
    bench_environment_put(CPU "cpufreq/boost", "0\n");
    bench_environment_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    bench_environment_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    bench_environment_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    bench_environment_put("/proc/self/cgroup", "4:memory:/kubepods/burstable/pod1\n");
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
    bench_environment_put("/proc/cpuinfo", "model name\n:\n");
    bench_environment_put("/proc/loadavg", "x y z\n");
    bench_environment_put(CPU "smt/active", "yes\n");
    bench_environment_put("/sys/fs/cgroup/cpu.max", "5\n");
    bench_environment_put("/sys/devices/system/node/online", "zero\n");
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

/* -- fingerprint -- */

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

/* -- warnings -- */

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

static const struct CMUnitTest bench_environment_tests[] = {
    TEST(a_server),
    TEST(others),
    TEST(nonsense),
    cmocka_unit_test(this_machine),
    cmocka_unit_test(fingerprints),
    cmocka_unit_test(warnings),
};

/* ---- what is written about benchmarks ---- */

/* Each form of a made-up program's results, to the byte. */

typedef void form(const pki_bench_document *document, FILE *file);

static char *text_of(form *put)
{
    char *text = NULL;
    size_t size;
    pki_bench_document d;
    pki_plain plain;
    fixture_bench(&d);
    assert_true(pki_plain_enter(&plain));
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    put(&d, file);
    assert_int_equal(ferror(file), 0);
    fclose(file);
    pki_plain_leave(&plain);
    fixture_bench_finish(&d);
    return text;
}

static void check(const char *name, form *put)
{
    char *text = text_of(put);
    golden_check(name, text);
    free(text);
}

static void plain_text(const pki_bench_document *document, FILE *file)
{
    pki_bench_text(document, PKI_BENCH_NO_PICTURE, file);
}

static void pictures(const pki_bench_document *document, FILE *file)
{
    pki_bench_text(document, PKI_BENCH_SPARKLINE, file);
    pki_bench_text(document, PKI_BENCH_HISTOGRAM, file);
}

static void forms(void **state)
{
    (void)state;
    check("bench.json", pki_bench_json);
    check("bench.csv", pki_bench_csv);
    check("bench.md", pki_bench_markdown);
    check("bench-junit.xml", pki_bench_junit);
    check("bench.txt", plain_text);
    check("bench-pictures.txt", pictures);
}

static void no_locale_gets_in(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    forms(state);
    setlocale(LC_ALL, "C");
}

static void times(void **state)
{
    (void)state;
    assert_string_equal(pki_bench_time(0).text, "0.000 ns");
    assert_string_equal(pki_bench_time(0.25).text, "0.250 ns");
    assert_string_equal(pki_bench_time(9.9996).text, "10.00 ns");
    assert_string_equal(pki_bench_time(123.44).text, "123.4 ns");
    assert_string_equal(pki_bench_time(1234).text, "1.234 us");
    assert_string_equal(pki_bench_time(12345678).text, "12.35 ms");
    assert_string_equal(pki_bench_time(2.5e9).text, "2.500 s");
    assert_string_equal(pki_bench_time(1e300 * 1e300).text, "-");
}

static void progress(void **state)
{
    (void)state;
    char text[160];
    double sample = 250;
    pki_bench_line line = {.on = true, .repetition = 1, .repetitions = 3};
    pki_bench_case c;
    memset(&c, 0, sizeof c);
    c.name = "a\x1b[31mb";
    pki_bench_line_text(&line, &c, 3, 12, text, sizeof text);
    assert_string_equal(text, "[3/12] repetition 2/3 a?[31mb  warming up");
    c.time = &sample;
    c.count = 1;
    line.repetitions = 1;
    pki_bench_line_text(&line, &c, 3, 12, text, sizeof text);
    assert_string_equal(text, "[3/12] a?[31mb  1 samples, last 250.0 ns");
}

static void aggregates(void **state)
{
    (void)state;
    pki_bench_row rows[4] = {{.result = {.median = 10, .cpu = 1}},
                             {.result = {.outcome = PK_BENCH_OUTCOME_SKIPPED}},
                             {.result = {.median = 20, .cpu = 3}},
                             {.result = {.median = 60}}};
    pki_bench_aggregate all[PKI_BENCH_AGGREGATES];
    assert_int_equal(pki_bench_aggregates(rows, 1, all), 0);
    assert_int_equal(pki_bench_aggregates(rows, 2, all), 0);
    assert_int_equal(pki_bench_aggregates(rows, 4, all), 4);
    assert_true(all[0].real == 30 && all[1].real == 20 && all[1].cpu == 1);
    assert_true(all[2].real > 26.4575 && all[2].real < 26.4576); /* sqrt(700) */
    assert_true(all[3].real > 0.8819 && all[3].real < 0.8820);
}

static const struct CMUnitTest bench_forms_tests[] = {
    cmocka_unit_test(forms),    cmocka_unit_test(no_locale_gets_in), cmocka_unit_test(times),
    cmocka_unit_test(progress), cmocka_unit_test(aggregates),
};

static int run_bench_forms(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : "tests/golden";
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(bench_forms_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = cmocka_run_group_tests(bench_environment_tests, NULL, NULL);
    failed += run_bench_forms(argc, argv);
    return failed;
}
