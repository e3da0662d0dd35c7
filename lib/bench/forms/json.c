/* lib/bench/forms/json.c - Google Benchmark's schema, with perfkit's members beside it */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "bench/forms/document.h"
#include "bench/stats/samples.h"
#include "out/json_write.h"

/* ---- the machine and the circumstances, in a benchmark file ---- */

pki_bench_words pki_bench_date(int64_t seconds)
{
    pki_bench_words words = {""};
    char zone[8] = "";
    struct tm when;
    time_t at = (time_t)seconds;
    if (localtime_r(&at, &when) && strftime(zone, sizeof zone, "%z", &when) == 5) {
        size_t n = strftime(words.text, sizeof words.text, "%Y-%m-%dT%H:%M:%S", &when);
        snprintf(words.text + n, sizeof words.text - n, "%.3s:%s", zone, zone + 3);
    }
    return words;
}

static void put_caches(pki_json *json, const pki_bench_environment *e)
{
    pki_json_open(json, "caches", '[');
    for (size_t i = 0; i < e->cache_count; i++) {
        pki_json_open(json, NULL, '{');
        pki_json_text(json, "type", e->caches[i].type);
        pki_json_uint(json, "level", e->caches[i].level);
        pki_json_uint(json, "size", e->caches[i].bytes);
        pki_json_uint(json, "num_sharing", e->caches[i].sharing);
        pki_json_close(json, '}');
    }
    pki_json_close(json, ']');
}

static void put_configuration(pki_json *json, const pki_bench_configuration *c)
{
    const struct pk_bench_options *o = &c->over;
    pki_json_open(json, "configuration", '{');
    pki_json_uint(json, "repetitions", c->repetitions);
    pki_json_bool(json, "interleaved", c->interleaved);
    pki_json_uint(json, "seed", o->seed);
    pki_json_real(json, "precision", o->precision);
    pki_json_real(json, "confidence", o->confidence);
    pki_json_uint(json, "min_time", o->min_time);
    pki_json_uint(json, "max_time", o->max_time);
    pki_json_uint(json, "min_samples", o->min_samples);
    pki_json_uint(json, "max_samples", o->max_samples);
    pki_json_uint(json, "sample_time", o->sample_time);
    pki_json_uint(json, "iterations", o->iterations);
    pki_json_uint(json, "max_warmup", o->max_warmup);
    pki_json_bool(json, "cold", o->cold != 0);
    pki_json_bool(json, "unqueued", o->unqueued != 0);
    pki_json_bool(json, "hardware", o->hardware != 0);
    pki_json_bool(json, "allocations", o->allocations != 0);
    pki_json_close(json, '}');
}

static void put_system(pki_json *json, const pki_bench_environment *e)
{
    pki_json_text(json, "cpu", e->cpu);
    pki_json_text(json, "architecture", e->architecture);
    pki_json_uint(json, "cpus_online", e->cpus_online);
    pki_json_uint(json, "cpus_allowed", e->cpus_allowed);
    pki_json_uint(json, "numa_nodes", e->numa_nodes);
    pki_json_text(json, "governor", e->governor);
    pki_json_text(json, "turbo", e->turbo);
    pki_json_text(json, "smt", e->smt);
    pki_json_reals(json, "load", e->load, PKI_COUNT_OF(e->load));
    pki_json_real(json, "cgroup_cpus", e->cgroup_cpus);
    pki_json_uint(json, "cgroup_memory_bytes", e->cgroup_memory_bytes);
    pki_json_text(json, "container", e->container);
    pki_json_text(json, "virtual", e->virtual_machine);
    pki_json_text(json, "gpu", e->gpu);
    pki_json_text(json, "driver", e->driver);
}

static void put_software(pki_json *json, const pki_bench_environment *e)
{
    pki_json_text(json, "kernel", e->kernel);
    pki_json_text(json, "libc", e->libc);
    pki_json_text(json, "aslr", e->aslr);
    pki_json_text(json, "clock_source", e->clock_source);
    pki_json_text(json, "compiler", e->compiler);
    pki_json_text(json, "flags", e->flags);
    pki_json_bool(json, "optimized", e->optimized);
}

static void put_overhead(pki_json *json, const pki_bench_overhead *o)
{
    pki_json_open(json, "overhead", '{');
    pki_json_real(json, "clock_ns", o->clock);
    pki_json_real(json, "clock_step_ns", o->step);
    pki_json_real(json, "loop_ns", o->loop);
    pki_json_real(json, "loop_beside_ns", o->loop_beside);
    pki_json_real(json, "call_ns", o->call);
    pki_json_real(json, "call_beside_ns", o->call_beside);
    pki_json_real(json, "unsure_ns", o->unsure);
    pki_json_close(json, '}');
}

