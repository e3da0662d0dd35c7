/* lib/backend/cupti/cupti.c - kernels, copies, CUDA's calls and waits, through CUPTI.
 *
 *     cupti_api        the library's functions and versions
 *     cupti_calls      the library's names of CUDA's calls
 *     cupti_control    taking it, switching it on and off, giving it back
 *     cupti_attribute  on the program's threads: the region of each launch
 *     cupti_buffers    memory for records, from and to CUPTI's threads
 *     cupti_records    what is in a buffer
 *     cupti_links      what belongs to a correlation
 *     cupti_events     which call recorded the event that is waited for
 *     cupti_join       records put together, and in order
 *     cupti_window     a range of steps
 *     cupti_names, _tracks, _emit, _pools, _describe    into the trace
 *
 * Calls that may wait for CUPTI's threads are made in flush, without the drain lock; records are
 * read in collect and stop, with it. No callback takes a lock.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cupti/buffers.h"
#include "backend/cupti/control.h"
#include "backend/cupti/describe.h"
#include "backend/cupti/emit.h"
#include "backend/cupti/join.h"
#include "backend/cupti/names.h"
#include "backend/cupti/pools.h"
#include "backend/cupti/tracks.h"
#include "backend/cupti/window.h"
#include "base/clock.h"
#include "base/log.h"
#include "measure/fold/fold.h"
#include "session/activity.h"
#include "session/backend.h"

typedef enum stage { CLOSED, OPEN, QUIET, OVER, FAILED } stage;

/* Flushes come from the collector and from control calls, one at a time. Held while CUPTI is waited
 * for, so nobody takes it who holds a lock, and no callback does. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* What the status says; held for no longer than it takes to copy. */
static pthread_mutex_t words = PTHREAD_MUTEX_INITIALIZER;
static stage now_in; /* read by flushes without the lock, while a stop writes the last one */
static char reason[192];

static bool windowed, graph_nodes;
static uint64_t flush_every, last_flush; /* ns; of the session */
static uint64_t opened;                  /* when it began to record; 0: not yet */
static uint64_t complete; /* what began before it and has ended has been given back */

/* Under the drain lock. */
static pki_cupti_counts counts;
static uint64_t refused_before, finalised_for;
static enum { SILENT, TELLS, MEASURES, HAS_MEASURED } telling;
static bool described;

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

static void open_it(void)
{
    char why[sizeof reason] = "";
    if (!pki_cupti_open(graph_nodes, why, sizeof why)) {
        enter(FAILED, why);
        pki_log(PK_LOG_WARNING, "cupti: %s", why);
        return;
    }
    enter(OPEN, "");
    const pki_cupti_fault *fault = pki_cupti_fault_of(pki_cupti_version());
    if (fault)
        pki_log(PK_LOG_WARNING, "cupti: %s", fault->why);
    last_flush = now_ns();
    pki_store(&opened, PKI_MAX(last_flush, 1u));
}

static void read_config(const pki_config *config)
{
    pthread_mutex_lock(&words);
    windowed = config->cupti_window;
    pthread_mutex_unlock(&words);
    graph_nodes = config->cupti_graph_nodes;
    pki_cupti_events_want(config->cupti_sync_events);
    flush_every = PKI_MAX((uint64_t)config->flush_ms, 100u) * 1000000u;
    enter(CLOSED, "");
    last_flush = 0;
    pki_store(&complete, (uint64_t)0);
    pki_store(&opened, (uint64_t)0);
    memset(&counts, 0, sizeof counts);
    refused_before = pki_cupti_buffers_refused();
    described = false;
    telling = SILENT;
    finalised_for = 0;
    pki_cupti_window_start(config);
}

/* What an earlier session has left. */
static void discard_buffers(void)
{
    for (pki_cupti_buffer *b = pki_cupti_buffers_take(), *next; b; b = next) {
        next = b->next;
        pki_cupti_buffer_release(b);
    }
}

static bool start(const pki_config *config)
{
    pthread_mutex_lock(&turn);
    read_config(config);
    discard_buffers();
    if (!windowed)
        open_it();
    bool live = pki_load(&now_in) != FAILED;
    pthread_mutex_unlock(&turn);
    return live;
}

/* ---- without the drain lock ---- */

static void flush_now(bool at_once, bool forced)
{
    uint64_t t = now_ns();
    pki_cupti_flush(forced);
    /* The flush before this one: a record that was written meanwhile may be in no buffer yet. */
    pki_store(&complete, at_once ? t : last_flush);
    last_flush = t;
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
        pki_cupti_close();
        pki_store(&complete, UINT64_MAX);
        enter(OVER, "");
    }
}

static void finish(void)
{
    if (pki_load(&now_in) == OPEN || pki_load(&now_in) == QUIET)
        pki_cupti_close();
    pki_store(&complete, UINT64_MAX);
    if (pki_load(&now_in) != FAILED)
        enter(OVER, "");
}

