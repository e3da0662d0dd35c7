/* tools/bench/ab/ab.h - two builds in turn, launched many times: pk bench-ab */
#pragma once

#include "bench/bench_file.h"
#include "bench/compare_options.h"

/* ---- two builds in turn, launched many times: pk bench-ab ---- */

/* A process run is one replication: it loads code and allocates buffers anew, and where those come
 * to lie moves some kernels by more than the change that is looked for. Both builds run close to
 * each other in time, in the order old new, new old, ..., so that a drift of the machine hits both
 * alike.
 *
 *   processes     each is of one build; one of the other build is its partner
 *   one process   each loads both builds, as shared objects, into namespaces of their own, and
 *                 alternates short batches of them: what the machine does meanwhile cancels out */

typedef struct ab_wish {
    compare_wish shared;
    operands builds;
    const char *paths[2]; /* old, new: of them */
    char **arguments;     /* for the programs */
    int argument_count;
    const char *filter, *save, *baseline;
    uint32_t runs;  /* of each build */
    double time;    /* s per benchmark, both builds, all process runs together */
    double budget;  /* s after which no second or later process run begins; 0: none */
    double timeout; /* s for one process run */
    bool google, quiet;
} ab_wish;

typedef struct ab_session {
    const ab_wish *wish;
    bench_file builds[2]; /* old, new */
    char *files[2];       /* their whole paths */
    size_t runs;          /* done, of each build */
    size_t wanted;
    double began;        /* s */
    bool shows_progress; /* progress is on the terminal */
    char folder[64];     /* for what process runs write; removed with the session */
} ab_session;

/* Does process run or pair number `n` (from 0) begin with the new build? old new, new old, ... */
bool ab_new_first(size_t n);

double ab_now(void);                  /* s */
bool ab_is_over(const ab_session *s); /* the budget is used up, and was enough for one */
void ab_show_progress(ab_session *s);
bool ab_is_interrupted(void);

/* Makes all process runs. False, and why. */
bool ab_run_processes(ab_session *s, complaint *why);      /* ab/launch.c */
bool ab_run_in_one_process(ab_session *s, complaint *why); /* ab/launch.c */

/* Is it a shared object that can be loaded (and not a program)? False, and why not in words. */
bool ab_is_loadable(const char *path, complaint *why);

/* ab/launch.c: a process whose stdout and stderr go to a file, and that is over when it has closed
 * `fd`. */
typedef struct ab_child {
    int pid;
    int fd; /* the reading end of what it has as AB_CHILD_FD */
} ab_child;

#define AB_CHILD_FD 3
bool ab_child_start(ab_child *child, char *const arguments[], const char *log, complaint *why);

/* Bytes read; 0 at its end; -1, and why, when the time is up or pk was interrupted. */
long ab_child_read(const ab_child *child, void *to, size_t size, double until, complaint *why);

/* Waits for it, having killed it if it was not read to its end. False, and why: it failed, and what
 * the last line of its output was. */
bool ab_child_finish(ab_child *child, bool kill_it, const char *log, complaint *why);

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
