/* lib/core/region.c - begin and end: what the program pays for. Read docs/design.md, "The fast path", before changing
 * a line above the slow paths. */
#include <pk/region.h>

#include "core/join.h"
#include "core/slots.h"

static inline pki_slot *slot_for(const pki_thread *t, uint32_t id)
{
    pki_slot *slot = pki_thread_slot(t, id);
    return PKI_LIKELY(slot) ? slot : t->slots[PKI_NAME_TOO_MANY];
}

static inline void open_frame(pki_thread *t, pki_frame *f, pki_slot *slot, uint32_t id, uint64_t now)
{
    const pki_frame *outer = f - 1;
    uint64_t ties = outer->start == now ? pki_what_ties(outer->what) + 1 : 0;
    f->slot = slot;
    f->child = 0;
    f->start = now;
    f->what = PKI_WHAT(id, PKI_RECORD_REGION, ties & 0xFF, 0);
    pki_bump(&t->begun, 1);
    pki_store(&t->top, f);
}

static inline void write_record(pki_thread *t, const pki_frame *f, uint64_t ticks, uint64_t own, uint64_t what)
{
    pki_record *r = pki_next_record(t, 0);
    r->start = f->start;
    r->value = ticks;
    r->what = what;
    r->extra = own;
    pki_store_release(&t->head, t->head + 1); /* pairs with the acquire in pki_drain_block */
}

static PKI_COLD void drop(pki_thread *t)
{
    pki_bump(&t->dropped, 1);
}

/* A region with bytes or flops, or closed by somebody else. */
static PKI_COLD void write_special(pki_thread *t, const pki_frame *f, uint64_t ticks, uint64_t own, unsigned flags)
{
    pki_work *work = &t->work[f - t->frames];
    bool worked = work->bytes || work->flops;
    if (t->head + 1 + worked > t->room && !pki_make_room(t, 1 + worked)) {
        drop(t);
        *work = (pki_work){0, 0};
        return;
    }
    pki_record *r = pki_next_record(t, 0);
    unsigned type = worked ? PKI_RECORD_REGION_WORK : PKI_RECORD_REGION;
    *r = (pki_record){f->start, ticks, PKI_WHAT(pki_what_id(f->what), type, pki_what_ties(f->what), flags), own};
    if (worked)
        *pki_next_record(t, 1) = (pki_record){work->bytes, work->flops, 0, 0};
    *work = (pki_work){0, 0};
    pki_store_release(&t->head, t->head + 1 + worked);
}

/* Set in a frame's what by pk_region_add: the end has more to write. */
#define WORKED PKI_WHAT(0, 0, 0, 0x80)

static inline void close_frame(pki_thread *t, pki_frame *f, uint64_t now, unsigned flags)
{
    uint64_t ticks = pki_elapsed(f->start, now);
    uint64_t own = pki_elapsed(f->child, ticks);
    (f - 1)->child += ticks;
    pki_bump(&f->slot->self, own);
    pki_defer(t, f->slot, ticks);
    pki_store(&t->top, f - 1);
    if (PKI_UNLIKELY(flags || f->what >= WORKED))
        write_special(t, f, ticks, own, flags);
    else if (PKI_LIKELY(t->head != t->room) || pki_make_room(t, 1))
        write_record(t, f, ticks, own, f->what);
    else
        drop(t);
}

static PKI_COLD void begin_slow(pki_thread *t, pk_region *region);
static PKI_COLD void end_slow(pki_thread *t, const pk_region *region);

void pk_region_begin_on_(pk_region *region)
{
    pki_thread *t = pki_self;
    pki_enter(t);
    pki_frame *f = pki_load(&t->top) + 1;
    uint32_t id = pki_load(&region->id);
    if (PKI_UNLIKELY(f > pki_load(&t->limit) || id >= t->slot_count || !t->slots[id])) {
        begin_slow(t, region);
        return;
    }
    open_frame(t, f, t->slots[id], id, pki_ticks(t->monotonic));
    pki_leave(t);
}

