#include "core/frames.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "comm/model/communicator.h"
#include "core/events.h"
#include "core/mirror.h"
#include "core/registry.h"
#include "core/ring.h"
#include "core/thin.h"
#include "core/thread.h"

/* ---- how a region ends, off the fast path ---- */

/* What was open when the ring became full may have recorded calls inside it; what has begun since
 * has none. */
static bool note_loss(pki_thread *t, unsigned depth, uint32_t id, uint64_t own)
{
    if (depth > t->mixed)
        return false;
    t->mixed = depth - 1;
    t->losses[t->losses_made % PKI_LOSSES] =
        (pki_loss){own, pki_cursor_of(t->turn, (uint32_t)(pki_load(&t->state) >> 32)), (uint16_t)id,
                   (uint16_t)depth};
    pki_store_release(&t->losses_made, t->losses_made + 1); /* pairs with pki_next_loss */
    return true;
}

/* The call has no record: its distribution is ours to keep, and its time is none of its parent's.
 */
static PKI_COLD void count_dropped(pki_thread *t, unsigned depth, uint32_t id, uint64_t ns,
                                   const pki_work *work)
{
    pki_slot *slot = pki_lost_slot(t, id);
    uint64_t own = pki_not_negative(ns - t->lost_inside[depth]);
    pki_bump(&t->dropped, 1);
    pki_bump(&slot->bytes, work->bytes);
    pki_bump(&slot->flops, work->flops);
    pki_table_count(&t->registry->arena->spans, &t->lost, slot, ns);
    t->lost_since_step++;
    if (!note_loss(t, depth, slot->id, own))
        pki_bump(&slot->self, own);
    pki_bump(&t->lost_inside[depth - 1], ns);
    pki_store(&t->frames[depth - 1].id, pki_load(&t->frames[depth - 1].id) | PKI_SPECIAL);
}

static uint64_t what_of(const pki_work *work, const pki_frame *f, uint32_t id, unsigned depth,
                        unsigned flags)
{
    pki_record_type type = pki_worked(work) ? PKI_RECORD_REGION_WORK : PKI_RECORD_REGION;
    return PKI_WHAT(id, type, depth) | PKI_TIES(pki_count_ties(f)) | PKI_FLAGS(flags);
}

/* Untimed calls that this record stands for; their bytes and flops go with it. */
static uint32_t collect_untimed(const pki_thread *t, uint32_t id, pki_work *work)
{
    const pki_counted *e = pki_counted_at(t, id);
    if (PKI_LIKELY(!e || !e->carries))
        return 0;
    work->bytes += e->bytes;
    work->flops += e->flops;
    return pki_thin_pending(t, id);
}

static uint64_t extra_of(uint64_t lost, const pki_work *work, uint32_t untimed)
{
    uint64_t extra = lost ? lost : work->tag;
    return untimed ? PKI_MIN(extra, PKI_THINNED_REST) | (uint64_t)untimed << PKI_THINNED_SHIFT
                   : extra;
}

void pki_close_top(pki_thread *t, uint64_t now, unsigned flags)
{
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    pki_work *work = &t->work[f - t->frames];
    uint32_t what = pki_load(&f->id), id = what & PKI_FRAME_ID;
    pki_work done = *work;
    uint32_t untimed = collect_untimed(t, id, &done);
    unsigned worked = pki_worked(&done), depth = (unsigned)(f - t->frames);
    uint64_t start = pki_load(&f->start), lost = t->lost_inside[depth];
    flags |= lost ? PKI_FLAG_LOST : 0;
    flags |= untimed ? PKI_FLAG_THINNED : 0;
    pki_record records[2] = {
        {start, now - start, what_of(&done, f, id, depth, flags), extra_of(lost, &done, untimed)},
        pki_work_slot(&done)};
    if (pki_push(t, records, 1 + worked, 1)) {
        pki_bump(&t->others, worked);
        pki_thin_carried(t, id, untimed, now - start);
    } else {
        /* First it is no open region any more: were the session to end here, it would count
         * twice. */
        pki_store_release(&t->state, pki_load(&t->state) - sizeof(pki_frame));
        count_dropped(t, depth, id, pki_thread_ns(t, start, pki_not_negative(records[0].value)),
                      work); /* what untimed calls have added goes with the next one's record */
    }
    pki_store(&work->bytes, (uint64_t)0);
    pki_store(&work->flops, (uint64_t)0);
    pki_store(&work->payload_type, (uint64_t)0);
    pki_store(&work->tag, (uint64_t)0);
    pki_store(&t->lost_inside[depth], (uint64_t)0);
    if (PKI_UNLIKELY(what & PKI_SAMPLED))
        pki_events_end(depth, id, !(flags & PKI_FLAG_UNBALANCED));
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

/* ---- calls that are not timed ---- */

static bool is_open(const pki_thread *t, const pki_untimed *u)
{
    const pki_frame *f = (const pki_frame *)((const char *)t + u->place - PKI_RECORD_REGION);
    return u->place <= (uint32_t)pki_load(&t->state) && pki_load(&f->start) == u->start;
}

/* Those whose timed call has ended without them: nobody has looked until now. */
static void drop_ended(pki_thread *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->untimed_open; i++)
        if (is_open(t, &t->untimed[i]))
            t->untimed[kept++] = t->untimed[i];
    pki_bump(&t->unbalanced, t->untimed_open - kept);
    pki_store(&t->untimed_open, kept);
}

