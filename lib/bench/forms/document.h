/* lib/bench/forms/document.h - what a program of benchmarks has to say, and the forms in which it
 * does */
#pragma once

#include <pk/bench.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/case.h"
#include "bench/environment.h"

/* ---- what a program of benchmarks has to say, and the forms in which it does ---- */

/* All writers write to a stream and leave it open; write errors stick to it. The locale must be
 * plain (pki_plain_enter). Names may hold any bytes. */

#define PKI_BENCH_REPETITIONS_MOST 1000 /* so that aggregates need no memory */
#define PKI_BENCH_FORMAT "perfkit bench"
#define PKI_BENCH_SCHEMA 1

/* One benchmark with its parameters, once. */
typedef struct pki_bench_row {
    const char *name;
    size_t family, member;
    uint32_t repetition;
    pk_bench_result result; /* owned */
    uint32_t clock;         /* a pk_bench_clock */
    bool cold;
    uint64_t bytes, flops, items;
    char label[64];
    pki_bench_arguments arguments;
    struct {
        char name[PKI_BENCH_NAME];
        double value;
    } figures[PKI_BENCH_FIGURES];
    unsigned figure_count;
} pki_bench_row;

/* What was asked for; 0: each benchmark's own. */
typedef struct pki_bench_configuration {
    struct pk_bench_options over;
    uint32_t repetitions;
    bool interleaved;
} pki_bench_configuration;

typedef struct pki_bench_document {
    const char *executable, *version; /* perfkit's */
    int64_t began;                    /* seconds since 1970 */
    uint64_t elapsed;
    char run_id[33]; /* of this process run */
    uint64_t fingerprint;
    const pki_bench_environment *environment;
    pki_bench_overhead overhead;
    pki_bench_configuration configuration;
    pki_bench_warning warnings[PKI_BENCH_WARNINGS];
    size_t warning_count;
    pki_bench_row *rows; /* repetitions of a benchmark stand together */
    size_t row_count;
} pki_bench_document;

/* Moves what was measured into the row. False without memory. */
bool pki_bench_row_fill(pki_bench_row *row, pki_bench_case *c);
void pki_bench_row_finish(pki_bench_row *row);

bool pki_bench_row_measured(const pki_bench_row *row);

/* ---- forms ---- */

void pki_bench_json(const pki_bench_document *document, FILE *file);
void pki_bench_csv(const pki_bench_document *document, FILE *file);
void pki_bench_markdown(const pki_bench_document *document, FILE *file);
void pki_bench_junit(const pki_bench_document *document, FILE *file);

typedef enum pki_bench_picture {
    PKI_BENCH_NO_PICTURE,
    PKI_BENCH_SPARKLINE, /* samples in the order taken */
    PKI_BENCH_HISTOGRAM
} pki_bench_picture;

void pki_bench_text(const pki_bench_document *document, pki_bench_picture picture, FILE *file);

/* ---- pieces that several of them use ---- */

typedef struct pki_bench_words {
    char text[48];
} pki_bench_words;

/* Four digits: "123.4 ns", "0.250 ns", "1.250 us", "12.35 ms" */
pki_bench_words pki_bench_time(double ns);

/* A moment, in seconds since 1970, as Google Benchmark writes it: "2026-11-20T14:20:07+01:00" */
pki_bench_words pki_bench_date(int64_t seconds);

/* "L2 hot, queued: launching takes 5.000 us, launch-bound if not queued; 1980 MHz"; "" if it was
 * not measured on a device. And its bound in a word. */
const char *pki_bench_bound_name(uint32_t bound);

/* How many rows from `at` on are of the same benchmark. */
size_t pki_bench_group(const pki_bench_document *document, size_t at);

/* Over the measured rows of a group. */
typedef struct pki_bench_aggregate {
    const char *name, *unit; /* "mean", "time" */
    double real, cpu;        /* ns, or a share for "cv" */
} pki_bench_aggregate;

#define PKI_BENCH_AGGREGATES 4 /* mean, median, stddev, cv */

/* The n-th of these, of any values; they are rearranged. */
double pki_bench_aggregate_of(size_t which, double *values, size_t n);

/* 0 if fewer than two rows were measured. */
size_t pki_bench_aggregates(const pki_bench_row *rows, size_t count,
                            pki_bench_aggregate out[PKI_BENCH_AGGREGATES]);

/* ---- text that may hold any bytes, where some of them would mean something else ---- */

/* In XML, also within an attribute's quotation marks. */
void pki_bench_put_xml(FILE *file, const char *text);

/* In Markdown, also within a table's cell. */
void pki_bench_put_markdown(FILE *file, const char *text);
