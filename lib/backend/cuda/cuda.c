/* lib/backend/cuda/cuda.c - the backend: spans of GPU streams, by events of the CUDA driver
 * (pk/gpu.h; docs/internals/backends.md says how it goes about it). */
#include "backend/cuda/cuda.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/comm/emit.h"
#include "backend/cuda/counts.h"
#include "backend/cuda/graph.h"
#include "backend/cuda/lane.h"
#include "backend/cuda/replay.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "core/frames.h"
#include "core/names.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/session.h"

/* ---- why a span is missing, in words, for pk_backend_status ---- */

static const char *const words[PKI_CUDA_REASONS] = {
    [PKI_CUDA_SAMPLED] = "graphs are replayed without pk_gpu_graph_launching: their spans are read "
                         "about every 10 ms, replays in between are missing",
    [PKI_CUDA_CAPTURE_OFF] = "spans were kept out of captures: gpu_graphs (PK_GPU_GRAPHS) is 0",
    [PKI_CUDA_REFUSED] = "operations were skipped: NCCL refused the call",
    [PKI_CUDA_LATE] =
        "operations were skipped: a communicator that does not block may put them into "
        "their stream after the call",
    [PKI_CUDA_CAPTURE_NO_EVENTS] = "spans were kept out of a graph that takes no event nodes, as "
                                   "the body of a conditional node",
    [PKI_CUDA_CAPTURE_PROGRAMMATIC] =
        "spans were kept out of captures where a kernel's dependency is programmatic, which holds "
        "between kernels only",
    [PKI_CUDA_CAPTURE_NO_PAIR] = "spans were dropped: graphs hold as many pairs of events as they "
                                 "may, 16384 of a context",
    [PKI_CUDA_NO_PAIR] = "spans were dropped: no pair of events was free",
    [PKI_CUDA_NO_ROOM] = "spans were dropped: too many were in flight on a stream",
    [PKI_CUDA_NO_MEMORY] = "spans were dropped: no memory",
    [PKI_CUDA_NO_END] = "spans were lost: they were open at pk_stop, or when their thread ended",
    [PKI_CUDA_NOT_REACHED] = "spans were lost: the device had not reached their end at pk_stop",
    [PKI_CUDA_LEGACY_CAPTURED] =
        "spans were skipped: the default stream cannot be used while a blocking stream captures",
    [PKI_CUDA_CAPTURE_INVALID] = "spans were skipped: the capture they lay in was already invalid",
    [PKI_CUDA_CAPTURE_SPLIT] = "spans were skipped: only one end of them lay in a capture",
    [PKI_CUDA_CAPTURE_OLD] =
        "spans were skipped: this driver cannot follow captures (it takes 11.3)",
    [PKI_CUDA_CAPTURE_FAILED] = "spans were skipped: their capture could not be followed",
    [PKI_CUDA_NO_CONTEXT] = "spans were skipped: their stream has no context",
    [PKI_CUDA_CALL_FAILED] = "spans were skipped or lost: a driver call failed",
    [PKI_CUDA_CONTEXT_GONE] = "a context was destroyed; spans that it had not finished are lost",
    [PKI_CUDA_CONTEXT_DEAD] = "nothing works in a context any more; it is left alone",
};

/* reason << 48 | context << 32 | code, in one piece. */
static uint64_t said;

