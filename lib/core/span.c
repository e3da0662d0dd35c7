/* lib/core/span.c - pk/span.h: what begins on one thread and ends on another, as records.
 *
 * The three calls have a way of their own into the ring, for whoever has room there: pki_push
 * copies records, which costs as much again as all else. A call is amid a slow path (pki_enter) all
 * the same, so a handler that interrupts it finds out. What a call cannot do itself, it leaves to
 * its slow twin:
 *
 *   limit == 0       not joined, session over, slow clock, mirrors
 *   id == 0          first use of this pk_region
 *   no room          ring wrapped or full
 *   session differs  none, ended, of an earlier session
 */
#include <pk/request.h>
#include <pk/span.h>

#include "core/join.h"
#include "core/record.h"
#include "core/registry.h"
#include "core/thread.h"

#define SLOT ((uint32_t)sizeof(pki_record))
#define SERIALS 256u /* that a thread takes at a time */

#define ENDED 1u    /* flags */
#define NO_BEGIN 2u /* its begin has no record */

static uint32_t next_serial = 1; /* some readers take an id of 0 for none */

static inline bool has_room(const pki_thread *t, uint64_t state, uint32_t records)
{
    return (uint32_t)(state >> 32) + (records - 1) * SLOT < t->stop && pki_load(&t->limit);
}

/* Behind the records: whoever sees the new state sees them whole (pki_thread_seen). */
static inline void publish(pki_thread *t, uint64_t state, uint32_t records)
{
    pki_store_release(&t->state, state + ((uint64_t)(records * SLOT) << 32));
    pki_bump(&t->others, records);
    pki_bump(&t->points_pushed, 1);
}

static inline void write_record(pki_record *r, uint64_t start, uint64_t value, uint64_t what,
                                uint64_t extra)
{
    pki_store(&r->start, start);
    pki_store(&r->value, value);
    pki_store(&r->what, what);
    pki_store(&r->extra, extra);
}

/* ---- begin ---- */

static inline pk_span make(pki_thread *t, uint32_t name, uint64_t id, uint64_t now)
{
    t->span_left--;
    return (pk_span){id, now, now, name, t->span_serial++, t->session, 0, {0, 0}};
}

static inline pki_record begin_record(const pk_span *s)
{
    return (pki_record){s->start, s->id, PKI_WHAT(s->region, PKI_RECORD_SPAN_BEGIN, 0), s->serial};
}

static void reserve_serials(pki_thread *t)
{
    t->span_serial = pki_fetch_add(&next_serial, SERIALS);
    t->span_left = SERIALS;
}

static PKI_COLD pk_span begin_slow(pk_region *region, uint64_t id)
{
    uint32_t name = pki_region_id(region);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return (pk_span){0};
    }
    if (t->span_left == 0)
        reserve_serials(t);
    pk_span span = make(t, name, id, pki_ticks(t->monotonic));
    pki_record r = begin_record(&span);
    if (!pki_push_point(t, &r, 1)) {
        span.flags = NO_BEGIN;
        pki_bump(&t->spans.begins_dropped, 1);
    }
    return span;
}

PKI_IN_ORDER pk_span pk_span_begin_on_(pk_region *region, uint64_t id)
{
    pk_span span = {0};
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return span;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    uint32_t name = pki_load(&region->id);
    if (PKI_UNLIKELY(!has_room(t, state, 1) || name == 0 || t->span_left == 0)) {
        span = begin_slow(region, id);
    } else {
        span = make(t, name, id, pki_cycle_counter());
        pki_record r = begin_record(&span);
        write_record(pki_record_at(t, (uint32_t)(state >> 32)), r.start, r.value, r.what, r.extra);
        publish(t, state, 1);
    }
    pki_leave();
    return span;
}

/* ---- marks and ends ---- */

static inline bool is_open(const pki_thread *t, const pk_span *s)
{
    return s->session == t->session && !(s->flags & ENDED);
}

/* The thread, if it has to record something of the span; NULL: nothing, and that is counted. What
 * is none is nobody's. */
