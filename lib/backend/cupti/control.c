/* lib/backend/cupti/control.c - when CUPTI is on: taken, switched, and given back */
#include "backend/cupti/control.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/join.h"
#include "backend/cupti/records.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"
#include "base/log.h"
#include "measure/fold/fold.h"
#include "measure/steps/steps.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/captures/captures.h"
#include "session/session.h"

/* ---- taking CUPTI, switching it on, off, and giving it back ---- */

static void pki_cupti_flush(bool forced);
static void pki_cupti_close(void);
static void pki_cupti_memory_off(void);

static CUpti_SubscriberHandle subscriber; /* NULL: not taken */
static bool recording;
uint32_t pki_cupti_recording;
static bool for_memory; /* what is allocated is recorded, too, or alone */
static bool memory_kinds_on;
static bool has_our_clock; /* once per process: to register it again damages a record */
static bool taken_before_fork;
static uint64_t dropped;

/* KERNEL (3) would run kernels one after the other. */
static const struct kind {
    CUpti_ActivityKind kind;
    bool needed;
} kinds[] = {
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, false},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true},
    {CUPTI_ACTIVITY_KIND_MEMCPY, false},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, false},
    {CUPTI_ACTIVITY_KIND_MEMSET, false},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, false},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, false},
    {CUPTI_ACTIVITY_KIND_RUNTIME, true},
};

/* For two users: the pools' use in the trace, and the account of what is allocated. */
static const CUpti_ActivityKind memory_kinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2,
                                                  CUPTI_ACTIVITY_KIND_MEMORY_POOL};

static uint64_t CUPTIAPI our_clock(void)
{
    return pki_monotonic_ns();
}

static bool failed(const char *what, CUptiResult result, char *reason, size_t size)
{
    if (result == CUPTI_SUCCESS)
        return false;
    snprintf(reason, size, "%s: %s", what, pki_cupti_result_text(result));
    return true;
}

static bool is_held_by_other(CUptiResult result)
{
    return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
           result == CUPTI_ERROR_MAX_LIMIT_REACHED;
}

/* The newer call names whoever has it. */
static CUptiResult subscribe(char *holder, size_t size)
{
    CUpti_SubscriberParams params;
    holder[0] = 0;
    if (!pki_cupti.Subscribe_v2)
        return pki_cupti.Subscribe(&subscriber, pki_cupti_called, NULL);
    memset(&params, 0, sizeof params);
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "perfkit";
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = size;
    return pki_cupti.Subscribe_v2(&subscriber, pki_cupti_called, NULL, &params);
}

static bool acquire_subscriber(char *reason, size_t size)
{
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1];
    CUptiResult result = subscribe(holder, sizeof holder - 1);
    holder[sizeof holder - 1] = 0;
    if (result == CUPTI_SUCCESS && subscriber)
        return true;
    subscriber = NULL;
    if (is_held_by_other(result) && holder[0])
        snprintf(reason, size, "another tool in this process uses CUPTI: %s", holder);
    else
        failed("cuptiSubscribe", result, reason, size);
    return false;
}

static void set_attribute(CUpti_ActivityAttribute attribute, uint8_t value)
{
    size_t size = sizeof value;
    if (pki_cupti.ActivitySetAttribute(attribute, &size, &value) != CUPTI_SUCCESS)
        pki_log(PK_LOG_DEBUG, "cupti: attribute %d cannot be set", (int)attribute);
}

/* Questions about what is not done yet would come as waits; where they do, join.h tells. */
static void disable_query_records(void)
{
    if (!pki_cupti.ActivityEnableAllSyncRecords ||
        pki_cupti.ActivityEnableAllSyncRecords(0) != CUPTI_SUCCESS)
        pki_log(PK_LOG_DEBUG, "cupti: each question about an event makes a record");
}

/* Another tool has had the buffers, and some of ours are with it: what does not come back now never
 * will, and its memory is left alone. */
