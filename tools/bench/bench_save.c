/* tools/bench/bench_save.c - bench_file.h as docs/bench-format.md says: what pk bench-ab has
 * measured. */
#include "bench/bench_file.h"

#include "bench/stats/sample_stats.h"
#include "out/json_write.h"
#include "memory.h"
#include "output.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the context ---- */

static void put_member(pki_json *json, const char *key, json_t *value)
{
    if (json_is_string(value))
        pki_json_text(json, key, json_string_value(value));
    else if (json_is_integer(value))
        pki_json_int(json, key, json_integer_value(value));
    else if (json_is_real(value))
        pki_json_real(json, key, json_real_value(value));
    else if (json_is_boolean(value))
        pki_json_bool(json, key, json_is_true(value));
}

static void put_configuration(pki_json *json, const char *text)
{
    json_t *all = json_loads(text, 0, NULL), *value;
    const char *key;
    if (!json_is_object(all)) {
        json_decref(all);
        return;
    }
    pki_json_open(json, "configuration", '{');
    json_object_foreach(all, key, value) put_member(json, key, value);
    pki_json_close(json, '}');
    json_decref(all);
}

static void put_ours(pki_json *json, const bench_file *file)
{
    pki_json_open(json, "perfkit", '{');
    pki_json_text(json, "format", "perfkit bench");
    pki_json_uint(json, "schema", 1);
    pki_json_text(json, "version", file->version);
    pki_json_text(json, "fingerprint", file->fingerprint);
    put_configuration(json, file->configuration);
    pki_json_open(json, "environment", '{');
    pki_json_text(json, "cpu", file->cpu);
    pki_json_close(json, '}');
    if (file->session[0]) {
        pki_json_open(json, "ab", '{');
        pki_json_text(json, "session", file->session);
        pki_json_text(json, "side", file->side);
        pki_json_text(json, "method", file->method);
        pki_json_close(json, '}');
    }
    pki_json_close(json, '}');
}

static void put_context(pki_json *json, const bench_file *file)
{
    pki_json_open(json, "context", '{');
    pki_json_text(json, "date", file->date);
    pki_json_text(json, "host_name", file->host);
    pki_json_text(json, "executable", file->executable);
    pki_json_text(json, "library_version", file->version);
    pki_json_uint(json, "json_schema_version", 1);
    put_ours(json, file);
    pki_json_close(json, '}');
}

/* ---- rows ---- */

static double median(const double *samples, size_t count)
{
    double *scratch = memory_zeroed(count, sizeof *scratch);
    memcpy(scratch, samples, count * sizeof *scratch);
    double found = pki_samples_select_median(scratch, count);
    free(scratch);
    return found;
}

static void open_row(pki_json *json, const bench_series *series, size_t index)
{
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", series->name);
    pki_json_uint(json, "family_index", index);
    pki_json_uint(json, "per_family_instance_index", 0);
    pki_json_text(json, "run_name", series->name);
    pki_json_text(json, "run_type", "iteration");
}

/* Process runs are Google's repetitions: its readers then have something to work with. */
static void put_run(pki_json *json, const bench_series *series, size_t index, size_t i)
{
    const bench_run *run = &series->runs[i];
    open_row(json, series, index);
    pki_json_uint(json, "repetitions", series->run_count);
    pki_json_uint(json, "repetition_index", i);
    pki_json_uint(json, "threads", 1);
    pki_json_uint(json, "iterations", run->count);
    pki_json_real(json, "real_time", median(run->samples, run->count));
    pki_json_real(json, "cpu_time", median(run->cpu_samples, run->count));
    pki_json_text(json, "time_unit", "ns");
    pki_json_open(json, "perfkit", '{');
    pki_json_text(json, "launch", run->id);
    if (run->pair)
        pki_json_uint(json, "pair", run->pair);
    pki_json_text(json, "clock", series->clock);
    pki_json_reals(json, "samples", run->samples, run->count);
    pki_json_reals(json, "cpu_samples", run->cpu_samples, run->count);
    pki_json_close(json, '}');
    pki_json_close(json, '}');
}

static void put_error(pki_json *json, const bench_series *series, size_t index)
{
    open_row(json, series, index);
    pki_json_uint(json, "iterations", 0);
    pki_json_real(json, "real_time", 0);
    pki_json_real(json, "cpu_time", 0);
    pki_json_text(json, "time_unit", "ns");
    pki_json_bool(json, "error_occurred", true);
    pki_json_text(json, "error_message", series->error);
    pki_json_open(json, "perfkit", '{');
    pki_json_bool(json, "skipped", series->skipped);
    pki_json_close(json, '}');
    pki_json_close(json, '}');
}

/* ---- the file ---- */

static void put_file(const bench_file *file, FILE *to)
{
    pki_json json = {.file = to, .rows = true};
    pki_json_open(&json, NULL, '{');
    put_context(&json, file);
    pki_json_open(&json, "benchmarks", '[');
    for (uint32_t s = 0; s < file->names.count; s++) {
        for (size_t i = 0; i < file->series[s].run_count; i++)
            put_run(&json, &file->series[s], s, i);
        if (file->series[s].error)
            put_error(&json, &file->series[s], s);
    }
    pki_json_close(&json, ']');
    pki_json_close(&json, '}');
    fputc('\n', to);
}

bool bench_file_save(const bench_file *file, const char *path, complaint *why)
{
    output out;
    if (!output_open(&out, path, OUTPUT_FILE, why))
        return false;
    put_file(file, out.to);
    return output_close(&out, true, why);
}
