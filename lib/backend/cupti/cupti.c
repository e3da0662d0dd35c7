/* lib/backend/cupti/cupti.c - kernels, copies, CUDA's calls and waits, through CUPTI.
 *
 *     control.c   the library found, taken and given back; memory for records, from and to its
 *                 threads; another tool that takes that
 *     several.c   the library's calls where it has several users
 *     memory.c    on the program's threads: the region of each launch; what is allocated, and where
 *     records.c   what is in a buffer; the library's names of CUDA's calls
 *     join.c      what belongs to a correlation; records put together, and in order
 *     emit.c      into the trace: tracks, names, devices, what is missing
 *
 * Calls that may wait for CUPTI's threads are made in flush, those of the driver in ask, without
 * the drain lock; records are read in collect and halt, with it. No callback takes a lock.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cupti/control.h"
#include "backend/cupti/emit.h"
#include "backend/cupti/join.h"
#include "backend/cupti/memory.h"
#include "backend/cupti/records.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "measure/fold/fold.h"
#include "measure/steps/steps.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/captures/captures.h"
#include "session/session.h"

/* ---- window ---- */

#define LEAD_NS 500000000u /* what taking CUPTI may take, and some rounds of the collector */
#define LINGER_NS 1000000000u

/* When CUPTI is to record, if for a range of steps only, or for what
 * captures want (session/captures/captures.h).
 *
 * The collector switches it on somewhat ahead of the range, going by how long steps have taken, and
 * off behind it; what began outside the range is dropped. Kernels that are still running then have
 * a second to end before CUPTI is given back.
 *
 * Threads: one at a time; takes the fold lock. */

typedef enum pki_cupti_phase {
    PKI_CUPTI_AHEAD,  /* nothing to do yet */
    PKI_CUPTI_WITHIN, /* to be on */
    PKI_CUPTI_BEHIND, /* to be off, but kernels may still run */
    PKI_CUPTI_PAST    /* to be given back */
} pki_cupti_phase;

typedef struct pki_cupti_window {
    pki_cupti_phase phase;
    uint64_t begin, end; /* ns since the session started; UINT64_MAX: not known yet */
} pki_cupti_window;

static bool whole;
static uint64_t off_since; /* The whole session, without a range. */
/* and one; 0: it is wanted, or never was */

static void pki_cupti_window_start(const pki_config *config)
{
    whole = !config->cupti_window;
    off_since = 0;
    if (whole)
        return;
    pki_fold_lock();
    pki_step_watch_start(config->cupti_first, config->cupti_last);
    pki_fold_unlock();
}

/* Steps vary: a quarter of one earlier than expected, or when the step before begins. */
static bool is_near(const pki_step_watch *w, uint64_t now)
{
    uint64_t expected = pki_step_watch_expect(w), lead = PKI_MAX(LEAD_NS, w->usual_ns / 4);
    return w->first - PKI_MIN(w->next, w->first) <= 1 ||
           (expected != PKI_NOT_YET && expected <= now + lead);
}

static pki_cupti_window pki_cupti_window_at(uint64_t now)
{
    if (whole)
        return (pki_cupti_window){PKI_CUPTI_WITHIN, 0, UINT64_MAX};
    pki_fold_lock();
    pki_step_watch w = pki_step_watch_now();
    pki_fold_unlock();
    pki_cupti_window window = {PKI_CUPTI_AHEAD, w.begin_ns, w.end_ns};
    if (w.end_ns != PKI_NOT_YET)
        window.phase = now >= w.end_ns + LINGER_NS ? PKI_CUPTI_PAST : PKI_CUPTI_BEHIND;
    else if (w.begin_ns != PKI_NOT_YET || is_near(&w, now))
        window.phase = PKI_CUPTI_WITHIN;
    return window;
}

/* As captures want it: any number of times, and of whatever steps. */
static pki_cupti_phase pki_cupti_armed_at(uint64_t now)
{
    if (pki_arming_now()) {
        off_since = 0;
        return PKI_CUPTI_WITHIN;
    }
    off_since = off_since ? off_since : now + 1;
    return now >= off_since + LINGER_NS ? PKI_CUPTI_PAST : PKI_CUPTI_BEHIND;
}

