/* lib/core/region.c - begin and end: what the program pays for.
 *
 * Every instruction of the three functions below counts, and every branch three times: on
 * processors whose rdtsc hardly overlaps with other work they are added to its cost
 * (docs/overhead.md has the budget, and what was tried). What can be done by the collector is done
 * there; what is rare is done further down, behind a test that the fast path makes anyway:
 *
 *   state >= limit   not joined, too deep, session over, slow clock
 *   id == 0          first use of this pk_region
 *   id differs       unbalanced, too deep, or PKI_SPECIAL: this end has more to do
 *   next >= stop     ring wrapped or full
 *   equal starts     the region around began at the same tick
 *
 * What only the owner writes, it reads without pki_load: the compiler may then read it in the
 * instruction that needs it. Its stores are atomic, since others read.
 */
#include <pk/region.h>

#include "core/comms.h"
#include "core/join.h"
#include "core/mirror.h"

static PKI_COLD void begin_slow(pk_region *region);
static PKI_COLD void end_slow(pk_region *region);
static PKI_COLD void next_slow(pk_region *from, pk_region *to);

static inline void write_frame(pki_frame *f, uint32_t id, uint64_t now)
{
    pki_store(&f->id, id);
    pki_store(&f->start, now);
}

/* Store by store: put together in vector registers they would take longer. */
static inline void write_record(pki_record *r, uint32_t id, uint32_t place, uint64_t start,
                                uint64_t now)
{
    pki_store(&r->start, start);
    pki_record_set_what(r, id, place);
    pki_store(&r->value, now - start);
}

/* May the region that is open in f be closed here and now? */
static inline bool plain_end(const pki_thread *t, const pki_frame *f, uint64_t start,
                             uint64_t state, uint32_t id)
{
    return f->id == id && (uint32_t)(state >> 32) < t->stop && f[-1].start != start;
}

PKI_IN_ORDER PKI_ALIGNED void pk_region_begin_on_(pk_region *region)
{
    pki_thread *t = pki_self;
    uint64_t state = t->state;
    uint32_t id = pki_load(&region->id);
    if (PKI_UNLIKELY((uint32_t)state >= pki_load(&t->limit) || id == 0)) {
        begin_slow(region);
        return;
    }
    write_frame(pki_top_frame(t, state) + 1, id, pki_cycle_counter());
    pki_store_release(&t->state, state + sizeof(pki_frame));
}

PKI_IN_ORDER void pk_region_end_on_(pk_region *region)
{
    pki_thread *t = pki_self;
    uint64_t state = t->state;
    pki_frame *f = pki_top_frame(t, state);
    uint32_t id = pki_load(&region->id);
    uint64_t start = f->start;
    if (PKI_UNLIKELY(!plain_end(t, f, start, state, id))) {
        end_slow(region);
        return;
    }
    pki_record *r = pki_record_at(t, (uint32_t)(state >> 32));
    write_record(r, id, (uint32_t)state, start, pki_cycle_counter());
    pki_store_release(&t->state, state + ((uint64_t)sizeof(pki_record) << 32) - sizeof(pki_frame));
}

PKI_IN_ORDER void pk_region_next_on_(pk_region *from, pk_region *to)
{
    pki_thread *t = pki_self;
    uint64_t state = t->state;
    pki_frame *f = pki_top_frame(t, state);
    uint32_t id = pki_load(&from->id), next_id = pki_load(&to->id);
    uint64_t start = f->start;
    if (PKI_UNLIKELY(!plain_end(t, f, start, state, id) || next_id == 0 ||
                     (uint32_t)state > pki_load(&t->limit))) {
        next_slow(from, to);
        return;
    }
    pki_record *r = pki_record_at(t, (uint32_t)(state >> 32));
    uint64_t now = pki_cycle_counter();
    write_record(r, id, (uint32_t)state | PKI_PLACE_FLAGS(PKI_FLAG_TOUCHES), start, now);
    write_frame(f, next_id, now);
    pki_store_release(&t->state, state + ((uint64_t)sizeof(pki_record) << 32));
}

/* ---- behind the tests ---- */

/* Beyond the limit only the ids are kept, under a guard that sends every end to its slow path. */
static void begin_too_deep(pki_thread *t, uint32_t id)
{
    if (t->over < PKI_DEEP_KEPT)
        t->deep[t->over] = id;
    t->over++;
    pki_bump(&t->dropped, 1);
    pki_bump(&t->too_deep, 1);
    uint64_t record = pki_load(&t->state) >> 32 << 32;
    pki_store_release(&t->state, record | PKI_FRAME_OFFSET(PKI_DEPTH_MAX + 1));
}

/* Tells who wants to know, before the region's time begins. The id with the flags of its frame. */
static uint32_t announce(pki_thread *t, uint32_t id)
{
    uint32_t offset = (uint32_t)pki_load(&t->state);
    if (offset < PKI_FRAME_OFFSET(PKI_DEPTH_MAX) && pki_mirrors_count()) {
        pki_leave(); /* who is told may record, too */
        id |= pki_mirrors_begin(id, pki_depth_in(offset));
        pki_enter();
    }
    return t->monotonic ? id | PKI_SPECIAL : id;
}

