#include "bench/watchdog.h"

#include "base/clock.h"
#include "base/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

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
