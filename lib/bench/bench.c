#include "bench/bench.h"

#include <pk/bench.h>
#include <pk/private.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "bench/case.h"
#include "bench/counters.h"
#include "bench/device.h"
#include "bench/overhead.h"
#include "bench/registry.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"

/* ---- the clocks that benchmarks are timed by ---- */

static uint64_t system_now(void *self)
{
    (void)self;
    return pki_monotonic_ns();
}

static uint64_t system_cpu(void *self)
{
    (void)self;
    return pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

const pki_bench_clock pki_bench_system_clock = {system_now, system_cpu, NULL};

/* ---- allocations of the whole process while they are counted ---- */

static uint32_t counting;
static uint64_t count_so_far, bytes_so_far;

void pk_bench_note_allocation(size_t bytes)
{
    if (!pki_load(&counting))
        return;
    pki_fetch_add(&count_so_far, 1);
    pki_fetch_add(&bytes_so_far, bytes);
}

/* from zero */
static void pki_bench_allocations_start(void)
{
    pki_store(&count_so_far, 0);
    pki_store(&bytes_so_far, 0);
    pki_store(&counting, 1);
}

static void pki_bench_allocations_stop(void)
{
    pki_store(&counting, 0);
}

void pki_bench_allocations_read(uint64_t *count, uint64_t *bytes)
{
    *count = pki_load(&count_so_far);
    *bytes = pki_load(&bytes_so_far);
}

/* Does anybody stand there? Tries it with one allocation. */
static bool pki_bench_allocations_seen(void)
{
    uint64_t count, bytes;
    pki_bench_allocations_start();
    void *volatile block = malloc(1); /* volatile: a compiler may drop a pair that nobody sees */
    pki_bench_allocations_stop();
    free(block);
    pki_bench_allocations_read(&count, &bytes);
    return count > 0;
}

/* ---- counters ---- */

static bool open_one(pki_perf_group *group, int i)
{
    return pki_perf_open(group, &pki_perf_hardware[i], 1, false);
}

static bool pki_bench_counters_open(pki_bench_counters *counters)
{
    bool any = false;
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        any |= open_one(&counters->event[i], i);
    return any;
}

static void turn(pki_bench_counters *counters, bool on)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        pki_perf_turn(&counters->event[i], on);
}

static void pki_bench_counters_start(pki_bench_counters *counters)
{
    turn(counters, true);
}

/* False if not one of them can be had. They count from start to stop. */
static void pki_bench_counters_stop(pki_bench_counters *counters)
{
    turn(counters, false);
}

/* They began at 0, as it does. */
static double counted(const pki_perf_group *group)
{
    const pki_perf_reading none = {{0}, 0, 0, false};
    pki_perf_reading now;
    double value[PKI_PERF_EVENTS];
    if (!pki_perf_read(group, &now) || !pki_perf_between(&none, &now, value))
        return -1;
    return value[0];
}

/* Scaled up where the processor had to share its counters. */
static void pki_bench_counters_read(pki_bench_counters *counters, pki_bench_counts *counts)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        counts->value[i] = counted(&counters->event[i]);
}

static void pki_bench_counters_close(pki_bench_counters *counters)
{
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++)
        pki_perf_close(&counters->event[i]);
}

/* Can they be had here? If not, why, in words; if only some, which not. "" if all. */
static void pki_bench_counters_explain(char *text, size_t size)
{
    int missing = 0, error = 0;
    char names[96] = "", why[192];
    for (int i = 0; i < PKI_BENCH_COUNTERS; i++) {
        pki_perf_group group;
        if (open_one(&group, i)) {
            pki_perf_close(&group);
            continue;
        }
        error = group.error;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", missing++ ? ", " : "",
                 pki_perf_hardware[i].name);
    }
    pki_perf_explain(error, why, sizeof why);
    if (missing == PKI_BENCH_COUNTERS)
        snprintf(text, size, "hardware counters: %s", why);
    else
        snprintf(text, size, "%s%s", missing ? "not counted on this machine: " : "", names);
}

#define PKI_BENCH_COUNTED_SAMPLES 5

/* Per iteration of one thread, all threads together; negative: not counted. */
static double counted_in(const pki_bench_case *c, int counter)
{
    double sum = 0;
    for (unsigned i = 0; i < c->options.threads; i++) {
        double value = c->runs[i].counting ? c->runs[i].counted.value[counter] : -1;
        if (value < 0)
            return -1;
        sum += value;
    }
    return sum / (double)c->iterations;
}

