#include "session/collector/collect.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/process.h"
#include "core/frames.h"
#include "measure/figure.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/drain.h"
#include "session/costs/io.h"
#include "session/report/summarise.h"
#include "session/session.h"

/* ---- what perfkit itself takes of the processors, while the session runs ---- */

uint64_t pki_toll_begin(void)
{
    return pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void pki_toll_of_caller(pki_session *s, uint64_t since)
{
    s->toll.callers += pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - since;
}

void pki_toll_of_captures(pki_session *s, uint64_t since)
{
    s->toll.captures += pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - since;
}

/* The collector, at the end of a round. */
static void pki_toll_of_collector(pki_session *s)
{
    s->toll.collector = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

#define IDLE_SHARE 256u /* of a processor's time */

/* Behind it. What costs more than the rest of a round, and tells nothing new of a program that
 * waits, is left to later ones. */
static void look_for_work(pki_session *s)
{
    uint64_t now = pki_monotonic_ns();
    uint64_t used = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - s->toll.collector;
    bool idle = !pki_load(&s->fullest) &&
                pki_saturating_sub(used, s->used) < (now - s->used_at) / IDLE_SHARE;
    pki_store(&s->idle, idle);
    s->used = used;
    s->used_at = now;
}

static uint64_t asker_cpu(const pki_session *s);

pki_toll pki_toll_now(const pki_session *s)
{
    pki_toll now = s->toll;
    now.process = pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - s->start_cpu;
    now.backends = pki_backends_cpu() + asker_cpu(s);
    now.readings = pki_services_spent();
    return now;
}

void pki_toll_publish(pki_session *s)
{
    s->arena->header->toll = pki_toll_now(s);
}

/* ---- whether the thread that makes steps has a processor ---- */

/* A look takes some microseconds of the collector. Sums of a run need the last one alone: of a
 * thread that ends before it is looked at, or makes no more steps, what came since the one before
 * is lost. Parts of a run, which ranks and windows are judged by, are as exact as looks are near.
 */
#define INTERVAL 1000000000u /* ns */
#define NEAR 100000000u

static uint64_t interval_of(const pki_config *c)
{
    return c->windows[0] || c->metrics[0] || c->world.size > 1 ? NEAR : INTERVAL;
}

bool pki_stepper_parse(const char *text, uint64_t *running, uint64_t *ready)
{
    char *end, *behind;
    *running = strtoull(text, &end, 10);
    *ready = strtoull(end, &behind, 10);
    return end != text && behind != end && *end == ' ';
}

void pki_stepper_add(pki_processor *sum, const pki_processor *more)
{
    uint64_t room = sum->observed + more->observed - sum->running - sum->ready;
    uint64_t running = PKI_MIN(more->running, room);
    sum->observed += more->observed;
    sum->running += running;
    sum->ready += PKI_MIN(more->ready, room - running);
}

static bool read_now(uint32_t tid, pki_processor *total)
{
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
    total->observed = pki_monotonic_ns();
    return pki_small_file_once(path, line, sizeof line) &&
           pki_stepper_parse(line, &total->running, &total->ready);
}

static void poll(pki_session *s, bool now)
{
    const pki_thread *t = pki_load(&s->registry->stepper);
    /* NULL: its last step found no room. Its block may be another thread's by now. */
    uint32_t tid = t ? pki_load(&t->tid) : s->stepper_tid;
    pki_processor total, *sum = &s->toll.stepper;
    if (s->idle && !now && tid == s->stepper_tid) /* a new one's account begins */
        return;
    pki_cpu_side_poll(tid, false);
    uint64_t since = pki_monotonic_ns() - s->stepper_before.observed;
    if (!tid || (!now && since < interval_of(&s->config) && tid == s->stepper_tid))
        return;
    if (!read_now(tid, &total))
        return;
    if (tid == s->stepper_tid) {
        const pki_processor *before = &s->stepper_before;
        pki_processor more = {total.observed - before->observed,
                              pki_saturating_sub(total.running, before->running),
                              pki_saturating_sub(total.ready, before->ready)};
        pki_stepper_add(sum, &more);
    }
    s->stepper_tid = tid;
    s->stepper_before = total;
}

static pk_status begin(pki_session *s)
{
    (void)s;
    pki_cpu_side_begin("");
    return PK_OK;
}

/* If it is time to. */
static void look_in_time(pki_session *s)
{
    poll(s, false);
}

static void look_now(pki_session *s)
{
    poll(s, true);
}

static void look_last(pki_session *s)
{
    poll(s, true);
    pki_cpu_side_poll(s->stepper_tid, true);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    out->cpu_side = pki_cpu_side_end();
    return true;
}

const pki_service pki_service_processors = {
    .name = "processors",
    .open = begin,
    .round = look_in_time,
    .look = look_now,
    .close = look_last,
    .summarise = summarise,
};

/* ---- the collector: one thread that empties the rings now and then ---- */

/* Each round costs its wake-up, 5 to 20 us, and as much again for code that is in no cache. Who
 * fills a ring rings (core/ring.c), so without records it is the trace's freshness alone that asks
 * for rounds. What devices and libraries tell has to be fetched before their pools are empty, and
 * they do not ring: a ring's worth of records, one every 150 ns, is the time for that. */
#define RECORD_NS 150u
#define SHORTEST_ROUND_NS 500000u
#define LONGEST_ROUND_NS 100000000u
#define IDLE_ROUND_NS 250000000u
#define QUIET_ROUND_NS 500000000u
#define LITTLE 8u /* a part of a ring, in a round */
#define JUMP_NS 10000000u

static pthread_mutex_t wake_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished;
static void (*last_job)(pki_session *); /* for the collector; NULL: none, or it is done */
static uint64_t within; /* the next round's latest beginning, ns from the last one; 0: as usual */
static bool on;         /* a session can be drained; under the drain lock */
static pthread_cond_t answered; /* the asker has done as it was told */

/* The rate is learnt in the first second, in steps that each make it ten times better; then once a
 * second. */
static uint64_t clock_interval(uint32_t checks)
{
    static const uint64_t first[] = {4000000, 20000000, 100000000, 400000000};
    return checks < PKI_COUNT_OF(first) ? first[checks] : 1000000000;
}

/* A virtual machine that goes on elsewhere, or a sleep: no drift is as large. Said once. */
static void warn_of_jump(const pki_session *s, uint64_t before)
{
    uint64_t now = s->arena->header->clock.uncertainty_ns;
    if (before <= JUMP_NS && now > JUMP_NS)
        pki_log(PK_LOG_WARNING,
                "clock: %s has jumped: it is %s away from CLOCK_MONOTONIC, and times since it was "
                "last looked at are wrong by as much (PK_CLOCK=monotonic does not jump)",
                PKI_CYCLE_COUNTER_NAME, pki_figure_time((double)now).text);
}

/* No duration and no figure goes by the calendar's clock, only what is said to be a date. */
static void note_calendar(pki_session *s, int64_t calendar)
{
    int64_t by = calendar - s->calendar;
    s->calendar = calendar;
    if (by > -PKI_CLOCK_APART && by < PKI_CLOCK_APART)
        return;
    s->calendar_set += by;
    pki_log(
        PK_LOG_WARNING,
        "the calendar's clock was set %s by %s: dates in this run's files go by that clock as it "
        "was when the run began",
        by > 0 ? "ahead" : "back", pki_figure_time(fabs((double)by)).text);
}

/* ns that the machine has been suspended since the last look. */
static uint64_t look_at_offsets(pki_session *s, uint64_t t)
{
    pki_clock_offsets is;
    if (!pki_clock_offsets_read(&is))
        return 0;
    uint64_t slept = s->awake_at ? pki_saturating_sub(is.asleep, s->asleep) : 0;
    bool has = slept >= PKI_CLOCK_APART;
    s->calendar = s->awake_at ? s->calendar : is.calendar;
    note_calendar(s, is.calendar);
    s->slept = has ? (pki_suspension){s->slept.count + 1, slept, s->awake_at, t, false} : s->slept;
    pki_store(&s->asleep, is.asleep);
    s->awake_at = t;
    return has ? slept : 0;
}

static void note_slept(pki_session *s, bool anew)
{
    pki_activity_slept(&s->arena->header->clock.sleeps);
    pki_log(anew ? PK_LOG_WARNING : PK_LOG_INFO, "the machine was suspended for %s: %s",
            pki_figure_time((double)s->slept.ns).text,
            anew ? PKI_CYCLE_COUNTER_NAME
                " began anew meanwhile, so what is recorded from now on has no times "
                "(PK_CLOCK=monotonic goes on)"
            : s->slept.counted ? "the session's times have it"
                               : "the session's times do not have it");
}

void pki_collect_check_clock(pki_session *s, bool now)
{
    pki_clock_map *map = &s->arena->header->clock;
    uint64_t t = pki_monotonic_ns(), before = map->uncertainty_ns;
    if (!now && t < pki_load(&s->next_clock_check))
        return;
    uint64_t slept = look_at_offsets(s, t);
    pki_fold_lock(); /* whoever folds goes by one map from a moment to the next check */
    pki_clock_sample sample = pki_clock_read(s->config.monotonic);
    bool anew = sample.ticks < map->last.ticks;
    if (slept) {
        s->slept.until = sample.ns;
        s->slept.counted = pki_clock_map_slept(map, sample, slept);
    }
    pki_clock_map_check(map, sample);
    pki_fold_unlock();
    if (slept)
        note_slept(s, anew);
    warn_of_jump(s, before);
    pki_toll_publish(s);
    pki_store(&s->next_clock_check, t + clock_interval(s->clock_checks++));
}

static uint64_t device_round_ns(const pki_session *s)
{
    uint64_t ns = (uint64_t)s->config.ring_records * RECORD_NS;
    return PKI_MIN(PKI_MAX(ns, SHORTEST_ROUND_NS), LONGEST_ROUND_NS);
}

/* Corrections of the clock have their moments; later on they come with some round or other. */
static uint64_t clock_check_ns(const pki_session *s)
{
    uint64_t now = pki_monotonic_ns();
    return pki_saturating_sub(pki_load(&s->next_clock_check), now); /* a flush may be checking */
}

/* A quarter of a ring rings. So what asks for more rounds is what would come too late by then:
 * pages to be brought in before their owner is there, captures, what holds overhead_max, and files
 * that others read while the run goes on. */
static uint64_t usual_ns(const pki_session *s)
{
    const pki_config *c = &s->config;
    uint64_t found = pki_load(&s->fullest);
    bool watched = s->thinning || s->writing;
    if (found && (watched || pki_load(&s->growing) || found > c->ring_records / LITTLE))
        return LONGEST_ROUND_NS;
    bool told = watched || c->windows[0] || c->metrics[0] || c->goodput[0];
    return told || (found && s->history) ? IDLE_ROUND_NS : QUIET_ROUND_NS;
}

/* Who chooses captures says what is to be asked for. */
static bool follows_devices(const pki_session *s)
{
    bool asks = pki_backends_asking();
    return pki_backends_collecting() || (asks && (s->history || pki_load(&s->unasked)));
}

static uint64_t round_ns(const pki_session *s)
{
    uint64_t ns = usual_ns(s);
    uint64_t wanted = __atomic_exchange_n(&within, 0u, __ATOMIC_RELAXED);
    ns = PKI_MIN(ns, (uint64_t)s->config.flush_ms * 1000000);
    ns = PKI_MIN(ns, clock_check_ns(s));
    ns = follows_devices(s) ? PKI_MIN(ns, device_round_ns(s)) : ns;
    return wanted ? PKI_MIN(ns, wanted) : ns;
}

void pki_collect_within(uint64_t ns)
{
    uint64_t wanted = pki_load(&within);
    if (!wanted || ns < wanted)
        pki_store(&within, ns);
}

/* Then it is looked at at once, so that the fewest moments of the session have two meanings. */
static bool has_slept(pki_session *s)
{
    pki_clock_offsets is;
    uint64_t before = pki_load(&s->asleep);
    bool has =
        pki_clock_offsets_read(&is) && pki_saturating_sub(is.asleep, before) >= PKI_CLOCK_APART;
    if (has)
        pki_store(&s->next_clock_check, (uint64_t)0);
    return has;
}

/* Until that moment, and on the way to where services want to watch. */
static void sleep_until(pki_session *s, uint64_t due)
{
    bool rung = false;
    for (s->woke = pki_monotonic_ns(); !rung && s->woke < due;) {
        uint64_t from = s->woke, until = s->watch ? PKI_MIN(s->watch, due) : due;
        rung = pki_bell_sleep(&pki_collector_bell, until) || has_slept(s);
        s->woke = pki_monotonic_ns();
        s->watch = pki_services_watch(s, from, until);
    }
}

/* False when it is time to end. */
static bool sleep_a_round(pki_session *s)
{
    sleep_until(s, pki_monotonic_ns() + round_ns(s));
    pthread_mutex_lock(&wake_lock);
    bool go_on = !s->stopping && !last_job;
    pthread_mutex_unlock(&wake_lock);
    return go_on;
}

/* Nothing of the session is touched after it: another may begin. */
static void do_last_job(pki_session *s)
{
    pthread_mutex_lock(&wake_lock);
    void (*job)(pki_session *) = last_job;
    pthread_mutex_unlock(&wake_lock);
    if (!job)
        return;
    pthread_detach(pthread_self());
    job(s);
    pthread_mutex_lock(&wake_lock);
    last_job = NULL;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&wake_lock);
}

/* Who shares its only processor with the program does not interrupt it. What cannot be is said of
 * the collector, once. */
static void set_affinity(const pki_session *s, bool says)
{
    const pki_config *c = &s->config;
    cpu_set_t may;
    if (c->collector_placed && sched_setaffinity(0, sizeof c->collector_cpus, &c->collector_cpus) &&
        says)
        pki_log(PK_LOG_WARNING, "collector_cpus: %s; the collector runs where the program does",
                strerror(errno));
    if (sched_getaffinity(0, sizeof may, &may) == 0 && CPU_COUNT(&may) == 1)
        sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
}

static void ask(pki_flush why)
{
    pki_backends_flush(why);
    pki_backends_ask(why);
}

static void *collect(void *session)
{
    pki_session *s = session;
    pki_inside_enter();
    prctl(PR_SET_NAME, "pk-collector", 0, 0, 0);
    set_affinity(s, true);
    pki_io_on_collector();
    pki_store(&s->collector_tid, (uint32_t)syscall(SYS_gettid));
    while (sleep_a_round(s)) {
        pki_io_works();
        if (pki_load(&s->unasked))
            ask(PKI_FLUSH_ROUND);
        pthread_mutex_lock(&pki_drain_lock);
        pki_collect_check_clock(s, false);
        pki_backends_collect();
        pki_drain_round(s, false);
        pki_services_each(round, (s));
        pki_toll_of_collector(s);
        look_for_work(s);
        pki_services_each(behind, (s));
        pthread_mutex_unlock(&pki_drain_lock);
        pki_services_each(unlocked, ());
        pki_io_rests();
    }
    pki_store(&s->collector_tid, 0u);
    pki_io_works(); /* who stops the session has no file of this thread to read then */
    pki_io_rests();
    pki_io_works();
    do_last_job(s);
    return NULL;
}

static void make_conditions(void)
{
    pki_condition_make(&finished);
    pki_condition_make(&answered);
}

static void turn_off(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    on = false;
    pthread_mutex_unlock(&pki_drain_lock);
}

pk_status pki_collect_start(pki_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_conditions);
    s->stopping = false;
    /* Its first round waits: behind it, a collector with much to do leaves the lock to nobody. */
    pthread_mutex_lock(&pki_drain_lock);
    int error = pki_spawn(&s->collector, collect, s);
    s->collecting = error == 0;
    on = error == 0;
    pthread_mutex_unlock(&pki_drain_lock);
    return error ? pki_fail(PK_ETHREAD, "collector thread: %s", strerror(error)) : PK_OK;
}

