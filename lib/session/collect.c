#include "session/collect.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/error.h"
#include "session/backend.h"
#include "session/drain.h"

/* A ring has to be emptied before a thread that records a region every 200 ns has filled it, also
 * when it has been idle until now. Each round costs its wake-up, 5 to 20 us: so not much earlier
 * than that either, unless a ring was found a quarter full. */
#define RECORD_NS 150u
#define SHORTEST_ROUND_NS 500000u
#define LONGEST_ROUND_NS 100000000u

static pthread_mutex_t wake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static bool hurried; /* set without the lock: a wake-up that is missed will be asked for again */
static bool on;      /* a session can be drained; under the drain lock */

/* The rate is learnt in the first second, in steps that each make it ten times better; then once a
 * second. */
static uint64_t clock_interval(uint32_t checks)
{
    static const uint64_t first[] = {4000000, 20000000, 100000000, 400000000};
    return checks < PKI_COUNT_OF(first) ? first[checks] : 1000000000;
}

void pki_collect_check_clock(pki_session *s, bool now)
{
    uint64_t t = pki_monotonic_ns();
    if (!now && t < s->next_clock_check)
        return;
    pki_clock_map_check(&s->arena->header->clock, pki_clock_read(s->config.monotonic));
    s->next_clock_check = t + clock_interval(s->clock_checks++);
}

static struct timespec later(uint64_t ns)
{
    uint64_t t = pki_monotonic_ns() + ns;
    return (struct timespec){(time_t)(t / 1000000000), (long)(t % 1000000000)};
}

static uint64_t round_ns(const pki_session *s)
{
    uint64_t ns = (uint64_t)s->config.ring_records * RECORD_NS;
    ns = pki_load(&s->fullest) >= s->config.ring_records / 4 ? ns / 4 : ns;
    return PKI_MIN(PKI_MAX(ns, SHORTEST_ROUND_NS), LONGEST_ROUND_NS);
}

/* False when it is time to end. */
static bool sleep_a_round(pki_session *s)
{
    struct timespec until = later(round_ns(s));
    pthread_mutex_lock(&wake_lock);
    while (!s->stopping && !pki_load(&hurried) &&
           pthread_cond_timedwait(&wake, &wake_lock, &until) == 0)
        ;
    pki_store(&hurried, false);
    bool go_on = !s->stopping;
    pthread_mutex_unlock(&wake_lock);
    return go_on;
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *collect(void *session)
{
    pki_session *s = session;
    prctl(PR_SET_NAME, "pk-collector", 0, 0, 0);
    while (sleep_a_round(s)) {
        pki_backends_flush(PKI_FLUSH_ROUND);
        pthread_mutex_lock(&pki_drain_lock);
        pki_collect_check_clock(s, false);
        pki_backends_collect();
        pki_drain_round(s, false);
        s->collector_cpu = thread_cpu_ns();
        pthread_mutex_unlock(&pki_drain_lock);
    }
    return NULL;
}

static void make_condition(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void turn(bool now_on)
{
    pthread_mutex_lock(&pki_drain_lock);
    on = now_on;
    pthread_mutex_unlock(&pki_drain_lock);
}

/* The program's signals are for the program's threads. */
pk_status pki_collect_start(pki_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t all, before;
    pthread_once(&once, make_condition);
    s->stopping = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&s->collector, NULL, collect, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->collecting = error == 0;
    turn(s->collecting);
    return error ? pki_fail(PK_ETHREAD, "collector thread: %s", strerror(error)) : PK_OK;
}

static void hurry(void)
{
    pki_store(&hurried, true);
    pthread_cond_signal(&wake);
}

void pki_collect_left(void)
{
    if (pthread_mutex_trylock(&pki_drain_lock) != 0)
        return;
    bool done = !on || pki_drain_left(&pki_the_session);
    pthread_mutex_unlock(&pki_drain_lock);
    if (!done)
        hurry();
}

void pki_collect_stop(pki_session *s)
{
    if (!s->collecting)
        return;
    turn(false);
    pthread_mutex_lock(&wake_lock);
    s->stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&wake_lock);
    pthread_join(s->collector, NULL);
    s->collecting = false;
}

void pki_collect_after_fork(void)
{
    pthread_mutex_init(&wake_lock, NULL);
    make_condition();
    on = hurried = false;
}
