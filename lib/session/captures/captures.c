#include "session/captures/captures.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "capture/capture.h"
#include "core/inside.h"
#include "session/activity.h"
#include "session/captures/arming.h"
#include "session/captures/capture_queue.h"
#include "session/captures/requests.h"
#include "session/collector/toll.h"
#include "session/service.h"

#define ROUNDS_LATER 2 /* after its last step's record others' may come for a round */

/* Under the drain lock, but for what says otherwise. */
static struct {
    bool open;
    pki_chooser chooser;
    pki_capture_queue queue;
    uint64_t busy_pin; /* of what is being written */
    bool writer_there, leaving;
    pthread_t writer;
    sem_t wake;
    pki_budget budget; /* the writer's */
    pki_capture_counts counts;
    bool failing; /* the last one could not be written; said once */
    int error;    /* of the last one that could not */
} now;

/* ---- what is pinned ---- */

static void pin(pki_session *s)
{
    pki_history_pin(s->history, PKI_MIN(now.busy_pin, pki_capture_queue_pin(&now.queue)));
}

/* ---- wishes ---- */

static void refuse(pki_session *s, const pki_wish *wish)
{
    now.counts.refused++;
    pki_requests_answer(s, wish, PKI_ANSWER_REFUSED, NULL);
}

static void add_wishes(pki_session *s, const pki_wish *wishes, unsigned n)
{
    pki_history_view view;
    pki_wish refused;
    if (!n || !pki_history_view_now(s->history, &view))
        return;
    for (unsigned i = 0; i < n; i++)
        if (!pki_capture_queue_add(&now.queue, &view, &wishes[i], &refused))
            refuse(s, &refused);
    pin(s);
}

static void note_waiting(pki_session *s)
{
    pki_history_view view;
    if (now.queue.count && pki_history_view_now(s->history, &view))
        pki_capture_queue_step(&now.queue, &view);
}

void pki_captures_step(pki_session *s, const pki_record *r, const pki_record *more, uint32_t kind)
{
    pki_wish wishes[PKI_WISHES_MOST];
    if (!now.open)
        return;
    note_waiting(s);
    uint64_t ns = pki_clock_span_ns(&s->arena->header->clock, r->start, pki_not_negative(r->value));
    unsigned n = pki_choose(&now.chooser, more->start, kind, ns, wishes);
    pki_arming_step(more->start, ns, wishes, n);
    add_wishes(s, wishes, n);
}

static void add_requested(pki_session *s)
{
    pki_wish requested[PKI_REQUESTS_MOST];
    unsigned n = pki_requests_drain(s, now.chooser.clauses.request, requested);
    add_wishes(s, requested, n);
}

/* ---- writing ---- */

static bool next_job(pki_session *s, pki_capture_job *job)
{
    for (pki_waiting_capture w; pki_capture_queue_pop(&now.queue, s, &w);) {
        now.busy_pin = w.pin;
        if (pki_capture_job_make(s, &w, &now.budget, job)) {
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
    while (next_job(s, job)) {
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
            pki_capture_job_log(job, written ? 0 : error);
        now.failing = !written;
        now.error = written ? now.error : error;
        pki_toll_of_captures(s, before);
    }
}

/* Nobody waits for it but pk_stop. */
static void *write_captures(void *session)
{
    pki_session *s = session;
    pki_capture_job *job = malloc(sizeof *job);
    pki_inside_enter();
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

static void begin_round(pki_session *s)
{
    if (now.open)
        add_requested(s);
}

/* Is a capture near that somebody has asked for? */
static bool is_request_near(uint64_t horizon)
{
    for (unsigned i = 0; i < now.queue.count; i++) {
        const pki_wish *w = &now.queue.waiting[i].wish;
        if (w->worth == PKI_WORTH_ASKED && w->first <= horizon && w->last >= now.chooser.next &&
            w->last != UINT64_MAX)
            return true;
    }
    return false;
}

static void arm(void)
{
    uint64_t next = now.chooser.next, horizon = pki_arming_horizon(next), last = 0;
    for (unsigned i = 0; i < now.queue.count; i++)
        if (now.queue.waiting[i].due && now.queue.waiting[i].end > last)
            last = now.queue.waiting[i].end;
    pki_arming_await(last);
    pki_arming_round(next,
                     pki_choose_foresees(&now.chooser, next, horizon) || is_request_near(horizon));
}

/* Before anything is taken out of the rings, and behind it. */
static void end_round(pki_session *s)
{
    bool ready = false;
    if (!now.open)
        return;
    arm();
    for (unsigned i = 0; i < now.queue.count; i++) {
        pki_waiting_capture *w = &now.queue.waiting[i];
        bool over = w->wish.last == UINT64_MAX || w->wish.last < now.chooser.next;
        if (!w->due && over)
            pki_capture_queue_due(s, w, ROUNDS_LATER);
        ready |= pki_capture_queue_is_ready(s, w);
    }
    if (!now.queue.count)
        return;
    pin(s);
    if (ready)
        wake_writer(s);
}

/* What is still waited for ends with the run. */
static void end_waiting(pki_session *s)
{
    pki_wish wishes[PKI_WISHES_MOST];
    if (!now.open)
        return;
    pki_requests_listen(NULL);
    add_wishes(s, wishes, pki_choose_at_end(&now.chooser, wishes));
    for (unsigned i = now.queue.count; i-- > 0;)
        if (now.queue.waiting[i].wish.first >= now.chooser.next &&
            now.queue.waiting[i].wish.first > 0)
            pki_capture_queue_remove(&now.queue, i); /* its first step never came */
    for (unsigned i = 0; i < now.queue.count; i++) {
        pki_waiting_capture *w = &now.queue.waiting[i];
        if (w->wish.last != UINT64_MAX && w->wish.last >= now.chooser.next) {
            w->wish.cut = true;
            w->wish.last = now.chooser.next ? now.chooser.next - 1 : UINT64_MAX;
        }
        pki_capture_queue_due(s, w, 0);
    }
    pin(s);
}

/* Without its thread, or without memory there, whoever stops the session writes them. */
static void wait(pki_session *s)
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
    pki_capture_counts_log(&now.counts);
    pthread_mutex_unlock(&pki_drain_lock);
    free(job);
}

pki_capture_counts pki_captures_counted(void)
{
    pki_capture_counts counts = now.counts;
    counts.waiting = now.queue.count;
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

static void reset(void)
{
    memset(&now.counts, 0, sizeof now.counts);
}

static pk_status status_of_files(void)
{
    if (!now.counts.failed)
        return PK_OK;
    return pki_fail(pki_status_of_errno(now.error), "captures: %s; %llu could not be written",
                    pki_own_why(now.error), (unsigned long long)now.counts.failed);
}

/* The writer is the parent's. */
static void after_fork(void)
{
    pki_requests_after_fork();
    pki_arming_after_fork();
    pki_capture_job_after_fork();
    memset(&now, 0, sizeof now);
}

const pki_service pki_service_captures = {
    .name = "captures",
    .reset = reset,
    .drain = begin_round,
    .drained = end_round,
    .end = end_waiting,
    .wait = wait,
    .status = status_of_files,
    .after_fork = after_fork,
};
