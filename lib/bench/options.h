/* lib/bench/options.h - options of a benchmark and of a program of benchmarks */
#pragma once

#include <pk/bench.h>

#include <stdbool.h>
#include <stdio.h>

#include "bench/forms/document.h"

/* ---- times and shares as people write them on a command line ---- */

/* The locale has to be plain. */

/* "0.5", "0.5s", "500ms", "5min": in ns, above 0. Without a unit: seconds. */
bool pki_bench_read_time(const char *text, double *ns);

/* "1%" or "0.01": below 1; as a percentage below 1000 %. */
bool pki_bench_read_share(const char *text, double *share);

/* ---- the command line of a program of benchmarks ---- */

/* What is written besides the table. */
typedef enum pki_bench_file {
    PKI_BENCH_JSON,
    PKI_BENCH_CSV,
    PKI_BENCH_MARKDOWN,
    PKI_BENCH_JUNIT,
    PKI_BENCH_FILES
} pki_bench_file;

typedef struct pki_bench_args {
    const char *filter;                     /* NULL: all */
    bool list, help, version, alone, quiet; /* alone: one after the other */
    pki_bench_picture picture;
    const char *files[PKI_BENCH_FILES]; /* "-": stdout, instead of the table; NULL: not wanted */
    bool to_stdout;                     /* one of them is */
    uint32_t repetitions;
    struct pk_bench_options over; /* what wins over the benchmarks' own options */
    char complaint[256];
} pki_bench_args;

/* False: args->complaint says what is wrong. The locale has to be plain. */
bool pki_bench_args_parse(pki_bench_args *args, int argc, char **argv);

void pki_bench_args_help(const char *program, FILE *file);
