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

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "capture/capture.h"
#include "core/frames.h"
#include "history/format.h"
#include "measure/shape.h"
#include "out/file.h"
#include "out/json_write.h"
#include "session/activity.h"
#include "session/captures/capture_file.h"
#include "session/collector/collect.h"
#include "session/report/run.h"
#include "session/session.h"

/* ---- wishes for captures on their way ---- */

#define DEVICE_PATIENCE_NS 3000000000u /* for kernels of its steps */

/* ---- what a wish means ---- */

static void keep_figures(pki_waiting_capture *w, const pki_history_step *step)
{
    if (w->around_count == PKI_CAPTURE_AROUND)
        memmove(w->around, w->around + 1, --w->around_count * sizeof *w->around);
    w->around[w->around_count++] = *step;
}

static void note_for(pki_waiting_capture *w, const pki_history_view *view,
                     const pki_history_step *step)
{
    if (step->number > w->wish.last)
        return;
    keep_figures(w, step);
    if (step->number < w->wish.first)
        return;
    if (!w->begun || step->start < w->from) {
        w->begun = true;
        w->number = step->number;
        w->at = step->at;
        w->from = step->start;
        w->pin = PKI_MIN(w->pin, PKI_MAX(step->at, view->head->first));
    }
    w->until = step->start + step->ticks;
}

static const pki_history_step *step_at(const pki_history_view *view, uint64_t n)
{
    return &view->head->steps[n % view->head->step_room];
}

/* What the history holds at that moment: from its oldest step that is kept, or all of it. */
static void begin_now(pki_waiting_capture *w, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    w->pin = h->first;
    if (h->step_first < h->step_end)
        w->wish.first = step_at(view, h->step_first)->number;
}

static void note_known(pki_waiting_capture *w, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    uint64_t n = h->step_end - PKI_MIN(h->step_end, (uint64_t)h->step_room);
    w->around_count = 0;
    for (; n < h->step_end; n++)
        note_for(w, view, step_at(view, n));
}

/* A step has ended: those that wait for it know it. */
static void pki_capture_queue_step(pki_capture_queue *q, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    for (unsigned i = 0; i < q->count && h->step_end; i++)
        note_for(&q->waiting[i], view, step_at(view, h->step_end - 1));
}

/* ---- when it is due ---- */

/* When its last step ended, or now: all that there is. */
static uint64_t end_of(const pki_session *s, const pki_waiting_capture *w)
{
    return w->until && w->wish.last != UINT64_MAX ? pki_clock_ns(&s->arena->header->clock, w->until)
                                                  : pki_activity_ns(pki_monotonic_ns());
}

/* Its last step has ended: it may be written so many rounds of the collector later, or at once. */
static void pki_capture_queue_due(const pki_session *s, pki_waiting_capture *w,
                                  unsigned rounds_later)
{
    w->due = pki_history_rounds(s->history) + rounds_later;
    w->end = end_of(s, w);
    w->latest = pki_monotonic_ns() + (rounds_later ? DEVICE_PATIENCE_NS : 0);
}

static bool pki_capture_queue_is_ready(const pki_session *s, const pki_waiting_capture *w)
{
    bool devices = w->end <= pki_activity_known_until() || pki_monotonic_ns() >= w->latest;
    return w->due && w->due <= pki_history_rounds(s->history) && devices;
}

/* ---- the queue ---- */

/* What of the history they need begins here; PKI_HISTORY_FREE: none of it. */
static uint64_t pki_capture_queue_pin(const pki_capture_queue *q)
{
    uint64_t first = PKI_HISTORY_FREE;
    for (unsigned i = 0; i < q->count; i++)
        first = PKI_MIN(first, q->waiting[i].pin);
    return first;
}

static void pki_capture_queue_remove(pki_capture_queue *q, unsigned i)
{
    memmove(&q->waiting[i], &q->waiting[i + 1], (--q->count - i) * sizeof *q->waiting);
}

/* Slow steps in a row, as one. */
static bool merge(pki_capture_queue *q, const pki_history_view *view, const pki_wish *wish)
{
    for (unsigned i = 0; i < q->count; i++) {
        if (!pki_wish_merge(&q->waiting[i].wish, wish))
            continue;
        q->waiting[i].due = 0;
        note_known(&q->waiting[i], view);
        return true;
    }
    return false;
}

static unsigned least_worth(const pki_capture_queue *q)
{
    unsigned least = 0;
    for (unsigned i = 1; i < q->count; i++)
        if (q->waiting[i].wish.worth < q->waiting[least].wish.worth)
            least = i;
    return least;
}

