/* lib/measure/fold/records.c - each record into the distributions, and the walk through a thread's
 * records */
#include <pk/request.h>

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/model/communicator.h"
#include "core/frames.h"
#include "core/registry.h"
#include "core/ring.h"
#include "core/thin.h"
#include "core/thread.h"
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
static void pki_fold_loss(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                          const pki_loss *loss)
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

static pki_timeline *timeline_of(pki_timelines *timelines, uint32_t id)
{
    if (!pki_array_fit(&timelines->by_id, &timelines->room, id + (size_t)1, sizeof(pki_timeline *)))
        return NULL;
    if (!timelines->by_id[id])
        timelines->by_id[id] = calloc(1, sizeof(pki_timeline));
    return timelines->by_id[id];
}

/* Without memory the sample is in its counter's distribution only. */
static void pki_timelines_add(pki_timelines *timelines, uint32_t id, uint64_t ns, double value)
{
    pki_timeline *timeline = timeline_of(timelines, id);
    if (timeline)
        pki_timeline_add(timeline, ns, value);
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

/* Ends of spans that the thread's ring had no room for. */
static void pki_fold_ends(pki_fold *fold, pki_thread *t)
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

/* `what` is the record's, read once: what is undone may change meanwhile. more: its second slot. */
static void pki_fold_record(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, uint64_t what,
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

/* ---- a ring's records stand in the order in which they were written ---- */

/* A clock may lag on another core, but not by as much as a quarter of a round through the ring. */
static bool is_older(const pki_thread *t, const pki_record *r, uint64_t ticks)
{
    uint64_t lag = t->ring_bytes / sizeof(pki_record) / 4;
    return (int64_t)(pki_record_ticks(r) + lag - ticks) < 0;
}

static PKI_COLD uint32_t find_older(const pki_thread *t, const pki_record *records, uint32_t at,
                                    uint32_t head)
{
    uint64_t last = t->folded_ticks;
    uint32_t left = pki_ring_bytes_between(t, at, head);
    while (left > 0) {
        const pki_record *r = pki_record_in(records, at);
        uint64_t what = pki_load(&r->what); /* 0: left out by what has been undone */
        uint32_t bytes = (what ? pki_record_slots(what) : 1) * (uint32_t)sizeof(pki_record);
        if (bytes > left || (what && is_older(t, r, last)))
            return at;
        last = what ? pki_record_ticks(r) : last;
        left -= bytes;
        at = (at + bytes) % t->ring_bytes;
    }
    return head;
}

uint32_t pki_fold_bound(const pki_thread *t, const pki_record *ring, uint32_t turn, uint32_t at,
                        uint32_t head)
{
    if (pki_turn_is_straight(t, turn, head))
        return PKI_MAX(at, head);
    bool sure = pki_ring_bytes_between(t, at, head) <= t->ring_bytes / 2;
    return sure ? head : find_older(t, ring, at, head);
}

uint64_t pki_fold_head(const pki_thread *t)
{
    uint64_t folded = t->folded, head = pki_thread_head(t);
    uint32_t turn = pki_cursor_turn(head), offset = pki_cursor_offset(head);
    uint32_t at = pki_cursor_turn(folded) == turn ? pki_cursor_offset(folded) : 0;
    return pki_cursor_of(turn, pki_fold_bound(t, t->home, turn, at, offset));
}

/* Nothing is left to be folded: notes for an owner that has stepped back how far it has. */
static void pki_fold_note_undone(pki_thread *t)
{
    pki_position now = pki_thread_position(t);
    uint32_t turn = (uint32_t)now.turn, at = pki_cursor_offset(t->folded);
    uint32_t head = pki_cursor_offset_in(t, turn, (uint32_t)(now.state >> 32));
    if (head == at || turn != pki_cursor_turn(t->folded) || !pki_turn_is_in_ring(t, turn) ||
        pki_fold_bound(t, t->home, turn, at, head) != at)
        return;
    pki_store(&t->undone_until, now.bytes + pki_ring_bytes_between(t, head, at));
    pki_store(&t->undone_turn, now.turn);
}

/* The same of a turn that the owner has left, if folding stands at `at` in it: other readers of a
 * turn in the ring find that end from then on. */
static uint32_t pki_fold_end(pki_thread *t, uint32_t turn, uint32_t at)
{
    pki_turn *ended = &t->turns[turn % PKI_TURNS];
    uint32_t end = pki_fold_bound(t, t->home, turn, at, pki_load(&ended->end));
    if (!ended->segment)
        pki_store(&ended->end, end);
    return end;
}

/* Folded up to there, so many bytes; the last record of them, NULL for none, and how many slots
 * were no regions. */
static void pki_fold_note(pki_thread *t, const pki_record *last, uint64_t at, uint64_t bytes,
                          uint64_t others)
{
    if (last)
        t->folded_ticks = pki_record_ticks(last);
    t->folded_bytes += bytes;
    t->folded_others += others;
    pki_store_release(&t->folded, at); /* pairs with the acquire in pki_drain_ring */
}

void pki_fold_settle(pki_thread *t)
{
    uint64_t points = pki_load(&t->points), pushed = pki_load(&t->points_pushed);
    if (pushed > points)
        pki_bump(&t->points_dropped, pushed - points);
    pki_store(&t->points_pushed, points);     /* an owner that is amid a call may still add to it */
    pki_store(&t->undone_until, (uint64_t)0); /* by a count of its own that ends here */
    t->sealed_bytes = t->folded_bytes;
    t->sealed_others = t->folded_others;
    if (!t->sealed) {
        uint64_t laps = t->folded_bytes - (pki_load(&t->state) >> 32);
        pki_store(&t->laps, laps);
        pki_store(&t->laps_behind, laps);
        pki_store(&t->others, t->folded_others);
    }
}

/* ---- self time, from records alone ---- */

/* The next lost call that has to be looked at; NULL: there is none. */
static inline const pki_loss *pki_next_loss(const pki_thread *t)
{
    bool more = t->losses_folded != pki_load_acquire(&t->losses_made); /* pairs with note_loss */
    return more ? &t->losses[t->losses_folded % PKI_LOSSES] : NULL;
}

static inline void pki_loss_folded(pki_thread *t)
{
    pki_store_release(&t->losses_folded,
                      t->losses_folded + 1); /* pairs with the acquire in ring.c */
}

/* ---- what nearly all records are ---- */

/* The owner wrote them on another processor: asked for so far ahead, they are here in time. */
#define AHEAD 16 /* records */

/* Region records without flags, but for the one that matters to traces alone. */
#define PLAIN_MASK                                                                                 \
    ((uint64_t)(0xFFu & ~PKI_FLAG_TOUCHES) << 56 | (uint64_t)(PKI_PLACE_STEP - 1) << 32)
#define PLAIN ((uint64_t)PKI_RECORD_REGION << 32)

/* Where one call goes. */
typedef struct targets {
    pki_slot *all;
    uint64_t *step; /* the self time of whoever makes steps */
} targets;

static inline bool find_targets(const pki_fold *fold, const pki_thread_fold *alone, uint32_t id,
                                targets *to)
{
    static uint64_t nowhere;
    to->all = pki_table_slot(&fold->totals, id);
    to->step = &nowhere;
    if (PKI_UNLIKELY(!to->all))
        return false;
    if (!alone->tracked)
        return true;
    pki_slot *mine = pki_table_slot(&alone->calls, id);
    to->step = mine ? &mine->self : NULL;
    return mine;
}

static inline void count(pki_fold *fold, pki_thread_fold *alone, const targets *to, uint64_t ns,
                         uint64_t own)
{
    pki_slot *slot = to->all;
    pki_bump(&slot->self, own);
    pki_table_count(pki_fold_memory(fold), &fold->totals, slot, ns);
    if (PKI_LIKELY(slot->kind < PKI_KINDS))
        alone->kinds[slot->kind] += own;
    pki_bump(to->step, own);
}

/* Both ends, each as in the trace. False: they are not in one stretch. */
static inline bool duration_in(const pki_clock_stretch *s, const pki_record *r, uint64_t *ns)
{
    uint64_t start = r->start, ticks = pki_not_negative(r->value);
    if (PKI_UNLIKELY(!pki_clock_stretch_has(s, start, ticks)))
        return false;
    *ns = pki_clock_stretch_ns(s, start + ticks) - pki_clock_stretch_ns(s, start);
    return true;
}

static uint64_t plain_duration_of(const pki_clock_map *map, const pki_record *r,
                                  pki_clock_stretch *s)
{
    *s = pki_clock_stretch_at(map, r->start);
    return pki_clock_span_ns(map, r->start, pki_not_negative(r->value));
}

/* Up to where records follow each other with no lost call among them. */
static uint32_t straight_until(const pki_thread *t, uint32_t at, uint32_t head, uint32_t loss)
{
    uint32_t until = at < head ? head : t->ring_bytes;
    return loss > at ? PKI_MIN(until, loss) : until;
}

/* Folds such records of a turn from `at` on. Returns where it has stopped: at the first that is
 * none, at the head, at the next lost call, or at the ring's end. Under the fold lock. */
static uint32_t pki_fold_plain(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                               const pki_record *records, uint32_t at, uint32_t head, uint32_t loss)
{
    const pki_clock_map *map = pki_fold_clock(fold);
    const pki_record *first = pki_record_in(records, at), *r = first,
                     *end = pki_record_in(records, straight_until(t, at, head, loss));
    pki_clock_stretch stretch = {0};
    targets to;
    uint64_t ns;
    if (fold->thinned || fold->per_thread)
        return at;
    for (; r < end; r++) {
        __builtin_prefetch((const char *)r + AHEAD * sizeof *r);
        uint64_t what = pki_load(&r->what); /* once: what is undone may change meanwhile */
        if (PKI_UNLIKELY((what & PLAIN_MASK) != PLAIN) ||
            PKI_UNLIKELY(!find_targets(fold, alone, pki_what_id(what), &to)))
            break;
        if (PKI_UNLIKELY(!duration_in(&stretch, r, &ns)))
            ns = plain_duration_of(map, r, &stretch);
        count(fold, alone, &to, ns, pki_not_negative((uint64_t)pki_self_of_plain(t, what, ns)));
    }
    pki_bump(&t->recorded, (uint64_t)(r - first));
    return at + (uint32_t)((const char *)r - (const char *)first);
}

/* ---- counted calls that come before no timed one: the last of a thread ---- */

/* What is known of them is that they are calls: of about the last timed one's length, and with as
 * much of it their own as with the others. */
typedef struct last_calls {
    uint32_t id;
    uint32_t calls;
    uint64_t ns, own, bytes, flops;
} last_calls;

static void add_to(pki_fold *fold, pki_table *table, const last_calls *c)
{
    pki_slot *slot = pki_table_slot(table, c->id);
    if (!slot)
        return;
    pki_bump(&slot->self, c->own);
    pki_bump(&slot->bytes, c->bytes);
    pki_bump(&slot->flops, c->flops);
    if (!c->calls || (table != &fold->totals && !fold->per_thread))
        return;
    pki_slot_count_times(&fold->registry->arena->spans, &table->pool, slot, c->ns, c->calls);
    pki_bump(&slot->untimed, 1);
    pki_bump(&slot->spread, c->calls);
}

/* Of all calls so far. */
static uint64_t own_of(const pki_fold *fold, uint32_t id, uint64_t calls)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    uint64_t self = slot ? pki_not_negative(slot->self) : 0;
    return slot && slot->count ? (uint64_t)((double)self / (double)slot->count * (double)calls) : 0;
}

static last_calls pending_of(const pki_fold *fold, const pki_thread *t, uint32_t id,
                             const pki_counted *e)
{
    uint64_t calls = PKI_MIN(pki_counted_pending(e), PKI_THINNED_MOST);
    uint64_t last = pki_not_negative(pki_load(&e->last));
    return (last_calls){.id = id,
                        .calls = (uint32_t)calls,
                        .ns = pki_thread_ns(t, t->folded_ticks - last, last),
                        .own = own_of(fold, id, calls),
                        .bytes = pki_load(&e->bytes),
                        .flops = pki_load(&e->flops)};
}

static void add(pki_fold *fold, pki_thread *t, const last_calls *c)
{
    pki_thread_fold *alone = pki_fold_thread(fold, t);
    uint32_t kind = pki_name_kind(c->id);
    add_to(fold, &fold->totals, c);
    if (alone->tracked)
        add_to(fold, &alone->calls, c);
    if (kind < PKI_KINDS)
        alone->kinds[kind] += c->own;
    pki_bump(&t->untimed_counted, c->calls);
    pki_bump(&t->recorded, c->calls);
}

void pki_fold_pending(pki_fold *fold, pki_thread *t)
{
    if (t->pending_counted)
        return;
    t->pending_counted = 1;
    pki_registry_lock();
    const pki_counted *counted = pki_load(&t->counted);
    uint32_t size = pki_load(&t->counted_size);
    pki_registry_unlock();
    for (uint32_t id = 0; id < size; id++) {
        last_calls c = pending_of(fold, t, id, &counted[id]);
        if ((c.calls || c.bytes || c.flops) && pki_table_slot(&fold->totals, id))
            add(fold, t, &c);
    }
}

/* ---- what a walk through a thread's records does with each ---- */

/* From where folding stood to a thread's head. */
typedef struct walk {
    pki_fold *fold;
    pki_thread_fold *alone;
    pki_thread *t;
    const pki_record *last; /* record; NULL: none yet */
    uint64_t bytes, others;
} walk;

/* Whoever makes steps is followed alone, and the first thread from the start, since it most often
 * will. */
static void decide_tracking(const pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    bool first = t->index == 0 || fold->per_thread;
    if (alone->tracked || alone == &fold->nobody || (!first && !pki_load_acquire(&t->steps)))
        return;
    alone->tracked = true;
    alone->partial = !first;
}

/* Readers are there, or past it: what a handler has recorded and lost may have been undone since.
 * In the ring they come by again, or leave it. */
static bool is_due(const pki_thread *t, const pki_loss *loss, uint32_t turn, uint32_t at)
{
    int32_t turns = (int32_t)(turn - pki_cursor_turn(loss->at));
    uint32_t offset = pki_cursor_offset(loss->at);
    if (turns != 0)
        return turns > 0;
    return offset == at || (offset < at && !pki_turn_is_in_ring(t, turn));
}

/* Lost calls that ended at this place: what was recorded inside them has been folded, what follows
 * has not. Returns where in this turn the next one did; UINT32_MAX: there is none. */
static uint32_t fold_losses(walk *w, uint32_t turn, uint32_t at)
{
    const pki_loss *loss;
    while ((loss = pki_next_loss(w->t)) && is_due(w->t, loss, turn, at)) {
        pki_fold_loss(w->fold, w->alone, w->t, loss);
        pki_loss_folded(w->t);
    }
    return loss && pki_cursor_turn(loss->at) == turn ? pki_cursor_offset(loss->at) : UINT32_MAX;
}

/* One record that is not plain, at `at`. Returns where the next one is. */
static uint32_t fold_next(walk *w, const pki_record *records, uint32_t at, uint32_t until)
{
    const pki_record *r = pki_record_in(records, at);
    uint64_t what = pki_load(&r->what); /* once: what is undone may change meanwhile */
    at = pki_ring_next(w->t, at);
    const pki_record *more = pki_record_in(records, at);
    bool two = pki_record_slots(what) == 2;
    if (PKI_UNLIKELY(two && at == until)) { /* it has replaced what was undone */
        w->others++;
        return at;
    }
    w->last = pki_is_record(what) ? r : w->last;
    w->others += pki_record_others(what);
    pki_fold_record(w->fold, w->alone, w->t, what, r, more);
    return two ? pki_ring_next(w->t, at) : at;
}

/* What of a turn has not been folded; returns where that ends. */
static uint32_t fold_turn(walk *w, uint32_t turn, uint32_t at, uint32_t until)
{
    const pki_record *records = pki_turn_records(w->t, turn);
    uint32_t loss = fold_losses(w, turn, at);
    w->bytes += pki_ring_bytes_between(w->t, at, until);
    while (at != until) {
        if (PKI_UNLIKELY(at == loss))
            loss = fold_losses(w, turn, at);
        uint32_t plain = pki_fold_plain(w->fold, w->alone, w->t, records, at, until, loss);
        if (plain == at) {
            at = fold_next(w, records, at, until);
            continue;
        }
        w->last = pki_record_in(records, plain) - 1;
        at = plain == w->t->ring_bytes ? 0 : plain;
    }
    fold_losses(w, turn, at);
    return at;
}

static void fold_ring(pki_fold *fold, pki_thread *t)
{
    uint64_t at = t->folded, head = pki_fold_head(t);
    if (at == head)
        pki_fold_note_undone(t);
    if (at == head && !pki_next_loss(t))
        return;
    walk w = {.fold = fold, .alone = pki_fold_thread(fold, t), .t = t};
    decide_tracking(fold, w.alone, t);
    fold->starved = w.alone->starved;
    uint32_t turn = pki_cursor_turn(at), offset = pki_cursor_offset(at);
    for (; turn != pki_cursor_turn(head); turn++, offset = 0)
        fold_turn(&w, turn, offset, pki_fold_end(t, turn, offset));
    offset = fold_turn(&w, turn, offset, pki_cursor_offset(head));
    w.alone->starved = fold->starved;
    pki_fold_note(t, w.last, pki_cursor_of(turn, offset), w.bytes, w.others);
}

/* Begins before ends: most of those are in the same ring. */
void pki_fold_one(pki_fold *fold, pki_thread *t)
{
    fold_ring(fold, t);
    pki_fold_ends(fold, t);
}

void pki_fold_all(pki_fold *fold)
{
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++)
        pki_fold_one(fold, pki_registry_block(fold->registry, i));
}