void pki_collect_ended(void)
{
    if (pthread_mutex_trylock(&pki_drain_lock) != 0)
        return;
    uint64_t before = pki_toll_begin();
    bool open = on, done = !open || pki_drain_ended(&pki_the_session);
    if (open)
        pki_toll_of_caller(&pki_the_session, before);
    pthread_mutex_unlock(&pki_drain_lock);
    if (!done)
        pki_bell_ring(&pki_collector_bell);
}

void pki_collect_stop(pki_session *s)
{
    bool joins = s->collecting && !pthread_equal(s->collector, pthread_self());
    s->collecting = false;
    if (joins) { /* first: it might take that lock again and again */
        pthread_mutex_lock(&wake_lock);
        s->stopping = true;
        pthread_mutex_unlock(&wake_lock);
        pki_bell_ring(&pki_collector_bell);
    }
    turn_off();
    if (joins)
        pthread_join(s->collector, NULL);
}

/* Whoever uses a processor is at work; who waits, for a lock or a disk, does not. */
static bool wait_for_job(pthread_t collector, uint64_t patience_ns)
{
    clockid_t clock;
    uint64_t used = 0, since = pki_monotonic_ns();
    if (pthread_getcpuclockid(collector, &clock) != 0)
        return false;
    while (last_job) {
        struct timespec until = pki_moment(pki_monotonic_ns() + 20000000);
        pthread_cond_timedwait(&finished, &wake_lock, &until);
        uint64_t now = pki_monotonic_ns(), cpu = last_job ? pki_read_clock(clock) : used;
        if (cpu == used && now - since >= patience_ns)
            return !last_job;
        since = cpu == used ? since : now;
        used = cpu;
    }
    return true;
}