static void count_hardware(pki_bench_case *c)
{
    pk_bench_result *r = &c->result;
    double values[PKI_BENCH_COUNTERS][PKI_BENCH_COUNTED_SAMPLES];
    double *const into[PKI_BENCH_COUNTERS] = {&r->instructions, &r->cycles, &r->cache_misses,
                                              &r->branch_misses};
    char why[224];
    pki_bench_sample sample;
    pki_bench_counters_explain(why, sizeof why);
    pki_bench_case_note(c, why);
    c->counting_hardware = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        for (int j = 0; j < PKI_BENCH_COUNTERS; j++)
            values[j][i] = counted_in(c, j);
    }
    c->counting_hardware = false;
    for (int j = 0; j < PKI_BENCH_COUNTERS && pki_bench_case_is_fine(c); j++)
        *into[j] = pki_samples_select_median(values[j], PKI_BENCH_COUNTED_SAMPLES);
}

static void count_allocations(pki_bench_case *c)
{
    double counts[PKI_BENCH_COUNTED_SAMPLES], bytes[PKI_BENCH_COUNTED_SAMPLES];
    pki_bench_sample sample;
    if (!pki_bench_allocations_seen()) {
        pki_bench_case_note(c, "allocations are not counted: the program has no "
                               "PK_BENCH_COUNT_ALLOCATIONS, or its malloc is not glibc's");
        return;
    }
    c->counting_allocations = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        uint64_t count, size;
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        pki_bench_allocations_read(&count, &size);
        counts[i] = (double)count / (double)c->iterations;
        bytes[i] = (double)size / (double)c->iterations;
    }
    c->counting_allocations = false;
    if (!pki_bench_case_is_fine(c))
        return;
    c->result.allocations = pki_samples_select_median(counts, PKI_BENCH_COUNTED_SAMPLES);
    c->result.allocated_bytes = pki_samples_select_median(bytes, PKI_BENCH_COUNTED_SAMPLES);
}

void pki_bench_count_events(pki_bench_case *c)
{
    if (pki_bench_case_is_fine(c) && c->count && c->options.hardware)
        count_hardware(c);
    if (pki_bench_case_is_fine(c) && c->count && c->options.allocations)
        count_allocations(c);
    if (c->figures_lost)
        pki_bench_case_note(c, "figures beyond 16 names, or without memory, are missing");
}

/* ---- Options of a benchmark: checked, and made whole. bench/case.h, pk/bench.h ---- */

#define OLDEST_SIZE 16 /* up to `cold` */

static bool tail_is_zero(const struct pk_bench_options *given, size_t known)
{
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = known; i < given->size; i++)
        if (bytes[i])
            return false;
    return true;
}

static pk_status copy(struct pk_bench_options *whole, const struct pk_bench_options *given)
{
    memset(whole, 0, sizeof *whole);
    if (!given)
        return PK_OK;
    if (given->size < OLDEST_SIZE)
        return pki_bench_fail(PK_EINVAL,
                              "pk_bench_options.size is not set (use pk_bench_options(...))");
    if (given->size > sizeof *whole && !tail_is_zero(given, sizeof *whole))
        return pki_bench_fail(PK_EINVAL, "an option of a newer perfkit is set in pk_bench_options");
    memcpy(whole, given, PKI_MIN((size_t)given->size, sizeof *whole));
    whole->size = sizeof *whole;
    return PK_OK;
}

static bool share(double value, double below)
{
    return value == 0 || (value > 0 && value < below);
}

static pk_status check(const struct pk_bench_options *o)
{
    if (o->clock > PK_BENCH_CLOCK_GPU)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.clock is none of pk_bench_clock");
    if (o->threads > PKI_BENCH_THREADS_MOST)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.threads is above %d",
                              PKI_BENCH_THREADS_MOST);
    if (!share(o->precision, 1))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.precision is not between 0 and 1");
    if (!share(o->confidence, 1) || (o->confidence > 0 && o->confidence < 0.5))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.confidence is not between 0.5 and 1");
    if (o->max_time && o->max_time < o->min_time)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_time is below min_time");
    if (o->max_samples && o->max_samples < o->min_samples)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_samples is below min_samples");
    if (o->clock == PK_BENCH_CLOCK_GPU && o->threads > 1)
        return pki_bench_fail(PK_EINVAL, "a benchmark on a GPU's stream has one thread");
    if (o->cold && o->iterations > 1)
        return pki_bench_fail(PK_EINVAL, "with pk_bench_options.cold a sample is one iteration");
    return PK_OK;
}