static void append(pki_capture_queue *q, const pki_history_view *view, const pki_wish *wish)
{
    pki_waiting_capture *w = &q->waiting[q->count++];
    memset(w, 0, sizeof *w);
    w->wish = *wish;
    w->pin = PKI_HISTORY_FREE;
    if (pki_capture_is_of_now(wish->reason))
        begin_now(w, view);
    note_known(w, view);
}

/* Merged with one that waits, if both are slow steps in a row; its steps are pinned. False: the
 * queue is full, and `refused` is the one of least worth, which is not in it any more. */
static bool pki_capture_queue_add(pki_capture_queue *q, const pki_history_view *view,
                                  const pki_wish *wish, pki_wish *refused)
{
    bool full = q->count == PKI_CAPTURES_WAITING;
    if (merge(q, view, wish))
        return true;
    if (full) {
        unsigned least = least_worth(q);
        *refused = *wish;
        if (q->waiting[least].wish.worth >= wish->worth)
            return false;
        *refused = q->waiting[least].wish;
        pki_capture_queue_remove(q, least);
    }
    append(q, view, wish);
    return !full;
}

/* The one of most worth of those that are ready. False: none is. */
static bool pki_capture_queue_pop(pki_capture_queue *q, const pki_session *s,
                                  pki_waiting_capture *taken)
{
    unsigned best = q->count;
    for (unsigned i = 0; i < q->count; i++)
        if (pki_capture_queue_is_ready(s, &q->waiting[i]) &&
            (best == q->count || q->waiting[i].wish.worth > q->waiting[best].wish.worth))
            best = i;
    if (best == q->count)
        return false;
    *taken = q->waiting[best];
    pki_capture_queue_remove(q, best);
    return true;
}

/* ---- captures that are asked for ---- */

#define PKI_REQUESTS_MOST 5

#define CALLS (PKI_REQUESTS_MOST - 1)

/* What pk_capture and the watchdog leave. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_wish calls[CALLS];
static unsigned call_count;
static const pki_arena_header *listening; /* NULL: nobody */

static uint32_t seen; /* From here on somebody listens; NULL: nobody. */
/* serial of the last request from outside; under the drain lock */

static void pki_requests_listen(const pki_arena_header *header)
{
    pthread_mutex_lock(&lock);
    listening = header;
    call_count = 0;
    pthread_mutex_unlock(&lock);
    if (header)
        seen = 0;
}