/* ---- marks ---- */

/* From when till when CUPTI has recorded, on its way from who switches
 * it to who emits.
 *
 * Threads: one at a time puts, one at a time takes; nothing else is locked. */

typedef struct pki_cupti_mark {
    uint64_t ns; /* of the session */
    bool on;
} pki_cupti_mark;

#define MARKS 16u

static pki_cupti_mark marks[MARKS];
static uint32_t put, taken; /* how many ever */

static void pki_cupti_marks_forget(void)
{
    pki_store(&put, 0u);
    pki_store(&taken, 0u);
}

/* False: so many have not been taken yet that nothing may be switched. */
static bool pki_cupti_marks_have_room(void)
{
    /* Pairs with the release in pki_cupti_marks_pop: the place has been read. */
    return pki_load(&put) - pki_load_acquire(&taken) < MARKS;
}

static void pki_cupti_marks_put(uint64_t ns, bool on)
{
    uint32_t n = pki_load(&put);
    marks[n % MARKS] = (pki_cupti_mark){ns, on};
    pki_store_release(&put, n + 1); /* pairs with the acquire in pki_cupti_marks_pop */
}

/* False: there is none. */
static bool pki_cupti_marks_pop(pki_cupti_mark *mark)
{
    uint32_t n = pki_load(&taken);
    if (n == pki_load_acquire(&put)) /* pairs with the release in pki_cupti_marks_put */
        return false;
    *mark = marks[n % MARKS];
    pki_store_release(&taken, n + 1); /* pairs with the acquire in pki_cupti_marks_have_room */
    return true;
}

/* ---- when CUPTI is on ---- */

#define AWAITED_NS 50000000u /* between flushes that a capture waits for */

typedef enum stage { CLOSED, OPEN, QUIET, OVER, FAILED } stage;

/* Flushes come from the collector and from control calls, one at a time. Held while CUPTI is waited
 * for, so nobody takes it who holds a lock, and no callback does. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* What the status says; held for no longer than it takes to copy. */
static pthread_mutex_t words = PTHREAD_MUTEX_INITIALIZER;
static stage now_in; /* read by flushes without the lock, while a stop writes the last one */
static char reason[192];

static bool windowed, armed, graph_nodes;
static bool of_memory, of_activities; /* what is asked for */
static bool memory_on;
static uint64_t memory_opened, memory_is_complete_to; /* of the session, ns */
static bool was_refused; /* what captures wanted, last: it is not asked for again before they do */
static bool said;        /* why it is not on */
static uint64_t flush_every, last_flush; /* ns; of the session */
static uint64_t opened;                  /* when it began to record; 0: not yet */
static uint64_t complete; /* what began before it and has ended has been given back */
static uint64_t taken_at; /* another tool has the buffers, and nothing later comes; 0: it has not */

static uint64_t now_ns(void)
{
    return pki_activity_ns(pki_monotonic_ns());
}

/* ---- on and off ---- */

static void enter(stage next, const char *why)
{
    pthread_mutex_lock(&words);
    pki_store(&now_in, next);
    snprintf(reason, sizeof reason, "%s", why);
    pthread_mutex_unlock(&words);
}

static bool open_or_warn(char why[sizeof reason])
{
    if (!pki_cupti_open(graph_nodes, why, sizeof reason)) {
        if (!said)
            pki_log(PK_LOG_WARNING, "cupti: %s", why);
        said = true;
        return false;
    }
    enter(OPEN, "");
    const pki_cupti_fault *fault = pki_cupti_fault_of(pki_cupti_version());
    if (fault && (!fault->of_nodes || graph_nodes) && !pki_load(&opened))
        pki_log(PK_LOG_WARNING, "cupti: %s", fault->why);
    last_flush = now_ns();
    if (!pki_load(&opened))
        pki_store(&opened, PKI_MAX(last_flush, 1u));
    return true;
}

static void open_it(void)
{
    char why[sizeof reason] = "";
    if (!open_or_warn(why))
        enter(FAILED, why);
}