static PKI_COLD pki_thread *pki_span_thread(const pk_span *s)
{
    pki_thread *t = s->region ? pki_thread_join() : NULL;
    if (t && is_open(t, s))
        return t;
    if (t)
        pki_bump(s->flags & ENDED ? &t->spans.ended_twice : &t->spans.of_earlier, 1);
    else if (s->region)
        pki_registry_refuse_point();
    return NULL;
}

/* A call without a record, in the distribution all the same. */
static void count_dropped(pki_thread *t, uint32_t name, uint64_t start, uint64_t ticks)
{
    pki_table_count(&t->registry->arena->spans, &t->lost, pki_lost_slot(t, name),
                    pki_thread_ns(t, start, ticks));
}

static inline pki_record mark_record(const pk_span *s, uint32_t name, uint64_t now, uint64_t ticks)
{
    return (pki_record){now, ticks, PKI_WHAT(name, PKI_RECORD_SPAN_MARK, 0),
                        s->serial | (uint64_t)s->region << 32};
}

/* A mark of the span at `now`, of so many ticks. */
static PKI_COLD void pki_span_sample(pki_thread *t, const pk_span *s, uint32_t name, uint64_t now,
                                     uint64_t ticks)
{
    pki_record r = mark_record(s, name, now, ticks);
    if (!pki_push_point(t, &r, 1)) {
        pki_bump(&t->spans.marks_dropped, 1);
        count_dropped(t, name, now - ticks, ticks);
    }
}

static PKI_COLD void mark_slow(pk_span *s, pk_region *region)
{
    uint32_t name = pki_region_id(region);
    pki_thread *t = pki_span_thread(s);
    if (!t)
        return;
    uint64_t now = pki_ticks(t->monotonic);
    pki_span_sample(t, s, name, now, pki_not_negative(now - s->marked));
    s->marked = now;
}

PKI_IN_ORDER void pk_span_mark_on_(pk_span *s, pk_region *region)
{
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    uint32_t name = pki_load(&region->id);
    if (PKI_UNLIKELY(!has_room(t, state, 1) || name == 0 || !is_open(t, s))) {
        mark_slow(s, region);
    } else {
        uint64_t now = pki_cycle_counter();
        pki_record r = mark_record(s, name, now, pki_not_negative(now - s->marked));
        write_record(pki_record_at(t, (uint32_t)(state >> 32)), r.start, r.value, r.what, r.extra);
        publish(t, state, 1);
        s->marked = r.start;
    }
    pki_leave();
}

static inline pki_record end_record(const pk_span *s, uint64_t now)
{
    uint64_t flags = s->flags & NO_BEGIN ? PKI_FLAGS(PKI_FLAG_NO_BEGIN) : 0;
    return (pki_record){s->start, pki_not_negative(now - s->start),
                        PKI_WHAT(s->region, PKI_RECORD_SPAN_END, 0) | flags, s->serial};
}

/* Of those that wait to be folded. */
static bool has_ended(const pki_thread *t, uint32_t serial)
{
    for (uint32_t i = pki_load_acquire(&t->ends_folded); i != t->ends_made; i++)
        if (t->ends[i % PKI_ENDS].extra == serial)
            return true;
    return false;
}

/* Not straight into the distribution: it may be a copy's, and its span have ended. The same one
 * again takes no room here. False: there is none. */
static bool leave_to_fold(pki_thread *t, const pki_record *end)
{
    if (t->ends_made - pki_load_acquire(&t->ends_folded) == PKI_ENDS)
        return false;
    t->ends[t->ends_made % PKI_ENDS] = *end;
    pki_store_release(&t->ends_made, t->ends_made + 1); /* pairs with pki_fold_ends */
    return true;
}

static void end_without_record(pki_thread *t, const pki_record *end)
{
    pki_bump(&t->spans.ends_dropped, 1);
    if (has_ended(t, (uint32_t)end->extra)) {
        pki_bump(&t->spans.ended_twice, 1);
        return;
    }
    if (leave_to_fold(t, end))
        return;
    pki_bump(&t->spans.ends_lost, 1);
    count_dropped(t, pki_what_id(end->what), end->start, end->value);
}

static PKI_COLD void end_slow(pk_span *s)
{
    pki_thread *t = pki_span_thread(s);
    if (!t)
        return;
    pki_record r[2] = {end_record(s, pki_ticks(t->monotonic)), {s->id, 0, 0, 0}};
    if (!pki_push_point(t, r, 2))
        end_without_record(t, r);
    s->flags |= ENDED;
}

