#include "bench/bench_file.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

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
