#include "core/close.h"

#include "comm/model/communicator.h"
#include "core/mirror.h"
#include "core/registry.h"

/* What was open when the ring became full may have recorded calls inside it; what has begun since
 * has none. */
static void note_loss(pki_thread *t, unsigned depth, uint32_t id, uint64_t own)
{
    if (depth > t->mixed)
        return;
    t->mixed = depth - 1;
    t->losses[t->losses_made % PKI_LOSSES] =
        (pki_loss){own, (uint32_t)(pki_load(&t->state) >> 32), (uint16_t)id, (uint16_t)depth};
    pki_store_release(&t->losses_made, t->losses_made + 1); /* pairs with the acquire in fold.c */
}

/* The call has no record: its distribution is ours to keep, and its time is none of its parent's.
 */
static PKI_COLD void count_dropped(pki_thread *t, unsigned depth, uint32_t id, uint64_t ns,
                                   const pki_work *work)
{
    pki_slot *slot = pki_lost_slot(t, id);
    uint64_t own = pki_not_negative(ns - t->lost_inside[depth]);
    pki_bump(&t->dropped, 1);
    pki_bump(&slot->self, own);
    pki_bump(&slot->bytes, work->bytes);
    pki_bump(&slot->flops, work->flops);
    pki_table_count(&t->registry->arena->spans, &t->lost, slot, ns);
    t->lost_since_step++;
    note_loss(t, depth, slot->id, own);
    pki_bump(&t->lost_inside[depth - 1], ns);
    pki_store(&t->frames[depth - 1].id, pki_load(&t->frames[depth - 1].id) | PKI_SPECIAL);
}

static uint64_t what_of(const pki_work *work, const pki_frame *f, uint32_t id, unsigned depth,
                        unsigned flags)
{
    pki_record_type type = pki_worked(work) ? PKI_RECORD_REGION_WORK : PKI_RECORD_REGION;
    return PKI_WHAT(id, type, depth) | PKI_TIES(pki_count_ties(f)) | PKI_FLAGS(flags);
}

void pki_close_top(pki_thread *t, uint64_t now, unsigned flags)
{
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    pki_work *work = &t->work[f - t->frames];
    uint32_t what = pki_load(&f->id), id = what & PKI_FRAME_ID;
    pki_work done = *work;
    unsigned worked = pki_worked(&done), depth = (unsigned)(f - t->frames);
    uint64_t start = pki_load(&f->start), lost = t->lost_inside[depth];
    flags |= lost ? PKI_FLAG_LOST : 0;
    pki_record records[2] = {
        {start, now - start, what_of(&done, f, id, depth, flags), lost ? lost : done.tag},
        pki_work_slot(&done)};
    if (pki_push(t, records, 1 + worked, 1)) {
        pki_bump(&t->others, worked);
    } else {
        /* First it is no open region any more: were the session to end here, it would count
         * twice. */
        pki_store_release(&t->state, pki_load(&t->state) - sizeof(pki_frame));
        count_dropped(t, depth, id, pki_thread_ns(t, start, pki_not_negative(records[0].value)),
                      &done);
    }
    pki_store(&work->bytes, (uint64_t)0);
    pki_store(&work->flops, (uint64_t)0);
    pki_store(&work->payload_type, (uint64_t)0);
    pki_store(&work->tag, (uint64_t)0);
    pki_store(&t->lost_inside[depth], (uint64_t)0);
    if (pki_is_operation(done.payload_type))
        pki_comm_complete(done.payload_type, done.payload);
    if (what & PKI_MIRRORED) {
        pki_leave();
        pki_mirrors_end(id, &done);
        pki_enter();
    }
}

void pki_record_open(const pki_thread *t, unsigned depth, uint64_t now, pki_record record[2])
{
    const pki_frame *f = &t->frames[depth];
    uint32_t id = pki_load(&f->id) & PKI_FRAME_ID;
    uint64_t start = pki_load(&f->start);
    const pki_work *w = &t->work[depth];
    pki_work work = {pki_load(&w->bytes), pki_load(&w->flops), pki_load(&w->payload),
                     pki_load(&w->payload_type), pki_load(&w->tag)};
    uint64_t lost = pki_load(&t->lost_inside[depth]), ticks = pki_not_negative(now - start);
    unsigned flags = PKI_FLAG_UNBALANCED | (lost ? PKI_FLAG_LOST : 0);
    record[0] =
        (pki_record){start, ticks, what_of(&work, f, id, depth, flags), lost ? lost : work.tag};
    record[1] = pki_work_slot(&work);
}

/* The end of a region beyond the limit: false if it is none. What lies above it goes with it. */
static bool end_too_deep(pki_thread *t, uint32_t id)
{
    if (t->over > PKI_DEEP_KEPT) {
        t->over--;
        return true;
    }
    for (uint32_t i = t->over; i-- > 0;)
        if (t->deep[i] == id) {
            t->over = i;
            return true;
        }
    return false;
}

static void remove_guard(pki_thread *t)
{
    uint64_t state = pki_load(&t->state);
    if (t->over == 0 && (uint32_t)state > PKI_FRAME_OFFSET(PKI_DEPTH_MAX))
        pki_store_release(&t->state, state - sizeof(pki_frame));
}

pki_frame *pki_find_frame(pki_thread *t, uint32_t id)
{
    for (pki_frame *f = &t->frames[pki_depth_in(pki_load(&t->state))]; f > t->frames; f--)
        if ((pki_load(&f->id) & PKI_FRAME_ID) == id)
            return f;
    return NULL;
}

void pki_close_above(pki_thread *t, const pki_frame *until, uint64_t now)
{
    t->over = 0;
    remove_guard(t);
    while (pki_top_frame(t, pki_load(&t->state)) > until) {
        pki_bump(&t->unbalanced, 1);
        pki_close_top(t, now, PKI_FLAG_UNBALANCED);
    }
}

void pki_close(pki_thread *t, uint32_t id, uint64_t now, unsigned flags)
{
    if (t->over && end_too_deep(t, id)) {
        remove_guard(t);
        return;
    }
    const pki_frame *f = pki_find_frame(t, id);
    if (!f) {
        pki_bump(&t->stray_ends, 1);
        return;
    }
    pki_close_above(t, f, now);
    pki_close_top(t, now, flags);
}