#define DEFAULT(field, value) (o->field = o->field > 0 ? o->field : (value))
#define MS 1000000u

static void fill(struct pk_bench_options *o)
{
    DEFAULT(threads, 1);
    DEFAULT(precision, 0.01);
    DEFAULT(confidence, 0.95);
    DEFAULT(min_time, PKI_MIN(100 * MS, o->max_time ? o->max_time : UINT64_MAX));
    DEFAULT(max_time, PKI_MAX(2000 * MS, o->min_time));
    DEFAULT(min_samples, PKI_MIN(20, o->max_samples ? o->max_samples : UINT32_MAX));
    DEFAULT(max_samples, PKI_MAX(100000, o->min_samples));
    DEFAULT(max_warmup, 500 * MS);
    DEFAULT(seed, 1);
    if (o->cold)
        o->iterations = 1;
}

pk_status pki_bench_options_fill(struct pk_bench_options *whole,
                                 const struct pk_bench_options *given)
{
    pk_status status = copy(whole, given);
    if (status == PK_OK)
        status = check(whole);
    if (status == PK_OK)
        fill(whole);
    return status;
}

/* ---- what a loop takes ---- */

#define TRIES 21
#define TURNS 4096
#define SURE 0.99

/* One try, the place that took least: one interruption, or one unlucky place, changes nothing. */
static double least_of_places(const pki_bench_clock *clock, double fixed,
                              void (*const places[PKI_BENCH_PLACES])(uint64_t turns))
{
    double least = INFINITY;
    for (int i = 0; i < PKI_BENCH_PLACES; i++) {
        uint64_t start = clock->now(clock->self);
        places[i](TURNS);
        double taken = (double)(clock->now(clock->self) - start) - fixed;
        least = PKI_MIN(least, taken / TURNS);
    }
    return least;
}

/* The difference of two that were measured next to each other, over the tries: what it is at least,
 * and how well that is known. */
static double certain(double *differences, double *unsure)
{
    pki_samples_sort(differences, TRIES);
    pki_interval is = pki_samples_sign_interval(differences, TRIES, 1, SURE);
    *unsure = is.high - is.low;
    return PKI_MAX(is.low, 0);
}

static void measure_loops(pki_bench_overhead *o, const pki_bench_clock *clock,
                          const pki_bench_loops *loops)
{
    double loop[TRIES], call[TRIES], least[PKI_BENCH_LOOPS], of_call;
    o->loop = o->call = INFINITY;
    for (int try = 0; try < TRIES; try++) {
        for (int i = 0; i < PKI_BENCH_LOOPS; i++)
            least[i] = least_of_places(clock, o->clock, loops->run[i]);
        o->loop = PKI_MIN(o->loop, PKI_MAX(least[PKI_BENCH_LOOP_EMPTY], 0));
        o->call = PKI_MIN(o->call, PKI_MAX(least[PKI_BENCH_CALL_EMPTY], 0));
        loop[try] = least[PKI_BENCH_LOOP_CHAIN] - least[PKI_BENCH_CHAIN];
        call[try] = least[PKI_BENCH_CALL_CHAIN] - least[PKI_BENCH_CHAIN_IN_MEMORY];
    }
    o->loop_beside = PKI_MIN(certain(loop, &o->unsure), o->loop);
    o->call_beside = PKI_MIN(certain(call, &of_call), o->call);
}

/* ---- the clock ---- */

static void measure_clock(pki_bench_overhead *o, const pki_bench_clock *clock)
{
    double least = INFINITY, cpu = INFINITY, step = INFINITY;
    for (int i = 0; i < 1000; i++) {
        uint64_t first = clock->now(clock->self), second = clock->now(clock->self);
        double between = (double)(second - first);
        least = PKI_MIN(least, between);
        step = between > 0 ? PKI_MIN(step, between) : step;
    }
    for (int i = 0; i < 100; i++) {
        uint64_t first = clock->cpu(clock->self);
        clock->now(clock->self);
        clock->now(clock->self);
        cpu = PKI_MIN(cpu, (double)(clock->cpu(clock->self) - first));
    }
    o->clock = least;
    o->cpu_clock = cpu;
    o->step = isfinite(step) ? step : 1;
}

void pki_bench_overhead_measure(pki_bench_overhead *overhead, const pki_bench_clock *clock,
                                const pki_bench_loops *loops)
{
    measure_clock(overhead, clock);
    measure_loops(overhead, clock, loops);
}