/* what: the id, with flags. */
static void begin_at(pki_thread *t, uint32_t what, uint64_t now)
{
    uint64_t state = pki_load(&t->state);
    if ((uint32_t)state >= PKI_FRAME_OFFSET(PKI_DEPTH_MAX)) {
        begin_too_deep(t, what & PKI_FRAME_ID);
        return;
    }
    write_frame(pki_top_frame(t, state) + 1, what, now);
    pki_store_release(&t->state, state + sizeof(pki_frame));
}

static void begin(pk_region *region)
{
    uint32_t id = pki_region_id(region);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_region();
        return;
    }
    uint32_t what = announce(t, id);
    begin_at(t, what, pki_ticks(t->monotonic));
}

static void begin_slow(pk_region *region)
{
    if (!pki_enter()) {
        pki_registry_refuse_region();
        return;
    }
    begin(region);
    pki_leave();
}

/* What was open when the ring became full may have recorded calls inside it; what has begun since
 * has none. */
static void tell_loss(pki_thread *t, unsigned depth, uint32_t id, uint64_t own)
{
    if (depth > t->mixed)
        return;
    t->mixed = depth - 1;
    t->losses[t->losses_made % PKI_LOSSES] =
        (pki_loss){own, (uint32_t)(pki_load(&t->state) >> 32), (uint16_t)id, (uint16_t)depth};
    pki_store_release(&t->losses_made, t->losses_made + 1); /* pairs with the acquire in fold.c */
}

/* The call has no record: its distribution is ours to keep, and its time is none of its parent's. */
static PKI_COLD void lose(pki_thread *t, unsigned depth, uint32_t id, uint64_t ns,
                          const pki_work *work)
{
    pki_slot *slot = pki_lost_slot(t, id);
    uint64_t own = pki_not_negative(ns - t->lost_inside[depth]);
    pki_bump(&t->dropped, 1);
    pki_bump(&slot->self, own);
    pki_bump(&slot->bytes, work->bytes);
    pki_bump(&slot->flops, work->flops);
    pki_table_count(t->registry->arena, &t->lost, slot, ns);
    t->lost_since_step++;
    tell_loss(t, depth, slot->id, own);
    pki_bump(&t->lost_inside[depth - 1], ns);
    pki_store(&t->frames[depth - 1].id, pki_load(&t->frames[depth - 1].id) | PKI_SPECIAL);
}

static uint64_t what_of(const pki_work *work, const pki_frame *f, uint32_t id, unsigned depth,
                        unsigned flags)
{
    pki_record_type type = pki_worked(work) ? PKI_RECORD_REGION_WORK : PKI_RECORD_REGION;
    return PKI_WHAT(id, type, depth) | PKI_TIES(pki_count_ties(f)) | PKI_FLAGS(flags);
}

static void close_top(pki_thread *t, uint64_t now, unsigned flags)
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
        lose(t, depth, id, pki_thread_ns(t, start, pki_not_negative(records[0].value)), &done);
    }
    pki_store(&work->bytes, (uint64_t)0);
    pki_store(&work->flops, (uint64_t)0);
    pki_store(&work->payload_type, (uint64_t)0);
    pki_store(&work->tag, (uint64_t)0);
    pki_store(&t->lost_inside[depth], (uint64_t)0);
    if (pki_is_collective(done.payload_type))
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
        close_top(t, now, PKI_FLAG_UNBALANCED);
    }
}

/* False if no such region is open. */
static bool end_at(pki_thread *t, uint32_t id, uint64_t now, unsigned flags)
{
    if (t->over && end_too_deep(t, id)) {
        remove_guard(t);
        return true;
    }
    const pki_frame *f = pki_find_frame(t, id);
    if (!f) {
        pki_bump(&t->stray_ends, 1);
        return false;
    }
    pki_close_above(t, f, now);
    close_top(t, now, flags);
    return true;
}

/* The innermost region, whose end has more to do, and no guard above it: an operation on a
 * communicator ends here. */
static inline bool is_top_with_work(pki_thread *t, uint32_t id)
{
    const pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    return PKI_LIKELY(pki_load(&f->id) == (id | PKI_SPECIAL) && !pki_load(&t->ended));
}

/* Below, a region that has never been used is looked up, too: one that is static in a header has
 * been begun, perhaps, as another file's copy of it. */
static void end(pk_region *region)
{
    pki_thread *t = pki_own;
    if (is_top_with_work(t, pki_load(&region->id))) {
        close_top(t, pki_ticks(t->monotonic), 0);
        return;
    }
    t = pki_thread_joined();
    if (t)
        end_at(t, pki_region_id(region), pki_ticks(t->monotonic), 0);
}

/* Where there was no room for it to begin, there is nothing to end. */
static void end_slow(pk_region *region)
{
    if (!pki_enter())
        return;
    end(region);
    pki_leave();
}

static void next(pk_region *from, pk_region *to)
{
    uint32_t ended_id = pki_region_id(from), id = pki_region_id(to);
    pki_thread *t = pki_thread_joined();
    if (!t) {
        begin(to);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    end_at(t, ended_id, now, PKI_FLAG_TOUCHES);
    begin_at(t, announce(t, id), now);
}

static void next_slow(pk_region *from, pk_region *to)
{
    if (!pki_enter()) {
        pki_registry_refuse_region();
        return;
    }
    next(from, to);
    pki_leave();
}
