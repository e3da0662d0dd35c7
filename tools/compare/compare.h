/* tools/compare/compare.h - files of benchmarks: read, compared, made by two builds in turn */
#pragma once

#include <regex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/stats/evidence.h"
#include "command.h"
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

/* ---- stored runs to compare with: found by machine, program and options ---- */

/* DIR/FINGERPRINT/PROGRAM-CONFIGURATION/DATE-LAUNCH.json
 *
 * FINGERPRINT is the file's (docs/internals/bench.md), "unknown" for Google's; CONFIGURATION a hash
 * of its options. Every file is one run at one moment; the spread between them is what tells a
 * change from the machine's moods. Each is a whole file of benchmarks that can be used by itself.
 */

#define BASELINE_KEEP 20

typedef struct baseline {
    bench_file *files; /* oldest first */
    size_t count;
    bool other_machine; /* there was none of this one */
} baseline;

/* The stored runs that have a benchmark in common with `fresh`, at most the `keep` newest ones, and
 * of those of one minute the last: a moment is what is counted. None is fine; false, and why, if
 * the folder cannot be read or what lies in it is no such file. */
bool baseline_find(const char *folder, const bench_file *fresh, size_t keep, baseline *out,
                   complaint *why);
void baseline_finish(baseline *b);

/* Stores a copy of fresh's file, and removes the oldest ones beyond `keep`. False, and why. */
bool baseline_store(const char *folder, const bench_file *fresh, size_t keep, complaint *why);

/* ---- files of benchmarks against each other ---- */

/* Which became slower, as far as anybody can tell */

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
    bool cpu;              /* CPU time instead of the clock that counts */
    bool any_machine;      /* verdicts even though the machines differ */
    const regex_t *filter; /* only benchmarks whose name it matches; NULL: all */
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

/* ---- what `pk compare` and `pk bench-ab` both take, and where they put it ---- */

typedef struct compare_wish {
    compare_options options;
    const char *markdown, *json, *junit; /* NULL: not wanted; "-": on stdout, instead of the text */
} compare_wish;

#define COMPARE_WISH_DEFAULTS                                                                      \
    {                                                                                              \
        .options = { COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false, false, NULL }       \
    }

/* Ways to take a value; the option's offset is that of its member in the command's wish. */
option_take compare_parse_share; /* a double */
option_take compare_parse_alpha; /* a double */
option_take compare_parse_file;  /* a const char *: a file that can be written, or "-" */

/* Of both commands; the wish has its compare_wish as `shared`. */
#define COMPARE_FORM(wish, name, help, member)                                                     \
    {                                                                                              \
        name, "FILE", help, PKI_OPTION_FILE, compare_parse_file,                                   \
            .at = offsetof(wish, shared.member)                                                    \
    }
#define COMPARE_FORMS(wish)                                                                        \
    COMPARE_FORM(wish, "--markdown", NULL, markdown), COMPARE_FORM(wish, "--json", NULL, json),    \
        COMPARE_FORM(wish, "--junit",                                                              \
                     "the result in these forms, too (\"-\": here, instead of the text)", junit)

/* Prints what is wished. EXIT_OK, EXIT_SLOWER if the last file is slower than the one before it, or
 * EXIT_UNUSABLE after a complaint. */
#define EXIT_SLOWER 1
int compare_print(const compare_wish *w, const comparison *steps, size_t count);

/* ---- two builds in turn, launched many times: pk bench-ab ---- */

/* A process run is one replication: it loads code and allocates buffers anew, and where those come
 * to lie moves some kernels by more than the change that is looked for. Both builds run close to
 * each other in time, in the order old new, new old, ..., so that a drift of the machine hits both
 * alike.
 *
 *   processes     each is of one build; one of the other build is its partner
 *   one process   each loads both builds, as shared objects, into namespaces of their own, and
 *                 alternates short batches of them: what the machine does meanwhile cancels out */

typedef struct ab_session ab_session;

typedef struct ab_wish {
    compare_wish shared;
    operands builds;
    const char *paths[2];                          /* old, new: of them; of commands their words */
    bool (*launch)(ab_session *s, complaint *why); /* makes all process runs; NULL: as builds are */
    char **arguments;                              /* for the programs */
    int argument_count;
    const char *filter, *save, *baseline;
    uint32_t runs;  /* of each build */
    double time;    /* s per benchmark, both builds, all process runs together */
    double budget;  /* s after which no second or later process run begins; 0: none */
    double timeout; /* s for one process run */
    bool google, quiet;
} ab_wish;

struct ab_session {
    const ab_wish *wish;
    bench_file builds[2]; /* old, new */
    char *files[2];       /* their whole paths */
    size_t runs;          /* done, of each build */
    size_t wanted;
    double began;        /* s */
    bool shows_progress; /* progress is on the terminal */
    char folder[64];     /* for what process runs write; removed with the session */
};

/* All of it; the exit status. */
int ab_run(const ab_wish *w);

/* Removes what process runs have written into the session's folder. */
void ab_empty_folder(const ab_session *s);

option_take ab_parse_time; /* a double: seconds */

/* Does process run or pair number `n` (from 0) begin with the new build? old new, new old, ... */
bool ab_new_first(size_t n);

double ab_now(void);                  /* s */
bool ab_is_over(const ab_session *s); /* the budget is used up, and was enough for one */
void ab_show_progress(ab_session *s);
bool ab_is_interrupted(void);

/* Makes all process runs. False, and why. */
bool ab_run_processes(ab_session *s, complaint *why);      /* compare/launch.c */
bool ab_run_in_one_process(ab_session *s, complaint *why); /* compare/launch.c */

/* Is it a shared object that can be loaded (and not a program)? False, and why not in words. */
bool ab_is_loadable(const char *path, complaint *why);

/* compare/launch.c: a process whose stdout and stderr go to a file, and that is over when it has
 * closed `fd`. */
typedef struct ab_child {
    int pid;
    int fd; /* the reading end of what it has as AB_CHILD_FD */
} ab_child;

#define AB_CHILD_FD 3

/* False unless it ended well; how it ended and what the last line of its output was. */
bool ab_ended_well(int status, const char *log, complaint *why);

/* ---- one process: what a process run sends through AB_CHILD_FD ---- */

typedef enum ab_kind {
    AB_NAME,   /* benchmark `number` is called so */
    AB_SAMPLE, /* a batch of it */
    AB_SKIP,   /* it cannot be measured, and why; number AB_NO_NUMBER: neither can anything */
    AB_ALONE,  /* `side` has a benchmark of this name, the other one does not */
    AB_DONE
} ab_kind;

#define AB_NO_NUMBER UINT32_MAX
#define AB_TEXT_MOST 4096

typedef struct ab_record {
    uint32_t kind, side, number;
    uint32_t length;           /* of the text that follows */
    double sample, cpu_sample; /* ns per iteration */
} ab_record;

/* The process run itself: pk bench-ab --launch OLD NEW NEW_FIRST SECONDS [FILTER] */
#define AB_BOTH "--launch"
int ab_run_both(int argc, char **argv);