static void put_warnings(pki_json *json, const pki_bench_document *d)
{
    pki_json_open(json, "warnings", '[');
    for (size_t i = 0; i < d->warning_count; i++) {
        pki_json_open(json, NULL, '{');
        pki_json_text(json, "name", d->warnings[i].name);
        pki_json_text(json, "text", d->warnings[i].text);
        pki_json_close(json, '}');
    }
    pki_json_close(json, ']');
}

static void put_perfkit(pki_json *json, const pki_bench_document *d)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, d->fingerprint);
    pki_json_row(json);
    pki_json_open(json, "perfkit", '{');
    pki_json_text(json, "format", PKI_BENCH_FORMAT);
    pki_json_uint(json, "schema", PKI_BENCH_SCHEMA);
    pki_json_text(json, "version", d->version);
    pki_json_text(json, "launch", d->run_id);
    pki_json_text(json, "fingerprint", fingerprint);
    pki_json_row(json);
    put_configuration(json, &d->configuration);
    pki_json_row(json);
    pki_json_open(json, "environment", '{');
    put_system(json, d->environment);
    put_software(json, d->environment);
    pki_json_close(json, '}');
    pki_json_row(json);
    put_overhead(json, &d->overhead);
    put_warnings(json, d);
    pki_json_uint(json, "elapsed", d->elapsed);
    pki_json_close(json, '}');
}

/* "context":{...} */
static void pki_bench_json_context(pki_json *json, const pki_bench_document *d)
{
    const pki_bench_environment *e = d->environment;
    bool scaling = *e->governor && strcmp(e->governor, "performance") != 0;
    pki_json_open(json, "context", '{');
    pki_json_text(json, "date", pki_bench_date(d->began).text);
    pki_json_text(json, "host_name", e->host);
    pki_json_text(json, "executable", d->executable);
    pki_json_uint(json, "num_cpus", e->cpus_online);
    pki_json_uint(json, "mhz_per_cpu", (uint64_t)(e->mhz + 0.5));
    pki_json_bool(json, "cpu_scaling_enabled", scaling);
    put_caches(json, e);
    pki_json_reals(json, "load_avg", e->load, PKI_COUNT_OF(e->load));
    pki_json_text(json, "library_version", d->version);
    pki_json_text(json, "library_build_type", e->library_optimized ? "release" : "debug");
    pki_json_uint(json, "json_schema_version", 1);
    put_perfkit(json, d);
    pki_json_close(json, '}');
}

/* ---- Google Benchmark's schema with perfkit's members beside it ---- */

static const char *clock_name(uint32_t clock)
{
    static const char *const names[] = {"wall", "cpu", "manual", "gpu"};
    return clock < PKI_COUNT_OF(names) ? names[clock] : "";
}

static const char *stop_name(uint32_t stop)
{
    static const char *const names[] = {"", "precise", "time", "samples", "memory"};
    return stop < PKI_COUNT_OF(names) ? names[stop] : "";
}

/* ---- perfkit's members of a row ---- */

static void put_outliers(pki_json *json, const pk_bench_result *r)
{
    pki_json_open(json, "outliers", '{');
    pki_json_uint(json, "low_severe", r->low_severe);
    pki_json_uint(json, "low_mild", r->low_mild);
    pki_json_uint(json, "high_mild", r->high_mild);
    pki_json_uint(json, "high_severe", r->high_severe);
    pki_json_close(json, '}');
}

static void put_statistics(pki_json *json, const pk_bench_result *r)
{
    pki_json_open(json, "statistics", '{');
    pki_json_uint(json, "count", r->count);
    pki_json_real(json, "min", r->min);
    pki_json_real(json, "max", r->max);
    pki_json_real(json, "mean", r->mean);
    pki_json_real(json, "median", r->median);
    pki_json_real(json, "p90", r->p90);
    pki_json_real(json, "p95", r->p95);
    pki_json_real(json, "p99", r->p99);
    pki_json_real(json, "stddev", r->stddev);
    pki_json_real(json, "mad", r->mad);
    pki_json_real(json, "cv", r->cv);
    pki_json_real(json, "low", r->low);
    pki_json_real(json, "high", r->high);
    pki_json_real(json, "confidence", r->confidence);
    pki_json_uint(json, "block", r->block);
    pki_json_real(json, "autocorrelation", r->autocorrelation);
    put_outliers(json, r);
    pki_json_close(json, '}');
}

