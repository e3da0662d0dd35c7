#include "bench/case.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/process.h"
#include "bench/bench.h"
#include "bench/counters.h"
#include "bench/environment.h"
#include "bench/forms/document.h"
#include "bench/queue.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"

/* ---- who acts when a thread does not come back in time ---- */

typedef struct dog {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    void (*bark)(void *);
    void *arg;
    uint64_t due; /* 0: off */
    bool used;    /* set since the last look */
    bool asleep;  /* until it is set */
    bool barked, over;
} dog;

/* Under the lock. A program may have hundreds of benchmarks, of which one is measured. */
static void rest(dog *d)
{
    struct timespec next = pki_moment(pki_monotonic_ns() + PKI_BENCH_WATCHDOG_LOOK);
    d->asleep = !d->used && !d->due;
    d->used = false;
    if (d->asleep)
        pthread_cond_wait(&d->wake, &d->lock);
    else
        pthread_cond_timedwait(&d->wake, &d->lock, &next);
    d->asleep = false;
}

static void *watch(void *dog_)
{
    dog *d = dog_;
    pthread_mutex_lock(&d->lock);
    while (!d->over) {
        rest(d);
        if (d->due && pki_monotonic_ns() >= d->due) {
            d->due = 0;
            d->barked = true;
            d->bark(d->arg);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void *open_dog(void (*bark)(void *), void *arg)
{
    dog *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->bark = bark;
    d->arg = arg;
    pthread_mutex_init(&d->lock, NULL);
    pki_condition_make(&d->wake);
    if (pki_spawn(&d->thread, watch, d) == 0)
        return d;
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->lock);
    free(d);
    return NULL;
}

static void close_dog(void *dog_)
{
    dog *d = dog_;
    pthread_mutex_lock(&d->lock);
    d->over = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static void set(void *dog_, uint64_t ns)
{
    dog *d = dog_;
    pthread_mutex_lock(&d->lock);
    d->barked = false;
    d->used = true;
    d->due = pki_monotonic_ns() + ns;
    if (d->asleep)
        pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
}

static bool call_off(void *dog_)
{
    dog *d = dog_;
    pthread_mutex_lock(&d->lock);
    bool barked = d->barked;
    d->barked = false;
    d->due = 0;
    pthread_mutex_unlock(&d->lock);
    return barked;
}

const pki_bench_watchdog pki_bench_system_watchdog = {open_dog, close_dog, set, call_off};

/* ---- samples of a device whose launches are queued before the first one runs ---- */

static const pki_bench_watchdog *watchdog(const pki_bench_case *c)
{
    return c->engine->watchdog ? c->engine->watchdog : &pki_bench_system_watchdog;
}

/* On the watchdog's thread. */
static void bark_at(void *case_)
{
    const pki_bench_case *c = case_;
    c->device->release(c->timer);
}

static void note_off(pki_bench_case *c, const char *why)
{
    char text[176];
    snprintf(text, sizeof text, "launches are not queued (%s): gaps between them count", why);
    pki_bench_case_note(c, text);
}

/* Once the timer is there. What cannot be done goes to the case's note. */
static void pki_bench_queue_open(pki_bench_case *c)
{
    pki_bench_queue *q = &c->queue;
    q->most = PKI_BENCH_QUEUED;
    if (c->options.unqueued)
        return;
    const char *why_not = c->device->cannot_hold(c->timer);
    if (!why_not) {
        q->dog = watchdog(c)->open(bark_at, c);
        why_not = q->dog ? NULL : "no thread for its watchdog";
    }
    q->on = !why_not;
    if (why_not)
        note_off(c, why_not);
}

static void pki_bench_queue_close(pki_bench_case *c)
{
    if (c->queue.dog)
        watchdog(c)->close(c->queue.dog);
    c->queue.dog = NULL;
}

bool pki_bench_queue_hold(pki_bench_case *c)
{
    pki_bench_queue *q = &c->queue;
    bool hold = q->on && q->loaded;
    q->loaded = true;
    q->forced = false;
    if (!hold)
        return true;
    q->held = c->device->hold(c->timer);
    if (q->held) /* behind it, so that a bark never comes before what it is to undo */
        watchdog(c)->set(q->dog, PKI_BENCH_HOLD);
    return q->held;
}

void pki_bench_queue_release(pki_bench_case *c, uint64_t iterations)
{
    pki_bench_queue *q = &c->queue;
    if (!q->held)
        return;
    q->held = false;
    q->forced = watchdog(c)->call_off(q->dog);
    c->device->release(c->timer);
    if (!q->forced)
        q->fits = PKI_MAX(q->fits, iterations);
}

void pki_bench_queue_disable(pki_bench_case *c)
{
    if (!c->queue.on)
        return;
    c->queue.on = false;
    c->queue.waits = true;
    note_off(c, "its body waits for the device, or launches more than a queue takes");
}

/* ---- threads that run the same thing at once, over and over, and start it together ---- */

static void pki_bench_team_destroy(pki_bench_team *team);

#define SPINS 2000 /* before the processor is offered to others: there may be fewer of them */

typedef struct member {
    pki_bench_team *team;
    unsigned number;
    pthread_t thread;
} member;

struct pki_bench_team {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    uint64_t runs; /* begun so far */
    unsigned busy; /* not done with this one */
    bool over;
    uint32_t arrived PKI_ALIGNED;
    unsigned threads, started;
    void (*job)(void *arg, unsigned thread);
    void *arg;
    member members[];
};

/* The next run's number; 0: there is none. */
static uint64_t await_work(pki_bench_team *team, uint64_t last)
{
    pthread_mutex_lock(&team->lock);
    while (team->runs == last && !team->over)
        pthread_cond_wait(&team->work, &team->lock);
    uint64_t next = team->over ? 0 : team->runs;
    pthread_mutex_unlock(&team->lock);
    return next;
}

static void report_done(pki_bench_team *team)
{
    pthread_mutex_lock(&team->lock);
    if (--team->busy == 0)
        pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
}

static void *work(void *arg)
{
    member *self = arg;
    for (uint64_t run = 0; (run = await_work(self->team, run)) != 0;) {
        self->team->job(self->team->arg, self->number);
        report_done(self->team);
    }
    return NULL;
}

/* The program's signals are for the program's threads. */
static int start(member *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&m->thread, NULL, work, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static pki_bench_team *pki_bench_team_create(unsigned threads,
                                             void (*job)(void *arg, unsigned thread), void *arg)
{
    size_t bytes = sizeof(pki_bench_team) + threads * sizeof(member);
    pki_bench_team *team =
        aligned_alloc(PKI_LINE, (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1));
    if (!team)
        return NULL;
    *team = (pki_bench_team){.threads = threads, .started = 1, .job = job, .arg = arg};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    for (unsigned i = 1; i < threads; i++) {
        team->members[i].team = team;
        team->members[i].number = i;
        int error = start(&team->members[i]);
        if (error) {
            pki_bench_team_destroy(team);
            errno = error;
            return NULL;
        }
        team->started++;
    }
    return team;
}

/* threads - 1 new ones, which wait; the caller is number 0. NULL and errno. */
static void pki_bench_team_destroy(pki_bench_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    team->over = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 1; i < team->started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->work);
    pthread_cond_destroy(&team->done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

void pki_bench_team_run(pki_bench_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->arrived = 0;
    team->busy = team->threads;
    team->runs++;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    team->job(team->arg, 0);
    pthread_mutex_lock(&team->lock);
    team->busy--;
    while (team->busy)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

void pki_bench_team_meet(pki_bench_team *team)
{
    __atomic_fetch_add(&team->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned spins = 0; pki_load_acquire(&team->arrived) < team->threads; spins++)
        if (spins >= SPINS)
            sched_yield();
}

/* ---- life ---- */

void pki_bench_case_init(pki_bench_case *c, const pki_bench_engine *engine, const char *name,
                         const struct pk_bench_options *whole)
{
    memset(c, 0, sizeof *c);
    c->engine = engine;
    c->name = name;
    c->options = *whole;
    c->iterations = whole->iterations;
    c->bytes = whole->bytes;
    c->flops = whole->flops;
    c->items = whole->items;
    c->result.instructions = c->result.cycles = -1;
    c->result.cache_misses = c->result.branch_misses = -1;
    c->result.allocations = c->result.allocated_bytes = -1;
}

void pki_bench_run_thread(void *arg, unsigned thread)
{
    pki_bench_case *c = arg;
    pk_bench_run *run = &c->runs[thread];
    c->body(run);
    if (!run->begun && c->team)
        pki_bench_team_meet(c->team);
}

#define COLD_MOST ((size_t)256 << 20)
#define COLD_UNKNOWN ((size_t)64 << 20)

/* Twice the largest cache, so that whatever was there has been replaced. */
static size_t cold_bytes(pki_bench_case *c)
{
    if (c->engine->cold_bytes)
        return c->engine->cold_bytes;
    size_t largest = pki_bench_largest_cache();
    if (2 * largest > COLD_MOST)
        pki_bench_case_note(c, "the largest cache is not emptied whole: 256 MiB are read");
    return largest ? PKI_MIN(2 * largest, COLD_MOST) : COLD_UNKNOWN;
}

static bool prepare_cold(pki_bench_case *c)
{
    size_t bytes = cold_bytes(c);
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return false;
    memset(block, 1, bytes); /* else all of it is one page of zeros */
    c->cold = block;
    c->cold_words = bytes / sizeof *c->cold;
    return true;
}

static void find_device(pki_bench_case *c)
{
    const char *why_not = "";
    c->device = c->engine->device ? c->engine->device : pki_bench_device_find(&why_not);
    if (!c->device)
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_SKIPPED, why_not);
}

/* After the set-up, which may have made the stream's context current. */
static void open_timer(pki_bench_case *c)
{
    char reason[192] = "";
    c->timer = c->device->open(c->options.stream, c->options.cold, reason, sizeof reason);
    if (c->timer)
        pki_bench_queue_open(c);
    else
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_SKIPPED, reason);
}

static pk_status make_room(pki_bench_case *c)
{
    unsigned threads = c->options.threads;
    c->runs = calloc(threads, sizeof *c->runs);
    if (!c->runs)
        return pki_bench_fail(PK_ENOMEM, "%s: no memory for its threads", c->name);
    if (c->options.cold && c->options.clock != PK_BENCH_CLOCK_GPU && !prepare_cold(c))
        return pki_bench_fail(PK_ENOMEM, "%s: no memory to empty the caches with", c->name);
    if (threads > 1)
        c->team = pki_bench_team_create(threads, pki_bench_run_thread, c);
    if (threads > 1 && !c->team)
        return pki_bench_fail(errno == ENOMEM ? PK_ENOMEM : PK_ETHREAD,
                              "%s: %u threads could not be made", c->name, threads);
    return PK_OK;
}

pk_status pki_bench_case_open(pki_bench_case *c)
{
    c->opened = true;
    if (c->options.clock == PK_BENCH_CLOCK_GPU)
        find_device(c);
    if (!pki_bench_case_is_fine(c))
        return PK_OK;
    pk_status status = make_room(c);
    if (status != PK_OK)
        return status;
    if (c->options.setup && c->options.setup(c->options.user) != 0)
        pki_bench_case_abandon(c, PK_BENCH_OUTCOME_FAILED, "its set-up failed");
    else
        c->set_up = true;
    if (c->set_up && c->device)
        open_timer(c);
    return PK_OK;
}

void pki_bench_case_close(pki_bench_case *c)
{
    if (!c->opened)
        return;
    c->opened = false;
    if (c->set_up && c->options.teardown)
        c->options.teardown(c->options.user);
    c->set_up = false;
    pki_bench_team_destroy(c->team);
    c->team = NULL;
    pki_bench_queue_close(c);
    if (c->timer)
        c->device->close(c->timer);
    c->timer = NULL;
    if (c->cold)
        munmap(c->cold, c->cold_words * sizeof *c->cold);
    c->cold = NULL;
    free(c->runs);
    c->runs = NULL;
}

void pki_bench_case_finish(pki_bench_case *c)
{
    free(c->time);
    free(c->cpu);
    free(c->at);
    free(c->overhead);
    free(c->launch);
    free(c->mhz);
    free(c->marks);
    for (unsigned i = 0; i < c->series_count; i++)
        free(c->series[i].values);
    c->time = c->cpu = c->at = c->overhead = c->launch = c->mhz = NULL;
    c->marks = NULL;
    c->count = c->room = 0;
    c->series_count = 0;
}

/* ---- from a case's samples to figures ---- */

double pki_bench_series_median(pki_bench_series *series)
{
    return pki_samples_select_median(series->values, series->count);
}

static void move_samples(pk_bench_result *r, pki_bench_case *c)
{
    r->samples = c->time;
    r->cpu_samples = c->cpu;
    r->at = c->at;
    r->marks = c->marks;
    c->time = c->cpu = c->at = NULL;
    c->marks = NULL;
    c->count = c->room = 0;
}

/* What was measured, less what is reported: of the median, not of any one sample. */
static double overhead_of(const pki_bench_case *c, double median, double *scratch)
{
    for (size_t i = 0; i < c->count; i++)
        scratch[i] = c->time[i] + c->overhead[i];
    return pki_samples_select_median(scratch, c->count) - median;
}

static double rate(const pk_bench_result *r, uint64_t work)
{
    return r->median > 0 ? (double)work * r->threads / (r->median * 1e-9) : 0;
}

/* ---- a device's ---- */

/* Not queued, launches and device go on side by side, so an iteration takes what the slower of them
 * does; the two readings differ by the marks. */
#define SAME 0.9

static uint32_t bound_of(const pk_bench_result *r, const pki_bench_case *c)
{
    if (c->queue.waits)
        return PK_BENCH_BOUND_UNKNOWN;
    return r->launch > (r->queued ? 1 : SAME) * r->median ? PK_BENCH_BOUND_LAUNCH
                                                          : PK_BENCH_BOUND_DEVICE;
}

/* A sample that is only some steps of the marks' clock long is not known better than that. */
static void note_resolution(pk_bench_result *r, pki_bench_case *c)
{
    double sample = r->median * (double)r->iterations, step = c->device->resolution;
    char text[96];
    if (!(sample * c->options.precision < step))
        return;
    snprintf(text, sizeof text, "a sample is %.1f us, and known to %.1f us (the events' steps)",
             sample / 1e3, step / 1e3);
    pki_bench_case_note(c, text);
    memcpy(r->note, c->result.note, sizeof r->note);
}

static void describe_device(pk_bench_result *r, pki_bench_case *c, double *scratch)
{
    memcpy(scratch, c->launch, c->count * sizeof *scratch);
    r->launch = pki_samples_select_median(scratch, c->count);
    r->queued = c->queue.on;
    r->bound = bound_of(r, c);
    note_resolution(r, c);
}

/* ---- all of it ---- */

bool pki_bench_result_fill(pk_bench_result *r, pki_bench_case *c)
{
    *r = c->result;
    r->size = sizeof *r;
    r->threads = c->options.threads;
    r->iterations = c->iterations;
    if (!pki_bench_case_is_fine(c))
        return true;
    if (c->count == 0)
        return false; /* there was not even room for the first one */
    double *scratch = malloc(c->count * sizeof *scratch);
    if (!scratch ||
        !pki_samples_describe(r, c->time, c->count, c->options.confidence, c->options.seed)) {
        free(scratch);
        return false;
    }
    memcpy(scratch, c->cpu, c->count * sizeof *scratch);
    r->cpu = pki_samples_select_median(scratch, c->count);
    r->overhead = overhead_of(c, r->median, scratch);
    if (c->launch)
        describe_device(r, c, scratch);
    free(scratch);
    r->bytes_per_second = rate(r, c->bytes);
    r->flops_per_second = rate(r, c->flops);
    r->items_per_second = rate(r, c->items);
    move_samples(r, c);
    return true;
}

void pk_bench_result_release(pk_bench_result *result)
{
    if (!result)
        return;
    free(result->samples);
    free(result->cpu_samples);
    free(result->at);
    result->samples = result->cpu_samples = result->at = NULL;
    result->count = 0;
    if (result->size < sizeof *result)
        return;
    free(result->marks);
    result->marks = NULL;
}

/* ---- Why a benchmark has no figures, and what else is to be known: bench/case.h ---- */

void pki_bench_case_abandon(pki_bench_case *c, pk_bench_outcome outcome, const char *reason)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (pki_bench_case_is_fine(c)) {
        c->result.outcome = outcome;
        snprintf(c->result.reason, sizeof c->result.reason, "%s",
                 reason && *reason ? reason : "no reason given");
    }
    pthread_mutex_unlock(&lock);
}

void pki_bench_case_note(pki_bench_case *c, const char *text)
{
    size_t used = strlen(c->result.note);
    if (*text && !strstr(c->result.note, text))
        snprintf(c->result.note + used, sizeof c->result.note - used, "%s%s", used ? "; " : "",
                 text);
}