bool pki_collect_finish(pki_session *s, void (*job)(pki_session *), uint64_t patience_ns)
{
    if (!s->collecting || !pki_lock_within(&wake_lock, patience_ns))
        return false;
    last_job = job;
    pki_bell_ring(&pki_collector_bell);
    bool done = wait_for_job(s->collector, patience_ns);
    pthread_mutex_unlock(&wake_lock);
    return done;
}

/* ---- the asker: one thread that waits for drivers, so that the collector does not ---- */

typedef struct pki_asker {
    pki_session *session;
    pthread_t thread;
    pki_bell bell;
    uint64_t within; /* as within */
    uint64_t cpu;    /* that it has taken, ns */
    bool left;       /* the session goes on without it; under the drain lock and its own */
    /* under its own lock */
    bool ends;
    pki_flush order;
    uint32_t ordered, answered; /* how many orders */
} pki_asker;

static pthread_mutex_t asker_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local pki_asker *myself; /* on its thread */
uint64_t pki_asker_patience_ns = 5000000000u;

void pki_asker_within(uint64_t ns)
{
    if (myself && (!myself->within || ns < myself->within))
        myself->within = ns;
}

static uint64_t asker_cpu(const pki_session *s)
{
    const pki_asker *a = pki_load_acquire(&s->asker); /* pairs with the release in _start */
    return a ? pki_load(&a->cpu) : pki_load(&s->asked_cpu);
}

