/* lib/core/request.c - pk/request.h: the stages of a request, as marks of its span, and all of it
 * in one record at its end (core/record.h). */
#include <pk/request.h>

#include "core/record.h"
#include "core/registry.h"
#include "core/span.h"

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
