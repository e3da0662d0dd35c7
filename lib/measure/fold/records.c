/* lib/measure/fold/records.c - each record into the distributions */
#include <pk/request.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "core/frames.h"
#include "measure/fold/fold.h"
#include "measure/fold/walk.h"
#include "measure/steps/steps.h"

/* ---- operations on communicators, from records to figures ---- */

/* In a region that is one operation, all of it is waited for. */
static uint64_t exposed_of(const pki_record *r, uint64_t duration)
{
    return pki_what_type(r->what) == PKI_RECORD_OPERATION ? r->extra : duration;
}

/* Beside calls that were lost it is not known. */
static uint64_t tag_of(const pki_record *r, const pki_record *more)
{
    if (pki_what_type(r->what) == PKI_RECORD_OPERATION)
        return (uint64_t)more->value;
    return pki_what_flags(r->what) & PKI_FLAG_LOST ? 0 : r->extra & PKI_THINNED_REST;
}

static uint32_t plus_one(int32_t rank)
{
    return rank >= 0 ? (uint32_t)rank + 1 : 0;
}

/* A communicator's operation, if the record's second slot says that it is one. */
static void pki_fold_operation(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    const pki_arena_header *h = fold->registry->arena->header;
    const pki_clock_map *clock = &h->clock;
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    const pk_comm *comm = pki_is_operation(more->what) ? pki_comm_of_name(f.comm) : NULL;
    if (!comm)
        return;
    uint64_t start = pki_clock_ns(clock, r->start);
    uint64_t end = pki_clock_ns(clock, r->start + pki_not_negative(r->value));
    pki_comm_figures_add(
        fold->collectives,
        &(pki_timed_operation){
            .comm = comm->index,
            .ranks = (uint32_t)PKI_MAX(comm->size, 0),
            .op = f.op < PKI_COMM_OPS ? (pk_comm_op)f.op : PK_COMM_OP_OTHER,
            .region = f.parent,
            .bytes = more->start,
            .sequence = f.sequence,
            .start = start,
            .end = end,
            .exposed = exposed_of(r, end - start),
            .comm_id = comm->id,
            .tag = tag_of(r, more),
            .self = h->world_size > 0 ? plus_one(h->rank) : 0,
            .partner = plus_one(pki_comm_job_rank(comm, f.peer, h->rank, h->world_size)),
            .in_flight = f.in_flight});
}

/* ---- records of pk_spans as calls of their regions ---- */

#define PKI_NO_CALL UINT64_MAX

static uint64_t ns_of(const pki_fold *fold, uint64_t start, uint64_t ticks)
{
    return pki_clock_span_ns(&fold->registry->arena->header->clock, start, pki_not_negative(ticks));
}

static pki_open_span span_of(const pki_record *r, uint64_t id)
{
    return (pki_open_span){.start = r->start,
                           .id = id,
                           .serial = (uint32_t)r->extra,
                           .name = pki_what_id(r->what),
                           .state = PKI_SPAN_OPEN};
}

/* If its end has come before it, that is one of the region's calls. */
static uint64_t begin(pki_fold *fold, uint32_t tid, const pki_record *r)
{
    pki_open_span span = span_of(r, r->value);
    span.tid = tid;
    return pki_spans_begin(&fold->spans, &span);
}

/* The time before it, which ends where it stands. */
static uint64_t mark(pki_fold *fold, const pki_record *r)
{
    pki_spans_mark(&fold->spans, pki_what_id(r->what));
    return ns_of(fold, r->start - r->value, r->value);
}

static uint64_t end(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    pki_open_span span = span_of(r, more->start);
    uint64_t ns = ns_of(fold, r->start, r->value);
    bool unbegun = pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN;
    return pki_spans_end(&fold->spans, &span, ns, unbegun) ? ns : PKI_NO_CALL;
}

/* Of a PKI_RECORD_SPAN_*: how long a call of its region it is, ns, or PKI_NO_CALL. more is the
 * second slot of an end. */
static uint64_t pki_fold_span(pki_fold *fold, uint32_t tid, const pki_record *r,
                              const pki_record *more)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        return begin(fold, tid, r);
    case PKI_RECORD_SPAN_MARK:
        return mark(fold, r);
    default:
        return end(fold, r, more);
    }
}

