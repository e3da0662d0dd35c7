/* tools/bench/compare/compare.h - files of benchmarks against each other: which became slower, as
 * far as anybody can tell */
#pragma once

#include <stdio.h>

#include "bench/bench_file.h"
#include "bench/stats/decision.h"

/* ---- files of benchmarks against each other ---- */

/* Which became slower, as far as the files can tell.
 *
 * Files of one A/B (pk bench-ab) hold process runs in pairs, close to each other in time: their
 * ratios are the replications. Other files are runs at different moments, each one replication
 * however many samples it has; with several runs on the old side (a baseline's) the spread between
 * them decides, and with one on each side the allowance does: how far runs of one build lie apart
 * on a machine that nobody has measured. */

#define COMPARE_THRESHOLD 0.02
#define COMPARE_ALPHA 0.01
#define COMPARE_MOMENTS 0.25 /* docs/internals/bench.md: 3 to 23 % on a shared machine */

/* What the files' process runs are to each other. */
typedef enum compare_way {
    COMPARE_ONE_PROCESS,  /* each process run has both builds: a ratio each, signed ranks */
    COMPARE_PAIRS,        /* process runs in alternation: a ratio for each pair, signed ranks */
    COMPARE_MOMENTS_APART /* runs at different moments */
} compare_way;

typedef struct compare_options {
    double threshold, alpha, moments;
    bool cpu;         /* CPU time instead of the clock that counts */
    bool any_machine; /* verdicts even though the machines differ */
} compare_options;

typedef struct compare_row {
    const char *name;          /* the file's */
    double old_time, new_time; /* ns; NAN: not in that file */
    pki_evidence evidence;     /* its values and averages are `numbers` */
    pki_decision decision;
    bool decided;              /* it took part in the decisions */
    size_t old_runs, new_runs; /* process runs that the times are of */
    char why[160];             /* why it was not decided; "" */
    double *numbers;
} compare_row;

typedef struct comparison {
    const char *old_path, *new_path;
    compare_options options;
    compare_row *rows; /* in the old file's order, then what only the new one has */
    size_t count;
    size_t changes[4]; /* rows by pki_change */
    size_t undecided;  /* rows that are in one file only, or were not measured */
    compare_way way;
    char warnings[3][256];
    size_t warning_count;
} comparison;

/* new against all of the olds together. False, and why: no benchmark in common. */
bool compare_files(const bench_file *const *olds, size_t old_count, const bench_file *new_file,
                   const compare_options *options, comparison *out, complaint *why);
void comparison_finish(comparison *c);

/* ---- showing it; errors stick to the stream ---- */

/* Two files: one comparison. A chain of n: for each but the first, with the one before it and with
 * the first, 2 (n - 1) comparisons. */
typedef void compare_show(const comparison *steps, size_t count, FILE *file);

compare_show compare_text;     /* compare/forms.c */
compare_show compare_markdown; /* compare/forms.c */
compare_show compare_json;     /* compare/forms.c, docs/internals/bench.md */
compare_show compare_junit;    /* compare/forms.c */

/* compare/forms.c: for all of them, in words. */
typedef struct compare_string {
    char text[256];
} compare_string;

/* "cannot tell: 14 more process runs" */
compare_string compare_format_verdict(const compare_row *row);
compare_string compare_format_interval(const compare_row *row); /* "0.9810 .. 1.0041" */
compare_string compare_format_ratio(const compare_row *row);
compare_string compare_format_time(double ns);
compare_string compare_format_summary(const comparison *c); /* "1 slower, 2 same, 4 cannot tell" */
compare_string compare_format_method(const comparison *c);  /* "20 pairs of process runs, ..." */