static void put_counted(pki_json *json, const char *key, double value)
{
    if (value >= 0)
        pki_json_real(json, key, value);
}

static void put_extras(pki_json *json, const pk_bench_result *r)
{
    if (r->instructions >= 0 || r->cycles >= 0 || r->cache_misses >= 0 || r->branch_misses >= 0) {
        pki_json_open(json, "hardware", '{');
        put_counted(json, "instructions", r->instructions);
        put_counted(json, "cycles", r->cycles);
        put_counted(json, "cache_misses", r->cache_misses);
        put_counted(json, "branch_misses", r->branch_misses);
        pki_json_close(json, '}');
    }
    if (r->allocations >= 0) {
        pki_json_open(json, "allocations", '{');
        pki_json_real(json, "count", r->allocations);
        pki_json_real(json, "bytes", r->allocated_bytes);
        pki_json_close(json, '}');
    }
    if (*r->note)
        pki_json_text(json, "note", r->note);
}

static void put_work(pki_json *json, const pki_bench_row *row)
{
    pki_json_uint(json, "threads", row->result.threads);
    if (row->bytes)
        pki_json_uint(json, "bytes", row->bytes);
    if (row->flops)
        pki_json_uint(json, "flops", row->flops);
    if (row->items)
        pki_json_uint(json, "items", row->items);
}

static void put_arguments(pki_json *json, const pki_bench_row *row)
{
    pki_json_open(json, "arguments", '{');
    for (unsigned i = 0; i < row->arguments.count; i++)
        pki_json_int(json, row->arguments.keys[i], row->arguments.values[i]);
    pki_json_close(json, '}');
}

static void put_measured(pki_json *json, const pk_bench_result *r)
{
    pki_json_uint(json, "iterations", r->iterations);
    pki_json_real(json, "overhead_ns", r->overhead);
    pki_json_text(json, "stopped", stop_name(r->stopped));
    pki_json_open(json, "warmup", '{');
    pki_json_uint(json, "iterations", r->warmup_iterations);
    pki_json_uint(json, "ns", r->warmup_time);
    pki_json_bool(json, "steady", r->warmup_steady != 0);
    pki_json_close(json, '}');
    pki_json_text(json, "verdict", pki_bench_verdict_name(r->verdict));
    pki_json_text(json, "verdict_text", r->verdict_text);
    put_statistics(json, r);
    put_extras(json, r);
    pki_json_reals(json, "samples", r->samples, r->count);
    pki_json_reals(json, "cpu_samples", r->cpu_samples, r->count);
    pki_json_reals(json, "at", r->at, r->count);
}

static void put_device(pki_json *json, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    pki_json_open(json, "device", '{');
    pki_json_real(json, "launch_ns", r->launch);
    pki_json_text(json, "bound", pki_bench_bound_name(r->bound));
    pki_json_bool(json, "queued", r->queued != 0);
    pki_json_bool(json, "cold", row->cold);
    if (r->clock_high_mhz) {
        pki_json_uint(json, "clock_low_mhz", r->clock_low_mhz);
        pki_json_uint(json, "clock_high_mhz", r->clock_high_mhz);
    }
    pki_json_uint(json, "throttled", r->throttled);
    pki_json_open(json, "throttled_samples", '[');
    for (size_t i = 0; r->marks && i < r->count; i++)
        if (r->marks[i] & PK_BENCH_MARK_THROTTLED)
            pki_json_uint(json, NULL, i);
    pki_json_close(json, ']');
    pki_json_close(json, '}');
}

static void json_put_perfkit(pki_json *json, const pki_bench_document *d, const pki_bench_row *row)
{
    pki_json_open(json, "perfkit", '{');
    pki_json_text(json, "launch", d->run_id);
    pki_json_text(json, "clock", clock_name(row->clock));
    put_arguments(json, row);
    put_work(json, row);
    if (pki_bench_row_measured(row) && row->clock == PK_BENCH_CLOCK_GPU)
        put_device(json, row);
    if (pki_bench_row_measured(row))
        put_measured(json, &row->result);
    else
        pki_json_bool(json, "skipped", row->result.outcome == PK_BENCH_OUTCOME_SKIPPED);
    pki_json_close(json, '}');
}

/* ---- Google's members ---- */

static void put_name(pki_json *json, const pki_bench_row *row, const char *suffix)
{
    char name[1024];
    snprintf(name, sizeof name, "%s%s%s", row->name, suffix ? "_" : "", suffix ? suffix : "");
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", name);
    pki_json_uint(json, "family_index", row->family);
    pki_json_uint(json, "per_family_instance_index", row->member);
    pki_json_text(json, "run_name", row->name);
    pki_json_text(json, "run_type", suffix ? "aggregate" : "iteration");
}