/* A PKI_RECORD_REQUEST, with its second slot. */
static void pki_fold_request(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    pki_request_done done = pki_request_unpack(r, more);
    uint64_t end = pki_clock_ns(&fold->registry->arena->header->clock, r->start);
    if (!fold->requests)
        fold->requests = calloc(1, sizeof *fold->requests);
    if (fold->requests)
        pki_requests_add(fold->requests, &done, pki_what_id(r->what), (uint32_t)r->extra, end);
}

/* ---- pk/span.h and pk/request.h: what has been counted, to the caller ---- */

pki_span_summary pki_fold_span_summary(const pki_fold *fold)
{
    const pki_span_counter *c = &fold->spans;
    pki_span_tally t;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    uint64_t begun = c->all.begun - c->unbegun + t.begins_dropped;
    uint64_t ended = c->all.ended + t.ends_lost;
    pki_span_summary s = {.begun = begun,
                          .ended = ended,
                          .unfinished = begun - PKI_MIN(begun, ended),
                          .marks = c->all.marks + t.marks_dropped,
                          .dropped = t.begins_dropped + t.marks_dropped + t.ends_dropped,
                          .ended_twice = t.ended_twice + c->open.ended + c->again,
                          .of_earlier = t.of_earlier};
    s.events = s.begun + s.marks + s.ended_twice + s.of_earlier;
    return s;
}

bool pki_fold_next_open_span(const pki_fold *fold, size_t *at, pki_open_span *out)
{
    const pki_open_spans *open = &fold->spans.open;
    while (*at < open->room) {
        const pki_open_span *s = &open->cells[(*at)++];
        if (s->state == PKI_SPAN_OPEN) {
            *out = *s;
            return true;
        }
    }
    return false;
}

size_t pki_fold_open_spans(const pki_fold *fold, pki_open_span *out, size_t most)
{
    const pki_open_spans *open = &fold->spans.open;
    size_t n = 0;
    for (size_t i = 0; i < open->room && n < most; i++)
        if (open->cells[i].state == PKI_SPAN_OPEN)
            out[n++] = open->cells[i];
    return n;
}

bool pki_fold_requests(const pki_fold *fold, pki_request_summary *out)
{
    uint64_t ttft, tpot;
    pki_span_tally t;
    *out = (pki_request_summary){0};
    if (!fold->requests)
        return true;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    pki_request_limits(&ttft, &tpot);
    return pki_requests_fill(fold->requests, ttft, tpot, t.requests_dropped, out);
}

/* ---- public ---- */

/* Fills in `out`, under the fold lock; what it answers is the call's. */
typedef pk_status filler(const pki_fold *fold, uint32_t size, void *out);

