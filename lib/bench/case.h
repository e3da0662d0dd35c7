/* lib/bench/case.h - one benchmark with its parameters, from its samples to its figures */
#pragma once

#include <pk/bench.h>

#include <stdbool.h>

#include "bench/counters.h"
#include "bench/device.h"
#include "bench/drive.h"
#include "bench/overhead.h"
#include "bench/queue.h"

/* ---- one benchmark with its parameters, while it is measured ---- */

/* Life: init (options made whole, parameters set), open (set-up, threads), take samples, close
 * (teardown), finish. What pk/bench.h gives to a body, pk_bench_run, is one thread's view of one
 * sample.
 *
 * Threads: a case belongs to the thread that drives it, which is thread 0 of the benchmark; its
 *          team's other threads wait between samples. */

#define PKI_BENCH_AXES 8
#define PKI_BENCH_FIGURES 16
#define PKI_BENCH_NAME 32 /* of a figure, with its NUL */
#define PKI_BENCH_THREADS_MOST 1024

typedef struct pki_bench_engine {
    const pki_bench_clock *clock;
    pki_bench_overhead overhead;
    size_t cold_bytes;                  /* walked to empty the caches; 0: found from the machine */
    const pki_bench_device *device;     /* NULL: the build's */
    const pki_bench_watchdog *watchdog; /* NULL: the system's */
} pki_bench_engine;

/* Which combination of parameters it is; threads are apart. */
typedef struct pki_bench_arguments {
    int64_t values[PKI_BENCH_AXES];
    const char *keys[PKI_BENCH_AXES];
    unsigned count;
} pki_bench_arguments;

/* A figure of the benchmark's own: of one thread in one sample. */
typedef struct pki_bench_figure {
    char name[PKI_BENCH_NAME];
    double value;
    pk_bench_unit unit;
} pki_bench_figure;

/* The same over the samples: each one's, summed over threads and in its unit. */
typedef struct pki_bench_series {
    char name[PKI_BENCH_NAME];
    double *values;
    size_t count, room;
} pki_bench_series;

struct pki_bench_team;

typedef struct pki_bench_case {
    const pki_bench_engine *engine;
    const char *name; /* with the parameters; not owned */

    void (*body)(pk_bench_run *);
    void (*fn)(void *); /* what pk_bench's own body calls, with fn_arg */
    void *fn_arg;
    struct pk_bench_options options; /* nothing in it is left to a default */
    pki_bench_arguments arguments;

    char label[64];

    /* What will be reported of it and is known before its samples are: the outcome (MEASURED:
     * nothing is against it so far), reason and note, how it was warmed up and stopped, what was
     * counted.
     */
    pk_bench_result result;

    bool opened, set_up;
    pk_bench_run *runs; /* one per thread */
    struct pki_bench_team *team;
    const pki_bench_device *device; /* PK_BENCH_CLOCK_GPU */
    void *timer;
    pki_bench_queue queue;   /* of that device */
    pki_bench_clocks clocks; /* likewise */
    uint64_t *cold;          /* what is walked between samples */
    size_t cold_words;

    bool counting_hardware, counting_allocations;

    /* What has been measured. */
    uint64_t iterations;
    double *time, *cpu, *at; /* per iteration; the last: ns since first_at */
    double *overhead;        /* per iteration: what was subtracted for `time` */
    double *launch;          /* per iteration: the loop's wall time, with a device */
    double *mhz;             /* the device's clock in each sample (bench/counters.h) */
    uint8_t *marks;          /* PK_BENCH_MARK_... of each sample */
    size_t count, room;
    uint64_t first_at, spent; /* ns, spent with the untimed parts of samples */
    size_t next_check;
    double clock_part; /* ns of the last sample: what was subtracted for reading the clock */
    pki_bench_series series[PKI_BENCH_FIGURES];
    unsigned series_count, figures_lost;
    uint64_t bytes, flops, items; /* of an iteration of one thread */
} pki_bench_case;

struct pk_bench_run {
    pki_bench_case *owner;
    uint32_t thread;
    bool begun, ended, skipped;
    uint64_t iterations;
    uint64_t start, end, cpu_start, cpu_end;
    uint64_t paused_at, paused, cpu_paused_at, cpu_paused, pauses;
    double manual;
    pki_bench_figure figures[PKI_BENCH_FIGURES];
    unsigned figure_count, figures_lost;
    bool pausing, counting;
    pki_bench_counters counters;
    pki_bench_counts counted;
};

/* Options as given (NULL: none), made whole. PK_EINVAL and a message. */
pk_status pki_bench_options_fill(struct pk_bench_options *whole,
                                 const struct pk_bench_options *given);

/* Zeroes it and takes these; the body follows. */
void pki_bench_case_init(pki_bench_case *c, const pki_bench_engine *engine, const char *name,
                         const struct pk_bench_options *whole);

/* Set-up and threads. PK_OK, also if it is skipped or failed, which c->result.outcome says; else
 * memory or threads are missing. */
pk_status pki_bench_case_open(pki_bench_case *c);
void pki_bench_case_close(pki_bench_case *c);

/* Frees what was measured. */
void pki_bench_case_finish(pki_bench_case *c);

/* What each thread of the team does in a sample; arg is the case. */
void pki_bench_run_thread(void *arg, unsigned thread);

/* One sample. False if the benchmark was skipped or failed meanwhile. Nothing is kept of it. */
bool pki_bench_case_run_sample(pki_bench_case *c, uint64_t iterations, pki_bench_sample *sample);

/* Neither skipped nor failed. */
static inline bool pki_bench_case_is_fine(const pki_bench_case *c)
{
    return c->result.outcome == PK_BENCH_OUTCOME_MEASURED;
}

/* ns, on the clock that it is measured by. */
static inline uint64_t pki_bench_now(const pki_bench_case *c)
{
    return c->engine->clock->now(c->engine->clock->self);
}

/* The first reason counts. */
void pki_bench_case_abandon(pki_bench_case *c, pk_bench_outcome outcome, const char *reason);

/* One more thing that was unavailable. */
void pki_bench_case_note(pki_bench_case *c, const char *text);

/* ---- what is counted, not timed ---- */

/* Hardware counters and allocations, in a few samples of their own, since counting costs time.
 * After the last timed sample, while the case is open. What is unavailable goes into its note. */
void pki_bench_count_events(pki_bench_case *c);

/* ---- what a benchmark counts itself (pk_bench_add_counter), over its samples ---- */

/* The median over the samples, which are rearranged. */
double pki_bench_series_median(pki_bench_series *series);

/* ---- from a case's samples to figures ---- */

/* Fills all of it and moves the samples over: the result's owner frees them. False without memory.
 */
bool pki_bench_result_fill(pk_bench_result *result, pki_bench_case *c);

/* What programs were compiled against when the first perfkit was released. */
#define PKI_BENCH_RESULT_OLDEST offsetof(pk_bench_result, launch)