void pk_region_end_on_(pk_region *region)
{
    pki_thread *t = pki_self;
    pki_enter(t);
    pki_frame *f = pki_load(&t->top);
    if (PKI_UNLIKELY(f > pki_load(&t->limit) || pki_what_id(f->what) != pki_load(&region->id))) {
        end_slow(t, region);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    pki_fold(t);
    close_frame(t, f, now, 0);
    pki_leave(t);
}

void pk_region_next_on_(pk_region *from, pk_region *to)
{
    pki_thread *t = pki_self;
    pki_enter(t);
    pki_frame *f = pki_load(&t->top);
    uint32_t id = pki_load(&to->id);
    if (PKI_UNLIKELY(f > pki_load(&t->limit) || pki_what_id(f->what) != pki_load(&from->id) ||
                     id >= t->slot_count || !t->slots[id])) {
        end_slow(t, from);
        begin_slow(t, to);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    pki_fold(t);
    close_frame(t, f, now, 0);
    open_frame(t, f, t->slots[id], id, now);
    pki_leave(t);
}

/* ---- slow paths ---- */

/* Beyond the limit only the ids are kept, under a guard that sends every end to its slow path. */
static void begin_too_deep(pki_thread *t, uint32_t id)
{
    if (t->over < PKI_DEEP_KEPT)
        t->deep[t->over] = id;
    t->over++;
    pki_bump(&t->begun, 1);
    pki_bump(&t->dropped, 1);
    pki_bump(&t->too_deep, 1);
    pki_store(&t->top, &t->frames[PKI_DEPTH_MAX + 1]);
}

static void begin_slow(pki_thread *t, pk_region *region)
{
    pki_leave(t);
    uint32_t id = pki_region_id(region);
    t = pki_thread_with_slot(id);
    if (!t)
        return;
    pki_enter(t);
    pki_frame *f = pki_load(&t->top) + 1;
    const pki_frame *limit = pki_load(&t->limit);
    if (limit && f > limit)
        begin_too_deep(t, id);
    else if (limit)
        open_frame(t, f, slot_for(t, id), id, pki_ticks(t->monotonic));
    pki_leave(t);
}

/* The end of a region beyond the limit: false if it is none. What lies above it is closed with it. */
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

static pki_frame *find_frame(pki_thread *t, uint32_t id)
{
    pki_frame *top = pki_load(&t->top);
    for (pki_frame *f = PKI_MIN(top, &t->frames[PKI_DEPTH_MAX]); f > t->frames; f--)
        if (pki_what_id(f->what) == id)
            return f;
    return NULL;
}

static void remove_guard(pki_thread *t)
{
    if (t->over == 0 && pki_load(&t->top) > &t->frames[PKI_DEPTH_MAX])
        pki_store(&t->top, &t->frames[PKI_DEPTH_MAX]);
}

void pki_close_frame(pki_thread *t, pki_frame *f, uint64_t now, unsigned flags)
{
    pki_fold(t);
    close_frame(t, f, now, flags);
}

void pki_close_above(pki_thread *t, const pki_frame *until, uint64_t now)
{
    t->over = 0;
    remove_guard(t);
    while (pki_load(&t->top) > until) {
        pki_bump(&t->unbalanced, 1);
        pki_close_frame(t, pki_load(&t->top), now, PKI_FLAG_UNBALANCED);
    }
}

static void end_below(pki_thread *t, uint32_t id)
{
    if (t->over && end_too_deep(t, id)) {
        remove_guard(t);
        return;
    }
    pki_frame *f = find_frame(t, id);
    if (!f) {
        pki_bump(&t->stray_ends, 1);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    pki_close_above(t, f, now);
    pki_close_frame(t, f, now, 0);
}

/* A thread that has no block begins none here: its begin, if there was one, has been counted as refused. */
static void end_slow(pki_thread *t, const pk_region *region)
{
    if (pki_thread_is_joined(t) && pki_load(&t->limit))
        end_below(t, pki_load(&region->id));
    pki_leave(t);
}

bool pki_make_room(pki_thread *t, unsigned slots)
{
    t->room = pki_load_acquire(&t->released) + t->mask + 1; /* pairs with the release in pki_drain_release */
    return t->head + slots <= t->room;
}

/* A region's first call in an octave, and every 2^32th in a bucket. */
void pki_slot_count_cold(pki_thread *t, pki_slot *slot, uint32_t bucket)
{
    pki_arena *arena = t->registry->arena;
    uint32_t *counter = pki_slots_bucket(arena, t, slot, bucket);
    if (counter && *counter == UINT32_MAX)
        pki_slots_carry(arena, t, slot, bucket, 1);
    if (counter)
        pki_store(counter, *counter + 1); /* wraps to 0 with the carry */
}

void pk_region_add_on_(pk_region *region, uint64_t bytes, uint64_t flops)
{
    pki_thread *t = pki_thread_with_slot(pki_region_id(region));
    if (!t)
        return;
    pki_enter(t);
    uint32_t id = pki_load(&region->id);
    pki_frame *f = pki_load(&t->limit) ? find_frame(t, id) : NULL;
    if (f) {
        pki_work *work = &t->work[f - t->frames];
        work->bytes += bytes;
        work->flops += flops;
        f->what |= WORKED;
        pki_bump(&f->slot->bytes, bytes);
        pki_bump(&f->slot->flops, flops);
    }
    pki_leave(t);
}

void pk_region_mark_on_(pk_region *region)
{
    uint32_t id = pki_region_id(region);
    pki_thread *t = pki_thread_with_slot(id);
    if (!t)
        return;
    pki_enter(t);
    if (pki_load(&t->limit) && (t->head != t->room || pki_make_room(t, 1))) {
        *pki_next_record(t, 0) = (pki_record){pki_ticks(t->monotonic), 0, PKI_WHAT(id, PKI_RECORD_MARK, 0, 0), 0};
        pki_bump(&t->points, 1);
        pki_store_release(&t->head, t->head + 1);
    } else {
        pki_bump(&t->points_dropped, 1);
    }
    pki_leave(t);
}