static void read_config(const pki_config *config, bool listed)
{
    pthread_mutex_lock(&words);
    windowed = config->cupti_window;
    armed = config->cupti_armed && listed;
    of_memory = config->costs_memory;
    of_activities = windowed || listed;
    pthread_mutex_unlock(&words);
    was_refused = said = false;
    pki_cupti_marks_forget();
    pki_cupti_forget();
    graph_nodes = config->cupti_graph_nodes;
    flush_every = PKI_MAX((uint64_t)config->flush_ms, 100u) * 1000000u;
    enter(CLOSED, "");
    last_flush = 0;
    pki_store(&complete, (uint64_t)0);
    pki_store(&taken_at, (uint64_t)0);
    pki_store(&opened, (uint64_t)0);
    pki_store(&memory_opened, (uint64_t)0);
    pki_store(&memory_is_complete_to, (uint64_t)0);
    pki_cupti_window_start(config);
}

/* Alone it is all there is to be on; else the rest goes on without it. */
static void open_memory(void)
{
    char why[sizeof reason] = "";
    pki_store(&memory_on, pki_cupti_memory_on(why, sizeof why));
    if (pki_load(&memory_on)) {
        last_flush = now_ns();
        pki_store(&memory_opened, PKI_MAX(last_flush, 1u));
        return;
    }
    pki_log(PK_LOG_WARNING, "cupti: %s", why);
    said = true;
    if (!of_activities)
        enter(FAILED, why);
}

static bool pki_cupti_switch_start(const pki_config *config, bool listed)
{
    pthread_mutex_lock(&turn);
    read_config(config, listed);
    if (of_memory)
        open_memory();
    if (of_activities && !windowed && !armed)
        open_it();
    pki_arming_listen(armed);
    bool live = pki_load(&now_in) != FAILED || pki_load(&memory_on);
    pthread_mutex_unlock(&turn);
    return live;
}

/* ---- in flush ---- */

/* Up to there all of it has come back. It pairs with the acquire of who reads buffers: what came
 * back before it is among them. */
static void advance(uint64_t *until, uint64_t ns)
{
    pki_store_release(until, PKI_MAX(pki_load(until), ns));
}

/* Of the session, ns. */
static uint64_t all_here_until(bool *lost)
{
    uint64_t until = pki_cupti_all_until(lost);
    return until == UINT64_MAX ? until : pki_activity_ns(until);
}

/* The kinds stay as they are: they are the other tool's now. */
static void give_up(void)
{
    static const char why[] =
        "another tool in this process has taken CUPTI's buffers "
        "(cuptiActivityRegisterCallbacks): from here on its records are not here";
    pki_cupti_abandon();
    pki_store_release(&taken_at, PKI_MAX(pki_load(&complete), 1u));
    pki_store(&memory_on, false);
    pki_log(PK_LOG_WARNING, "cupti: %s", why);
    if (armed && pki_cupti_marks_have_room())
        pki_cupti_marks_put(pki_load(&taken_at), false);
    pki_arming_listen(false);
    enter(FAILED, why);
}

static void flush_now(bool at_once)
{
    bool lost;
    uint64_t t = now_ns();
    pki_cupti_flush(false);
    /* The flush before this one: a record that was written meanwhile may be in no buffer yet. */
    uint64_t all_before = PKI_MIN(at_once ? t : last_flush, all_here_until(&lost));
    if (pki_load(&now_in) == OPEN || pki_load(&now_in) == QUIET)
        advance(&complete, all_before);
    if (pki_load(&memory_on))
        advance(&memory_is_complete_to, all_before);
    last_flush = t;
    if (pki_load(&now_in) == OPEN && pki_cupti_taken())
        give_up();
}

/* For now or for good, behind a forced flush: all until then is there, but what never came. That
 * may be what was under way as it was switched off, which is no sign of another tool: where it goes
 * on, steps are unmeasured from the last moment on up to which all is known, and that is all. */
static void close_it(uint64_t until)
{
    static const char others[] =
        "the last launches have left no record: another tool in this process may have CUPTI's "
        "buffers, and steps since then are not measured";
    static const char unknown[] =
        "the last launch has left no record: it was under way as CUPTI was switched off, or another "
        "tool in this process has that; steps since then are not measured";
    bool lost;
    pki_cupti_close();
    uint64_t here = all_here_until(&lost);
    if (here < UINT64_MAX && !lost && until < UINT64_MAX)
        pki_cupti_marks_put(here, false);
    if (here == UINT64_MAX || (!lost && until < UINT64_MAX)) {
        pki_store_release(&complete, until);
        return;
    }
    const char *why = lost ? others : unknown;
    advance(&complete, here);
    pki_log(PK_LOG_WARNING, "cupti: %s", why);
    pki_arming_listen(false);
    enter(FAILED, why);
}

