#include "session/captures.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/spawn.h"
#include "capture/budget.h"
#include "core/inside.h"
#include "session/activity.h"
#include "session/arming.h"
#include "session/requests.h"
#include "session/toll.h"

#define WAITING 64     /* wishes */
#define ROUNDS_LATER 2 /* after its last step's record others' may come for a round */
#define DEVICE_PATIENCE_NS 3000000000u /* for kernels of its steps */

/* A wish on its way. */
typedef struct waiting {
    pki_wish wish;
    uint64_t pin; /* position from which it needs the history; once that is known */
    uint64_t due; /* the round in which it may be written; 0: its last step has not ended */
    uint64_t end; /* of its last step, ns of the session; what devices did until then is awaited */
    uint64_t latest; /* but not longer than this, CLOCK_MONOTONIC */
} waiting;

/* Under the drain lock, but for what says otherwise. */
static struct {
    bool open;
    pki_chooser chooser;
    waiting queue[WAITING];
    unsigned count;
    uint64_t busy_pin; /* of what is being written */
    bool writer_there, leaving;
    pthread_t writer;
    sem_t wake;
    pki_budget budget; /* the writer's */
    pki_capture_counts counts;
    bool failing; /* the last one could not be written; said once */
} now;

/* ---- what is pinned ---- */

static void pin(pki_session *s)
{
    uint64_t first = now.busy_pin;
    for (unsigned i = 0; i < now.count; i++)
        first = PKI_MIN(first, now.queue[i].pin);
    pki_history_pin(s->history, first);
}

/* Where a wish begins in the history. */
static uint64_t begin_of(const pki_history_view *view, const pki_wish *wish)
{
    const pki_history_step *step =
        pki_capture_is_of_now(wish->reason) ? NULL : pki_history_find(view, wish->first);
    return step ? PKI_MAX(step->at, view->head->first) : view->head->first;
}

/* When its last step ended, or now: all that there is. */
static uint64_t end_of(const pki_session *s, const pki_history_view *view, const pki_wish *wish)
{
    const pki_history_step *step = pki_history_find(view, wish->last);
    return step ? pki_clock_ns(&s->arena->header->clock, step->start + step->ticks)
                : pki_activity_ns(pki_monotonic_ns());
}

/* Its last step has ended. */
static void make_due(pki_session *s, waiting *w, unsigned rounds_later)
{
    pki_history_view view;
    if (!pki_history_view_now(s->history, &view))
        return;
    w->due = pki_history_rounds(s->history) + rounds_later;
    w->end = end_of(s, &view, &w->wish);
    w->latest = pki_monotonic_ns() + (rounds_later ? DEVICE_PATIENCE_NS : 0);
    w->pin = PKI_MIN(w->pin, begin_of(&view, &w->wish));
}

/* ---- wishes ---- */

static void remove_waiting(unsigned i)
{
    memmove(&now.queue[i], &now.queue[i + 1], (--now.count - i) * sizeof *now.queue);
}

/* Slow steps in a row, as one. */
static bool merge(const pki_wish *wish)
{
    for (unsigned i = 0; i < now.count; i++) {
        if (!pki_wish_merge(&now.queue[i].wish, wish))
            continue;
        now.queue[i].due = 0;
        return true;
    }
    return false;
}

static void refuse(pki_session *s, const pki_wish *wish)
{
    now.counts.refused++;
    pki_requests_answer(s, wish, PKI_ANSWER_REFUSED, NULL);
}

/* In a queue that is full the one of least worth goes. */
static void add_wish(pki_session *s, const pki_wish *wish)
{
    if (merge(wish))
        return;
    if (now.count == WAITING) {
        unsigned least = 0;
        for (unsigned i = 1; i < now.count; i++)
            if (now.queue[i].wish.worth < now.queue[least].wish.worth)
                least = i;
        bool new_one = now.queue[least].wish.worth >= wish->worth;
        refuse(s, new_one ? wish : &now.queue[least].wish);
        if (new_one)
            return;
        remove_waiting(least);
    }
    now.queue[now.count++] = (waiting){.wish = *wish, .pin = PKI_HISTORY_FREE};
}

static void add_wishes(pki_session *s, const pki_wish *wishes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        add_wish(s, &wishes[i]);
}

