/* pk/bench.h - how long something takes, and how far that figure can be trusted.
 *
 *     PK_BENCH(sum)                            // a program of many: one of these for each
 *     {
 *         size_t n = (size_t)pk_bench_arg(bench, 0);
 *         float *x = numbers(n);               // set-up: not timed
 *         pk_bench_set_work(bench, n * sizeof *x, n, 0);  // bytes, flops, items: for rates
 *         PK_BENCH_LOOP {                      // timed
 *             pk_keep(sum(x, n));
 *         }
 *         free(x);                             // not timed
 *     }
 *     PK_BENCH_RANGE(sum, "n", 1 << 10, 1 << 20, 4)
 *
 *     PK_BENCH_MAIN                            // ./program --help
 *
 * Or measure one function, from anywhere:
 *
 *     pk_bench_result r = PK_BENCH_RESULT;
 *     if (pk_bench("parse", parse, text, NULL, &r) == PK_OK)
 *         printf("%.1f ns, %.1f .. %.1f, %s\n", r.median, r.low, r.high, r.verdict_text);
 *     pk_bench_result_release(&r);
 *
 * How it measures. A *sample* times so many iterations at once that clock and harness are below a
 * thousandth of it. What they certainly cost beside the work is subtracted and stated. Samples are
 * taken until the confidence interval of their median is narrow enough, within bounds of time and
 * number (all are options). All samples are kept, but for a GPU's at another clock. The benchmarks
 * of a program alternate, in an order drawn anew each round, so a change on the machine changes all
 * of them alike. docs/internals/bench.md says how exact this is, and what the files hold.
 *
 * On a GPU (PK_BENCH_CLOCK_GPU; the body launches into options->stream and does not wait). The
 * stream is held back while a sample's launches are queued (cuStreamWaitValue32 on a word of host
 * memory, no kernel) and released after the last one: so a kernel shorter than its launch is
 * measured without the launch, between two events around all launches of the sample. Its figure
 * holds the device's own gap from one kernel to the next. The host's time for the
 * same loop is what launching costs, and the result says which of the two is longer. A queue has
 * about 1024 entries; a sample has 512 iterations at most. A watchdog releases the stream after 250
 * ms: if the queue was full, samples become shorter; if the body waits for the device, its launches
 * are not queued, and the note says so, as on devices without that wait (cuStreamWaitValue32
 * answers CUDA_ERROR_NOT_SUPPORTED). The first iteration is never held, since loading a kernel may
 * wait for the device.
 *     Warm-up lasts until the SM clock (NVML) has not risen by 1 % for 100 ms; without NVML, 200
 * ms; max_warmup at most. While it is measured the clock, and what holds it down, are read every 10
 * ms between samples. Samples between two readings of which either shows a clock held down, or
 * another clock than most samples have (by 2 %), are left out, and the note says how many; where
 * less than half would remain all are kept, and those that were held down are marked. A clock that
 * NVML does not tell leaves none out. perfkit never changes a GPU's settings. `cold` fills twice
 * the size of the L2 cache (CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) in the stream before each iteration,
 * outside its time.
 *     None of this has been seen on a real GPU yet (docs/gpu-results.md).
 *
 * What it cannot know: all samples of a process share its layout (where its pages and its code
 * lie), so their interval says how well the figure of *this process run* is known. Whether a change
 * made something slower is a question for `pk bench-ab`, which runs both builds many times over.
 *
 * Threads: one measurement at a time per process: pk_bench and pk_bench_main take a lock and wait
 *          for each other. Calls that take a pk_bench_run belong to the thread that was given it.
 * Failure: a status, and a sentence in pk_error_message(). The result says in words what is not
 *          available (counters, a GPU); nothing is guessed. Only pk_bench_main prints, since it is
 *          asked to.
 * Cost:    the time limits below, and 32 bytes per sample; on a GPU 49, a thread that sleeps, 4
 *          bytes of pinned memory, and for `cold` twice the L2 cache of the device's memory.
 * Units:   times are in ns throughout, sizes in bytes.
 * Linking: libpkbench, beside libpk: $(pkg-config --cflags --libs pk-bench). A program that is only
 *          traced needs neither it nor this header.
 */
#ifndef PK_BENCH_H
#define PK_BENCH_H

#include <pk/bench_register.h>
#include <pk/keep.h>
#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options: zero is every field's default ---- */