static void follow_window(uint64_t t)
{
    pki_cupti_phase phase = pki_cupti_window_at(t).phase;
    if (pki_load(&now_in) == CLOSED && phase == PKI_CUPTI_WITHIN)
        open_it();
    else if (pki_load(&now_in) == CLOSED && phase > PKI_CUPTI_WITHIN)
        enter(OVER, "");
    if (pki_load(&now_in) == OPEN && phase > PKI_CUPTI_WITHIN) {
        pki_cupti_quiet();
        enter(QUIET, "");
    }
    if (pki_load(&now_in) == QUIET && phase == PKI_CUPTI_PAST) {
        enter(OVER, "");
        close_it(UINT64_MAX);
    }
}

static bool resume(char why[sizeof reason])
{
    bool on = pki_cupti_resume(graph_nodes, why, sizeof reason);
    if (on)
        enter(OPEN, "");
    return on;
}

/* Who cannot have it now, since somebody else does, may the next time. */
static void open_armed(void)
{
    char why[sizeof reason] = "";
    if (was_refused || !pki_cupti_marks_have_room())
        return;
    bool on = pki_load(&now_in) == QUIET ? resume(why) : open_or_warn(why);
    pki_arming_listen(on);
    was_refused = !on;
    if (on)
        pki_cupti_marks_put(now_ns(), true);
    else
        enter(CLOSED, why);
}

/* As often as it is wanted. A mark is where it was on for certain: put behind the switching on, and
 * before the switching off. */
static void follow_captures(uint64_t t)
{
    pki_cupti_phase phase = pki_cupti_armed_at(t);
    was_refused = was_refused && phase == PKI_CUPTI_WITHIN;
    if ((pki_load(&now_in) == CLOSED || pki_load(&now_in) == QUIET) && phase == PKI_CUPTI_WITHIN)
        open_armed(); /* not once it is OVER: a round may come behind a stop's last flush */
    if (pki_load(&now_in) == OPEN && phase > PKI_CUPTI_WITHIN && pki_cupti_marks_have_room()) {
        pki_cupti_marks_put(now_ns(), false);
        pki_cupti_quiet();
        enter(QUIET, "");
    }
    if (pki_load(&now_in) == QUIET && phase == PKI_CUPTI_PAST && pki_cupti_marks_have_room()) {
        close_it(now_ns());
        if (pki_load(&now_in) == QUIET)
            enter(CLOSED, "");
    }
}

static void finish(void)
{
    if (pki_load(&now_in) == OPEN || pki_load(&now_in) == QUIET)
        close_it(UINT64_MAX);
    else if (pki_load(&now_in) != FAILED)
        pki_store_release(&complete, UINT64_MAX);
    pki_cupti_memory_off();
    pki_store(&memory_on, false);
    pki_store(&memory_is_complete_to, UINT64_MAX);
    if (pki_load(&now_in) != FAILED)
        enter(OVER, "");
}

static bool is_on(void)
{
    return pki_load(&now_in) == OPEN || pki_load(&now_in) == QUIET || pki_load(&memory_on);
}

/* A capture that waits gets what there is soon. */
static uint64_t flush_after(void)
{
    return pki_arming_awaited() > pki_load(&complete) ? PKI_MIN(flush_every, AWAITED_NS)
                                                      : flush_every;
}

static void pki_cupti_switch_flush(pki_flush why)
{
    if (why != PKI_FLUSH_ROUND)
        pthread_mutex_lock(&turn);
    else if (pthread_mutex_trylock(&turn) != 0)
        return;
    uint64_t t = now_ns();
    if (why == PKI_FLUSH_LAST)
        finish();
    else if (windowed)
        follow_window(t);
    else if (armed)
        follow_captures(t);
    if (is_on() && (why == PKI_FLUSH_NOW || t - last_flush >= flush_after()))
        flush_now(why == PKI_FLUSH_NOW);
    pki_cupti_buffers_walk();
    pthread_mutex_unlock(&turn);
}

