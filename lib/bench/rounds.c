#include "bench/rounds.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "bench/bench.h"
#include "bench/case.h"
#include "bench/forms/document.h"
#include "bench/stats/samples.h"

/* ---- plan ---- */

/* ---- how many iterations ---- */

/* Below this its clock is too coarse for it. */
static double least_time(const pki_bench_case *c)
{
    const pki_bench_overhead *o = &c->engine->overhead;
    if (c->timer)
        return PKI_BENCH_MARKS * c->device->resolution / c->options.precision;
    double step = PKI_MAX(o->step, o->clock);
    if (c->options.clock == PK_BENCH_CLOCK_CPU)
        step = PKI_MAX(step, o->cpu_clock);
    return PKI_BENCH_FINENESS * step;
}

/* What a sample of this benchmark should take, ns. */
static double pki_bench_sample_time(const pki_bench_case *c)
{
    double least = least_time(c), most = (double)c->options.max_time / c->options.min_samples;
    if (c->options.sample_time)
        return (double)c->options.sample_time;
    return PKI_MAX(PKI_MIN(PKI_MAX(PKI_BENCH_SAMPLE_TIME, least), most), least);
}

/* So many of them take `wanted`, if n took `taken`. */
static uint64_t iterations_for(uint64_t n, double taken, double wanted)
{
    if (!(taken > 0))
        return PKI_BENCH_ITERATIONS_MOST;
    double enough = (double)n * wanted / taken;
    if (enough >= (double)PKI_BENCH_ITERATIONS_MOST)
        return PKI_BENCH_ITERATIONS_MOST;
    return enough < 1 ? 1 : (uint64_t)(enough + 0.5);
}

static uint64_t iterations_most(const pki_bench_case *c)
{
    return c->queue.on ? c->queue.most : PKI_BENCH_ITERATIONS_MOST;
}

/* One sample while the number is still sought; the wall's time decides, whichever counts, but for a
 * device's: launching is soon done. Done when it took half of what it should: then the number can
 * be computed. */
static bool seek(pki_bench_case *c, double wanted, bool *found)
{
    pki_bench_sample sample;
    if (!pki_bench_case_run_sample(c, c->iterations, &sample))
        return false;
    c->result.warmup_iterations += c->iterations;
    if (c->queue.forced) {
        *found = c->iterations > 1;
        pki_bench_queue_shorten(c, c->iterations);
        return true;
    }
    double taken = c->timer ? sample.time : sample.wall;
    uint64_t most = iterations_most(c), next = iterations_for(c->iterations, taken, wanted);
    *found = taken >= wanted / 2 || c->iterations >= most;
    c->iterations = PKI_MIN(*found ? next : PKI_MIN(next, 10 * c->iterations), most);
    return true;
}

bool pki_bench_touch(pki_bench_case *c)
{
    pki_bench_sample sample;
    c->result.warmup_iterations++;
    return pki_bench_case_run_sample(c, 1, &sample);
}

bool pki_bench_calibrate(pki_bench_case *c)
{
    bool found = c->options.iterations > 0;
    c->iterations = found ? c->options.iterations : 1;
    if (c->timer && !c->queue.loaded && !pki_bench_touch(c))
        return false;
    while (!found)
        if (!seek(c, pki_bench_sample_time(c), &found))
            return false;
    return true;
}

/* ---- warm-up ---- */

/* One window's median, per iteration. */
static bool window(pki_bench_case *c, double *median)
{
    double times[PKI_BENCH_WINDOW];
    for (int i = 0; i < PKI_BENCH_WINDOW; i++) {
        pki_bench_sample sample;
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            return false;
        times[i] = sample.time / (double)sample.iterations;
        c->result.warmup_iterations += c->iterations;
        if (c->queue.forced)
            pki_bench_queue_shorten(c, c->options.iterations ? 1 : c->iterations);
    }
    *median = pki_samples_select_median(times, PKI_BENCH_WINDOW);
    return true;
}

static bool warm_by_windows(pki_bench_case *c, uint64_t start)
{
    double before = 0, after = 0;
    if (!window(c, &before))
        return false;
    while (!c->result.warmup_steady && pki_bench_now(c) - start < c->options.max_warmup) {
        if (!window(c, &after))
            return false;
        bool faster = after < before * (1 - PKI_BENCH_FASTER);
        c->result.warmup_steady = !faster && pki_bench_now(c) - start >= PKI_BENCH_WARM_LEAST &&
                                  (!c->timer || pki_bench_clocks_risen(c, start));
        if (!c->options.iterations && c->options.clock != PK_BENCH_CLOCK_MANUAL)
            c->iterations =
                PKI_MIN(iterations_for(1, after, pki_bench_sample_time(c)), iterations_most(c));
        before = after;
    }
    return true;
}

