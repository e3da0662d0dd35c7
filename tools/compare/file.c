/* tools/compare/file.c - what files of benchmarks say */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats/samples.h"
#include "compare/compare.h"
#include "compare/nvbench.h"
#include "files.h"
#include "memory.h"
#include "out/json_write.h"
#include "read/json.h"
#include "read/lines.h"

/* ---- bench file ---- */

void bench_text_set(char **text, const char *to)
{
    char *copy = memory_copy(to);
    free(*text);
    *text = copy;
}

#define TEXTS 11
#define OF_RUN 4 /* the first one that a process run's file says anew */

static char **text_at(bench_file *f, size_t i)
{
    char **const all[TEXTS] = {&f->path,    &f->session,     &f->side,         &f->method,
                               &f->date,    &f->host,        &f->executable,   &f->cpu,
                               &f->version, &f->fingerprint, &f->configuration};
    return all[i];
}

void bench_file_init(bench_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    for (size_t i = 0; i < TEXTS; i++)
        *text_at(file, i) = memory_copy(i ? "" : path);
}

static void finish_series(bench_series *series)
{
    for (size_t i = 0; i < series->run_count; i++) {
        free(series->runs[i].id);
        free(series->runs[i].samples);
        free(series->runs[i].cpu_samples);
    }
    free(series->runs);
    free(series->name);
    free(series->clock);
    free(series->error);
}

void bench_file_finish(bench_file *file)
{
    for (uint32_t i = 0; i < file->names.count; i++)
        finish_series(&file->series[i]);
    free(file->series);
    table_finish(&file->names);
    for (size_t i = 0; i < TEXTS; i++)
        free(*text_at(file, i));
    memset(file, 0, sizeof *file);
}

/* ---- benchmarks ---- */

bench_series *bench_file_find(const bench_file *file, const char *name)
{
    uint32_t number = table_find(&file->names, name);
    return number == TABLE_NONE ? NULL : &file->series[number];
}

bench_series *bench_file_series(bench_file *file, const char *name)
{
    uint32_t known = file->names.count, number = table_add(&file->names, name);
    if (number < known)
        return &file->series[number];
    file->series = memory_resized(file->series, (known + 1) * sizeof *file->series);
    file->series[known] = (bench_series){.name = memory_copy(name), .clock = memory_copy("")};
    return &file->series[known];
}

/* ---- process runs ---- */

static bench_run *new_run(bench_series *series, const char *id)
{
    series->runs = memory_resized(series->runs, (series->run_count + 1) * sizeof *series->runs);
    series->runs[series->run_count] = (bench_run){.id = memory_copy(id)};
    return &series->runs[series->run_count++];
}

/* The last one first: rows of a process run stand together. */
bench_run *bench_series_run(bench_series *series, const char *id)
{
    for (size_t i = series->run_count; i-- > 0;)
        if (strcmp(series->runs[i].id, id) == 0)
            return &series->runs[i];
    return new_run(series, id);
}

void bench_run_add(bench_run *run, double sample, double cpu_sample)
{
    size_t at = run->count++;
    memory_fit(&run->samples, &run->room, at + 1, sizeof sample);
    memory_fit(&run->cpu_samples, &run->cpu_room, at + 1, sizeof cpu_sample);
    run->samples[at] = sample;
    run->cpu_samples[at] = cpu_sample;
}

static void merge_series(bench_series *to, const bench_series *from, const char *id, uint64_t pair)
{
    bench_text_set(&to->clock, from->clock);
    if (from->error)
        bench_text_set(&to->error, from->error);
    to->skipped |= from->skipped;
    if (from->run_count == 0)
        return;
    bench_run *run = new_run(to, id);
    run->pair = pair;
    for (size_t i = 0; i < from->run_count; i++)
        for (size_t k = 0; k < from->runs[i].count; k++)
            bench_run_add(run, from->runs[i].samples[k], from->runs[i].cpu_samples[k]);
}