static uint64_t pause_ns(pki_asker *a, uint64_t round_ns)
{
    uint64_t wanted = a->within;
    a->within = 0;
    return wanted ? PKI_MIN(round_ns, wanted) : round_ns;
}

/* False: it is to end. */
static bool take_order(pki_asker *a, pki_flush *why, uint32_t *number)
{
    pthread_mutex_lock(&asker_lock);
    bool go_on = !a->ends;
    *number = a->ordered;
    *why = a->answered == a->ordered ? PKI_FLUSH_ROUND : a->order;
    pthread_mutex_unlock(&asker_lock);
    return go_on;
}

/* True: nobody waits for the thread any more. */
static bool answer(pki_asker *a, uint32_t number)
{
    pthread_mutex_lock(&asker_lock);
    a->answered = number;
    bool left = a->left;
    pthread_cond_broadcast(&answered);
    pthread_mutex_unlock(&asker_lock);
    return left;
}

static void *ask_on(void *asker)
{
    pki_asker *a = myself = asker;
    uint64_t round =
        PKI_MIN(device_round_ns(a->session), (uint64_t)a->session->config.flush_ms * 1000000);
    pki_flush why = PKI_FLUSH_ROUND;
    uint32_t number;
    bool left = false;
    pki_inside_enter();
    prctl(PR_SET_NAME, "pk-asker", 0, 0, 0);
    set_affinity(a->session, false);
    pki_backends_asked_by(&a->left);
    while (why != PKI_FLUSH_LAST) {
        pki_bell_sleep(&a->bell, pki_monotonic_ns() + pause_ns(a, round));
        if (!take_order(a, &why, &number))
            return NULL;
        ask(why);
        pki_store(&a->cpu, pki_read_clock(CLOCK_THREAD_CPUTIME_ID));
        left = answer(a, number);
    }
    if (left) {
        pki_backends_come_back();
        free(a);
    }
    return NULL;
}