/* Which time counts. Wall and CPU time are kept for every sample, whichever it is. */
typedef enum pk_bench_clock {
    PK_BENCH_CLOCK_WALL = 0,   /* from the loop's begin to its end */
    PK_BENCH_CLOCK_CPU = 1,    /* the CPU time of the threads that run it */
    PK_BENCH_CLOCK_MANUAL = 2, /* what the benchmark says itself: pk_bench_add_time */
    PK_BENCH_CLOCK_GPU = 3 /* between two events on `stream`, below; skipped where no GPU is live */
} pk_bench_clock;

typedef struct pk_bench_options {
    uint32_t size;    /* sizeof(pk_bench_options); pk_bench_options(...) sets it */
    uint32_t clock;   /* a pk_bench_clock */
    uint32_t threads; /* that run it at once, with a common start. 0: 1 */
    uint32_t cold; /* 1: caches are flushed before each sample, and a sample is one iteration; on a
                      GPU its L2. 0: hot, each iteration finds what the ones before it left */

    /* Stop when half the confidence interval of the median is below this share of it... 0: 0.01 */
    double precision;
    double confidence; /* ...at this level. 0: 0.95 */

    /* ...but not before so much time and so many samples, and at the latest after these. Times are
     * in ns, of this benchmark alone, warm-up excluded. */
    uint64_t min_time;    /* 0: 100 ms */
    uint64_t max_time;    /* 0: 2 s, or min_time if that is more */
    uint32_t min_samples; /* 0: 20 */
    uint32_t max_samples; /* 0: 100000. On a GPU those left out for its clock are not counted */

    uint64_t sample_time; /* ns that a sample should take. 0: 200 us, or more on a coarse clock; on
                             a GPU at least 2 x 0.5 us (the events' steps) / precision */
    uint64_t iterations;  /* in a sample. 0: as many as that takes */
    uint64_t max_warmup;  /* ns until which it should run steadily. 0: 500 ms */
    uint64_t seed;        /* of the order of rounds and of the bootstrap. 0: 1 */

    /* Work of one iteration, for rates; a benchmark may say it itself (pk_bench_set_work). */
    uint64_t bytes, flops, items;

    uint32_t hardware;    /* 1: count instructions, cycles, cache and branch misses, in a few
                             samples of their own after the timed ones */
    uint32_t allocations; /* 1: count allocations, likewise (PK_BENCH_COUNT_ALLOCATIONS) */

    /* PK_BENCH_CLOCK_GPU: a cudaStream_t or CUstream; NULL: the legacy default stream */
    void *stream;
    void *user; /* for the functions below, and pk_bench_user; pk_bench passes its arg */

    /* setup and teardown run once, before the first and after the last sample; before and after run
     * around each sample. None is timed. If setup returns other than 0 the benchmark has failed,
     * and its teardown is not called. All benchmarks of a program are set up at the same time,
     * unless it runs with --alone. */
    int (*setup)(void *user);
    void (*teardown)(void *user);
    void (*before)(void *user);
    void (*after)(void *user);

    uint32_t unqueued; /* PK_BENCH_CLOCK_GPU, 1: launches run as they come, and what the device
                          waits for them counts */
} pk_bench_options;

/* The options as a pointer to a literal; C only. */
#ifndef __cplusplus
#define pk_bench_options(...)                                                                      \
    (&(pk_bench_options){.size = (uint32_t)sizeof(struct pk_bench_options), __VA_ARGS__})
#endif

/* ---- the result ---- */

/* What the samples look like. If several fit: drifting before bimodal before noisy. */
typedef enum pk_bench_verdict {
    PK_BENCH_VERDICT_UNKNOWN = 0, /* too few samples */
    PK_BENCH_VERDICT_STEADY = 1,  /* figures that can be repeated in this process run */
    /* The middle half is wide: repeat on a quieter machine. A few interrupted samples do not make a
     * benchmark noisy, since they do not move the median. */
    PK_BENCH_VERDICT_NOISY = 2,
    PK_BENCH_VERDICT_DRIFTING = 3, /* it became slower or faster all along */
    PK_BENCH_VERDICT_BIMODAL = 4   /* two speeds: one median hides them */
} pk_bench_verdict;

typedef enum pk_bench_outcome {
    PK_BENCH_OUTCOME_MEASURED = 0,
    PK_BENCH_OUTCOME_SKIPPED = 1, /* it cannot be measured here; reason says why */
    PK_BENCH_OUTCOME_FAILED = 2   /* it went wrong; likewise */
} pk_bench_outcome;