static pk_status fill_spans(const pki_fold *fold, uint32_t size, void *out)
{
    pki_span_summary s = pki_fold_span_summary(fold);
    pk_span_counts all = {.size = size,
                          .begun = s.begun,
                          .ended = s.ended,
                          .open = s.unfinished,
                          .dropped = s.dropped,
                          .ended_twice = s.ended_twice,
                          .of_earlier = s.of_earlier};
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status fill_requests(const pki_fold *fold, uint32_t size, void *out)
{
    pki_request_summary s;
    if (!pki_fold_requests(fold, &s))
        return pki_fail(PK_ENOMEM, "no memory for the requests");
    pk_request_counts all = {.size = size,
                             .finished = s.finished,
                             .cancelled = s.cancelled,
                             .failed = s.failed,
                             .good = s.good,
                             .tokens = s.tokens,
                             .preemptions = s.preemptions,
                             .dropped = s.dropped};
    free(s.slowest);
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status answer(filler *fill, uint32_t size, void *out)
{
    int saved = errno;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        pki_fold_all(fold);
    pk_status status = fold ? fill(fold, size, out) : PK_EOFF;
    pki_fold_unlock();
    pki_inside_leave();
    errno = saved;
    return status;
}

pk_status(pk_get_span_counts)(pk_span_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_span_counts.size has to be sizeof(pk_span_counts)");
    return answer(fill_spans, counts->size, counts);
}

pk_status(pk_get_request_counts)(pk_request_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_request_counts.size has to be sizeof(pk_request_counts)");
    return answer(fill_requests, counts->size, counts);
}

/* ---- each record into the distributions ---- */

/* Without memory: in the table of all one that is shared, in others none. */
static pki_slot *slot_in(pki_fold *fold, pki_table *table, uint32_t id)
{
    pki_slot *slot = pki_table_slot(table, id);
    if (PKI_UNLIKELY(!slot))
        slot = pki_table_add(pki_fold_memory(fold), table, id, pki_name_kind(id));
    if (PKI_LIKELY(slot))
        return slot;
    if (table == &fold->totals)
        return fold->last_resort;
    fold->starved = true;
    return NULL;
}

static void count_call(pki_fold *fold, pki_table *table, pki_slot *slot, uint64_t ns, uint64_t own)
{
    pki_bump(&slot->self, own);
    pki_table_count(pki_fold_memory(fold), table, slot, ns);
}

/* What the trace shows: the sum of a region's durations there is its sum here, to the nanosecond.
 */
static inline uint64_t duration_of(const pki_fold *fold, const pki_record *r)
{
    return pki_clock_span_ns(pki_fold_clock(fold), r->start, pki_not_negative(r->value));
}

static void fold_work(pki_fold *fold, pki_table *table, uint32_t id, const pki_record *work)
{
    pki_slot *slot = slot_in(fold, table, id);
    if (!slot)
        return;
    pki_bump(&slot->bytes, work->start);
    pki_bump(&slot->flops, work->value);
}

/* Without room for it the region counts as run by fewer threads. */
static void fold_working(pki_fold *fold, pki_thread_fold *alone, const pki_record *r,
                         const pki_record *work)
{
    uint32_t id = pki_what_id(r->what);
    bool any = work->start || work->value;
    if (any && alone != &fold->nobody &&
        pki_array_fit(&alone->work, &alone->work_room, id + (size_t)1, sizeof *alone->work))
        alone->work[id] += duration_of(fold, r);
}

static void fold_own(pki_fold *fold, pki_table *table, uint32_t id, uint64_t own)
{
    pki_slot *slot = slot_in(fold, table, id);
    if (slot)
        pki_bump(&slot->self, own);
}

/* All else of the call is in its block's `lost` table. */
void pki_fold_loss(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, const pki_loss *loss)
{
    uint64_t own = pki_self_of_loss(t, loss);
    fold_own(fold, &fold->totals, loss->id, own);
    if (alone->tracked)
        fold_own(fold, &alone->calls, loss->id, own);
}

/* Self time of calls without a record, which is in the step but not in the table for all. */
static void fold_step_self(pki_fold *fold, pki_table *table, const pki_record *r)
{
    pki_slot *slot = slot_in(fold, table, pki_what_id(r->what));
    if (slot)
        slot->self_mark -= r->value;
}

/* Tells the report which thread is busy with what, and its verdicts whether a loader is. */
static void count_kind(pki_thread_fold *alone, const pki_slot *slot, uint32_t id, uint64_t own)
{
    uint32_t kind = slot->kind;
    if (PKI_UNLIKELY(slot->id != id)) /* that of all for which there was no memory */
        kind = pki_name_kind(id);
    if (kind < PKI_KINDS)
        alone->kinds[kind] += own;
}

/* What of it counts now: the clock's corrections can make it negative, and so can calls inside that
 * stand for others (self_time.h). */
static inline uint64_t pay_debt(const pki_fold *fold, pki_slot *slot, int64_t own)
{
    if (PKI_LIKELY(!fold->thinned))
        return pki_not_negative((uint64_t)own);
    uint64_t paid = own > 0 ? PKI_MIN(slot->debt, (uint64_t)own) : (uint64_t)own;
    slot->debt -= paid;
    return (uint64_t)own - paid;
}

/* One call that is timed, and `others` that it stands for. */
static PKI_NOINLINE void fold_thinned(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                                      const pki_record *r, uint32_t others)
{
    uint32_t id = pki_what_id(r->what), calls = others + 1;
    uint64_t ns = duration_of(fold, r);
    int64_t own = pki_self_of_call(t, r, ns);
    pki_slot *slot = slot_in(fold, &fold->totals, id), *mine = NULL;
    fold->thinned = true;
    t->inside[pki_what_depth(r->what)] += (uint64_t)own * others;
    uint64_t all = pay_debt(fold, slot, own * (int64_t)calls);
    pki_bump(&slot->self, all);
    pki_slot_count_times(pki_fold_memory(fold), &fold->totals.pool, slot, ns, calls);
    count_kind(alone, slot, id, all);
    pki_bump(&t->untimed_counted, others);
    pki_bump(&t->recorded, calls);
    if (alone->tracked && (mine = slot_in(fold, &alone->calls, id)))
        pki_bump(&mine->self, all);
    if (mine && fold->per_thread)
        pki_slot_count_times(pki_fold_memory(fold), &alone->calls.pool, mine, ns, calls);
}

/* What nearly all records are. */
static inline void fold_call(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                             const pki_record *r)
{
    if (PKI_UNLIKELY(pki_what_flags(r->what) & PKI_FLAG_THINNED)) {
        fold_thinned(fold, alone, t, r, pki_record_untimed(r));
        return;
    }
    uint32_t id = pki_what_id(r->what);
    uint64_t ns = duration_of(fold, r);
    int64_t rest = pki_self_of_call(t, r, ns);
    pki_slot *slot = slot_in(fold, &fold->totals, id);
    uint64_t own = pay_debt(fold, slot, rest);
    count_call(fold, &fold->totals, slot, ns, own);
    count_kind(alone, slot, id, own);
    pki_bump(&t->recorded, 1);
    if (alone->tracked && !fold->per_thread) /* steps want to know no more */
        fold_own(fold, &alone->calls, id, own);
    else if (alone->tracked && (slot = slot_in(fold, &alone->calls, id)))
        count_call(fold, &alone->calls, slot, ns, own);
}

static void fold_open(pki_fold *fold, pki_thread_fold *alone, const pki_record *r, int64_t so_far)
{
    uint32_t id = pki_what_id(r->what);
    pki_slot *slot = slot_in(fold, &fold->totals, id);
    uint64_t own = pay_debt(fold, slot, so_far);
    pki_bump(&slot->self, own);
    count_kind(alone, slot, id, own);
    if (alone->tracked)
        fold_own(fold, &alone->calls, id, own);
}

static void fold_value(pki_fold *fold, const pki_record *r)
{
    double value;
    pki_slot *slot = slot_in(fold, &fold->totals, pki_what_id(r->what));
    memcpy(&value, &r->value, sizeof value);
    if (slot == fold->last_resort)
        return;
    pki_values_add(pki_fold_memory(fold), &fold->totals.pool, (pki_values *)slot, value, r->start);
    pki_timelines_add(&fold->timelines, pki_what_id(r->what),
                      pki_clock_ns(pki_fold_clock(fold), r->start), value);
    if (fold->on_value)
        fold->on_value(fold, r, value);
}

/* The self time of every region of this thread since its last step: no more than the step has, even
 * if the clock was corrected while the thread recorded what was open in it. Returns that of kind
 * data.
 */
static uint64_t feed_self_times(pki_fold *fold, pki_table *calls, uint64_t left)
{
    uint64_t data = 0;
    for (pki_slot *s = calls->first; s; s = pki_table_next(s)) {
        uint64_t own = PKI_MIN(pki_not_negative(s->self - s->self_mark), left);
        s->self_mark = s->self;
        left -= own;
        data += s->kind == PK_DATA ? own : 0;
        if (own)
            pki_steps_add_self(fold->steps, s->id, s->kind, own);
    }
    return data;
}

static pki_step step_of(const pki_fold *fold, const pki_thread_fold *alone, const pki_record *r,
                        const pki_record *more)
{
    bool known = alone->tracked && !alone->partial && !fold->starved &&
                 !(pki_what_flags(r->what) & PKI_FLAG_UNKNOWN);
    uint32_t id = pki_step_kind_of(more);
    uint64_t duration = duration_of(fold, r);
    const pki_name *kind = id ? pki_name_at(id) : NULL;
    bool announced = r->extra != PKI_READY_UNKNOWN;
    uint64_t ready_most = (UINT64_C(1) << PKI_READY_BITS) - 1;
    return (pki_step){.index = more->start,
                      .start = pki_clock_ns(pki_fold_clock(fold), r->start),
                      .duration = duration,
                      .items = more->value,
                      .no_processor = announced ? r->extra & ready_most : 0,
                      .off = announced ? r->extra >> PKI_READY_BITS << 16 : 0,
                      .borders_told = announced,
                      .seat = pki_step_seat_of(more),
                      .work =
                          pki_step_work_of(duration, pki_step_model(more), pki_step_hardware(more)),
                      .kind = kind ? kind->name : NULL,
                      .between = pki_what_flags(r->what) & PKI_FLAG_BETWEEN,
                      .broken_down = known};
}

static void fold_step(pki_fold *fold, pki_thread_fold *alone, const pki_record *r,
                      const pki_record *more)
{
    pki_step step = step_of(fold, alone, r, more);
    uint64_t end = step.start + step.duration; /* where the next one begins */
    uint64_t data = feed_self_times(fold, &alone->calls, step.duration);
    alone->partial = false;
    for (int i = 0; i < PKI_FOLD_ACCOUNTS; i++)
        if (fold->on_account[i])
            fold->on_account[i](fold, &step, step.broken_down ? data : 0);
    pki_steps_add(fold->steps, &step);
    pki_device_step(fold->device, &step);
    if (step.between) {
        pki_step_watch_wait(end);
        return;
    }
    pki_table_count(pki_fold_memory(fold), &fold->totals,
                    slot_in(fold, &fold->totals, PKI_NAME_STEP), step.duration);
    pki_step_watch_see(step.index, step.start, step.duration);
    pki_comm_figures_step(fold->collectives, step.index, step.start, end);
    if (fold->on_step)
        fold->on_step(fold, &step);
}

static void fold_call_with_work(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                                const pki_record *r, const pki_record *more)
{
    fold_work(fold, &fold->totals, pki_what_id(r->what), more);
    fold_working(fold, alone, r, more);
    if (alone->tracked)
        fold_work(fold, &alone->calls, pki_what_id(r->what), more);
    fold_call(fold, alone, t, r);
}

/* In nobody's self time: they overlap with whatever their threads do. */
static void fold_span(pki_fold *fold, const pki_thread *t, const pki_record *r,
                      const pki_record *more)
{
    uint64_t ns = pki_fold_span(fold, t->tid, r, more);
    if (ns != PKI_NO_CALL)
        count_call(fold, &fold->totals, slot_in(fold, &fold->totals, pki_what_id(r->what)), ns, 0);
}

void pki_fold_ends(pki_fold *fold, pki_thread *t)
{
    static const pki_record none;
    uint32_t made = pki_load_acquire(&t->ends_made); /* pairs with leave_to_fold */
    while (t->ends_folded != made) {
        fold_span(fold, t, &t->ends[t->ends_folded % PKI_ENDS], &none);
        pki_store_release(&t->ends_folded, t->ends_folded + 1); /* pairs with has_ended */
    }
}

static PKI_NOINLINE void fold_other(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                                    uint64_t what, const pki_record *r, const pki_record *more)
{
    switch (pki_what_type(what)) {
    case PKI_RECORD_REGION_WORK:
        pki_fold_operation(fold, r, more);
        fold_call_with_work(fold, alone, t, r, more);
        return;
    case PKI_RECORD_STEP_OPEN:
        fold_open(fold, alone, r, pki_self_so_far(t, r));
        return;
    case PKI_RECORD_STEP_SELF: /* the step's; the region has it in the table of lost calls */
        if (alone->tracked)
            fold_step_self(fold, &alone->calls, r);
        return;
    case PKI_RECORD_STEP:
        fold_step(fold, alone, r, more);
        break;
    case PKI_RECORD_OPERATION:
        pki_fold_operation(fold, r, more);
        break;
    case PKI_RECORD_COUNTER:
        fold_value(fold, r);
        break;
    case PKI_RECORD_REQUEST:
        pki_fold_request(fold, r, more);
        break;
    case PKI_RECORD_SPAN_BEGIN:
    case PKI_RECORD_SPAN_MARK:
    case PKI_RECORD_SPAN_END:
        fold_span(fold, t, r, more);
        break;
    case PKI_RECORD_MARK:
    case PKI_RECORD_NOTE:
    case PKI_RECORD_NOTE_TEXT:
        break;
    default: /* not a record */
        return;
    }
    pki_bump(&t->points, 1);
}

void pki_fold_record(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, uint64_t what,
                     const pki_record *r, const pki_record *more)
{
    if (PKI_LIKELY(pki_what_type(what) == PKI_RECORD_REGION))
        fold_call(fold, alone, t, r);
    else
        fold_other(fold, alone, t, what, r, more);
}

void pki_fold_extra(pki_fold *fold, pki_thread *t, const pki_record record[2])
{
    pki_fold_record(fold, pki_fold_thread(fold, t), t, record[0].what, &record[0], &record[1]);
    pki_registry_lock();
    fold->registry->arena->header->ended.unbalanced++;
    pki_registry_unlock();
}

void pki_fold_range(pki_fold *fold, uint32_t id, uint64_t ns, uint64_t bytes, uint64_t flops)
{
    const pki_record work = {bytes, flops, 0, 0};
    if (!fold)
        return;
    count_call(fold, &fold->totals, slot_in(fold, &fold->totals, id), ns, 0);
    if (bytes || flops)
        fold_work(fold, &fold->totals, id, &work);
}

void pki_fold_point(pki_fold *fold, const pki_record *record)
{
    if (fold)
        fold_value(fold, record);
}
