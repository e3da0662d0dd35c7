#include "bench/forms/json_context.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"

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

void pki_bench_json_context(pki_json *json, const pki_bench_document *d)
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