pk_status pki_requests_call(pki_capture_reason reason, const char *text, uint32_t steps)
{
    pki_wish wish = {.reason = reason, .worth = PKI_WORTH_ASKED};
    pk_status status = PK_OK;
    snprintf(wish.text, sizeof wish.text, "%s", text ? text : "");
    pthread_mutex_lock(&lock);
    if (!listening) {
        status = PK_EOFF;
    } else if (call_count == CALLS) {
        status = PK_EBUSY;
    } else {
        uint64_t made = pki_load(&listening->steps);
        wish.last = steps ? made + steps - 1 : UINT64_MAX; /* all that is there */
        calls[call_count++] = wish;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static unsigned drain_calls(pki_wish *wishes)
{
    pthread_mutex_lock(&lock);
    unsigned n = call_count;
    memcpy(wishes, calls, n * sizeof *wishes);
    call_count = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

/* What has become of a wish; does nothing for one that did not come from outside. */

/* ---- from outside ---- */

static void pki_requests_answer(pki_session *s, const pki_wish *wish, pki_answer_state state,
                                const char *path)
{
    pki_answer *a = &s->arena->header->answer;
    if (!wish->serial || wish->serial != seen)
        return; /* a later request has taken its place */
    if (path)
        snprintf(a->path, sizeof a->path, "%.*s", (int)sizeof a->path - 1, path);
    a->cut = wish->cut;
    pki_store_release(&a->state, (uint32_t)state);
    pki_store_release(&a->serial, wish->serial); /* who looks for it finds the rest */
}

/* The step that runs is not over: it can still be had. One that has ended would be had only if the
 * history holds it yet, and on other ranks perhaps not. */
static bool read_request(pki_session *s, bool wanted, pki_wish *wish)
{
    pki_arena_header *h = s->arena->header;
    uint32_t serial = pki_load_acquire(&h->request.serial); /* written last, by another process */
    if (serial == seen)
        return false;
    seen = serial;
    uint64_t made = pki_load(&h->steps), steps = h->request.steps;
    *wish = (pki_wish){.reason = PKI_CAPTURE_REQUEST,
                       .worth = PKI_WORTH_ASKED,
                       .serial = serial,
                       .first = h->request.first,
                       .last = h->request.first + steps - 1};
    bool sound = steps > 0 && steps <= PKI_CAPTURE_STEPS_MOST && wish->last >= wish->first;
    bool late = wish->first < made;
    h->answer.next = made;
    pki_requests_answer(s, wish,
                        !wanted || !sound ? PKI_ANSWER_OFF
                        : late            ? PKI_ANSWER_LATE
                                          : PKI_ANSWER_ACCEPTED,
                        "");
    return wanted && sound && !late;
}

/* What has been asked for since the last time, how many. wanted: from outside, too; else that is
 * the answer. Under the drain lock, as is all below. */
static unsigned pki_requests_drain(pki_session *s, bool wanted, pki_wish wishes[PKI_REQUESTS_MOST])
{
    unsigned n = drain_calls(wishes);
    return n + read_request(s, wanted, &wishes[n]);
}

static void pki_requests_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    listening = NULL;
    call_count = 0;
}

/* ---- captures and a backend that records devices only on request ---- */

#define LEAD_NS 500000000u   /* what taking CUPTI may take, and some rounds of the collector */
#define LEAST_NS 1000000000u /* after a slow step, where steps are short */
#define AHEAD_MOST 100000u   /* steps */

/* Under the drain lock. */
static bool armed;
static uint64_t behind;          /* steps */
static uint64_t usual;           /* what a step takes, lately; ns */
static uint64_t until, until_ns; /* after a slow step: this step, this moment (CLOCK_MONOTONIC) */

/* For the backend, on any thread. */
static bool now_on, listened;
static uint64_t awaited;

/* With captures: they arm it if the configuration says so, and somebody listens. */
static void pki_arming_open(const pki_config *c)
{
    armed = c->cupti_armed;
    behind = c->capture.behind;
    usual = until = until_ns = 0;
    pki_store(&awaited, (uint64_t)0);
    pki_store(&now_on, false);
}

static void pki_arming_close(void)
{
    armed = false;
    pki_store(&listened, false);
    pki_store(&now_on, false);
    pki_store(&awaited, (uint64_t)0);
}

/* A step has ended, and so many wishes came of it: those for a slow one get the steps behind it. */
static void pki_arming_step(uint64_t number, uint64_t ns, pki_wish *wishes, unsigned count)
{
    usual = usual ? (3 * usual + ns) / 4 : ns;
    for (unsigned i = 0; armed && pki_load(&listened) && i < count; i++) {
        if (wishes[i].reason != PKI_CAPTURE_SLOW)
            continue;
        wishes[i].last += behind;
        until = number + 1 + behind;
        until_ns = pki_monotonic_ns() + LEAST_NS;
    }
}

/* The last of the steps from `next` on for which it may be time to prepare. */
static uint64_t pki_arming_horizon(uint64_t next)
{
    uint64_t steps = usual ? LEAD_NS / usual : 0;
    return next + PKI_MIN(PKI_MAX(steps, 1u), AHEAD_MOST);
}

/* In each round: is any of the steps up to there wanted? next: the step that runs. */
static void pki_arming_round(uint64_t next, bool foreseen)
{
    bool slow = until && (next < until || pki_monotonic_ns() < until_ns);
    if (!slow)
        until = 0;
    pki_store(&now_on, armed && (slow || foreseen));
}

/* Captures want all up to there, ns of the session; 0: nothing. */
static void pki_arming_await(uint64_t ns)
{
    pki_store(&awaited, ns);
}

void pki_arming_listen(bool yes)
{
    pki_store(&listened, yes);
}

bool pki_arming_now(void)
{
    return pki_load(&now_on);
}

uint64_t pki_arming_awaited(void)
{
    return pki_load(&awaited);
}

static void pki_arming_after_fork(void)
{
    pki_arming_close();
}

/* ---- selections from the history, each a trace of its own ---- */

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
    pki_wish refused = {0};
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

static void note_longer(pki_session *s, uint32_t tid, const pki_record *r, uint64_t ns,
                        const pki_wish *wishes, unsigned n)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    uint64_t from = pki_clock_ns(clock, r->start), longer = 0;
    for (unsigned i = 0; i < n; i++)
        if (wishes[i].reason == PKI_CAPTURE_SLOW)
            longer = pki_saturating_sub(wishes[i].slow_ns, wishes[i].median_ns);
    pki_states_step(s, tid, pki_clock_monotonic_ns(clock, from),
                    pki_clock_monotonic_ns(clock, from + ns), longer);
}

/* Its records have been taken. */
static void pki_captures_step(pki_session *s, uint32_t tid, const pki_record *r,
                              const pki_record *more, uint32_t kind)
{
    pki_wish wishes[PKI_WISHES_MOST];
    if (!now.open)
        return;
    note_waiting(s);
    uint64_t ns = pki_clock_span_ns(&s->arena->header->clock, r->start, pki_not_negative(r->value));
    unsigned n = pki_choose(&now.chooser, more->start, kind, ns, wishes);
    note_longer(s, tid, r, ns, wishes, n);
    pki_arming_step(more->start, ns, wishes, n);
    add_wishes(s, wishes, n);
}

static void add_requested(pki_session *s)
{
    pki_wish requested[PKI_REQUESTS_MOST];
    unsigned n = pki_requests_drain(s, now.chooser.clauses.request, requested);
    add_wishes(s, requested, n);
}

/* ---- from a wish to a file with a name ---- */

#define PKI_CAPTURE_OPEN_SPANS 16384u

/* The first capture of a step gets its name as it is, others of the same step another one. */
static bool name_file(const pki_session *s, const pki_budget *budget, pki_capture_job *job)
{
    char number[48];
    for (unsigned again = 1; again < 1000; again++) {
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)job->wish.first);
        if (again > 1)
            snprintf(number + n, sizeof number - (size_t)n, ".%u", again);
        if (!pki_capture_path_expand(s->paths.capture, number, job->path))
            return false;
        if (!pki_budget_has(budget, job->path))
            return true;
    }
    return false;
}