void pki_cuda_note_reason(pki_cuda_reason reason, CUresult code, uint32_t context)
{
    uint64_t wanted = (uint64_t)reason << 48 | (uint64_t)(context & 0xFFFF) << 32 | (uint32_t)code;
    uint64_t old = pki_load(&said);
    while (old >> 48 < reason && !__atomic_compare_exchange_n(&said, &old, wanted, true,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Nothing to say. Between sessions. */
static void pki_cuda_forget_reason(void)
{
    pki_store(&said, (uint64_t)0);
}

/* What is remembered, as a sentence. */
static void pki_cuda_reason_text(char *text, size_t size)
{
    uint64_t now = pki_load(&said);
    CUresult code = (CUresult)(uint32_t)now;
    unsigned context = (unsigned)(now >> 32) & 0xFFFF;
    const char *what = words[now >> 48] ? words[now >> 48] : "";
    char where[32] = "";
    if (context)
        snprintf(where, sizeof where, "context %u: ", context);
    if (code)
        snprintf(text, size, "%s%s: %s (%d)", where, what, pki_cuda_error_name(code), (int)code);
    else
        snprintf(text, size, "%s%s", where, what);
}

/* ---- what pk_get_gpu_counts answers, to callers of any version ---- */

/* Outcomes first: begun is counted before any of them. */
static void add_lane(pk_gpu_counts *c, const pki_cuda_lane *l)
{
    const pki_cuda_counters *o = &l->counters;
    c->recorded += pki_load(&l->recorded);
    c->lost += pki_load(&l->lost);
    c->replayed += pki_load(&l->replayed);
    c->sampled += pki_load(&l->sampled);
    c->operations += pki_load(&l->operations);
    c->refused += pki_load(&o->refused);
    c->kept_out += pki_load(&o->kept_out);
    c->dropped += pki_load_acquire(&o->dropped); /* these pair with the releases in cuda/span.c */
    c->skipped += pki_load_acquire(&o->skipped);
    uint64_t captured = pki_load_acquire(&o->captured);
    c->captured += captured;
    c->unbalanced += pki_load(&o->unbalanced);
    c->stray_ends += pki_load(&o->stray_ends);
    c->begun += pki_load(&o->begun) - captured;
}

/* What pk_get_gpu_counts answers, of the session so far. Under the drain lock. */
static void pki_cuda_sum(pk_gpu_counts *c)
{
    uint64_t dropped = pki_load(&pki_cuda_refused_dropped);
    uint64_t begun = pki_load(&pki_cuda_refused_begun);
    *c = (pk_gpu_counts){.size = sizeof *c, .begun = begun, .dropped = dropped};
    c->skipped = begun - dropped;
    for (const pki_cuda_lane *l = pki_load_acquire(&pki_cuda_lanes); l; l = l->next)
        if (pki_cuda_lane_is_current(l))
            add_lane(c, l);
    for (pki_cuda_context *x = pki_load_acquire(&pki_cuda_contexts); x; x = x->next) {
        c->contexts += pki_load(&x->session) == pki_load(&pki_cuda_session);
        c->pairs += pki_load(&x->pool.pairs);
    }
}

/* ---- the asker's part ---- */

static pki_cuda_mark mark_at(const pki_cuda_lane *l, uint64_t i)
{
    return l->marks[i % PKI_CUDA_MARKS];
}

static void harvest_pop(pki_cuda_lane *l)
{
    l->unready_ns = 0;
    pki_store_release(&l->tail, l->tail + 1); /* pairs with the acquire in _has_room */
}

static void count_lost(pki_cuda_lane *l)
{
    pki_bump(&l->lost, 1);
}

static void release_pair(const pki_cuda_lane *l, pki_cuda_mark m)
{
    if (!l->exec && pki_cuda_mark_type_of(m) != PKI_CUDA_BEGIN)
        pki_cuda_pair_release(&l->context->pool, pki_cuda_mark_pair(m));
}

static pki_cuda_operation *operation_of(const pki_cuda_lane *l, pki_cuda_mark m)
{
    if (l->exec)
        return pki_cuda_pattern(l->exec, pki_cuda_mark_pair(m) % l->exec->spans);
    return &pki_cuda_pair_at(&l->context->pool, pki_cuda_mark_pair(m))->operation;
}

/* Also of a context that is not there any more: what lies beside the events is. */
static void drop_pair(const pki_cuda_lane *l, uint32_t pair, bool alive)
{
    if (alive)
        pki_cuda_pair_release(&l->context->pool, pair);
    else
        pki_cuda_operation_abandon(&pki_cuda_pair_at(&l->context->pool, pair)->operation);
}

/* Nothing will be heard of what the mark ends. */
static void drop(pki_cuda_lane *l, pki_cuda_mark m)
{
    pki_cuda_mark_type type = pki_cuda_mark_type_of(m);
    if (type == PKI_CUDA_END)
        count_lost(l);
    if (type == PKI_CUDA_END && l->exec)
        pki_cuda_replay_abandon(operation_of(l, m));
    else if (type != PKI_CUDA_BEGIN && !l->exec)
        pki_cuda_operation_abandon(operation_of(l, m));
}

/* ---- marks of a thread's stream ---- */

static CUevent event_of(const pki_cuda_lane *l, pki_cuda_mark m)
{
    pki_cuda_pair *pair = pki_cuda_pair_at(&l->context->pool, pki_cuda_mark_pair(m));
    return pki_cuda_mark_type_of(m) == PKI_CUDA_BEGIN ? pair->begin : pair->end;
}

/* The event of an end, from that of its begin: exact for long spans, too. */
static CUresult end_time(pki_cuda_lane *l, pki_cuda_mark m, double *device)
{
    float ms = 0;
    pki_cuda_pair *pair = pki_cuda_pair_at(&l->context->pool, pki_cuda_mark_pair(m));
    double begun = pki_cuda_emit_begun(l, m.region);
    if (isnan(begun))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult code = pki_cuda.event_elapsed(&ms, pair->begin, pair->end);
    *device = begun + (double)ms * 1e6;
    return code;
}

static void harvest_begin(pki_cuda_lane *l, pki_cuda_mark m, CUresult code, uint64_t seen)
{
    double device = 0;
    code = code ? code : pki_cuda_event_time(l->context, event_of(l, m), &device);
    if (!code)
        pki_cuda_anchors_learn(l->context, device, l->unready_ns, seen);
    pki_cuda_emit_begin(l, m.region, code ? NAN : device);
    if (operation_of(l, m)->what)
        pki_cuda_operation_begun(operation_of(l, m));
}

static void emit_end(pki_cuda_lane *l, pki_cuda_mark m, double device)
{
    pki_cuda_operation *op = operation_of(l, m);
    if (op->what) {
        pki_cuda_emit_operation(l, m.region, device, op, l->exec != NULL);
        pki_bump(&l->operations, 1);
    } else {
        pki_cuda_emit_end(l, m.region, device);
    }
    pki_bump(&l->recorded, 1);
}

static void harvest_end(pki_cuda_lane *l, pki_cuda_mark m, CUresult code, uint64_t seen)
{
    double device = 0;
    code = code ? code : end_time(l, m, &device);
    if (code) {
        pki_cuda_emit_cancel(l, m.region);
        count_lost(l);
        pki_cuda_note_reason(PKI_CUDA_CALL_FAILED, code, 0);
    } else {
        pki_cuda_anchors_learn(l->context, device, l->unready_ns, seen);
        emit_end(l, m, device);
    }
    release_pair(l, m);
}

/* An operation without a second event is not timed, but done, unless NCCL refused it. */
static void harvest_cancel(pki_cuda_lane *l, pki_cuda_mark m)
{
    pki_cuda_pair *pair = pki_cuda_pair_at(&l->context->pool, pki_cuda_mark_pair(m));
    pki_cuda_emit_cancel(l, m.region);
    if (pair->operation.what && !pair->refused)
        pki_cuda_operation_complete(&pair->operation);
    release_pair(l, m);
}

/* An answer that is neither yes nor not yet: is it the context, or this event? True: go on. */
static bool survives(pki_cuda_lane *l, CUresult code)
{
    return code == CUDA_SUCCESS ||
           (!pki_cuda_context_failed(l->context, code) && pki_cuda_context_alive(l->context));
}

/* seen: when it is known to have been reached; 0: not yet. False if it cannot be taken yet. */
static bool harvest_mark(pki_cuda_lane *l, pki_cuda_mark m, uint64_t seen)
{
    CUresult code = CUDA_SUCCESS;
    uint64_t asked = seen;
    if (pki_cuda_mark_type_of(m) == PKI_CUDA_CANCEL) {
        harvest_cancel(l, m);
        return true;
    }
    if (!seen) {
        asked = pki_monotonic_ns();
        code = pki_cuda.event_query(event_of(l, m));
        seen = pki_monotonic_ns();
    }
    if (code == CUDA_ERROR_NOT_READY)
        l->unready_ns = asked;
    if (code == CUDA_ERROR_NOT_READY || !survives(l, code))
        return false;
    if (pki_cuda_mark_type_of(m) == PKI_CUDA_BEGIN)
        harvest_begin(l, m, code, seen);
    else
        harvest_end(l, m, code, seen);
    return true;
}

/* Has the device passed the newest mark, and with it all? One question instead of one for each. */
static bool all_reached(const pki_cuda_lane *l, uint64_t head)
{
    pki_cuda_mark m = mark_at(l, head - 1);
    return pki_cuda_mark_type_of(m) != PKI_CUDA_CANCEL &&
           pki_cuda.event_query(event_of(l, m)) == CUDA_SUCCESS;
}

static void harvest_stream(pki_cuda_lane *l, uint64_t head)
{
    uint64_t seen = head - l->tail > 1 && all_reached(l, head) ? pki_monotonic_ns() : 0;
    while (l->tail < head && harvest_mark(l, mark_at(l, l->tail), seen))
        harvest_pop(l);
}

/* ---- marks of a graph's replays ---- */

static pki_cuda_stamped *replayed_event(const pki_cuda_exec *x, pki_cuda_mark mark)
{
    uint32_t at = pki_cuda_mark_pair(mark);
    uint32_t end = pki_cuda_mark_type_of(mark) != PKI_CUDA_BEGIN;
    return &x->sets[at / x->spans].events[at % x->spans * 2 + end];
}

/* Reached, and not at the time at which an earlier replay had reached it? */
static bool is_fresh(pki_cuda_lane *l, pki_cuda_mark m, double *device)
{
    const pki_cuda_stamped *s = replayed_event(l->exec, m);
    CUresult code = pki_cuda.event_query(s->event);
    if (!code)
        code = pki_cuda_event_time(l->context, s->event, device);
    pki_cuda_context_failed(l->context, code);
    return !code && !(fabs(*device - s->seen) < pki_cuda_same_ns(l->context, *device));
}

/* A replay that was announced and not launched has no times; the one behind it has. */
static bool was_skipped(pki_cuda_lane *l, uint64_t head)
{
    double device;
    uint64_t next = l->tail + l->exec->per_replay[l->branch];
    return next < head && is_fresh(l, mark_at(l, next), &device);
}

static void drop_replay(pki_cuda_lane *l)
{
    for (uint32_t i = l->exec->per_replay[l->branch]; i > 0; i--) {
        drop(l, mark_at(l, l->tail));
        harvest_pop(l);
    }
    l->reading = 0;
}

static void harvest_replayed(pki_cuda_lane *l, pki_cuda_mark m, double device)
{
    replayed_event(l->exec, m)->seen = device;
    if (pki_cuda_mark_type_of(m) == PKI_CUDA_BEGIN) {
        pki_cuda_emit_begin(l, m.region, device);
    } else {
        emit_end(l, m, device);
        pki_bump(&l->replayed, 1);
    }
    harvest_pop(l);
}

static void harvest_replays(pki_cuda_lane *l, uint64_t head)
{
    double device = 0;
    while (l->tail < head) {
        pki_cuda_mark m = mark_at(l, l->tail);
        if (pki_cuda_mark_type_of(m) == PKI_CUDA_CANCEL) {
            pki_cuda_emit_cancel(l, m.region);
            harvest_pop(l);
        } else if (is_fresh(l, m, &device)) {
            harvest_replayed(l, m, device);
        } else if (l->reading == 0 && was_skipped(l, head)) {
            drop_replay(l);
        } else {
            return;
        }
    }
}

/* ---- all lanes ---- */

/* Of a context that is not there any more. */
static void discard(pki_cuda_lane *l, uint64_t head, bool alive)
{
    for (; l->tail < head; harvest_pop(l)) {
        pki_cuda_mark m = mark_at(l, l->tail);
        drop(l, m);
        if (alive)
            release_pair(l, m);
    }
    l->reading = 0;
}

/* The thread that had it has ended, or has another one for that stream: it is free once it is
 * read. */
static void recycle(pki_cuda_lane *l)
{
    bool alive = !pki_load(&l->context->dead);
    for (uint32_t i = 0; i < l->depth; i++)
        if (l->open[i].how == PKI_CUDA_RECORDED)
            drop_pair(l, l->open[i].pair, alive);
    if (pki_cuda_lane_is_current(l) && l->depth > 0)
        pki_cuda_note_reason(PKI_CUDA_NO_END, CUDA_SUCCESS, 0);
    l->depth = 0;
    pki_store_release(&l->life, (uint32_t)PKI_CUDA_FREE); /* pairs with the acquire in find_free */
}

/* What a lane may yet emit began no earlier than this: it has just been asked, and what the device
 * has not passed begins later than that; but for what has begun and not ended. */
static uint64_t finalised_of(const pki_cuda_lane *l, uint64_t asked)
{
    return l->reading ? PKI_MIN(l->read[0].start, asked) : asked;
}

/* The clocks of host and device are tied together within much less. */
#define DOUBT_NS 1000000u

static void emit_finalised(uint64_t ns)
{
    if (ns <= DOUBT_NS)
        return;
    if (!pki_activity_lock())
        return;
    pki_activity_finalised(PKI_SOURCE_CUDA, ns - DOUBT_NS);
    pki_activity_unlock();
}

static void begin_activities(void)
{
    static uint32_t begun; /* session */
    if (begun == pki_load(&pki_cuda_session))
        return;
    begun = pki_load(&pki_cuda_session);
    if (!pki_activity_lock())
        return;
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pki_activity_unlock();
}

/* No driver is in use: until then (ns of the session) no device has done anything. */
static void pki_cuda_harvest_nothing(uint64_t until)
{
    begin_activities();
    emit_finalised(until);
}

/* True if something is left. *finalised is lowered to what of it may begin. */
static bool harvest_lane(pki_cuda_lane *l, uint64_t asked, uint64_t *finalised)
{
    uint64_t head = pki_load_acquire(&l->head); /* pairs with the release in _lane_mark */
    if (l->tail == head) {
        *finalised = PKI_MIN(*finalised, finalised_of(l, asked));
        return false;
    }
    /* Once a round, and only where something is unread: cuda.h forbids calls on a context while it
     * is destroyed, and a program that has synchronised and flushed meets none. */
    if (l->context->waiting == 0)
        pki_cuda_context_alive(l->context);
    l->context->waiting += (head - l->tail + 1) / 2;
    if (!(pki_cuda_context_use(l->context) && pki_cuda_anchors_update(l->context)) &&
        !pki_load(&l->context->dead)) {
        *finalised = 0; /* it has not been asked */
        return !l->context->anchors.useless;
    }
    if (!pki_load(&l->context->dead) && l->exec)
        harvest_replays(l, head);
    else if (!pki_load(&l->context->dead))
        harvest_stream(l, head);
    if (pki_load(&l->context->dead))
        discard(l, head, false);
    *finalised = PKI_MIN(*finalised, finalised_of(l, asked));
    return l->tail < head;
}

/* So that recording threads seldom have to make events themselves. */
static void grow_ahead(void)
{
    for (pki_cuda_context *c = pki_load_acquire(&pki_cuda_contexts); c; c = c->next) {
        pki_store(&c->pool.tired, 0u);
        if (!pki_load(&c->dead) && c->waiting > pki_load(&c->pool.pairs) / 2)
            pki_cuda_context_failed(c, pki_cuda_pool_grow(&c->pool, c->handle));
        c->waiting = 0;
    }
}

/* All lanes of the session, once. True if something is left that may yet come. */
static bool pki_cuda_harvest(void)
{
    bool left = false;
    uint64_t asked = pki_activity_ns(pki_monotonic_ns()), finalised = asked;
    CUstreamCaptureMode mode = pki_cuda_relax();
    begin_activities();
    for (pki_cuda_lane *l = pki_load_acquire(&pki_cuda_lanes); l; l = l->next) {
        /* Pairs with the releases in cuda/lane.c, and those of graphs. */
        uint32_t life = pki_load_acquire(&l->life);
        if (life == PKI_CUDA_FREE || life == PKI_CUDA_TAKEN)
            continue;
        bool more = pki_cuda_lane_is_current(l) && harvest_lane(l, asked, &finalised);
        left |= more;
        if (life == PKI_CUDA_LEFT && !more) {
            discard(l, l->head, !pki_load(&l->context->dead));
            recycle(l);
        }
    }
    pki_cuda_sample();
    pki_cuda_context_use(NULL);
    emit_finalised(finalised);
    grow_ahead();
    pki_cuda_restore(mode);
    return left;
}

/* Nothing more of this session will be read: what is left is lost. */
static void pki_cuda_harvest_discard(void)
{
    for (pki_cuda_lane *l = pki_load_acquire(&pki_cuda_lanes); l; l = l->next) {
        uint32_t life = pki_load_acquire(&l->life);
        if (life == PKI_CUDA_FREE || life == PKI_CUDA_TAKEN || !pki_cuda_lane_is_current(l))
            continue;
        uint64_t head = pki_load_acquire(&l->head); /* pairs with the release in _lane_mark */
        if (l->tail < head)
            pki_cuda_note_reason(PKI_CUDA_NOT_REACHED, CUDA_SUCCESS, 0);
        discard(l, head, !pki_load(&l->context->dead));
    }
}

/* ---- the backend ---- */

#define STOP_WAITS_NS 100000000u
#define STOP_LOOKS_NS 200000

uint32_t pk_gpu_gate_;

static pk_gpu_counts final; /* of the last session; under the drain lock */
static bool running, started_once;

static void pki_cuda_version(char *text, size_t size)
{
    int version = 0;
    if (pki_cuda_known() >= PKI_CUDA_FOUND && pki_cuda.driver_version(&version) == CUDA_SUCCESS)
        snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

static void tell(pki_cuda_verdict verdict, pk_backend_info *info)
{
    info->live = verdict == PKI_CUDA_LIVE;
    pki_cuda_version(info->version, sizeof info->version);
    if (verdict == PKI_CUDA_LIVE)
        pki_cuda_reason_text(info->reason, sizeof info->reason);
    else if (verdict == PKI_CUDA_FOUND)
        strcpy(info->reason, "the CUDA driver is there; no span of a stream was begun");
    else
        strncpy(info->reason, pki_cuda_why(), sizeof info->reason - 1);
}

/* A program that asks gets the answer that takes cuInit; a report, to which nobody has answered
 * before, does without. */
static void probe(pk_backend_info *info)
{
    pki_cuda_verdict verdict = pki_cuda_known();
    if (verdict <= PKI_CUDA_FOUND && (running || !started_once))
        verdict = pki_cuda_decide();
    tell(verdict, info);
}

static void told(pk_backend_info *info)
{
    tell(pki_cuda_known(), info);
}

static void foresee(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    memset(&final, 0, sizeof final); /* whether or not it is there in this session */
    pthread_mutex_unlock(&pki_drain_lock);
    pki_cuda_find();
}

/* Before the first span is read in a session: times are that session's. */
static void pki_cuda_anchors_reset(pki_cuda_anchors *a)
{
    memset(&a->clock, 0, sizeof a->clock);
    memset(&a->bounds, 0, sizeof a->bounds);
    a->pending_ns = 0;
    a->made = a->made && !a->useless; /* try again */
}

static bool start(const pki_config *config)
{
    pki_cuda_verdict verdict = pki_cuda_find();
    bool usable =
        (verdict == PKI_CUDA_LIVE || verdict == PKI_CUDA_FOUND) && pki_cuda_threads_prepare();
    pki_cuda_forget_reason();
    pki_store(&pki_cuda_captures, config->gpu_graphs);
    started_once = true;
    if (!usable)
        return false;
    pki_store(&pki_cuda_refused_begun, (uint64_t)0);
    pki_store(&pki_cuda_refused_dropped, (uint64_t)0);
    for (pki_cuda_context *c = pki_load_acquire(&pki_cuda_contexts); c; c = c->next)
        pki_cuda_anchors_reset(&c->anchors);
    pki_store(&pki_comms_wrapped, 0u);
    pki_store_release(&pki_cuda_session, pki_cuda_session + 1); /* acquire: lane_enter */
    running = true;
    pki_store_release(&pk_gpu_gate_, 1u);
    return true;
}

extern const pki_backend pki_backend_cuda;

static void wait_for_the_rest(void)
{
    uint64_t from = pki_monotonic_ns();
    const struct timespec pause = {0, STOP_LOOKS_NS};
    while (pki_cuda_harvest() && pki_monotonic_ns() - from < STOP_WAITS_NS)
        nanosleep(&pause, NULL);
    pki_cuda_harvest_discard();
}

static void ask(pki_flush why)
{
    uint64_t now = pki_activity_ns(pki_monotonic_ns());
    if (pki_cuda_known() == PKI_CUDA_LIVE && why == PKI_FLUSH_LAST)
        wait_for_the_rest();
    else if (pki_cuda_known() == PKI_CUDA_LIVE)
        pki_cuda_harvest();
    else if (!pki_backends_tell_of_devices(&pki_backend_cuda))
        pki_cuda_harvest_nothing(now); /* nobody had begun a span until then */
}

/* What is still open has no end: its begin was counted, and nothing else. */
static void count_open(pk_gpu_counts *c)
{
    uint64_t known = c->recorded + c->dropped + c->skipped + c->lost;
    if (c->begun <= known)
        return;
    c->lost += c->begun - known;
    pki_cuda_note_reason(PKI_CUDA_NO_END, CUDA_SUCCESS, 0);
}

static void halt(void)
{
    pki_store(&pk_gpu_gate_, 0u);
}

static void stop(void)
{
    pki_cuda_sum(&final);
    count_open(&final);
    running = false;
}

static void after_fork(void)
{
    pki_store(&pk_gpu_gate_, 0u);
    running = false;
    memset(&final, 0, sizeof final);
    pki_cuda_api_after_fork();
    pki_cuda_lanes_after_fork();
    pki_cuda_graphs_after_fork();
    pki_cuda_operations_after_fork();
}

pk_status(pk_get_gpu_counts)(pk_gpu_counts *counts)
{
    pk_gpu_counts all;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pthread_mutex_lock(&pki_drain_lock);
    if (running)
        pki_cuda_sum(&all);
    else
        all = final;
    pthread_mutex_unlock(&pki_drain_lock);
    pki_inside_leave();
    return pki_cuda_copy_counts(counts, &all);
}

const pki_backend pki_backend_cuda = {
    .name = "cuda",
    .by_default = true,
    .devices = true,
    .probe = probe,
    .told = told,
    .foresee = foresee,
    .start = start,
    .ask = ask,
    .halt = halt,
    .stop = stop,
    .after_fork = after_fork,
};