/* What is to be cold only has to be there: its code and its data have been touched once. */
static bool warm_cold(pki_bench_case *c)
{
    c->result.warmup_steady = true;
    return pki_bench_touch(c);
}

/* Finds c->iterations, unless they are given, and warms up. False if it was skipped or failed. */
static bool pki_bench_warm(pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    bool fine = pki_bench_calibrate(c);
    double longest = pki_bench_sample_time(c) * PKI_BENCH_WINDOW;
    if (fine && c->options.cold && !c->timer)
        fine = warm_cold(c);
    else if (fine && (double)(pki_bench_now(c) - start) + longest < (double)c->options.max_warmup)
        fine = warm_by_windows(c, start);
    if (fine && c->timer)
        pki_bench_clocks_start(c);
    c->result.warmup_time = pki_bench_now(c) - start;
    return fine;
}

/* ---- enough ---- */

static bool precise(pki_bench_case *c)
{
    double *sorted = malloc(c->count * sizeof *sorted);
    if (!sorted)
        return false; /* the bounds of time and number hold */
    memcpy(sorted, c->time, c->count * sizeof *sorted);
    pki_samples_sort(sorted, c->count);
    double median = pki_samples_median(sorted, c->count), level = c->options.confidence;
    double dependence = pki_samples_dependence(c->time, c->count, median);
    pki_interval is = pki_samples_sign_interval(sorted, c->count, dependence, level);
    free(sorted);
    return pki_samples_sign_supported(c->count, dependence, level) &&
           (is.high - is.low) / 2 <= c->options.precision * median;
}

static bool enough(pki_bench_case *c)
{
    const struct pk_bench_options *o = &c->options;
    if (c->count == 0)
        return false; /* the watchdog ended them all, so far */
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->count >= o->max_samples)
        c->result.stopped = PK_BENCH_STOP_SAMPLES;
    if (c->result.stopped == PK_BENCH_STOP_NONE && c->spent >= o->max_time)
        c->result.stopped = PK_BENCH_STOP_TIME;
    if (c->result.stopped != PK_BENCH_STOP_NONE)
        return true;
    if (c->count < c->next_check || c->count < o->min_samples || c->spent < o->min_time)
        return false;
    c->next_check = c->count + c->count / 10 + 1;
    if (precise(c))
        c->result.stopped = PK_BENCH_STOP_PRECISE;
    return c->result.stopped != PK_BENCH_STOP_NONE;
}

/* The watchdog ended too many: what there is was queued, and what follows is not. */
static bool start_anew(pki_bench_case *c)
{
    pki_bench_queue_disable(c);
    c->queue.lost = 0;
    c->count = c->next_check = 0;
    c->spent = 0;
    for (unsigned i = 0; i < c->series_count; i++)
        c->series[i].count = 0;
    if (!pki_bench_calibrate(c))
        return false;
    pki_bench_clocks_start(c);
    return true;
}

/* One more sample, kept. False when there are enough, and c->result.stopped says why, or when it
 * was skipped or failed. */
static bool pki_bench_sample_case(pki_bench_case *c)
{
    bool more = pki_bench_case_record_sample(c);
    if (more && c->queue.lost > PKI_BENCH_LOST)
        more = start_anew(c);
    else if (more)
        more = !enough(c);
    if (!more && c->timer)
        pki_bench_clocks_finish(c);
    return more;
}

/* ---- threads that run the same thing at once, over and over, and start it together ---- */

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

pki_bench_team *pki_bench_team_create(unsigned threads, void (*job)(void *arg, unsigned thread),
                                      void *arg)
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

void pki_bench_team_destroy(pki_bench_team *team)
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

/* ---- several benchmarks measured in turns ---- */

#define PKI_BENCH_TURN 5000000u /* ns of a benchmark's turn, one sample at least */
#define PKI_BENCH_SETTLE                                                                           \
    1000000u /* ns: samples below that are preceded by one that does not count,                    \
                                     since whoever had the processor before left it his caches */

typedef struct set {
    pki_bench_case **order; /* those that are not done come first */
    size_t left, done, count;
    pki_random random;
    pki_bench_progress *progress;
    void *user;
} set;

