/* bench/causes/causes.h - a step that is slow for a reason that is known */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* ---- time ---- */

/* ms; on this thread's clock of CPU time, or on CLOCK_MONOTONIC. */
double cause_cpu(void);
double cause_wall(void);
double cause_clock(clockid_t clock);

/* Computes for so long, however long it takes. Compiled into its caller, so that samples of the
 * stack's top name that one. */
static inline __attribute__((always_inline)) void cause_compute(double ms)
{
    double until = cause_cpu() + ms;
    while (cause_cpu() < until)
        for (volatile int i = 0; i < 3000; i++)
            ;
}

void cause_sleep(double ms);

/* Of the thread that makes steps: a moment, and what has passed since then. delay: it could have
 * gone on and had no processor, as the kernel says; of a group whose quota is used up it does not
 * say so. */
typedef struct cause_span {
    double wall, cpu, delay; /* ms */
} cause_span;

cause_span cause_begin(void);
cause_span cause_since(cause_span begun);
double cause_waited(cause_span passed); /* what is left of wall */

/* ---- the two processes ---- */

/* The worker makes steps, with a session; its parent, the helper, does to it what others do to a
 * program. */
typedef struct cause_shared {
    _Atomic double told; /* ms, by the helper */
    _Atomic int heard;   /* the helper has been told, and begins */
    _Atomic int done;
    _Atomic pid_t worker;
    _Atomic int cpu;
} cause_shared;

extern cause_shared *cause_both;
extern double cause_ms;          /* how long is asked for */
extern const char *cause_folder; /* for files; not there after the run */

/* The worker tells the helper to begin. */
void cause_ring(void);

/* And computes until the helper has set it. */
void cause_ring_until(const _Atomic int *set);

/* The machine cannot make it: a line on stdout, and exit 77. */
_Noreturn void cause_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));
void cause_need(bool good, const char *what); /* else errno is why */

/* ---- a cause ---- */

/* Where in each step it acts; the region around it. */
typedef enum cause_place {
    PLACE_NONE,
    PLACE_EMBED,
    PLACE_MLP,
    PLACE_BACK,
    PLACE_APPLY,
    PLACE_REDUCE,
    PLACE_LOG
} cause_place;

/* What the truth is, beside the same of the steps before. */
typedef enum cause_truth {
    TRUTH_WAITED,   /* for how long the act waited, but for a processor */
    TRUTH_COMPUTED, /* its CPU time */
    TRUTH_TOOK,     /* its wall time but for what it had no processor */
    TRUTH_OFF,      /* the step's wall time without its CPU time and its wait for the loader */
    TRUTH_LOADED,   /* for how long the step waited for the loader */
    TRUTH_STEP,     /* the step's CPU time */
    TRUTH_TOLD      /* the helper has measured it */
} cause_truth;

typedef struct cause {
    const char *name;
    const char *expected; /* tokens with blanks between; TOKEN@WORD: and that word is said, too */
    const char *who;      /* a word that should be said; NULL: none */
    bool outside;         /* nothing that the program does */
    cause_truth truth;
    cause_place place;
    void (*prepare)(void);  /* before there are two processes; may skip */
    void (*join)(void);     /* the worker, before its session */
    void (*begin)(void);    /* the worker, in its session */
    void (*act)(bool slow); /* in each step, in its place */
    void (*help)(void);     /* the helper, each time that it has been told */
    void (*finish)(void);   /* the helper, after the worker */
} cause;

/* Behind the last one is one without a name. */
extern const cause causes_outside[], causes_inside[];

/* What the loader does in addition, of the batch of the slow step. */
extern double cause_decodes, cause_fetches; /* ms */
void cause_fetch(void);                     /* on the loader's thread */

/* Samples of a batch; 0: no such thing. */
extern unsigned cause_more_samples;
extern bool cause_other_kind;     /* the slow step evaluates, and trains nothing */
extern double cause_in_normalise; /* ms more in that function of the region's ten */

/* ---- groups of control ---- */

/* Of this run alone, made in the group that this process is in, or at the top; version 1 or 2. */
typedef struct cause_group {
    char path[512];
    int folder; /* the same, open: who does not see it has it */
    bool second;
} cause_group;

/* A group that has one of these two files, by version; skips where none can be made. */
void cause_group_make(cause_group *g, const char *controller, const char *first,
                      const char *second);
bool cause_group_write(const cause_group *g, const char *file, const char *text);
long long cause_group_read(const cause_group *g, const char *file);
void cause_group_join(const cause_group *g);
void cause_group_remove(const cause_group *g); /* once nobody is in it */
