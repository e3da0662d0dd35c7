/* tools/compare/nvbench.c - what nvbench's files say (its --json FILE) */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "compare/compare.h"
#include "compare/nvbench.h"
#include "read/json.h"

/* Each benchmark has states, one for each combination of its axes and device; a state has
 * summaries, each with a tag and values by name, numbers as text. Only aggregates: a state of a
 * process run is one sample. */

bool nvbench_is_one(json_t *document)
{
    json_t *first = json_array_get(json_object_get(document, "benchmarks"), 0);
    return json_is_array(json_object_get(first, "states"));
}

/* The first of them that a state has is its time. */
static const struct {
    const char *tag, *clock;
} times[] = {
    {"nv/cold/time/gpu/median", "gpu"},      {"nv/cold/time/gpu/mean", "gpu"},
    {"nv/cold/time/cpu/median", "wall"},     {"nv/cold/time/cpu/mean", "wall"},
    {"nv/cpu_only/time/cpu/median", "wall"}, {"nv/cpu_only/time/cpu/mean", "wall"},
    {"nv/batch/time/gpu/mean", "gpu"},
};

static bool is_text(json_t *object, const char *key, const char *text)
{
    const char *has = json_string_value(json_object_get(object, key));
    return has && strcmp(has, text) == 0;
}

/* Seconds; NAN: it has none. */
static double value_of(json_t *summary)
{
    json_t *datum;
    size_t i;
    json_array_foreach(json_object_get(summary, "data"), i, datum)
    {
        json_t *value = json_object_get(datum, "value");
        if (!is_text(datum, "name", "value"))
            continue;
        return json_is_string(value)   ? strtod(json_string_value(value), NULL)
               : json_is_number(value) ? json_number_value(value)
                                       : NAN;
    }
    return NAN;
}

static double time_of(json_t *state, const char *tag)
{
    json_t *summary;
    size_t i;
    json_array_foreach(json_object_get(state, "summaries"), i, summary)
    {
        if (is_text(summary, "tag", tag))
            return value_of(summary);
    }
    return NAN;
}

static void add_time(json_t *state, bench_series *series, const char *run)
{
    for (size_t i = 0; i < PKI_COUNT_OF(times); i++) {
        double seconds = time_of(state, times[i].tag);
        if (!(isfinite(seconds) && seconds > 0))
            continue;
        bench_text_set(&series->clock, times[i].clock);
        bench_run_add(bench_series_run(series, run), 1e9 * seconds, 1e9 * seconds);
        return;
    }
}

static void add_state(json_t *state, const char *benchmark, const char *run, bench_file *file)
{
    char name[512];
    const char *axes = json_string_value(json_object_get(state, "name"));
    const char *reason = json_string_value(json_object_get(state, "skip_reason"));
    snprintf(name, sizeof name, "%s%s%s%s", benchmark, axes && *axes ? "[" : "", axes ? axes : "",
             axes && *axes ? "]" : "");
    bench_series *series = bench_file_series(file, name);
    if (json_is_true(json_object_get(state, "is_skipped"))) {
        series->skipped = true;
        bench_text_set(&series->error, reason ? reason : "no reason given");
        return;
    }
    add_time(state, series, run);
}

bool nvbench_read(json_t *document, bench_file *file, const char *run, complaint *why)
{
    json_t *benchmark, *state;
    size_t i, k;
    json_array_foreach(json_object_get(document, "benchmarks"), i, benchmark)
    {
        const char *name = json_string_value(json_object_get(benchmark, "name"));
        json_t *states = json_object_get(benchmark, "states");
        if (!name || !json_is_array(states))
            return complaint_set(why, "has a benchmark of nvbench without a name or states");
        json_array_foreach(states, k, state) add_state(state, name, run, file);
    }
    return true;
}