PKI_IN_ORDER void pk_span_end_on_(pk_span *s)
{
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    if (PKI_UNLIKELY(!has_room(t, state, 2) || !is_open(t, s))) {
        end_slow(s);
    } else {
        pki_record r = end_record(s, pki_cycle_counter()),
                   *at = pki_record_at(t, (uint32_t)(state >> 32));
        write_record(at, r.start, r.value, r.what, r.extra);
        write_record(at + 1, s->id, 0, 0, 0);
        publish(t, state, 2);
        s->flags |= ENDED;
    }
    pki_leave();
}

/* ---- requests of a server (pk/request.h) ---- */

/* the stages of a request, as marks of its span, and all of it in one record at its end
 * (core/record.h). */

static pk_region queue_time = PK_REGION_OF(PK_WAIT, PKI_REQUEST_QUEUE);
static pk_region first_token = PK_REGION(PKI_REQUEST_TTFT);
static pk_region token_interval = PK_REGION(PKI_REQUEST_ITL);
static pk_region per_token = PK_REGION(PKI_REQUEST_TPOT);

static uint64_t prompts_read; /* tokens, of all requests */

/* ---- stages ---- */

/* A stage that the thread is to record, or NULL. Each call of this header lies between the two. */
static pki_thread *enter(const pk_request *r)
{
    if (!pki_enter()) {
        pki_registry_refuse_point();
        return NULL;
    }
    pki_thread *t = pki_span_thread(&r->span);
    if (!t)
        pki_leave();
    return t;
}

static void sample(pki_thread *t, const pk_request *r, pk_region *stage, uint64_t now,
                   uint64_t ticks)
{
    pki_span_sample(t, &r->span, pki_region_id(stage), now, pki_not_negative(ticks));
}

pk_request pk_request_begin_on_(pk_region *region, uint64_t id)
{
    pk_request r = {.span = pk_span_begin_on_(region, id)};
    r.waiting = r.span.start;
    return r;
}

static uint32_t step_now(const pki_thread *t)
{
    return (uint32_t)pki_load(&t->registry->arena->header->steps);
}

/* The time that it has waited, if it does. */
static void end_waiting(pki_thread *t, pk_request *r, uint64_t now)
{
    if (!r->waiting)
        return;
    uint64_t waited = pki_not_negative(now - r->waiting);
    *(r->scheduled ? &r->preempted : &r->queued) += waited;
    r->waiting = 0;
    sample(t, r, &queue_time, now, waited);
}

void pk_request_schedule_on_(pk_request *r)
{
    pki_thread *t = enter(r);
    if (!t)
        return;
    uint64_t now = pki_ticks(t->monotonic);
    end_waiting(t, r, now);
    r->seen = pki_load(&prompts_read);
    if (!r->scheduled) {
        r->scheduled = now;
        r->first_step = step_now(t);
    }
    pki_leave();
}

void pk_request_prefill_on_(pk_request *r, uint64_t tokens)
{
    pki_thread *t = enter(r);
    if (!t)
        return;
    r->prefilled += tokens;
    pki_fetch_add(&prompts_read, tokens);
    pki_leave();
}

/* Tokens of others' prompts that have been read since the last look; *own: of its own. */
static uint64_t update_prompts(pk_request *r, uint64_t *own)
{
    uint64_t all = pki_load(&prompts_read), since = pki_not_negative(all - r->seen);
    *own = PKI_MIN(r->prefilled, since);
    r->seen = all;
    r->prefilled = 0;
    return since - *own;
}

/* Of the time since it was scheduled the share of others' prompts is theirs. */
static void first_token_came(pki_thread *t, pk_request *r, uint64_t now)
{
    uint64_t own, others = update_prompts(r, &own);
    uint64_t in_batch = pki_not_negative(now - r->span.start - r->queued - r->preempted);
    if (others)
        r->crowded = (uint64_t)((double)in_batch * (double)others / (double)(own + others));
    r->reading = in_batch;
    r->first = now;
    sample(t, r, &first_token, now, now - r->span.start);
}