static void show(const set *s, const pki_bench_case *c)
{
    if (s->progress)
        s->progress(s->user, c, s->done, s->count);
}

/* True when it needs no more. */
static bool turn(const set *s, pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    pki_bench_sample dropped;
    double each = pki_bench_sample_time(c);
    if (s->count > 1 && each < PKI_BENCH_SETTLE && c->iterations > 1 &&
        !pki_bench_case_run_sample(c, c->iterations, &dropped))
        return true;
    do {
        if (!pki_bench_sample_case(c))
            return true;
    } while (pki_bench_now(c) - start < PKI_BENCH_TURN);
    return false;
}

static void shuffle(set *s)
{
    for (size_t i = s->left; i > 1; i--) {
        size_t j = pki_random_below(&s->random, i);
        pki_bench_case *kept = s->order[i - 1];
        s->order[i - 1] = s->order[j];
        s->order[j] = kept;
    }
}

/* Takes it out; its place is the last one's. */
static void retire(set *s, size_t i)
{
    s->order[i] = s->order[--s->left];
    s->done++;
}

static void measure_in_rounds(set *s)
{
    while (s->left) {
        shuffle(s);
        for (size_t i = 0; i < s->left;) {
            show(s, s->order[i]);
            if (turn(s, s->order[i]))
                retire(s, i);
            else
                i++;
        }
    }
}

static pk_status prepare(set *s, pki_bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pk_status status = pki_bench_case_open(&cases[i]);
        if (status != PK_OK)
            return status;
        show(s, &cases[i]);
        if (pki_bench_case_is_fine(&cases[i]) && pki_bench_warm(&cases[i]))
            s->order[s->left++] = &cases[i];
        else
            s->done++;
    }
    return PK_OK;
}

static pk_status run_group(set *s, pki_bench_case *cases, size_t count)
{
    pk_status status = prepare(s, cases, count);
    if (status == PK_OK) {
        measure_in_rounds(s);
        for (size_t i = 0; i < count; i++)
            pki_bench_count_events(&cases[i]);
    }
    for (size_t i = 0; i < count; i++)
        pki_bench_case_close(&cases[i]);
    s->left = 0;
    return status;
}

pk_status pki_bench_run_rounds(pki_bench_case *cases, size_t count, bool together, uint64_t seed,
                               pki_bench_progress *progress, void *user)
{
    pki_bench_case **order = calloc(count + 1, sizeof *order);
    set s = {order, 0, 0, together ? count : 1, {seed}, progress, user};
    pk_status status = PK_OK;
    if (!order)
        return pki_bench_fail(PK_ENOMEM, "no memory to list %zu benchmarks", count);
    if (together)
        status = run_group(&s, cases, count);
    for (size_t i = 0; !together && i < count && status == PK_OK; i++)
        status = run_group(&s, &cases[i], 1);
    show(&s, NULL);
    free(order);
    return status;
}

/* ---- one line on a terminal while benchmarks run ---- */

#define EVERY 100000000u /* ns */
#define CLEAR "\r\033[K"

pki_bench_line pki_bench_line_make(bool wanted, uint32_t repetitions)
{
    return (pki_bench_line){.on = wanted && isatty(STDERR_FILENO), .repetitions = repetitions};
}

/* Control characters in a name must not reach the terminal. */
static void put_name(char *text, size_t size, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        text[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
    text[i] = 0;
}

void pki_bench_line_text(const pki_bench_line *line, const pki_bench_case *c, size_t done,
                         size_t count, char *text, size_t size)
{
    char name[48], round[32] = "";
    put_name(name, sizeof name, c->name);
    if (line->repetitions > 1)
        snprintf(round, sizeof round, " repetition %u/%u", line->repetition + 1, line->repetitions);
    if (c->count)
        snprintf(text, size, "[%zu/%zu]%s %s  %zu samples, last %s", done, count, round, name,
                 c->count, pki_bench_time(c->time[c->count - 1]).text);
    else
        snprintf(text, size, "[%zu/%zu]%s %s  warming up", done, count, round, name);
}

void pki_bench_line_show(void *user, const pki_bench_case *c, size_t done, size_t count)
{
    pki_bench_line *line = user;
    char text[160] = CLEAR;
    uint64_t now = pki_monotonic_ns();
    if (!line->on || (c && now - line->last < EVERY))
        return;
    line->last = now;
    if (c)
        pki_bench_line_text(line, c, done, count, text + strlen(CLEAR),
                            sizeof text - strlen(CLEAR));
    pki_write_stderr(text, strlen(text));
}
