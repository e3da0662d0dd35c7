#include "bench/bench_file.h"

#include <stdlib.h>
#include <string.h>

bool bench_text_set(char **text, const char *to)
{
    char *copy = strdup(to);
    if (!copy)
        return false;
    free(*text);
    *text = copy;
    return true;
}

#define TEXTS 11
#define OF_LAUNCH 4 /* the first one that a launch's file says anew */

static char **text_at(bench_file *f, size_t i)
{
    char **const all[TEXTS] = {&f->path,    &f->session,     &f->side,         &f->method,
                               &f->date,    &f->host,        &f->executable,   &f->cpu,
                               &f->version, &f->fingerprint, &f->configuration};
    return all[i];
}

bool bench_file_init(bench_file *file, const char *path)
{
    bool fits = true;
    memset(file, 0, sizeof *file);
    for (size_t i = 0; i < TEXTS; i++)
        fits &= bench_text_set(text_at(file, i), i ? "" : path);
    return fits;
}

static void finish_series(bench_series *series)
{
    for (size_t i = 0; i < series->launch_count; i++) {
        free(series->launches[i].id);
        free(series->launches[i].samples);
        free(series->launches[i].cpu_samples);
    }
    free(series->launches);
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

/* Room first, then the name: the table never has more than there are series. */
bench_series *bench_file_series(bench_file *file, const char *name)
{
    bench_series *found = bench_file_find(file, name);
    if (found)
        return found;
    uint32_t count = file->names.count;
    bench_series *grown = realloc(file->series, (count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    file->series = grown;
    bench_series made = {.name = strdup(name), .clock = strdup("")};
    if (!made.name || !made.clock || table_add(&file->names, name) == TABLE_NONE) {
        finish_series(&made);
        return NULL;
    }
    file->series[count] = made;
    return &file->series[count];
}

/* ---- launches ---- */

static bench_launch *new_launch(bench_series *series, const char *id)
{
    bench_launch *grown =
        realloc(series->launches, (series->launch_count + 1) * sizeof *series->launches);
    char *copy = grown ? strdup(id) : NULL;
    if (grown)
        series->launches = grown;
    if (!copy)
        return NULL;
    grown[series->launch_count] = (bench_launch){.id = copy};
    return &grown[series->launch_count++];
}

/* The last one first: rows of a launch stand together. */
bench_launch *bench_series_launch(bench_series *series, const char *id)
{
    for (size_t i = series->launch_count; i-- > 0;)
        if (strcmp(series->launches[i].id, id) == 0)
            return &series->launches[i];
    return new_launch(series, id);
}

static bool is_full(size_t count)
{
    return (count & (count - 1)) == 0; /* 0 or a power of two */
}

bool bench_launch_add(bench_launch *launch, double sample, double cpu_sample)
{
    if (is_full(launch->count)) {
        size_t bytes = (launch->count ? 2 * launch->count : 1) * sizeof(double);
        double *samples = realloc(launch->samples, bytes);
        if (samples)
            launch->samples = samples;
        double *cpu_samples = samples ? realloc(launch->cpu_samples, bytes) : NULL;
        if (!cpu_samples)
            return false;
        launch->cpu_samples = cpu_samples;
    }
    launch->samples[launch->count] = sample;
    launch->cpu_samples[launch->count++] = cpu_sample;
    return true;
}

static bool take_series(bench_series *to, bench_series *from, const char *id, uint64_t pair)
{
    if (!to || !bench_text_set(&to->clock, from->clock))
        return false;
    if (from->error && !bench_text_set(&to->error, from->error))
        return false;
    to->skipped |= from->skipped;
    if (from->launch_count == 0)
        return true;
    bench_launch *launch = new_launch(to, id);
    if (!launch)
        return false;
    launch->pair = pair;
    for (size_t i = 0; i < from->launch_count; i++)
        for (size_t k = 0; k < from->launches[i].count; k++)
            if (!bench_launch_add(launch, from->launches[i].samples[k],
                                  from->launches[i].cpu_samples[k]))
                return false;
    return true;
}

bool bench_file_append(bench_file *to, bench_file *from, const char *id, uint64_t pair)
{
    bool fits = true;
    for (size_t i = to->date[0] ? OF_LAUNCH + 1 : OF_LAUNCH; i < TEXTS; i++) {
        char *before = *text_at(to, i);
        *text_at(to, i) = *text_at(from, i);
        *text_at(from, i) = before;
    }
    for (uint32_t i = 0; i < from->names.count && fits; i++)
        fits = take_series(bench_file_series(to, from->series[i].name), &from->series[i], id, pair);
    bench_file_finish(from);
    return fits;
}