void pki_asker_start(pki_session *s)
{
    pki_asker *a = s->collecting && pki_backends_asking() ? calloc(1, sizeof *a) : NULL;
    int error = ENOMEM;
    if (!s->collecting || !pki_backends_asking())
        return;
    if (a) {
        a->session = s;
        error = pki_spawn(&a->thread, ask_on, a);
    }
    if (error)
        free(a);
    pki_store_release(&s->asker, error ? NULL : a); /* pairs with the acquire in asker_cpu */
    pki_store(&s->unasked, error != 0);
    if (error)
        pki_log(
            PK_LOG_WARNING,
            "a thread to ask drivers: %s; the collector asks them, and takes nothing out of rings "
            "meanwhile",
            strerror(error));
}

/* An order that an earlier one stands before, since who asks has not come back, is not waited for.
 */
static bool order(pki_asker *a, pki_flush why)
{
    struct timespec until = pki_moment(pki_monotonic_ns() + pki_asker_patience_ns);
    pthread_mutex_lock(&asker_lock);
    bool waits = why == PKI_FLUSH_LAST || a->answered == a->ordered;
    a->order = why;
    uint32_t number = ++a->ordered;
    pki_bell_ring(&a->bell);
    while (waits && a->answered != number)
        waits = pthread_cond_timedwait(&answered, &asker_lock, &until) == 0;
    bool done = a->answered == number;
    pthread_mutex_unlock(&asker_lock);
    return done;
}