/* Why no more samples were taken. */
typedef enum pk_bench_stop {
    PK_BENCH_STOP_NONE = 0,
    PK_BENCH_STOP_PRECISE = 1, /* the interval was narrow enough */
    PK_BENCH_STOP_TIME = 2,    /* max_time */
    PK_BENCH_STOP_SAMPLES = 3, /* max_samples */
    PK_BENCH_STOP_MEMORY = 4   /* no memory for more */
} pk_bench_stop;

/* What a loop of such iterations waits for when it is not queued: the slower of the two. */
typedef enum pk_bench_bound {
    PK_BENCH_BOUND_UNKNOWN = 0, /* not of a GPU, or the body waits for the device itself */
    PK_BENCH_BOUND_DEVICE = 1,  /* the device takes longer: faster kernels help */
    PK_BENCH_BOUND_LAUNCH = 2   /* launching takes longer: fewer launches (fusion, graphs) help */
} pk_bench_bound;

typedef enum pk_bench_mark {
    PK_BENCH_MARK_THROTTLED =
        1 /* taken while the GPU's clock was held down: by power, by heat, ... */
} pk_bench_mark;

typedef struct pk_bench_result {
    uint32_t size;    /* sizeof(pk_bench_result); PK_BENCH_RESULT sets it */
    uint32_t verdict; /* a pk_bench_verdict */
    uint32_t stopped; /* a pk_bench_stop */
    uint32_t threads;

    uint64_t iterations; /* in each sample (of each thread) */
    uint64_t count;      /* of samples */
    double *samples;     /* ns per iteration, overhead subtracted, in the order taken */
    double *cpu_samples; /* CPU time, likewise, added up over threads */
    double *at;          /* ns from the first sample's start to this one's */

    /* Of the samples; ns per iteration. */
    double min, max, mean, median, p90, p95, p99;
    double stddev;    /* n - 1 */
    double mad;       /* median distance from the median, times 1.4826: a stddev that outliers
                         do not move */
    double cv;        /* stddev / mean */
    double low, high; /* confidence interval of the median: bootstrap, in blocks where samples
                         depend on their neighbours */
    double confidence;
    double autocorrelation; /* of neighbouring samples, -1 .. 1 */
    double cpu;             /* median CPU time */

    /* Beyond Tukey's fences: 1.5 (mild) and 3 (severe) interquartile ranges. Counted, kept. */
    uint64_t low_severe, low_mild, high_mild, high_severe;

    /* ns per iteration that were subtracted from the median: for the loop (on most processors
     * nothing, since it runs beside the work) and the clock's reading */
    double overhead;
    uint64_t warmup_iterations;
    uint64_t warmup_time;   /* ns */
    uint32_t warmup_steady; /* 1: it became steady; 0: max_warmup came first */
    uint32_t outcome;       /* a pk_bench_outcome */
    uint32_t block;         /* neighbouring samples that the bootstrap kept together */

    double bytes_per_second, flops_per_second, items_per_second; /* at the median; 0: not said */

    /* Per iteration, harness's own included; negative: not counted (note says why). */
    double instructions, cycles, cache_misses, branch_misses;
    double allocations, allocated_bytes;

    char verdict_text[192]; /* the verdict and its figures, in words */
    char note[256];         /* what was asked for and is unavailable; "" if nothing */
    char reason[192];       /* why skipped or failed; "" if neither */

    /* PK_BENCH_CLOCK_GPU; else 0. */
    double launch;   /* median wall time of the loop: what the host takes to launch an iteration */
    uint32_t queued; /* 1: a sample's launches waited in the stream for the last of them, so the
                        samples are the device's own time; 0: `note` says why not */
    uint32_t bound;  /* a pk_bench_bound */
    uint32_t clock_low_mhz, clock_high_mhz; /* of the device's processors while it was measured; 0:
                                               nobody tells (no NVML) */
    uint64_t throttled; /* samples that were taken while it was held down: left out; where that
                           would be more than half of them, marked */
    uint8_t *marks;     /* of each sample: bits of pk_bench_mark; NULL: not of a GPU */
} pk_bench_result;

/* What a result begins as: `pk_bench_result r = PK_BENCH_RESULT;` */
#ifndef __cplusplus
#define PK_BENCH_RESULT                                                                            \
    {                                                                                              \
        .size = (uint32_t)sizeof(struct pk_bench_result)                                           \
    }
