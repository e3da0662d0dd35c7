#include "bench_fixture.h"

#include "bench/stats/samples.h"

#include <stdlib.h>
#include <string.h>

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
    r->clock_low = 1410;
    r->clock_high = 1980;
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

void fixture_bench(pki_bench_document *d)
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

void fixture_bench_finish(pki_bench_document *d)
{
    for (size_t i = 0; i < d->row_count; i++)
        pki_bench_row_finish(&d->rows[i]);
    free(d->rows);
}
