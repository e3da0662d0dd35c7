/* tools/bench/bench_file.h - what files of benchmarks say */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "complaint.h"
#include "table.h"

/* ---- bench file ---- */

/* What files of benchmarks say (docs/internals/bench.md, and Google
 * Benchmark's own): for each benchmark its process runs, for each process run its samples. */

/* One process's samples of one benchmark: all that share that process's layout. */
typedef struct bench_run {
    char *id;
    uint64_t pair; /* of an A/B: the process run of the other build that belongs to it; 0: none */
    double *samples, *cpu_samples; /* ns per iteration */
    size_t count, room, cpu_room;
} bench_run;

typedef struct bench_series {
    char *name;
    char *clock; /* "wall", "cpu", "manual", "gpu"; "" unknown */
    char *error; /* why a process run of it was not measured; NULL: all were */
    bool skipped;
    bench_run *runs;
    size_t run_count;
} bench_series;

typedef struct bench_file {
    char *path;
    char *date, *executable, *host, *cpu, *version;
    char *fingerprint;   /* of the machine; "" unknown (Google's) */
    char *configuration; /* as canonical JSON; "" unknown */
    char *session;       /* of an A/B: which one; "" if it is none */
    char *side, *method; /* "old" or "new"; "processes" or "one-process" */
    table names;         /* of the series, by number */
    bench_series *series;
} bench_file;

/* Empty, with every text "" but the path. */
void bench_file_init(bench_file *file, const char *path);
void bench_file_finish(bench_file *file);

void bench_text_set(char **text, const char *to);

/* The benchmark of that name, new if need be. Pointers to series are good until the next new
 * one. */
bench_series *bench_file_series(bench_file *file, const char *name);
bench_series *bench_file_find(const bench_file *file, const char *name); /* NULL: it has none */

/* Likewise. */
bench_run *bench_series_run(bench_series *series, const char *id);

void bench_run_add(bench_run *run, double sample, double cpu_sample);

/* All process runs of `from` as process runs of `to` with that id and pair, and what it says of
 * machine, program and options; the first one's date stays. Empties `from`. */
void bench_file_append(bench_file *to, bench_file *from, const char *id, uint64_t pair);

/* False, and why. "-" is the standard input. */
bool bench_file_load(bench_file *file, const char *path, complaint *why);

/* As docs/internals/bench.md says; false, and why. */
bool bench_file_save(const bench_file *file, const char *path, complaint *why);