static void flush(pki_flush why)
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
    if ((pki_load(&now_in) == OPEN || pki_load(&now_in) == QUIET) &&
        (why == PKI_FLUSH_NOW || t - last_flush >= flush_every))
        flush_now(why == PKI_FLUSH_NOW, false);
    pthread_mutex_unlock(&turn);
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
                              .end = w.end,
                              .decided = windowed ? t : UINT64_MAX,
                              .complete = pki_load(&complete),
                              .now = t,
                              .last = last};
}

/* Which steps are measured, and up to where everything is there. */
static void tell(const pki_cupti_limits *m)
{
    uint64_t from = pki_load(&opened);
    if (!from)
        return;
    if (telling == SILENT)
        pki_activity_begins(PKI_SOURCE_CUPTI, from);
    telling = PKI_MAX(telling, TELLS);
    if (telling == TELLS && m->begin != UINT64_MAX) {
        pki_activity_measures(PKI_MAX(m->begin, from), true);
        telling = MEASURES;
    }
    if (telling == MEASURES && m->end != UINT64_MAX) {
        pki_activity_measures(m->end, false);
        telling = HAS_MEASURED;
    }
    pki_activity_finalised(PKI_SOURCE_CUPTI, pki_cupti_join_finalised(m));
}

static void gather(bool last)
{
    uint64_t t = now_ns();
    pki_cupti_span span = {pki_load(&opened), t};
    pki_cupti_limits limits = limits_at(t, last); /* before buffers are taken: they have it all */
    for (pki_cupti_buffer *b = pki_cupti_buffers_take(), *next; b; b = next) {
        next = b->next;
        pki_cupti_read(b, &span, &counts, pki_cupti_join_take, &counts);
        pki_cupti_buffer_release(b);
    }
    if (!last && limits.complete == finalised_for)
        return; /* nothing that is held can have become ready, but by chance */
    finalised_for = limits.complete;
    pki_cupti_join_finalise(&limits, &counts, pki_cupti_emit);
    tell(&limits);
}

static void collect(void)
{
    if (!described && counts.records) {
        pki_cupti_describe_devices();
        described = true;
    }
    gather(false);
}

/* In the report, too: who has recorded nothing has not been within its steps. */
static void sum_up(uint64_t dropped, uint64_t refused)
{
    char text[sizeof reason];
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
    enter(OVER, text);
}

static void stop(void)
{
    uint64_t dropped = pki_cupti_dropped(), refused = pki_cupti_buffers_refused() - refused_before;
    gather(true);
    if (counts.records)
        pki_cupti_describe_devices();
    if (pki_load(&opened)) {
        pki_cupti_describe_counts(&counts, dropped, refused);
        sum_up(dropped, refused);
    }
    pki_cupti_join_forget();
    pki_cupti_tracks_forget();
    pki_cupti_pools_forget();
    pki_cupti_names_forget();
    pki_cupti_buffers_trim();
}

/* ---- status ---- */

static const char *words_of_stage(void)
{
    switch (pki_load(&now_in)) {
    case OPEN:
        return windowed ? "recording its steps" : "recording";
    case QUIET:
        return "its steps are over; waiting for their last kernels";
    case OVER:
        return windowed ? "its steps are over" : "stopped";
    default:
        return windowed ? "waiting for its steps" : "";
    }
}

/* Before a session only the library is looked for: to ask the driver would start it. */
static void probe(pk_backend_info *info)
{
    pthread_mutex_lock(&words);
    bool failed = pki_load(&now_in) == FAILED;
    snprintf(info->reason, sizeof info->reason, "%s", reason[0] ? reason : words_of_stage());
    pthread_mutex_unlock(&words);
    if (!failed)
        info->live = pki_cupti_load(info->reason, sizeof info->reason);
    if (pki_cupti_version())
        pki_cupti_version_text(pki_cupti_version(), info->version, sizeof info->version);
}

static bool asked(const pki_config *config)
{
    return config->cupti_window;
}

static void after_fork(void)
{
    pthread_mutex_init(&turn, NULL);
    pthread_mutex_init(&words, NULL);
    pki_store(&now_in, CLOSED);
    pki_cupti_control_after_fork();
    pki_cupti_buffers_after_fork();
    pki_cupti_join_after_fork();
    pki_cupti_tracks_after_fork();
    pki_cupti_names_after_fork();
}

extern const pki_backend pki_backend_cupti;
const pki_backend pki_backend_cupti = {
    .name = "cupti",
    .by_default = false,
    .probe = probe,
    .start = start,
    .asked = asked,
    .flush = flush,
    .collect = collect,
    .stop = stop,
    .after_fork = after_fork,
};
