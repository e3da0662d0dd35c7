#include "bench/bench.h"

#include "base/compiler.h"
#include "bench/fail.h"
#include "bench/plan.h"
#include "bench/registry.h"
#include "bench/result.h"
#include "bench/rounds.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
