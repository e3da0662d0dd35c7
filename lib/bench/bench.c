#include "bench/bench.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/private.h>

#include "base/compiler.h"
#include "bench/case.h"
#include "bench/counters.h"
#include "bench/registry.h"
#include "bench/rounds.h"

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

/* ---- driven from outside ---- */

struct pki_bench_handle {
    pki_bench_case c;
};

static pk_status open_case(pki_bench_case *c, size_t index)
{
    size_t count;
    pk_status status = pki_bench_instances(&count);
    const pki_bench_instance *instance = pki_bench_instance_at(index);
    if (status == PK_OK && !instance)
        return pki_bench_fail(PK_ENOENT, "there is no benchmark of number %zu", index);
    if (status == PK_OK)
        status = pki_bench_instance_case(instance, pki_bench_engine_get(), NULL, c);
    if (status != PK_OK)
        return status;
    status = pki_bench_case_open(c);
    if (status == PK_OK && !pki_bench_case_is_fine(c))
        status = pki_bench_fail(PK_ENOTSUP, "%s: %s", c->name, c->result.reason);
    return status;
}

pk_status pk_bench_open_(size_t index, pki_bench_handle **handle)
{
    int saved = errno;
    if (!handle)
        return pki_bench_fail(PK_EINVAL, "there is nowhere to put the benchmark");
    *handle = calloc(1, sizeof **handle);
    if (!*handle)
        return pki_bench_fail(PK_ENOMEM, "no memory for a benchmark");
    pk_status status = open_case(&(*handle)->c, index);
    if (status != PK_OK) {
        pk_bench_close_(*handle);
        *handle = NULL;
    }
    errno = saved;
    return status;
}

/* Once more if the watchdog ended it, without queueing. */
static bool sample_once(pki_bench_case *c, uint64_t iterations, pki_bench_sample *sample)
{
    bool loaded = !c->timer || c->queue.loaded || pki_bench_touch(c);
    if (!loaded || !pki_bench_case_run_sample(c, iterations, sample))
        return false;
    if (!c->queue.forced)
        return true;
    pki_bench_queue_disable(c);
    return pki_bench_case_run_sample(c, iterations, sample);
}

pk_status pk_bench_take_(pki_bench_handle *handle, uint64_t iterations, pki_bench_sample *sample)
{
    int saved = errno;
    if (!handle || !sample)
        return pki_bench_fail(PK_EINVAL,
                              "no benchmark is open, or there is nowhere to put the sample");
    pki_bench_case *c = &handle->c;
    double overhead;
    bool fine = iterations || c->iterations || pki_bench_calibrate(c);
    fine = fine && sample_once(c, iterations ? iterations : c->iterations, sample);
    errno = saved;
    if (!fine)
        return pki_bench_fail(PK_ENOTSUP, "%s: %s", c->name, c->result.reason);
    double n = (double)sample->iterations;
    sample->time = n * pki_bench_case_per_iteration(c, sample->time, sample->iterations, &overhead);
    return PK_OK;
}

void pk_bench_close_(pki_bench_handle *handle)
{
    if (!handle)
        return;
    pki_bench_case_close(&handle->c);
    pki_bench_case_finish(&handle->c);
    free(handle);
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