/* ---- what others ask ---- */

static uint64_t pki_cupti_opened(void)
{
    return pki_load(&opened);
}

/* What began before it and has ended has been given back */
static uint64_t pki_cupti_complete(void)
{
    return pki_load_acquire(&complete); /* pairs with the release in advance */
}

/* since when another tool has its buffers; UINT64_MAX: none */
static uint64_t pki_cupti_taken_at(void)
{
    uint64_t ns = pki_load_acquire(&taken_at);
    return ns ? ns : UINT64_MAX;
}

/* The same of what is allocated: since when, and up to when all of it has been given back. */
static uint64_t pki_cupti_memory_opened(void)
{
    return pki_load(&memory_opened);
}

static uint64_t pki_cupti_memory_complete(void)
{
    return pki_load_acquire(&memory_is_complete_to); /* pairs with the release in advance */
}

/* not yet, or between two times that captures want it */
static bool pki_cupti_is_closed(void)
{
    return pki_load(&now_in) == CLOSED;
}

/* The session's last word of it. */
static void pki_cupti_switch_over(const char *why)
{
    stage is = pki_load(&now_in);
    if (is != FAILED) /* one that nobody has closed is still to be closed */
        enter(is == OPEN || is == QUIET ? is : OVER, why);
}

static const char *text_of_stage(void)
{
    if (pki_load(&memory_on) && !of_activities)
        return "recording what is allocated";
    switch (pki_load(&now_in)) {
    case OPEN:
        return armed ? "recording for captures" : windowed ? "recording its steps" : "recording";
    case QUIET:
        return "its steps are over; waiting for their last kernels";
    case OVER:
        return windowed ? "its steps are over" : "stopped";
    default:
        return armed ? "waiting for a capture to want it" : windowed ? "waiting for its steps" : "";
    }
}

/* How it stands, in words. False: it is off. */
static bool pki_cupti_switch_status(char *why, size_t size)
{
    pthread_mutex_lock(&words);
    bool failed = pki_load(&now_in) == FAILED && !pki_load(&memory_on);
    snprintf(why, size, "%s", reason[0] ? reason : text_of_stage());
    pthread_mutex_unlock(&words);
    return !failed;
}

/* All the time, for a range of steps, or as captures want it, any number of times. What is
 * allocated (costs=memory) is recorded all the time, whether or not the rest is asked for.
 *
 * Threads: start, then flushes of any thread, one of which acts at a time; they may wait for
 * CUPTI's threads, so no lock is held that a callback or a recording thread takes. What is asked:
 * any. */
static void pki_cupti_switch_after_fork(void)
{
    pthread_mutex_init(&turn, NULL);
    pthread_mutex_init(&words, NULL);
    pki_store(&now_in, CLOSED);
    pki_store(&memory_on, false);
    pki_cupti_control_after_fork();
}

/* ---- the backend ---- */

/* From then on to the first launch of a thread, also of one that waits. */
#define SETTLE_NS 250000000u

/* Under the drain lock. */
static pki_cupti_counts counts;
static uint64_t refused_before, finalised_for, given_for;
static enum { SILENT, BEGUN, MEASURES, MEASURED } emitted;
static bool described; /* by who asks */
static uint64_t since; /* when it began to record, ns and one, and is not measured yet; 0: it is */

static void forget(const pki_config *config)
{
    pki_cupti_events_want(config->cupti_sync_events);
    memset(&counts, 0, sizeof counts);
    refused_before = pki_cupti_buffers_refused();
    described = false;
    emitted = SILENT;
    finalised_for = given_for = since = 0;
}

/* What an earlier session has left. */
static void discard_buffers(void)
{
    pki_cupti_buffers_walk();
    for (pki_cupti_buffer *b = pki_cupti_buffers_drain(), *next; b; b = next) {
        next = b->next;
        pki_cupti_buffer_release(b);
    }
}

extern const pki_backend pki_backend_cupti;

static bool start(const pki_config *config)
{
    bool listed = pki_backend_wanted(&pki_backend_cupti, config->backends);
    forget(config);
    pki_cupti_buffers_end(false);
    discard_buffers();
    return pki_cupti_switch_start(config, listed);
}

