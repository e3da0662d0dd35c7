/* lib/core/step.c - the end of a training step: what each region took of it. */
#include <pk/step.h>

#include "core/registry.h"

/* Regions that are open across the step's end, an outer "training" say: the own time that they have gathered so far
 * belongs to this step. It is credited to the region now and hidden from its end as if it were a child's. */
static void credit_open_regions(pki_thread *t, uint64_t now)
{
    uint64_t inner = now; /* where the region inside began */
    pki_frame *top = PKI_MIN(pki_load(&t->top), &t->frames[PKI_DEPTH_MAX]);
    for (pki_frame *f = top; f > t->frames; f--) {
        uint64_t own = pki_elapsed(f->child, pki_elapsed(f->start, inner));
        pki_bump(&f->slot->self, own);
        f->child += own;
        inner = f->start;
    }
}

static uint64_t take_own_time(pki_slot *slot)
{
    uint64_t self = pki_load(&slot->self);
    uint64_t own = self - slot->self_mark;
    slot->self_mark = self;
    return own;
}

static pki_slot *next_slot(const pki_slot *slot)
{
    return slot->next ? pki_follow(slot, slot->next) : NULL;
}

/* One record for each region that has taken time in this step. There is room for all of them. */
static uint64_t write_own_times(pki_thread *t, bool known)
{
    uint64_t n = 0;
    for (pki_slot *s = t->first_slot; s; s = next_slot(s)) {
        uint64_t own = take_own_time(s);
        if (own && known)
            *pki_next_record(t, n++) = (pki_record){0, own, PKI_WHAT(s->id, PKI_RECORD_STEP_SELF, 0, 0), 0};
    }
    return n;
}

static bool room_for(pki_thread *t, uint64_t slots)
{
    return t->head + slots <= t->room || pki_make_room(t, (unsigned)slots);
}

static void end_step(pki_registry *r, pki_thread *t, uint64_t items)
{
    uint64_t now = pki_ticks(t->monotonic);
    uint64_t start = r->step_start, ticks = pki_elapsed(start, now);
    credit_open_regions(t, now);
    bool same_thread = !r->stepper || r->stepper == t;
    bool fits = room_for(t, t->slots_used + 2);
    uint64_t n = write_own_times(t, same_thread && fits);
    if (fits || room_for(t, 2)) {
        unsigned flags = same_thread && fits ? 0 : PKI_FLAG_UNKNOWN;
        *pki_next_record(t, n) = (pki_record){start, ticks, PKI_WHAT(PKI_NAME_STEP, PKI_RECORD_STEP, 0, flags), 0};
        *pki_next_record(t, n + 1) = (pki_record){r->step_index, items, 0, 0};
        pki_bump(&t->points, 1);
        pki_store_release(&t->head, t->head + n + 2);
    } else {
        pki_bump(&t->points_dropped, 1);
    }
    pki_fold(t);
    pki_defer(t, t->slots[PKI_NAME_STEP], ticks);
    r->stepper = t;
    r->step_start = now;
    pki_bump(&r->step_index, 1);
}

void pk_step_on_(uint64_t items)
{
    pki_thread *t = pki_thread_with_slot(PKI_NAME_STEP);
    if (!t)
        return;
    pki_enter(t);
    pki_registry *r = t->registry;
    if (pki_load(&t->limit)) {
        if (pki_exchange_acquire(&r->stepping, 1u) == 0) { /* pairs with the release below */
            end_step(r, t, items);
            pki_store_release(&r->stepping, 0u);
        } else {
            pki_fetch_add(&r->steps_missed, 1);
        }
    }
    pki_leave(t);
}