/* False: none of its steps is known. Never all that there is in their place. */
static bool find_range(pki_capture_job *job, const pki_waiting_capture *w)
{
    uint64_t kept = job->view.head->first;
    bool all = pki_capture_is_of_now(w->wish.reason);
    if (!w->begun && !all)
        return false;
    job->devices_until = pki_activity_known_until();
    job->beginning_gone = !w->begun || w->number != w->wish.first || w->at < kept;
    job->range = (pki_history_range){.from = w->from,
                                     .until = w->wish.last == UINT64_MAX || !w->until ? UINT64_MAX
                                                                                      : w->until,
                                     .first = w->wish.first,
                                     .last = w->wish.last,
                                     .first_at = w->begun ? w->at : kept};
    memcpy(job->around, w->around, w->around_count * sizeof *w->around);
    job->around_count = w->around_count;
    return true;
}

/* Without memory the capture has those alone whose begins are in the history. */
static void note_open_spans(pki_capture_job *job)
{
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    size_t most = PKI_MIN(fold->spans.open.used, (size_t)PKI_CAPTURE_OPEN_SPANS);
    job->open = most ? malloc(most * sizeof *job->open) : NULL;
    job->range.open = job->open;
    job->range.open_count = job->open ? pki_fold_open_spans(fold, job->open, most) : 0;
    pki_fold_unlock();
}

/* What it counts is the capture's own, which its events show; what the run has taken so far is not
 * what its steps have. */
static void make_head(pki_session *s, pki_capture_job *job)
{
    pki_chrome_run run;
    pki_fold_lock();
    job->clock = s->arena->header->clock;
    pki_fold_unlock();
    pki_chrome_init(&job->chrome, &job->clock, s->config.world.pid, pki_chrome_name_of, NULL);
    pki_chrome_set_rank(&job->chrome, s->config.world.rank, s->config.world.size);
    pki_run_describe(s, true, &run);
    memset(&run.counts, 0, sizeof run.counts);
    memset(&run.toll, 0, sizeof run.toll);
    job->head_bytes = pki_chrome_head(&job->chrome, job->head, &run);
}

/* What it takes to write it without the session. False: the hour has no room, or there is nothing.
 * Under the drain lock. */
static bool pki_capture_job_make(pki_session *s, const pki_waiting_capture *w, pki_budget *budget,
                                 pki_capture_job *job)
{
    memset(job, 0, sizeof *job);
    job->wish = w->wish;
    job->most_bytes = pki_budget_allows(budget, pki_monotonic_ns(), w->wish.worth);
    job->compressed = s->config.capture_compressed;
    job->config = &s->config;
    if (!job->most_bytes || !pki_history_view_now(s->history, &job->view))
        return false;
    job->lost = job->view.head->lost;
    if (!find_range(job, w) || !name_file(s, budget, job))
        return false;
    note_open_spans(job);
    make_head(s, job);
    return true;
}

