/* lib/measure/fold/records.c - each record into the distributions. */
#include <string.h>

#include "base/memory.h"
#include "measure/fold/fold.h"
#include "measure/fold/self_time.h"
#include "measure/fold/plain.h"
#include "measure/fold/walk.h"
#include "measure/fold/spans.h"
#include "measure/steps/watch.h"

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
    return (pki_step){.index = more->start,
                      .start = pki_clock_ns(pki_fold_clock(fold), r->start),
                      .duration = duration,
                      .items = more->value,
                      .no_processor = announced ? r->extra : 0,
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