/* Always in ns: compare.py leaves out rows whose unit is not that of the first. */
static void put_times(pki_json *json, double real, double cpu)
{
    pki_json_real(json, "real_time", real);
    pki_json_real(json, "cpu_time", cpu);
    pki_json_text(json, "time_unit", "ns");
}

#define RATES 3

/* A rate or a figure of the benchmark's own, by its place among them; NULL beyond the last one. */
static const char *figure_of(const pki_bench_row *row, unsigned at, double *value)
{
    static const char *const names[] = {"bytes_per_second", "items_per_second", "flops_per_second"};
    const pk_bench_result *r = &row->result;
    const double rates[] = {r->bytes_per_second, r->items_per_second, r->flops_per_second};
    if (at < RATES) {
        *value = rates[at];
        return names[at];
    }
    at -= RATES;
    if (at >= row->figure_count)
        return NULL;
    *value = row->figures[at].value;
    return row->figures[at].name;
}

static void put_figures(pki_json *json, const pki_bench_row *row)
{
    const char *name;
    double value;
    for (unsigned at = 0; (name = figure_of(row, at, &value)); at++)
        if (at >= RATES || value > 0)
            pki_json_real(json, name, value);
}

static void put_row(pki_json *json, const pki_bench_document *d, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    bool measured = pki_bench_row_measured(row);
    put_name(json, row, NULL);
    pki_json_uint(json, "repetitions", d->configuration.repetitions);
    pki_json_uint(json, "repetition_index", row->repetition);
    pki_json_uint(json, "threads", r->threads);
    if (!measured) {
        pki_json_bool(json, "error_occurred", true);
        pki_json_text(json, "error_message", r->reason);
    }
    pki_json_uint(json, "iterations", measured ? r->count * r->iterations : 0);
    put_times(json, r->median, r->cpu);
    if (*row->label)
        pki_json_text(json, "label", row->label);
    put_figures(json, row);
    json_put_perfkit(json, d, row);
    pki_json_close(json, '}');
}

/* Over the rows that were measured, as for the times. */
static void put_aggregate_figures(pki_json *json, const pki_bench_row *rows, size_t count,
                                  size_t which)
{
    const char *name;
    double value, scratch[PKI_BENCH_REPETITIONS_MOST];
    for (unsigned at = 0; (name = figure_of(&rows[0], at, &value)); at++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
            if (n < PKI_BENCH_REPETITIONS_MOST && pki_bench_row_measured(&rows[i]) &&
                figure_of(&rows[i], at, &value))
                scratch[n++] = value;
        if (at >= RATES || pki_samples_mean(scratch, n) > 0)
            pki_json_real(json, name, pki_bench_aggregate_of(which, scratch, n));
    }
}

static void put_aggregate(pki_json *json, const pki_bench_row *rows, size_t count,
                          const pki_bench_aggregate *all, size_t which)
{
    put_name(json, &rows[0], all[which].name);
    pki_json_uint(json, "repetitions", count);
    pki_json_uint(json, "threads", rows[0].result.threads);
    pki_json_text(json, "aggregate_name", all[which].name);
    pki_json_text(json, "aggregate_unit", all[which].unit);
    pki_json_uint(json, "iterations", count);
    put_times(json, all[which].real, all[which].cpu);
    put_aggregate_figures(json, rows, count, which);
    pki_json_close(json, '}');
}

static void put_group(pki_json *json, const pki_bench_document *d, size_t at, size_t count)
{
    pki_bench_aggregate all[PKI_BENCH_AGGREGATES];
    for (size_t i = 0; i < count; i++)
        put_row(json, d, &d->rows[at + i]);
    size_t made = pki_bench_aggregates(&d->rows[at], count, all);
    for (size_t i = 0; i < made; i++)
        put_aggregate(json, &d->rows[at], count, all, i);
}

void pki_bench_json(const pki_bench_document *d, FILE *file)
{
    pki_json json = {file, true, false};
    pki_json_open(&json, NULL, '{');
    pki_json_row(&json);
    pki_bench_json_context(&json, d);
    pki_json_row(&json);
    pki_json_open(&json, "benchmarks", '[');
    for (size_t at = 0; at < d->row_count; at += pki_bench_group(d, at))
        put_group(&json, d, at, pki_bench_group(d, at));
    fputc('\n', file);
    pki_json_close(&json, ']');
    fputc('\n', file);
    pki_json_close(&json, '}');
    fputc('\n', file);
}