void pki_captures_step(pki_session *s, const pki_record *r, const pki_record *more, uint32_t kind)
{
    pki_wish wishes[PKI_WISHES_MOST];
    if (!now.open)
        return;
    uint64_t ns = pki_clock_span_ns(&s->arena->header->clock, r->start, pki_not_negative(r->value));
    unsigned n = pki_choose(&now.chooser, more->start, kind, ns, wishes);
    pki_arming_step(more->start, ns, wishes, n);
    add_wishes(s, wishes, n);
}

/* What the history holds now is what they mean. */
static void pin_asked(pki_session *s)
{
    pki_history_view view;
    if (!pki_history_view_now(s->history, &view))
        return;
    for (unsigned i = 0; i < now.count; i++)
        if (pki_capture_is_of_now(now.queue[i].wish.reason))
            now.queue[i].pin = PKI_MIN(now.queue[i].pin, view.head->first);
    pin(s);
}

static void take_asked(pki_session *s)
{
    pki_wish asked[PKI_REQUESTS_MOST];
    unsigned n = pki_requests_take(s, now.chooser.clauses.request, asked);
    add_wishes(s, asked, n);
    if (n)
        pin_asked(s);
}

/* ---- writing ---- */

static bool has_devices(const waiting *w)
{
    return w->end <= pki_activity_known() || pki_monotonic_ns() >= w->latest;
}

static bool is_ready(const pki_session *s, const waiting *w)
{
    return w->due && w->due <= pki_history_rounds(s->history) && has_devices(w);
}

/* The one of most worth, of those that are ready; WAITING: none is. */
static unsigned find_ready(const pki_session *s)
{
    unsigned best = WAITING;
    for (unsigned i = 0; i < now.count; i++)
        if (is_ready(s, &now.queue[i]) &&
            (best == WAITING || now.queue[i].wish.worth > now.queue[best].wish.worth))
            best = i;
    return best;
}

static bool take_job(pki_session *s, pki_capture_job *job)
{
    for (unsigned i; (i = find_ready(s)) != WAITING;) {
        waiting w = now.queue[i];
        remove_waiting(i);
        now.busy_pin = w.pin;
        if (pki_capture_job_make(s, &w.wish, &now.budget, job)) {
            job->refused = now.counts.refused;
            pin(s);
            return true;
        }
        refuse(s, &w.wish);
        now.busy_pin = PKI_HISTORY_FREE;
    }
    pin(s);
    return false;
}

/* Under the drain lock before and behind. */
static void do_jobs(pki_session *s, pki_capture_job *job)
{
    while (take_job(s, job)) {
        uint64_t before = pki_toll_begin();
        pthread_mutex_unlock(&pki_drain_lock);
        bool written = pki_capture_job_write(job, &now.budget);
        int error = errno;
        pthread_mutex_lock(&pki_drain_lock);
        now.counts.written += written;
        now.counts.failed += !written;
        now.counts.removed = now.budget.removed;
        now.busy_pin = PKI_HISTORY_FREE;
        pki_requests_answer(s, &job->wish, written ? PKI_ANSWER_WRITTEN : PKI_ANSWER_FAILED,
                            job->path);
        if (written || !now.failing)
            pki_capture_job_say(job, written ? 0 : error);
        now.failing = !written;
        pki_toll_of_caller(s, before);
    }
}

/* Nobody waits for it but pk_stop. */
static void *write_captures(void *session)
{
    pki_session *s = session;
    pki_capture_job *job = malloc(sizeof *job);
    pki_go_inside();
    prctl(PR_SET_NAME, "pk-captures", 0, 0, 0);
    syscall(SYS_setpriority, PRIO_PROCESS, 0, 19); /* on Linux this thread alone */
    for (bool leaving = !job; !leaving;) {
        while (sem_wait(&now.wake) != 0)
            ;
        pthread_mutex_lock(&pki_drain_lock);
        do_jobs(s, job);
        leaving = now.leaving;
        pthread_mutex_unlock(&pki_drain_lock);
    }
    free(job);
    return NULL;
}

static void wake_writer(pki_session *s)
{
    if (!now.writer_there)
        now.writer_there = pki_spawn(&now.writer, write_captures, s) == 0;
    if (now.writer_there)
        sem_post(&now.wake);
}