static void give_up_missing(void)
{
    const uint64_t now = pki_monotonic_ns();
    if (pki_cupti_buffers_oldest() == UINT64_MAX)
        return;
    pki_cupti_flush(true);
    pki_cupti_buffers_give_up(now);
}

/* Buffers are zeroed by us, off the program's threads, and each thread fills its own. */
static bool prepare(char *reason, size_t size)
{
    set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1);
    set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
    if (pki_cupti.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) != CUPTI_SUCCESS)
        pki_log(PK_LOG_WARNING, "cupti: CUDA calls carry pthread's ids, not the system's");
    if (failed("cuptiActivityRegisterCallbacks", pki_cupti_buffers_register(), reason, size))
        return false;
    if (!has_our_clock &&
        failed("cuptiActivityRegisterTimestampCallback",
               pki_cupti.ActivityRegisterTimestampCallback(our_clock), reason, size))
        return false;
    has_our_clock = has_our_clock || !pki_load(&pki_cupti_one); /* else for as long as it is one */
    disable_query_records();
    give_up_missing();
    return true;
}

/* Only calls that launch: all others of the driver are made by the runtime, or by us. Before CUDA
 * 12.5 all or none, and the reader passes over the rest. */
static void enable_driver(bool on)
{
    CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_DRIVER_API;
    if (!pki_cupti.ActivityEnableDriverApi) {
        (on ? pki_cupti.ActivityEnable : pki_cupti.ActivityDisable)(CUPTI_ACTIVITY_KIND_DRIVER);
        return;
    }
    for (uint32_t id = 1; id < pki_cupti_calls_count(domain); id++)
        if (pki_cupti_call_of(domain, id)->traits & PKI_CUPTI_LAUNCHES)
            pki_cupti.ActivityEnableDriverApi(id, on);
}

static void silence_runtime(void)
{
    CUpti_CallbackDomain domain = CUPTI_CB_DOMAIN_RUNTIME_API;
    for (uint32_t id = 1; pki_cupti.ActivityEnableRuntimeApi && id < pki_cupti_calls_count(domain);
         id++)
        if (pki_cupti_call_of(domain, id)->traits & PKI_CUPTI_QUIET)
            pki_cupti.ActivityEnableRuntimeApi(id, 0);
}

/* The answer is that of the first kind, without which the other one is of little use. */
static CUptiResult enable_memory_kinds(void)
{
    CUptiResult first = CUPTI_SUCCESS;
    for (size_t i = 0; i < PKI_COUNT_OF(memory_kinds) && !memory_kinds_on; i++) {
        CUptiResult result = pki_cupti.ActivityEnable(memory_kinds[i]);
        first = i ? first : result;
        if (result != CUPTI_SUCCESS)
            pki_log(PK_LOG_INFO, "cupti: no records of kind %d: %s", (int)memory_kinds[i],
                    pki_cupti_result_text(result));
    }
    memory_kinds_on = true;
    return first;
}

static void disable_memory_kinds(void)
{
    for (size_t i = PKI_COUNT_OF(memory_kinds); i-- > 0 && memory_kinds_on;)
        pki_cupti.ActivityDisable(memory_kinds[i]);
    memory_kinds_on = false;
}

static bool enable(bool graph_nodes, char *reason, size_t size)
{
    if (!graph_nodes && pki_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) != CUPTI_SUCCESS)
        pki_log(PK_LOG_INFO, "cupti: graphs are recorded node by node");
    for (size_t i = 0; i < PKI_COUNT_OF(kinds); i++) {
        CUptiResult result = pki_cupti.ActivityEnable(kinds[i].kind);
        if (kinds[i].needed && failed("cuptiActivityEnable", result, reason, size))
            return false;
        if (result != CUPTI_SUCCESS)
            pki_log(PK_LOG_INFO, "cupti: no records of kind %d: %s", (int)kinds[i].kind,
                    pki_cupti_result_text(result));
    }
    if (pki_load(&pki_cupti_sync_events) &&
        pki_cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CUDA_EVENT) != CUPTI_SUCCESS)
        pki_log(PK_LOG_WARNING, "cupti: no records of events: waits do not say what for");
    enable_memory_kinds();
    enable_driver(true);
    silence_runtime();
    return true;
}