bool pki_asker_do(pki_session *s, pki_flush why)
{
    if (s->asker)
        return order(s->asker, why);
    ask(why);
    return true;
}

/* Under the drain lock. False: it has come back after all. */
static bool leave(pki_asker *a)
{
    pthread_mutex_lock(&asker_lock);
    a->left = a->answered != a->ordered;
    if (a->left)
        pthread_detach(a->thread);
    a->ends = !a->left;
    pthread_mutex_unlock(&asker_lock);
    if (a->left)
        pki_backends_leave((double)pki_asker_patience_ns / 1e9);
    return a->left;
}

void pki_asker_stop(pki_session *s)
{
    pki_asker *a = s->asker;
    if (!a)
        return;
    pthread_mutex_lock(&pki_drain_lock);
    bool left = leave(a);
    pki_store(&s->asked_cpu, pki_load(&a->cpu));
    pki_store_release(&s->asker, NULL);
    pthread_mutex_unlock(&pki_drain_lock);
    if (left)
        return;
    pki_bell_ring(&a->bell);
    pthread_join(a->thread, NULL);
    free(a);
}

void pki_collect_after_fork(void)
{
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    pthread_mutex_init(&wake_lock, NULL);
    pthread_mutex_init(&asker_lock, NULL);
    make_conditions();
    pki_collector_bell = (pki_bell){0};
    on = false;
    last_job = NULL;
    parents = pki_the_session.asker;
    myself = NULL;
}