#else
#define PK_BENCH_RESULT pk_bench_result_sized_()

static inline pk_bench_result pk_bench_result_sized_()
{
    pk_bench_result result;
    __builtin_memset(&result, 0, sizeof result);
    result.size = sizeof result;
    return result;
}
#endif

/* Measures fn(arg), one iteration per call. options NULL: defaults; result NULL: only runs it.
 * PK_ENOTSUP: it cannot be measured here, and result->reason says why. The result's arrays belong
 * to the caller, who releases them. The call is part of the figure: calling an empty function takes
 * 1 to 2 ns, and hides as much work. Measure anything shorter in a PK_BENCH_LOOP. */
PK_API pk_status pk_bench(const char *name, void (*fn)(void *), void *arg,
                          const pk_bench_options *options, pk_bench_result *result);

/* Frees the arrays and sets them to NULL. NULL is fine. */
PK_API void pk_bench_result_release(pk_bench_result *result);

/* ---- a program of benchmarks ---- */

/* One sample's run of a benchmark, on one thread: `bench` inside PK_BENCH. */
typedef struct pk_bench_run pk_bench_run;

/* The flags that the benchmarks are compiled with, for the record: -DPK_BENCH_FLAGS='"-O3"'. */
#ifndef PK_BENCH_FLAGS
#define PK_BENCH_FLAGS ""
#endif

/* Defines and registers a benchmark. The body runs once per sample and thread, so what stands
 * before and after the loop is paid per sample. Put expensive work into PK_BENCH_OPTIONS' setup. */
#define PK_BENCH(name)                                                                             \
    static void pk_bench_body_##name(pk_bench_run *bench);                                         \
    static pk_bench_entry pk_bench_entry_##name = {#name,                                          \
                                                   pk_bench_body_##name,                           \
                                                   PK_BENCH_COMPILER_,                             \
                                                   PK_BENCH_FLAGS,                                 \
                                                   PK_BENCH_OPTIMIZED_,                            \
                                                   0,                                              \
                                                   0,                                              \
                                                   0,                                              \
                                                   0,                                              \
                                                   {0, 0}};                                        \
    PK_BENCH_AT_LOAD_ static void pk_bench_register_##name(void)                                   \
    {                                                                                              \
        pk_bench_register_(&pk_bench_entry_##name);                                                \
    }                                                                                              \
    static void pk_bench_body_##name(pk_bench_run *bench __attribute__((unused)))

/* How many times the compiler should repeat the loop's body; define it before the include. A loop
 * of a cycle or two takes twice as long if its code is badly aligned, or while the other half of
 * the core is busy; four short bodies in a row hide that. The compiler does this only when it
 * optimises, and gcc only for bodies without a loop of their own. Set it to 1 for bodies that are
 * thousands of instructions long, or have inline assembly that defines labels. */
#ifndef PK_BENCH_UNROLL
#define PK_BENCH_UNROLL 4
#endif

/* The timed part, exactly once per body. `break` out of it is an error of the benchmark. */
#define PK_BENCH_LOOP                                                                              \
    for (uint64_t pk_left_ = pk_bench_begin(bench), pk_once_ = 1; pk_once_;                        \
         pk_once_ = 0, pk_left_ ? (void)0 : pk_bench_end(bench))                                   \
    PK_BENCH_UNROLLED_ for (; pk_left_; pk_left_--)

/* Parameters, after the PK_BENCH in the same file, without a semicolon. Each is an axis; several
 * make their cartesian product. Names become sum/n:1024/stride:2/threads:4. */
#define PK_BENCH_ARGS(name, key, ...) /* these values */                                           \
    PK_BENCH_AXIS_(name, key, PK_BENCH_AXIS_LIST_, __COUNTER__, __VA_ARGS__)
#define PK_BENCH_RANGE(name, key, from, to, times) /* from, from * times, ..., to */               \
    PK_BENCH_AXIS_(name, key, PK_BENCH_AXIS_TIMES_, __COUNTER__, (from), (to), (times))
#define PK_BENCH_STEPS(name, key, from, to, step) /* from, from + step, ..., not beyond to */      \
    PK_BENCH_AXIS_(name, key, PK_BENCH_AXIS_STEPS_, __COUNTER__, (from), (to), (step))
#define PK_BENCH_THREADS(name, ...) /* so many threads */                                          \
    PK_BENCH_AXIS_(name, "threads", PK_BENCH_AXIS_THREADS_, __COUNTER__, __VA_ARGS__)

/* Options of one benchmark: `PK_BENCH_OPTIONS(sum) { options->cold = 1; }`. For each combination of
 * parameters `options` points to a new pk_bench_options, zeroed but for its size. */
#define PK_BENCH_OPTIONS(name)                                                                     \
    static void pk_bench_options_##name(struct pk_bench_options *options);                         \
    PK_BENCH_AT_LOAD_ static void pk_bench_set_options_##name(void)                                \
    {                                                                                              \
        pk_bench_entry_##name.options = pk_bench_options_##name;                                   \
    }                                                                                              \
    static void pk_bench_options_##name(struct pk_bench_options *options __attribute__((unused)))

/* Runs the registered benchmarks as the arguments say; --help lists them. Writes to stdout;
 * progress and errors go to stderr. Returns 0; 1: a benchmark failed; 2: arguments or files are
 * unusable. */
PK_API int pk_bench_main(int argc, char **argv);

#define PK_BENCH_MAIN                                                                              \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return pk_bench_main(argc, argv);                                                          \
    }