static void next_token_came(pki_thread *t, pk_request *r, uint64_t now, uint64_t waited)
{
    uint64_t own, others = update_prompts(r, &own), ticks = pki_not_negative(now - r->last);
    sample(t, r, &token_interval, now, ticks);
    ticks -= PKI_MIN(ticks, waited);
    if (others) {
        r->behind += ticks;
        r->behind_events++;
    } else if (!own) { /* not what reads its own prompt again */
        r->clear += ticks;
        r->clear_events++;
    }
}

void pk_request_tokens_on_(pk_request *r, uint64_t count)
{
    pki_thread *t = count ? enter(r) : NULL;
    if (!t)
        return;
    uint64_t now = pki_ticks(t->monotonic), before = r->preempted;
    end_waiting(t, r, now);
    if (!r->first)
        first_token_came(t, r, now);
    else
        next_token_came(t, r, now, r->preempted - before);
    r->last = now;
    r->tokens += count;
    pki_leave();
}

void pk_request_preempt_on_(pk_request *r)
{
    pki_thread *t = enter(r);
    if (!t)
        return;
    if (!r->waiting) {
        r->waiting = pki_ticks(t->monotonic);
        r->preemptions++;
    }
    pki_leave();
}

/* ---- the end ---- */

/* What crowded intervals took beyond what they would have taken. */
static uint64_t excess_of(const pk_request *r)
{
    double usual = r->clear_events ? (double)r->clear / r->clear_events : 0;
    double excess = (double)r->behind - usual * r->behind_events;
    return excess > 0 ? (uint64_t)excess : 0;
}

static pki_request_done done_of(const pki_thread *t, const pk_request *r, uint64_t now)
{
    uint64_t start = r->span.start, waited = r->queued + r->preempted;
    uint64_t reading = r->first ? r->reading : pki_not_negative(now - start - waited);
    return (pki_request_done){
        .total = pki_thread_ns(t, start, pki_not_negative(now - start)),
        .queued = pki_thread_ns(t, start, r->queued),
        .preempted = pki_thread_ns(t, start, r->preempted),
        .ttft = r->first ? pki_thread_ns(t, start, pki_not_negative(r->first - start)) : 0,
        .generated = pki_thread_ns(t, start, pki_not_negative(r->last - r->first)),
        .reading = pki_thread_ns(t, start, reading),
        .crowded = pki_thread_ns(t, start, r->crowded),
        .behind = pki_thread_ns(t, start, excess_of(r)),
        .tokens = r->tokens,
        .preemptions = r->preemptions,
        .first_step = r->first_step,
        .steps = r->scheduled ? step_now(t) - r->first_step + 1 : 0};
}

/* No limit, or within it: what has no such figure keeps to it. */
static bool is_within(uint64_t figure, uint64_t limit)
{
    return !limit || figure <= limit;
}

static bool is_good(const pki_request_done *d)
{
    uint64_t tpot = d->tokens > 1 ? d->generated / (d->tokens - 1) : 0;
    uint64_t most_ttft, most_tpot;
    pki_request_limits(&most_ttft, &most_tpot);
    return d->outcome == PK_REQUEST_FINISHED && is_within(d->ttft, most_ttft) &&
           is_within(tpot, most_tpot);
}

static void record_end(pki_thread *t, pk_request *r, pk_request_outcome outcome)
{
    pki_record record[2];
    uint64_t now = pki_ticks(t->monotonic);
    end_waiting(t, r, now);
    if (r->tokens > 1)
        sample(t, r, &per_token, now, (r->last - r->first) / (r->tokens - 1));
    pki_request_done d = done_of(t, r, now);
    d.outcome = (uint32_t)outcome <= PK_REQUEST_FAILED ? (uint32_t)outcome : PK_REQUEST_FAILED;
    d.good = is_good(&d);
    pki_request_pack(&d, &r->span, now, record);
    if (!pki_push_point(t, record, 2))
        pki_bump(&t->spans.requests_dropped, 1);
}

void pk_request_end_on_(pk_request *r, pk_request_outcome outcome)
{
    pki_thread *t = enter(r);
    if (t) {
        record_end(t, r, outcome);
        pki_leave();
        pk_span_end_on_(&r->span);
    }
}
