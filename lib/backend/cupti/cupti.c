/* lib/backend/cupti/cupti.c - kernels, copies, CUDA's calls and waits, through CUPTI.
 *
 *     control.c   the library found, taken and given back; memory for records, from and to its
 *                 threads; another tool that takes that
 *     switch.c    when it is on: a range of steps, or what captures want
 *     memory.c    on the program's threads: the region of each launch; what is allocated, and where
 *     records.c   what is in a buffer; the library's names of CUDA's calls
 *     join.c      what belongs to a correlation; records put together, and in order
 *     emit.c      into the trace: tracks, names, devices, what is missing
 *
 * Calls that may wait for CUPTI's threads are made in flush, those of the driver in ask, without
 * the drain lock; records are read in collect and halt, with it. No callback takes a lock.
 */
#include <stdio.h>
#include <string.h>

#include "backend/cupti/control.h"
#include "backend/cupti/emit.h"
#include "backend/cupti/join.h"
#include "backend/cupti/switch.h"
#include "backend/cupti/memory.h"
#include "backend/cupti/records.h"
#include "base/clock.h"
#include "base/log.h"
#include "measure/fold/fold.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/session.h"

/* Under the drain lock. */
static bool windowed, armed;
static pki_cupti_counts counts;
static uint64_t refused_before, finalised_for, given_for;
static enum { SILENT, BEGUN, MEASURES, MEASURED } emitted;
static bool described; /* by who asks */

static void forget(const pki_config *config, bool listed)
{
    windowed = config->cupti_window;
    armed = config->cupti_armed && listed;
    pki_cupti_events_want(config->cupti_sync_events);
    memset(&counts, 0, sizeof counts);
    refused_before = pki_cupti_buffers_refused();
    described = false;
    emitted = SILENT;
    finalised_for = given_for = 0;
}

/* What an earlier session has left. */
static void discard_buffers(void)
{
    for (pki_cupti_buffer *b = pki_cupti_buffers_drain(), *next; b; b = next) {
        next = b->next;
        pki_cupti_buffer_release(b);
    }
}

extern const pki_backend pki_backend_cupti;

static bool start(const pki_config *config)
{
    bool listed = pki_backend_wanted(&pki_backend_cupti, config->backends);
    forget(config, listed);
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

/* On and off, as captures had it: at once, so that they wait for what is to come. Between two times
 * nobody waits for anything. */
static void emit_marks(void)
{
    for (pki_cupti_mark mark; pki_cupti_marks_pop(&mark);) {
        if (mark.on && emitted == SILENT)
            pki_activity_begins(PKI_SOURCE_CUPTI, mark.ns);
        emitted = mark.on ? MEASURES : MEASURED;
        pki_activity_measures(mark.ns, mark.on);
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
    }
    if (emitted == MEASURES && m->end != UINT64_MAX) {
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
    uint64_t opened = pki_cupti_opened(), memory = pki_cupti_memory_opened();
    pki_cupti_span span = {memory ? memory : opened, t}; /* memory is opened first */
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
