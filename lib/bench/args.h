/* lib/bench/args.h - the command line of a program of benchmarks. */
#ifndef PKI_BENCH_ARGS_H
#define PKI_BENCH_ARGS_H

#include <pk/bench.h>

#include <stdbool.h>
#include <stdio.h>

#include "bench/forms/document.h"

typedef struct pki_bench_args {
    const char *filter;                     /* NULL: all */
    bool list, help, version, alone, quiet; /* alone: one after the other */
    pki_bench_picture picture;
    const char *json, *csv, *markdown, *junit; /* "-": stdout, instead of the table */
    uint32_t repetitions;
    struct pk_bench_options over; /* what wins over the benchmarks' own options */
    char complaint[256];
} pki_bench_args;

/* False: args->complaint says what is wrong. The locale has to be plain. */
bool pki_bench_args_parse(pki_bench_args *args, int argc, char **argv);

void pki_bench_args_help(const char *program, FILE *file);

#endif