static bool is_there(char *reason, size_t size)
{
    if (taken_before_fork) {
        snprintf(reason, size, "this process was forked while CUPTI was in use");
        return false;
    }
    if (!pki_driver_live(reason, size) || !pki_cupti_load(reason, size))
        return false;
    if (pki_cupti_calls_learn())
        return true;
    snprintf(reason, size, "no memory for the names of CUDA's calls");
    return false;
}

static void release_subscriber(void)
{
    if (recording || for_memory)
        return;
    pki_cupti.Unsubscribe(subscriber);
    subscriber = NULL;
}

/* Takes it, unless the other user has. */
static bool ensure_subscriber(char *reason, size_t size)
{
    if (subscriber)
        return true;
    if (!is_there(reason, size) || !acquire_subscriber(reason, size))
        return false;
    if (prepare(reason, size))
        return true;
    release_subscriber();
    return false;
}

static void warn_of_refused(unsigned calls)
{
    if (calls)
        pki_log(PK_LOG_WARNING, "cupti: %u calls cannot be tied to regions", calls);
}

/* Callbacks are on before: what a thread has left of an earlier time is off its stack then. */
static bool record(bool graph_nodes, char *reason, size_t size)
{
    static uint32_t times;
    recording = true;
    warn_of_refused(pki_cupti_attribute(subscriber, true));
    if (enable(graph_nodes, reason, size)) {
        pki_store_release(&pki_cupti_recording, ++times); /* pairs with the acquire in count_call */
        return true;
    }
    pki_cupti_close();
    return false;
}

/* True: it records. If not, why not. graph_nodes: each kernel of a graph. */
static bool pki_cupti_open(bool graph_nodes, char *reason, size_t size)
{
    if (!ensure_subscriber(reason, size))
        return false;
    return record(graph_nodes, reason, size);
}

/* Records again, after pki_cupti_quiet. False: why not, and it is closed. */
static bool pki_cupti_memory_on(char *reason, size_t size)
{
    if (!ensure_subscriber(reason, size))
        return false;
    for_memory = true;
    warn_of_refused(pki_cupti_attribute_memory(subscriber, true));
    if (!failed("cuptiActivityEnable of memory's records", enable_memory_kinds(), reason, size))
        return true;
    pki_cupti_memory_off();
    return false;
}

/* Records what is allocated and freed, whether or not it records the rest, until it is turned off:
 * before pki_cupti_open, behind pki_cupti_close. */
static void pki_cupti_memory_off(void)
{
    if (!subscriber || !for_memory)
        return;
    for_memory = false;
    pki_cupti_attribute_memory(subscriber, false);
    if (!recording)
        disable_memory_kinds();
    pki_cupti_flush(true);
    release_subscriber();
}

/* Records nothing more. What it has is still to be flushed. */
static void pki_cupti_quiet(void)
{
    if (!recording)
        return;
    recording = false;
    pki_store(&pki_cupti_recording, 0u);
    enable_driver(false);
    pki_cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    if (pki_load(&pki_cupti_sync_events))
        pki_cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    for (size_t i = PKI_COUNT_OF(kinds); i-- > 0;)
        pki_cupti.ActivityDisable(kinds[i].kind);
    if (!for_memory)
        disable_memory_kinds();
    pki_cupti_attribute_off();
}

/* What there was, and when: `moves` and `calls` are read behind `ns`. */
typedef struct moment {
    uint64_t ns, calls, moves;
} moment;

static moment flushed; /* the last flush */
static moment known;   /* all that was launched by then has gone into our buffers */

static moment moment_now(void)
{
    uint32_t held;
    uint64_t ns = pki_monotonic_ns(); /* first: a launch that is not counted yet begins later */
    uint64_t calls = pki_load(&pki_cupti_launches.begun);
    return (moment){ns, calls, pki_cupti_buffers_moves(&held)};
}