/* The innermost open call of that id if it is an untimed one; its position on the list, from 1. */
static uint32_t find_untimed(pki_thread *t, uint32_t id)
{
    if (PKI_LIKELY(!t->untimed_open))
        return 0;
    drop_ended(t);
    uint32_t at = t->untimed_open;
    while (at > 0 && t->untimed[at - 1].id != id)
        at--;
    const pki_frame *f = at ? pki_find_frame(t, id) : NULL;
    bool inner =
        f && (const char *)f - (const char *)t + PKI_RECORD_REGION > t->untimed[at - 1].place;
    return inner ? 0 : at;
}

pki_counted *pki_untimed_call(pki_thread *t, uint32_t id)
{
    return find_untimed(t, id) ? pki_counted_at(t, id) : NULL;
}

static bool pki_close_untimed(pki_thread *t, uint32_t id, uint64_t now)
{
    uint32_t at = find_untimed(t, id);
    if (!at)
        return false;
    pki_close_above(t, (pki_frame *)((char *)t + t->untimed[at - 1].place - PKI_RECORD_REGION),
                    now);
    pki_bump(&t->unbalanced, t->untimed_open - at);
    pki_store(&t->untimed_open, at - 1);
    return true;
}

void pki_close(pki_thread *t, uint32_t id, uint64_t now, unsigned flags)
{
    if (t->over && end_too_deep(t, id)) {
        remove_guard(t);
        return;
    }
    if (pki_close_untimed(t, id, now))
        return;
    const pki_frame *f = pki_find_frame(t, id);
    if (!f) {
        pki_bump(&t->stray_ends, 1);
        return;
    }
    pki_close_above(t, f, now);
    pki_close_top(t, now, flags);
}

/* ---- where the calling thread is, for libraries that count for it ---- */

/* A call that is counted and not timed has no frame; it lies in the one that is innermost. */
static uint32_t untimed_in(const pki_thread *t, uint64_t state, const pki_frame *top)
{
    uint32_t open = pki_load(&t->untimed_open);
    const pki_untimed *u = &t->untimed[open ? open - 1 : 0];
    bool inside = open && u->place == (uint32_t)state && u->start == pki_load(&top->start);
    return inside ? u->id : 0;
}

uint32_t pki_innermost_region(void)
{
    const pki_thread *t = pki_own;
    uint64_t state = pki_load(&t->state);
    if ((uint32_t)state < PKI_FRAME_OFFSET(0) || pki_load(&t->ended))
        return 0;
    const pki_frame *top = &t->frames[pki_depth_in(state)];
    uint32_t id = (uint32_t)state < PKI_FRAME_OFFSET(1) ? 0 : pki_load(&top->id) & PKI_FRAME_ID;
    if (PKI_UNLIKELY(pki_load(&t->untimed_open))) {
        uint32_t untimed = untimed_in(t, state, top);
        id = untimed ? untimed : id;
    }
    return id;
}

/* ---- is this thread within a call of ours that waits for locks? ---- */

static _Thread_local bool inside_inside;

bool pki_inside_enter(void)
{
    if (inside_inside || pki_is_amid())
        return false;
    inside_inside = true;
    pki_compiler_fence();
    return true;
}

void pki_inside_leave(void)
{
    pki_compiler_fence();
    inside_inside = false;
}

pk_status pki_fail_inside(void)
{
    return pki_fail_unheard(PK_EBUSY,
                            "a signal handler made this call amid another one of perfkit's");
}

bool pki_lock_within(pthread_mutex_t *mutex, uint64_t ns)
{
    const struct timespec pause = {0, 200000};
    uint64_t until = pki_monotonic_ns() + ns;
    int saved = errno;
    bool locked;
    while (!(locked = pthread_mutex_trylock(mutex) == 0) && pki_monotonic_ns() < until)
        nanosleep(&pause, NULL);
    errno = saved;
    return locked;
}

/* ---- what a thread has open, seen by another one of its process ---- */

#define TRIES 100

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

static void copy(const pki_thread *t, unsigned depth, pki_open_frames *look)
{
    look->depth = depth;
    for (unsigned d = 0; d < depth; d++) {
        look->open[d].start = pki_load(&t->frames[d + 1].start);
        look->open[d].id = pki_load(&t->frames[d + 1].id) & PKI_FRAME_ID;
    }
}

/* Twice the same, with the same state around: a ring that is full pops frames and leaves the place
 * of the next record, so the state alone would not tell that one has come and gone. */
static bool is_same(const pki_open_frames *a, const pki_open_frames *b)
{
    if (a->depth != b->depth)
        return false;
    for (unsigned d = 0; d < a->depth; d++)
        if (a->open[d].start != b->open[d].start || a->open[d].id != b->open[d].id)
            return false;
    return true;
}

bool pki_open_frames_of(const pki_thread *t, pki_open_frames *look)
{
    pki_open_frames again;
    for (int i = 0; i < TRIES; i++) {
        uint64_t state = pki_thread_seen(t); /* acquires what the owner released with it */
        copy(t, depth_in(state), look);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool stayed = pki_thread_seen(t) == state;
        copy(t, depth_in(state), &again);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (stayed && pki_thread_seen(t) == state && is_same(look, &again))
            return true;
    }
    look->depth = 0;
    return false;
}