/* What PK_BENCH does, for languages without macros: name is copied, options too (NULL: defaults).
 * The body calls pk_bench_begin, runs as many iterations as that says, and calls pk_bench_end. */
PK_API pk_status pk_bench_add(const char *name, void (*body)(pk_bench_run *),
                              const pk_bench_options *options);

/* ---- inside a benchmark ---- */

/* The first starts the clock and returns how many iterations to run (0 after pk_bench_give_up). The
 * second stops it. */
PK_API uint64_t pk_bench_begin(pk_bench_run *bench);
PK_API void pk_bench_end(pk_bench_run *bench);

/* Keep a part of the loop out of the time. Their two clock reads are subtracted, but not their
 * effect on what follows: take care with iterations below a microsecond. */
PK_API void pk_bench_pause(pk_bench_run *bench);
PK_API void pk_bench_resume(pk_bench_run *bench);

/* PK_BENCH_CLOCK_MANUAL: adds so many ns to this sample. */
PK_API void pk_bench_add_time(pk_bench_run *bench, double ns);

/* The benchmark is not measured, and is listed with this reason. PK_BENCH_OUTCOME_SKIPPED: it
 * cannot run here or now. PK_BENCH_OUTCOME_FAILED: the program's exit status is 1. Return from the
 * body after the call. */
PK_API void pk_bench_give_up(pk_bench_run *bench, pk_bench_outcome outcome, const char *reason);

PK_API int64_t pk_bench_arg(const pk_bench_run *bench, unsigned axis); /* 0 beyond the last one */
PK_API uint32_t pk_bench_threads(const pk_bench_run *bench);
PK_API uint32_t pk_bench_thread(const pk_bench_run *bench); /* 0 .. threads - 1 */
PK_API void *pk_bench_user(const pk_bench_run *bench);      /* options->user */

/* The work of one iteration of one thread; 0: none of that kind. */
PK_API void pk_bench_set_work(pk_bench_run *bench, uint64_t bytes, uint64_t flops, uint64_t items);

/* A word or two beside the figures. */
PK_API void pk_bench_set_label(pk_bench_run *bench, const char *label);

/* Adds to a figure of your own, in this sample. The result has the median over samples of the sum
 * over threads. At most 16 names of 31 bytes; more are left out and counted in note. */
typedef enum pk_bench_unit {
    PK_BENCH_UNIT_PLAIN = 0,         /* as it is */
    PK_BENCH_UNIT_PER_ITERATION = 1, /* divided by the sample's iterations */
    PK_BENCH_UNIT_PER_SECOND = 2     /* divided by the sample's time */
} pk_bench_unit;
PK_API void pk_bench_add_counter(pk_bench_run *bench, const char *name, double value,
                                 pk_bench_unit unit);

/* ---- allocations ---- */

/* Write this once in a program, at file scope. It defines malloc and its kin in front of the C
 * library's, so that options->allocations (--allocations) can count. It works with glibc, in
 * programs that are not linked with -static. Elsewhere and under sanitizers it is nothing, and the
 * result says that allocations were not counted. */
#define PK_BENCH_COUNT_ALLOCATIONS PK_BENCH_STAND_IN_FRONT_

/* Counts an allocation that is made by other means. */
PK_API void pk_bench_note_allocation(size_t bytes);

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_BENCH_
#include <pk/disable_bench.h>
#endif
#endif