/* ---- the session ---- */

void pki_captures_open(pki_session *s)
{
    if (!s->history)
        return;
    memset(&now, 0, sizeof now);
    now.open = true;
    now.busy_pin = PKI_HISTORY_FREE;
    now.chooser.clauses = s->config.capture;
    now.budget.captures = s->config.captures_per_hour;
    now.budget.bytes = s->config.capture_bytes_per_hour;
    sem_init(&now.wake, 0, 0);
    pki_arming_open(&s->config);
    pki_requests_listen(s->arena->header);
}

void pki_captures_round_begins(pki_session *s)
{
    if (now.open)
        take_asked(s);
}

/* Is a capture near that somebody has asked for? */
static bool is_asked_for(uint64_t horizon)
{
    for (unsigned i = 0; i < now.count; i++) {
        const pki_wish *w = &now.queue[i].wish;
        if (w->worth == PKI_WORTH_ASKED && w->first <= horizon && w->last >= now.chooser.next &&
            w->last != UINT64_MAX)
            return true;
    }
    return false;
}

static void arm(void)
{
    uint64_t next = now.chooser.next, horizon = pki_arming_horizon(next), last = 0;
    for (unsigned i = 0; i < now.count; i++)
        if (now.queue[i].due && now.queue[i].end > last)
            last = now.queue[i].end;
    pki_arming_await(last);
    pki_arming_round(next,
                     pki_choose_foresees(&now.chooser, next, horizon) || is_asked_for(horizon));
}

void pki_captures_round(pki_session *s)
{
    bool ready = false;
    if (!now.open)
        return;
    arm();
    for (unsigned i = 0; i < now.count; i++) {
        waiting *w = &now.queue[i];
        bool over = w->wish.last == UINT64_MAX || w->wish.last < now.chooser.next;
        if (!w->due && over)
            make_due(s, w, ROUNDS_LATER);
        ready |= is_ready(s, w);
    }
    if (!now.count)
        return;
    pin(s);
    if (ready)
        wake_writer(s);
}

void pki_captures_end(pki_session *s)
{
    pki_wish wishes[PKI_WISHES_MOST];
    if (!now.open)
        return;
    pki_requests_listen(NULL);
    add_wishes(s, wishes, pki_choose_at_end(&now.chooser, wishes));
    for (unsigned i = now.count; i-- > 0;)
        if (now.queue[i].wish.first >= now.chooser.next && now.queue[i].wish.first > 0)
            remove_waiting(i); /* its first step never came */
    for (unsigned i = 0; i < now.count; i++) {
        waiting *w = &now.queue[i];
        if (w->wish.last != UINT64_MAX && w->wish.last >= now.chooser.next) {
            w->wish.cut = true;
            w->wish.last = now.chooser.next ? now.chooser.next - 1 : UINT64_MAX;
        }
        make_due(s, w, 0);
    }
    pin(s);
}

/* Without its thread, or without memory there, whoever stops the session writes them. */
void pki_captures_finish(pki_session *s)
{
    if (!now.open)
        return;
    pthread_mutex_lock(&pki_drain_lock);
    now.leaving = true;
    bool there = now.writer_there;
    pthread_mutex_unlock(&pki_drain_lock);
    if (there) {
        sem_post(&now.wake);
        pthread_join(now.writer, NULL);
    }
    pki_capture_job *job = malloc(sizeof *job);
    pthread_mutex_lock(&pki_drain_lock);
    now.writer_there = false;
    if (job)
        do_jobs(s, job);
    pki_capture_counts_say(&now.counts);
    pthread_mutex_unlock(&pki_drain_lock);
    free(job);
}

pki_capture_counts pki_captures_counted(void)
{
    pki_capture_counts counts = now.counts;
    counts.waiting = now.count;
    return counts;
}

void pki_captures_forget(void)
{
    if (!now.open)
        return;
    pki_requests_listen(NULL);
    pki_arming_close();
    pki_budget_finish(&now.budget);
    pki_capture_job_forget();
    sem_destroy(&now.wake);
    now.open = false;
}

/* The writer is the parent's. */
void pki_captures_after_fork(void)
{
    pki_requests_after_fork();
    pki_arming_after_fork();
    pki_capture_job_after_fork();
    memset(&now, 0, sizeof now);
}
