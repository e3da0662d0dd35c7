#include "bench/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/process.h"
#include "bench/case.h"

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
static void bark(void *case_)
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

void pki_bench_queue_open(pki_bench_case *c)
{
    pki_bench_queue *q = &c->queue;
    q->most = PKI_BENCH_QUEUED;
    if (c->options.unqueued)
        return;
    const char *why_not = c->device->cannot_hold(c->timer);
    if (!why_not) {
        q->dog = watchdog(c)->open(bark, c);
        why_not = q->dog ? NULL : "no thread for its watchdog";
    }
    q->on = !why_not;
    if (why_not)
        note_off(c, why_not);
}

void pki_bench_queue_close(pki_bench_case *c)
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

void pki_bench_queue_shorten(pki_bench_case *c, uint64_t iterations)
{
    if (iterations <= 1) {
        pki_bench_queue_disable(c);
        return;
    }
    c->queue.most = PKI_MAX(PKI_MIN(c->queue.fits, iterations - 1), 1);
    c->iterations = PKI_MIN(c->iterations, c->queue.most);
}