void bench_file_append(bench_file *to, bench_file *from, const char *id, uint64_t pair)
{
    for (size_t i = to->date[0] ? OF_RUN + 1 : OF_RUN; i < TEXTS; i++) {
        char *before = *text_at(to, i);
        *text_at(to, i) = *text_at(from, i);
        *text_at(from, i) = before;
    }
    for (uint32_t i = 0; i < from->names.count; i++)
        merge_series(bench_file_series(to, from->series[i].name), &from->series[i], id, pair);
    bench_file_finish(from);
}

/* ---- bench_file.h from JSON ---- */

#define SCHEMA 1 /* of context.perfkit, see docs/internals/bench.md */

/* ---- the context ---- */

/* Members that decide nothing about how was measured stay out of it. */
static void read_configuration(json_reader *j, json_t *ours, bench_file *file)
{
    json_t *from = json_read_object(j, ours, "configuration");
    char *text = from ? json_dumps(from, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (!from)
        return;
    memory_needed(text != NULL);
    bench_text_set(&file->configuration, text);
    /* jansson's allocator is ours: see tools/read/json.c. */
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
}

static bool check_schema(json_reader *j, json_t *ours)
{
    uint64_t schema = SCHEMA;
    json_read_uint(j, ours, "schema", &schema);
    if (j->failed || schema <= SCHEMA)
        return !j->failed;
    return complaint_set(j->why, "is of schema %llu, and this pk reads up to %d: a newer pk can",
                         (unsigned long long)schema, SCHEMA);
}

static bool read_context(json_reader *j, json_t *document, bench_file *file)
{
    json_t *context = json_read_object(j, document, "context");
    json_t *ours = json_read_object(j, context, "perfkit");
    json_t *environment = json_read_object(j, ours, "environment");
    json_t *ab = json_read_object(j, ours, "ab");
    json_read_text(j, context, "date", &file->date);
    json_read_text(j, context, "executable", &file->executable);
    json_read_text(j, context, "host_name", &file->host);
    json_read_text(j, ours, "version", &file->version);
    json_read_text(j, ours, "fingerprint", &file->fingerprint);
    json_read_text(j, environment, "cpu", &file->cpu);
    json_read_text(j, ab, "session", &file->session);
    json_read_text(j, ab, "side", &file->side);
    json_read_text(j, ab, "method", &file->method);
    if (!j->failed)
        read_configuration(j, ours, file);
    return !j->failed && check_schema(j, ours);
}

/* ---- rows ---- */

typedef struct row {
    json_t *from, *ours;
    char *name, *type, *unit, *aggregate, *run, *clock, *error;
    double real_time, cpu_time; /* ns */
    bool failed, skipped;
    uint64_t pair;
} row;

static void finish_row(row *r)
{
    char *texts[] = {r->name, r->type, r->unit, r->aggregate, r->run, r->clock, r->error};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

static double unit_of(json_reader *j, const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].ns;
    complaint_set(j->why, "has a \"time_unit\" of \"%.20s\", which is none of ns, us, ms, s", unit);
    j->failed = true;
    return 1;
}

static void read_row(json_reader *j, json_t *from, const char *run, row *r)
{
    *r = (row){.from = from, .real_time = NAN, .cpu_time = NAN};
    r->ours = json_read_object(j, from, "perfkit");
    json_read_text(j, from, "name", &r->name);
    json_read_text(j, from, "run_name", &r->name);
    json_read_text(j, from, "run_type", &r->type);
    json_read_text(j, from, "time_unit", &r->unit);
    json_read_text(j, from, "aggregate_name", &r->aggregate);
    json_read_text(j, from, "error_message", &r->error);
    json_read_bool(j, from, "error_occurred", &r->failed);
    json_read_real(j, from, "real_time", &r->real_time);
    json_read_real(j, from, "cpu_time", &r->cpu_time);
    json_read_text(j, r->ours, "launch", &r->run);
    json_read_text(j, r->ours, "clock", &r->clock);
    json_read_uint(j, r->ours, "pair", &r->pair);
    json_read_bool(j, r->ours, "skipped", &r->skipped);
    if (j->failed)
        return;
    double unit = unit_of(j, r->unit);
    r->real_time *= unit;
    r->cpu_time *= unit;
    if (!r->run[0])
        bench_text_set(&r->run, run);
    if (!r->name[0])
        complaint_set(j->why, "has a benchmark without a name");
    j->failed |= j->why->text[0] != 0;
}

static void add(bench_run *run, double sample, double cpu_sample)
{
    if (isfinite(sample))
        bench_run_add(run, sample, isfinite(cpu_sample) ? cpu_sample : 0);
}

static void add_samples(json_reader *j, row *r, bench_run *run)
{
    json_t *samples = json_read_array(j, r->ours, "samples"), *sample;
    json_t *cpu_samples = json_read_array(j, r->ours, "cpu_samples");
    size_t i;
    if (json_array_size(samples) == 0)
        add(run, r->real_time, r->cpu_time);
    json_array_foreach(samples, i, sample)
    {
        double value = json_is_number(sample) ? json_number_value(sample) : NAN;
        double cpu = json_number_value(json_array_get(cpu_samples, i)); /* 0 if there is none */
        if (!json_is_number(sample) && !json_is_null(sample))
            j->failed = !complaint_set(j->why, "has \"samples\" that are no numbers");
        if (j->failed)
            return;
        add(run, value, cpu);
    }
}

static void add_row(json_reader *j, row *r, bench_file *file)
{
    bench_series *series = bench_file_series(file, r->name);
    if (r->failed) {
        series->skipped = r->skipped;
        bench_text_set(&series->error, r->error);
        return;
    }
    bench_run *run = bench_series_run(series, r->run);
    bench_text_set(&series->clock, r->clock);
    run->pair = r->pair;
    add_samples(j, r, run);
}

/* Of benchmarks that have aggregates only, the median is all there is. */
static bool is_wanted(const row *r, const bench_file *file, bool aggregates)
{
    bool is_aggregate = strcmp(r->type, "aggregate") == 0;
    if (is_aggregate != aggregates)
        return false;
    return !aggregates || (strcmp(r->aggregate, "median") == 0 && !bench_file_find(file, r->name));
}

static bool read_rows(json_reader *j, json_t *document, bench_file *file, const char *run,
                      bool aggregates)
{
    json_t *rows = json_read_array(j, document, "benchmarks"), *from;
    size_t i;
    json_array_foreach(rows, i, from)
    {
        row r;
        if (!json_is_object(from))
            return complaint_set(j->why, "has \"benchmarks\" that are no objects");
        read_row(j, from, run, &r);
        if (!j->failed && is_wanted(&r, file, aggregates))
            add_row(j, &r, file);
        finish_row(&r);
        if (j->failed)
            return false;
    }
    return true;
}

/* ---- the document ---- */

static bool read_document(json_t *document, bench_file *file, complaint *why)
{
    json_reader j = {.why = why};
    char *run = NULL;
    if (!json_is_array(json_object_get(document, "benchmarks")))
        return complaint_set(why,
                             "is JSON, but has no \"benchmarks\": neither pk_bench's nor Google"
                             " Benchmark's nor nvbench's");
    if (nvbench_is_one(document))
        return nvbench_read(document, file, "", why);
    json_t *context = json_object_get(document, "context");
    json_read_text(&j, json_object_get(context, "perfkit"), "launch", &run);
    bool read = !j.failed && read_context(&j, document, file) &&
                read_rows(&j, document, file, run, false) &&
                read_rows(&j, document, file, run, true);
    free(run);
    return read;
}

static bool read_file(bench_file *file, const char *path, complaint *why)
{
    lines in;
    bool too_large;
    if (!lines_open(&in, path, LINES_LONGEST, why))
        return false;
    json_t *document = document_from_lines(NULL, 0, &in, &too_large, why);
    lines_close(&in);
    bool read = document && read_document(document, file, why);
    json_decref(document);
    return read;
}

bool bench_file_load(bench_file *file, const char *path, complaint *why)
{
    bench_file_init(file, path);
    if (read_file(file, path, why))
        return true;
    bench_file_finish(file);
    return false;
}

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