/* ---- under the drain lock ---- */

/* Steps that have ended until now are known, since they are folded first. */
static pki_cupti_limits limits_at(uint64_t t, bool last)
{
    if (windowed) {
        pki_fold_lock();
        pki_fold_all(pki_fold_now());
        pki_fold_unlock();
    }
    pki_cupti_window w = pki_cupti_window_at(t);
    return (pki_cupti_limits){.begin = w.begin,
                              .end = PKI_MIN(w.end, pki_cupti_taken_at()),
                              .decided = windowed ? t : UINT64_MAX,
                              .complete = pki_cupti_complete(),
                              .now = t,
                              .last = last};
}

/* Steps are not measured as long as what had been launched before may run, which has no record. How
 * long that was is known once the first buffers of those who launched early have come back. */
static void settle(uint64_t now)
{
    if (!since || now < since + SETTLE_NS)
        return;
    uint64_t queued = pki_cupti_join_queued(armed);
    bool nothing = queued == UINT64_MAX;
    if (nothing && armed && now < UINT64_MAX)
        return;
    if (queued >= since && (armed || !nothing))
        pki_activity_measures(queued, true);
    since = 0;
}

/* On and off, as captures had it: at once, so that they wait for what is to come. Between two times
 * nobody waits for anything. */
static void emit_marks(void)
{
    for (pki_cupti_mark mark; pki_cupti_marks_pop(&mark);) {
        if (mark.on && emitted == SILENT)
            pki_activity_begins(PKI_SOURCE_CUPTI, mark.ns);
        emitted = mark.on ? MEASURES : MEASURED;
        if (!mark.on)
            settle(UINT64_MAX);
        pki_activity_measures(mark.ns, mark.on);
        since = mark.on ? mark.ns + 1 : 0;
    }
}

/* The same of one range of steps, or of the whole session. */
static void emit_range(const pki_cupti_limits *m)
{
    uint64_t from = pki_cupti_opened();
    if (!from)
        return;
    if (emitted == SILENT)
        pki_activity_begins(PKI_SOURCE_CUPTI, from);
    emitted = PKI_MAX(emitted, BEGUN);
    if (emitted == BEGUN && m->begin != UINT64_MAX) {
        pki_activity_measures(PKI_MAX(m->begin, from), true);
        emitted = MEASURES;
        since = windowed ? 0 : from + 1; /* it is on long before its steps */
    }
    if (emitted == MEASURES && m->end != UINT64_MAX) {
        settle(UINT64_MAX);
        pki_activity_measures(m->end, false);
        emitted = MEASURED;
    }
}

/* Up to where everything is there. closed: before the last buffers were taken. */
static void emit_finalised(const pki_cupti_limits *m, bool closed)
{
    if (pki_cupti_opened())
        pki_activity_finalised(PKI_SOURCE_CUPTI, pki_cupti_join_finalised(m));
    if (pki_cupti_taken_at() != UINT64_MAX)
        pki_activity_ends(PKI_SOURCE_CUPTI);
    if (!armed || emitted != MEASURED || !closed)
        return;
    pki_activity_ends(PKI_SOURCE_CUPTI);
    emitted = SILENT;
}

static void read_buffers(bool last)
{
    uint64_t t = pki_activity_ns(pki_monotonic_ns());
    bool closed = pki_cupti_is_closed();
    uint64_t opened_at = pki_cupti_opened(), memory = pki_cupti_memory_opened();
    pki_cupti_span span = {memory ? memory : opened_at, t}; /* memory is opened first */
    uint64_t memory_complete = pki_cupti_memory_complete();
    pki_cupti_limits limits = limits_at(t, last); /* before buffers are taken: they have it all */
    for (pki_cupti_buffer *b = pki_cupti_buffers_drain(), *next; b; b = next) {
        next = b->next;
        pki_cupti_read(b, &span, &counts, pki_cupti_join_record, &counts,
                       memory ? pki_cupti_memory_add : NULL);
        pki_cupti_buffer_release(b);
    }
    if (memory && (last || memory_complete != given_for))
        pki_cupti_memory_emit(memory_complete);
    given_for = memory_complete;
    if (armed)
        emit_marks();
    else
        emit_range(&limits);
    settle(last ? UINT64_MAX : limits.complete);
    if (last && opened_at && limits.complete != UINT64_MAX)
        pki_activity_untold(limits.complete);
    if (since) /* what tells how long that took is not handed over before */
        limits.complete = PKI_MIN(limits.complete, since - 1);
    if (!last && limits.complete == finalised_for && pki_cupti_taken_at() == UINT64_MAX)
        return; /* nothing that is held can have become ready, but by chance */
    finalised_for = limits.complete;
    pki_cupti_join_finalise(&limits, &counts, pki_cupti_emit);
    emit_finalised(&limits, closed);
}