/* Read with the session's first capture, for all of them: a git repository has many files. Whoever
 * writes captures is one at a time. */
static struct {
    bool known;
    pki_environment is;
} cached_environment;

static void pki_capture_job_after_fork(void)
{
    memset(&cached_environment, 0, sizeof cached_environment);
}

static void pki_capture_job_forget(void)
{
    pki_shape_finish(&pki_environment_shape, &cached_environment.is);
    pki_capture_job_after_fork();
}

/* NULL without memory. */
static const pki_environment *environment_of(const pki_config *config)
{
    if (!cached_environment.known && !pki_environment_fill(config, &cached_environment.is)) {
        pki_capture_job_forget();
        return NULL;
    }
    cached_environment.known = true;
    return &cached_environment.is;
}

/* Writes it, removes what has to make room, and gives it its name. False and errno. Without a lock.
 */
static bool pki_capture_job_write(pki_capture_job *job, pki_budget *budget)
{
    uint64_t t = pki_monotonic_ns();
    job->environment = environment_of(job->config);
    bool written = pki_capture_file_write(job);
    int error = errno;
    if (written) {
        pki_budget_make_room(budget, t, job->wish.worth, job->bytes);
        written = pki_file_publish(job->part, job->path);
        error = errno;
    }
    if (written)
        pki_budget_enter(budget, t, job->wish.worth, job->bytes, job->path);
    pki_chrome_finish(&job->chrome);
    free(job->open);
    errno = error;
    return written;
}

/* To the log: what it is, or, with an error, why it is not. */
static void pki_capture_job_log(const pki_capture_job *job, int error)
{
    const pki_wish *w = &job->wish;
    if (error)
        pki_log(PK_LOG_ERROR, "capture %s: %s; the program goes on without it", job->path,
                pki_own_why(error));
    else if (w->reason == PKI_CAPTURE_SLOW)
        pki_log(PK_LOG_INFO, "capture %s: step %llu took %.2f x the median of its like", job->path,
                (unsigned long long)w->slow_step, w->worth);
    else
        pki_log(PK_LOG_INFO, "capture %s: %s", job->path, pki_capture_reason_name(w->reason));
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

/* With a history. */

/* ---- the session ---- */

static void pki_captures_open(pki_session *s)
{
    if (!s->history)
        return;
    pki_mem_clear(&now, sizeof now);
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

static void log_counts(void)
{
    const pki_capture_counts *c = &now.counts;
    if (c->written + c->refused + c->failed)
        pki_log(PK_LOG_INFO,
                "captures: %llu written, %llu of them removed for worse ones; %llu refused (the "
                "hour's budget, or too many at once), %llu failed",
                (unsigned long long)c->written, (unsigned long long)c->removed,
                (unsigned long long)c->refused, (unsigned long long)c->failed);
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
    log_counts();
    pthread_mutex_unlock(&pki_drain_lock);
    free(job);
}

pki_capture_counts pki_captures_counted(void)
{
    pki_capture_counts counts = now.counts;
    counts.waiting = now.queue.count;
    return counts;
}

static void pki_captures_forget(void)
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
    pki_mem_clear(&now, sizeof now);
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

/* ---- the session's history: what of its last steps is kept, unformatted ---- */

void pki_session_history_open(pki_session *s)
{
    if (!s->config.history_steps)
        return;
    s->history = pki_history_create(s->arena, s->config.history_steps, s->config.history_bytes);
    if (s->history)
        pki_captures_open(s);
    else
        pki_log(PK_LOG_WARNING, "no history of the last steps: %s",
                pki_own_why(s->arena->spans.refused ? s->arena->spans.refused : ENOMEM));
}

void pki_session_history_close(pki_session *s)
{
    pki_captures_forget();
    pki_history_destroy(s->history);
    s->history = NULL;
}

static void note_step(pki_session *s, uint32_t tid, const pki_record *r, const pki_record *more)
{
    uint32_t kind = (uint32_t)more->extra;
    if (pki_what_flags(r->what) & PKI_FLAG_BETWEEN)
        return; /* time between two steps */
    pki_history_step_ended(s->history, r, more, kind);
    pki_captures_step(s, tid, r, more, kind);
    pki_looks_expect(tid, pki_choose_late(&now.chooser, kind));
}

void pki_session_history_record(pki_session *s, uint32_t tid, const pki_record *r,
                                const pki_record *more)
{
    if (!s->history)
        return;
    pki_history_record(s->history, tid, r, more);
    if (pki_what_type(r->what) == PKI_RECORD_STEP)
        note_step(s, tid, r, more);
}