double pki_bench_subtract_loop(double taken, double beside)
{
    return taken > beside ? taken - beside : 0;
}

/* ---- the loops that the harness measures itself by, each at several places ---- */

/* Overhead.h. */

/* So many bytes behind the begin of a cache line, and of what a processor fetches at once. */
#if defined(__x86_64__) || defined(__i386__)
#define NOP_BYTES "1"
#else
#define NOP_BYTES "4"
#endif
#define PLACE(bytes)                                                                               \
    __asm__ volatile(".p2align 6\n\t.rept " #bytes "/" NOP_BYTES "\n\tnop\n\t.endr");

#define TIMES(n) PK_BENCH_UNROLLED_ for (uint64_t left = (n); left; left--)

/* A link of the chain: the compiler has to go through the register. */
#define LINK(x)                                                                                    \
    x *= 3;                                                                                        \
    __asm__ volatile("" : "+r"(x));
#define CHAIN(x) LINK(x) LINK(x) LINK(x) LINK(x)
#define CHAINS(x) CHAIN(x) CHAIN(x) CHAIN(x) CHAIN(x)
#define MANY 16 /* chains in a row, so that the loop around them is next to nothing */

static uint64_t chain_state = 1;

/* Stands where the compiler cannot see what is called. */
static void (*volatile called)(void *);
static uint64_t in_memory = 1;

static void nothing(void *arg)
{
    (void)arg;
    __asm__ volatile("");
}

static void chain(void *arg)
{
    uint64_t *x = arg, y = *x;
    CHAIN(y)
    *x = y;
}

#define LOOPS_AT(place)                                                                            \
    static void loop_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        __asm__ volatile("");                                                                      \
    }                                                                                              \
    static void loop_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        TIMES(turns){CHAIN(x)} chain_state = x;                                                    \
    }                                                                                              \
    static void chain_##place(uint64_t turns)                                                      \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        for (uint64_t left = turns / MANY; left; left--) {                                         \
            CHAINS(x) CHAINS(x) CHAINS(x) CHAINS(x)                                                \
        }                                                                                          \
        chain_state = x;                                                                           \
    }                                                                                              \
    static void call_##place(uint64_t turns, void (*function)(void *))                             \
    {                                                                                              \
        called = function;                                                                         \
        void (*fn)(void *) = called;                                                               \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        fn(&in_memory);                                                                            \
    }                                                                                              \
    static void call_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, nothing);                                                              \
    }                                                                                              \
    static void call_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, chain);                                                                \
    }                                                                                              \
    static void chain_in_memory_##place(uint64_t turns)                                            \
    {                                                                                              \
        volatile uint64_t *x = &in_memory;                                                         \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        {                                                                                          \
            uint64_t y = *x;                                                                       \
            CHAIN(y)                                                                               \
            *x = y;                                                                                \
        }                                                                                          \
    }

LOOPS_AT(0)
LOOPS_AT(16)
LOOPS_AT(32)
LOOPS_AT(48)

#define PLACES(name)                                                                               \
    {                                                                                              \
        name##_0, name##_16, name##_32, name##_48                                                  \
    }

const pki_bench_loops pki_bench_own_loops = {
    .run = {[PKI_BENCH_LOOP_EMPTY] = PLACES(loop_empty),
            [PKI_BENCH_LOOP_CHAIN] = PLACES(loop_chain),
            [PKI_BENCH_CHAIN] = PLACES(chain),
            [PKI_BENCH_CALL_EMPTY] = PLACES(call_empty),
            [PKI_BENCH_CALL_CHAIN] = PLACES(call_chain),
            [PKI_BENCH_CHAIN_IN_MEMORY] = PLACES(chain_in_memory)},
};

/* ---- a status and the sentence that belongs to it ---- */

pk_status pki_bench_fail(pk_status status, const char *format, ...)
{
    char sentence[320];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pk_fail_(status, sentence);
}

/* ---- the engine ---- */

static pki_bench_engine engine = {.clock = &pki_bench_system_clock};
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void measure_engine(void)
{
    pki_bench_overhead_measure(&engine.overhead, engine.clock, &pki_bench_own_loops);
}

const pki_bench_engine *pki_bench_engine_get(void)
{
    pthread_once(&engine_once, measure_engine);
    return &engine;
}

static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