static void collect(void)
{
    read_buffers(false);
}

static bool has_records(bool last)
{
    if (!pki_activity_lock())
        return false;
    if (last)
        read_buffers(false);
    bool any = counts.records > 0;
    pki_activity_unlock();
    return any;
}

/* ---- without the drain lock ---- */

/* A killed run's trace has them, too. */
static void ask(pki_flush why)
{
    if (described || !has_records(why == PKI_FLUSH_LAST))
        return;
    pki_cupti_describe_devices();
    described = true;
}

/* ---- the end ---- */

/* In the report, too: who has recorded nothing has not been within its steps. */
static void sum_up(uint64_t dropped, uint64_t refused)
{
    char text[192];
    uint64_t bad = counts.bad_time + counts.lost, missing = dropped + refused + bad + counts.broken;
    int n = snprintf(text, sizeof text, "%llu records", (unsigned long long)counts.records);
    if (missing && n > 0)
        snprintf(text + n, sizeof text - (size_t)n,
                 "; missing: %llu dropped by CUPTI, %llu without times or room, %llu buffers",
                 (unsigned long long)dropped, (unsigned long long)bad,
                 (unsigned long long)(refused + counts.broken));
    if (counts.other_clock)
        snprintf(
            text, sizeof text,
            "%llu of %llu records have no place in time: CUPTI has one clock per process, and another "
            "tool has given it its own",
            (unsigned long long)counts.other_clock, (unsigned long long)counts.records);
    if (missing || counts.other_clock)
        pki_log(PK_LOG_WARNING, "cupti: %s", text);
    pki_cupti_switch_over(text);
}

/* Calls go on being recorded where nobody has come to switch that off. */
static void leave(void)
{
    pki_cupti_buffers_end(true);
    pki_cupti_attribute_off();
}

static void stop(void)
{
    read_buffers(true);
    uint64_t dropped = pki_cupti_dropped(), refused = pki_cupti_buffers_refused() - refused_before;
    if (pki_cupti_opened() || pki_cupti_memory_opened()) {
        pki_cupti_describe_counts(&counts, dropped, refused);
        sum_up(dropped, refused);
    }
    pki_cupti_join_forget();
    pki_cupti_memory_forget();
    pki_cupti_tracks_forget();
    pki_cupti_pools_forget();
    pki_cupti_names_forget();
    pki_cupti_buffers_trim();
}

/* ---- status ---- */

/* Before a session only the library is looked for: to ask the driver would start it. */
static void probe(pk_backend_info *info)
{
    if (pki_cupti_switch_status(info->reason, sizeof info->reason))
        info->live = pki_cupti_load(info->reason, sizeof info->reason);
    if (pki_cupti_version())
        pki_cupti_version_text(pki_cupti_version(), info->version, sizeof info->version);
}

static bool is_requested(const pki_config *config)
{
    return config->cupti_window || config->costs_memory;
}

static void after_fork(void)
{
    pki_cupti_switch_after_fork();
    pki_cupti_buffers_after_fork();
    pki_cupti_join_after_fork();
    pki_cupti_memory_after_fork();
    pki_cupti_tracks_after_fork();
    pki_cupti_names_after_fork();
}

const pki_backend pki_backend_cupti = {
    .name = "cupti",
    .by_default = false,
    .devices = true,
    .probe = probe,
    .start = start,
    .requested = is_requested,
    .flush = pki_cupti_switch_flush,
    .ask = ask,
    .collect = collect,
    .leave = leave,
    .stop = stop,
    .after_fork = after_fork,
};
