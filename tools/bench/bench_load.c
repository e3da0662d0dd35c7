/* tools/bench/bench_load.c - bench_file.h from JSON. */
#include "bench/bench_file.h"

#include "memory.h"
#include "read/json_read.h"
#include "read/lines.h"
#include "read/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA 1 /* of context.perfkit, see docs/bench-format.md */

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
    /* jansson's allocator is ours: see json_read.c. */
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
                             " Benchmark's");
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