/* A buffer that moves is asked of us, or given to us: until then nobody else had them. */
static void note_moves(moment before)
{
    moment after = moment_now();
    if (after.moves != before.moves || before.calls == known.calls)
        known = before;
    else if (before.moves != flushed.moves)
        known = flushed;
    flushed = before;
    flushed.moves = after.moves;
}

/* Gives back all that is complete, and walks it; forced: all. */
static void pki_cupti_flush(bool forced)
{
    size_t more = 0;
    if (!subscriber)
        return;
    moment before = moment_now();
    pki_cupti.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    if (pki_cupti.ActivityGetNumDroppedRecords(NULL, 0, &more) == CUPTI_SUCCESS)
        pki_fetch_add(&dropped, (uint64_t)more);
    note_moves(before);
    pki_cupti_buffers_walk();
}

/* Behind a flush: what began before that, and has ended, has come back and been walked.
 * CLOCK_MONOTONIC ns; UINT64_MAX: all has. CUPTI may have a buffer of ours since then: a flush that
 * is not forced "doesn't return buffers which have one or more incomplete records"
 * (cupti_activity.h). Or it has none, and what was launched since then has moved none: it has gone
 * to another tool, or was under way as the records were switched off. *lost, where all of them are
 * to be here: it is certain that there are more. */
static uint64_t pki_cupti_all_until(bool *lost)
{
    uint64_t oldest = pki_cupti_buffers_oldest(); /* first: what came back meanwhile is walked */
    pki_cupti_buffers_walk();
    *lost = oldest < flushed.ns || pki_load(&pki_cupti_launches.recorded) > known.calls;
    return oldest < UINT64_MAX || known.ns == flushed.ns ? oldest : known.ns;
}

/* Quiet, a forced flush, and anybody may have it, unless what is allocated is recorded. */
static void pki_cupti_close(void)
{
    if (!subscriber)
        return;
    pki_cupti_quiet();
    pki_cupti_flush(true);
    if (for_memory)
        pki_cupti_attribute(subscriber, false);
    release_subscriber();
}

/* ---- another tool that takes the buffers ---- */

/* A launch leaves the record of its call at least. */
#define CALLS_A_BUFFER (PKI_CUPTI_BUFFER_BYTES / sizeof(CUpti_ActivityAPI) + 1)

/* Each thread may be within one, which has left none yet: the first of a program takes seconds. */
#define CALLS_UNDER_WAY 64u

static struct {
    uint64_t moves, calls; /* when a buffer last moved */
    uint32_t flushes;      /* at which there were too many */
} seen;

static void see_moves(void)
{
    uint32_t held;
    seen.moves = pki_cupti_buffers_moves(&held);
    seen.calls = pki_load(&pki_cupti_launches.begun);
    seen.flushes = 0;
}

/* a session begins */
static void pki_cupti_forget(void)
{
    pki_store(&dropped, (uint64_t)0);
    see_moves();
    flushed = known = moment_now();
}

/* Once per flush: has another tool registered buffers of its own? Then calls come back and their
 * records do not: for two flushes there have been more of them than what CUPTI has of ours has room
 * for, and it has asked for nothing. */
static bool pki_cupti_taken(void)
{
    uint32_t held;
    uint64_t calls =
        pki_load(&pki_cupti_launches.begun); /* first: who launches asks for a buffer */
    if (pki_cupti_buffers_moves(&held) != seen.moves) {
        see_moves();
        return false;
    }
    seen.flushes += calls - seen.calls > (uint64_t)held * CALLS_A_BUFFER + CALLS_UNDER_WAY;
    return seen.flushes >= 2;
}

/* Nothing that is the other tool's now is switched, nor flushed. */
static void pki_cupti_abandon(void)
{
    pki_cupti_attribute_off();
    pki_cupti_attribute_memory(subscriber, false);
    pki_store(&pki_cupti_recording, 0u);
    recording = for_memory = memory_kinds_on = false;
    release_subscriber();
}

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