/* One that its owner is refused: not every C library has an initializer for that. */
static void make_lock(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

pk_status pki_bench_lock(void)
{
    pthread_once(&lock_once, make_lock);
    if (pthread_mutex_lock(&lock) != 0)
        return pki_bench_fail(PK_EBUSY, "a benchmark cannot measure benchmarks");
    return PK_OK;
}

void pki_bench_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- one function ---- */

/* Moves a whole one to a caller's, as much of it as that has room for by its size. */
static void pki_bench_result_copy_out(pk_bench_result *given, pk_bench_result *whole)
{
    uint32_t size = given->size;
    memset((char *)given + sizeof size, 0, size - sizeof size);
    if (size < sizeof *whole) {
        free(whole->marks);
        whole->marks = NULL;
    }
    whole->size = size;
    memcpy(given, whole, PKI_MIN((size_t)size, sizeof *whole));
}

/* The body of such a benchmark. */
static void call_function(pk_bench_run *run)
{
    void (*fn)(void *) = run->owner->fn;
    void *arg = run->owner->fn_arg;
    uint64_t left = pk_bench_begin(run);
    PK_BENCH_UNROLLED_ for (; left; left--) fn(arg);
    pk_bench_end(run);
}

static pk_status deliver(pki_bench_case *c, pk_bench_result *result)
{
    pk_bench_result whole;
    memset(&whole, 0, sizeof whole);
    if (!pki_bench_result_fill(&whole, c))
        return pki_bench_fail(PK_ENOMEM, "%s: no memory for its statistics", c->name);
    if (result)
        pki_bench_result_copy_out(result, &whole);
    else
        pk_bench_result_release(&whole);
    if (pki_bench_case_is_fine(c))
        return PK_OK;
    return pki_bench_fail(PK_ENOTSUP, "%s: %s", c->name, c->result.reason);
}

static pk_status measure(pki_bench_case *c, pk_bench_result *result)
{
    pk_status status = pki_bench_run_rounds(c, 1, true, c->options.seed, NULL, NULL);
    if (status == PK_OK)
        status = deliver(c, result);
    pki_bench_case_finish(c);
    return status;
}

pk_status pk_bench(const char *name, void (*fn)(void *), void *arg,
                   const struct pk_bench_options *options, pk_bench_result *result)
{
    int saved = errno;
    struct pk_bench_options whole;
    pki_bench_case c;
    if (!fn)
        return pki_bench_fail(PK_EINVAL, "pk_bench needs a function");
    if (result && result->size < PKI_BENCH_RESULT_OLDEST)
        return pki_bench_fail(PK_EINVAL, "pk_bench_result.size is not sizeof(pk_bench_result)");
    pk_status status = pki_bench_options_fill(&whole, options);
    if (status == PK_OK)
        status = pki_bench_lock();
    if (status != PK_OK)
        return status;
    pki_bench_case_init(&c, pki_bench_engine_get(), name && *name ? name : "(unnamed)", &whole);
    c.body = call_function;
    c.fn = fn;
    c.fn_arg = arg;
    c.options.user = arg;
    status = measure(&c, result);
    pki_bench_unlock();
    errno = saved;
    return status;
}

/* ---- What a benchmark's body calls: pk/bench.h ---- */

static uint64_t cpu(const pk_bench_run *run)
{
    const pki_bench_clock *clock = run->owner->engine->clock;
    return clock->cpu(clock->self);
}

static void abandon(pk_bench_run *run, pk_bench_outcome outcome, const char *reason)
{
    run->skipped = true;
    pki_bench_case_abandon(run->owner, outcome, reason);
}

/* ---- the timed part ---- */

/* Reads memory until the caches hold nothing else. It was written once, so it has pages of its own,
 * and nothing has to be written back meanwhile. */
static void chill(const pki_bench_case *c)
{
    const volatile uint64_t *words = c->cold;
    for (size_t i = 0; i < c->cold_words; i += PKI_LINE / sizeof *words)
        (void)words[i];
}

static bool begin_device(pk_bench_run *run)
{
    pki_bench_case *c = run->owner;
    if (!c->timer)
        return true;
    if (pki_bench_queue_hold(c) && (!c->options.cold || c->device->flush(c->timer)) &&
        c->device->begin(c->timer))
        return true;
    abandon(run, PK_BENCH_OUTCOME_FAILED, c->device->why(c->timer));
    return false;
}

uint64_t pk_bench_begin(pk_bench_run *run)
{
    pki_bench_case *c = run->owner;
    if (run->begun && !run->skipped)
        abandon(run, PK_BENCH_OUTCOME_FAILED, "its loop was begun twice in one run");
    if (run->skipped)
        return 0;
    if (c->cold)
        chill(c);
    bool hardware = c->counting_hardware && pki_bench_counters_open(&run->counters);
    run->counting = hardware;
    run->begun = true;
    if (c->team)
        pki_bench_team_meet(c->team);
    if (!begin_device(run))
        return 0;
    if (c->counting_allocations && run->thread == 0)
        pki_bench_allocations_start();
    if (hardware)
        pki_bench_counters_start(&run->counters);
    run->cpu_start = cpu(run);
    run->start = pki_bench_now(run->owner);
    return run->iterations;
}

static void stop_counting(pk_bench_run *run)
{
    if (run->counting) {
        pki_bench_counters_stop(&run->counters);
        pki_bench_counters_read(&run->counters, &run->counted);
        pki_bench_counters_close(&run->counters);
    }
    if (run->owner->counting_allocations && run->thread == 0)
        pki_bench_allocations_stop();
}

void pk_bench_end(pk_bench_run *run)
{
    uint64_t end = pki_bench_now(run->owner), cpu_end = cpu(run);
    if (!run->begun || run->ended)
        return;
    run->end = end;
    run->cpu_end = cpu_end;
    run->ended = true;
    stop_counting(run);
    if (run->pausing) {
        run->paused += end - run->paused_at;
        run->cpu_paused += cpu_end - run->cpu_paused_at;
    }
    pki_bench_case *c = run->owner;
    if (c->timer && !run->skipped && !c->device->end(c->timer))
        abandon(run, PK_BENCH_OUTCOME_FAILED, c->device->why(c->timer));
    pki_bench_queue_release(c, run->iterations);
}

/* ---- pauses: the slow clock is read within, so only one reading of the fast one is timed ---- */

void pk_bench_pause(pk_bench_run *run)
{
    run->paused_at = pki_bench_now(run->owner);
    run->cpu_paused_at = cpu(run);
    if (run->owner->timer)
        abandon(run, PK_BENCH_OUTCOME_FAILED, "a stream's time cannot be paused");
    run->pausing = true;
}

void pk_bench_resume(pk_bench_run *run)
{
    if (!run->pausing)
        return;
    run->pausing = false;
    run->pauses++;
    run->cpu_paused += cpu(run) - run->cpu_paused_at;
    run->paused += pki_bench_now(run->owner) - run->paused_at;
}

void pk_bench_add_time(pk_bench_run *run, double ns)
{
    run->manual += ns;
}

/* ---- what a benchmark sets ---- */

void pk_bench_give_up(pk_bench_run *run, pk_bench_outcome outcome, const char *reason)
{
    abandon(run, outcome == PK_BENCH_OUTCOME_SKIPPED ? outcome : PK_BENCH_OUTCOME_FAILED, reason);
}

int64_t pk_bench_arg(const pk_bench_run *run, unsigned axis)
{
    const pki_bench_arguments *arguments = &run->owner->arguments;
    return axis < arguments->count ? arguments->values[axis] : 0;
}

uint32_t pk_bench_threads(const pk_bench_run *run)
{
    return run->owner->options.threads;
}

uint32_t pk_bench_thread(const pk_bench_run *run)
{
    return run->thread;
}

void *pk_bench_user(const pk_bench_run *run)
{
    return run->owner->options.user;
}

/* ---- what a benchmark asks: thread 0 speaks for all ---- */

void pk_bench_set_work(pk_bench_run *run, uint64_t bytes, uint64_t flops, uint64_t items)
{
    if (run->thread != 0)
        return;
    run->owner->bytes = bytes;
    run->owner->flops = flops;
    run->owner->items = items;
}

void pk_bench_set_label(pk_bench_run *run, const char *label)
{
    if (run->thread == 0)
        snprintf(run->owner->label, sizeof run->owner->label, "%s", label ? label : "");
}

void pk_bench_add_counter(pk_bench_run *run, const char *name, double value, pk_bench_unit unit)
{
    unsigned i = 0;
    name = name ? name : "";
    while (i < run->figure_count &&
           strncmp(run->figures[i].name, name, sizeof run->figures[i].name - 1) != 0)
        i++;
    if (i == PKI_BENCH_FIGURES) {
        run->figures_lost++;
        return;
    }
    pki_bench_figure *figure = &run->figures[i];
    if (i == run->figure_count) {
        run->figure_count++;
        snprintf(figure->name, sizeof figure->name, "%s", name);
        figure->value = 0;
    }
    figure->value += value;
    figure->unit = unit;
}