bool pki_cupti_marks_pop(pki_cupti_mark *mark)
{
    uint32_t n = pki_load(&taken);
    if (n == pki_load_acquire(&put)) /* pairs with the release in pki_cupti_marks_put */
        return false;
    *mark = marks[n % MARKS];
    pki_store_release(&taken, n + 1); /* pairs with the acquire in pki_cupti_marks_have_room */
    return true;
}

/* ---- when CUPTI is on ---- */

/* All the time, for a range of steps, or as captures want it, any number of times. What is
 * allocated (costs=memory) is recorded all the time, whether or not the rest is asked for.
 *
 * Threads: start, then flushes of any thread, one of which acts at a time; they may wait for
 * CUPTI's threads, so no lock is held that a callback or a recording thread takes. What is asked:
 * any. */

#define AWAITED_NS 50000000u /* between flushes that a capture waits for */

typedef enum stage { CLOSED, OPEN, QUIET, OVER, FAILED } stage;

/* Flushes come from the collector and from control calls, one at a time. Held while CUPTI is waited
 * for, so nobody takes it who holds a lock, and no callback does. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* What the status says; held for no longer than it takes to copy. */
static pthread_mutex_t words = PTHREAD_MUTEX_INITIALIZER;
static stage now_in; /* read by flushes without the lock, while a stop writes the last one */
static char why_off[192];

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
    snprintf(why_off, sizeof why_off, "%s", why);
    pthread_mutex_unlock(&words);
}

static bool open_or_warn(char why[sizeof why_off])
{
    if (!pki_cupti_open(graph_nodes, why, sizeof why_off)) {
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
    char why[sizeof why_off] = "";
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
    char why[sizeof why_off] = "";
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

bool pki_cupti_switch_start(const pki_config *config, bool listed)
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

static bool resume(char why[sizeof why_off])
{
    bool on = record(graph_nodes, why, sizeof why_off);
    if (on)
        enter(OPEN, "");
    return on;
}

/* Who cannot have it now, since somebody else does, may the next time. */
static void open_armed(void)
{
    char why[sizeof why_off] = "";
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

void pki_cupti_switch_flush(pki_flush why)
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

/* Steps that have ended until now are known, since they are folded first. */
pki_cupti_standing pki_cupti_standing_at(uint64_t now)
{
    pki_cupti_standing s = {.windowed = windowed,
                            .armed = armed,
                            .closed = pki_load(&now_in) == CLOSED,
                            .opened = pki_load(&opened),
                            .memory_opened = pki_load(&memory_opened),
                            .dropped = pki_load(&dropped)};
    s.memory_complete = pki_load_acquire(&memory_is_complete_to); /* advance's release */
    if (windowed) {
        pki_fold_lock();
        pki_fold_all(pki_fold_now());
        pki_fold_unlock();
    }
    pki_cupti_window w = pki_cupti_window_at(now);
    uint64_t taken_ns = pki_load_acquire(&taken_at); /* give_up's release */
    s.begin = w.begin;
    s.end = w.end;
    s.taken_at = taken_ns ? taken_ns : UINT64_MAX;
    s.complete = pki_load_acquire(&complete); /* pairs with the release in advance */
    return s;
}

void pki_cupti_switch_over(const char *why)
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

bool pki_cupti_switch_status(char *why, size_t size)
{
    pthread_mutex_lock(&words);
    bool on = pki_load(&now_in) != FAILED || pki_load(&memory_on);
    snprintf(why, size, "%s", why_off[0] ? why_off : text_of_stage());
    pthread_mutex_unlock(&words);
    return on;
}

void pki_cupti_switch_after_fork(void)
{
    pthread_mutex_init(&turn, NULL);
    pthread_mutex_init(&words, NULL);
    pki_store(&now_in, CLOSED);
    pki_store(&memory_on, false);
    taken_before_fork = taken_before_fork || subscriber || has_our_clock;
    pki_cupti_one = NULL;
    pki_cupti_recording = 0;
    subscriber = NULL;
    recording = for_memory = memory_kinds_on = false;
}
