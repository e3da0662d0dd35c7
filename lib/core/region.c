/* lib/core/region.c - begin and end: what the program pays for.
 *
 * Every instruction of the three functions below counts, and every branch three times: on
 * processors whose rdtsc hardly overlaps with other work they are added to its cost
 * (docs/internals/overhead.md has the budget, and what was tried). What can be done by the
 * collector is done there; what is rare is done further down, behind a test that the fast path
 * makes anyway:
 *
 *   state >= limit   not joined, too deep, session over, slow clock
 *   id == 0          first use of this pk_region, or it is thinned (core/thin.h) or sampled
 *                    (core/events.h)
 *   id differs       unbalanced, too deep, or PKI_SPECIAL: this end has more to do
 *   next >= stop     ring wrapped or full
 *   a tie            the region around began in the same nanosecond
 *
 * What only the owner writes, it reads without pki_load: the compiler may then read it in the
 * instruction that needs it. Its stores are atomic, since others read.
 */
#include <pk/region.h>

#include "core/frames.h"
#include "core/events.h"
#include "core/join.h"
#include "core/mirror.h"
#include "core/thin.h"

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
    return f->id == id && (uint32_t)(state >> 32) < t->stop && !pki_is_tie(f[-1].start, start);
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

/* Close behind the begin, so that both lie in three lines. */
PKI_IN_ORDER __attribute__((aligned(8))) void pk_region_end_on_(pk_region *region)
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
        pki_leave(); /* who is notified may record, too */
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

/* The flags of its frame. Last, since what follows is the call's. */
static PKI_COLD uint32_t sample(pki_thread *t, uint32_t id, bool picked)
{
    if (pki_events_met_enough(t))
        pki_thin_settle(t);
    uint32_t thin = pki_load(&pki_thin[id]);
    bool skips = pki_thin_skips_calls(thin);
    return pki_events_begin(t, id, picked, skips ? thin / PKI_THIN_PER_GAP : 0);
}

/* A timed call of a thinned region comes after many that were counted alone. The processor is ahead
 * of its work there, by as much as it can hold, and has caught up when such a call's begin is
 * through: read as they come, both ends of a chain of dependent instructions of 120 ns lie 20 ns
 * apart. So both wait for what is under way. */
static inline uint64_t ordered_ticks(uint32_t monotonic)
{
    uint64_t now = pki_cycle_counter_ordered();
    return PKI_UNLIKELY(monotonic) ? pki_ticks(monotonic) : now;
}

/* A call that is timed; or it has been counted, and that is all. Its end is as slow as it if there
 * are others to tell of. */
static void begin_on(pki_thread *t, pk_region *region, uint32_t id)
{
    bool carries, picked = pki_load(&region->id) == 0;
    if (pki_thin_begin(t, region, id, &carries))
        return;
    uint32_t what = announce(t, id) | (carries ? PKI_SPECIAL : 0);
    if (pki_events_on())
        what |= sample(t, id, picked);
    begin_at(t, what, carries ? ordered_ticks(t->monotonic) : pki_ticks(t->monotonic));
}

static PKI_COLD void begin(pk_region *region)
{
    uint32_t id = pki_region_id(region);
    pki_thread *t = pki_thread_join();
    if (t)
        begin_on(t, region, id);
    else
        pki_registry_refuse_region();
}

/* Most calls of a thinned region: what they touch is whole at any moment, so that a handler that
 * begins and ends calls of its own amid this does no harm. */
static inline bool begin_untimed(const pk_region *region)
{
    pki_thread *t = pki_self;
    uint64_t state = t->state;
    return (uint32_t)state < pki_load(&t->limit) &&
           pki_count_call(t, pki_load(&region->reserved), state);
}

static inline bool end_untimed(const pk_region *region)
{
    pki_thread *t = pki_self;
    if (!pki_is_innermost_untimed(t, pki_load(&region->reserved), t->state))
        return false;
    pki_store(&t->untimed_open, t->untimed_open - 1);
    return true;
}

static PKI_HOT void begin_otherwise(pk_region *region)
{
    if (PKI_LIKELY(begin_untimed(region)))
        return;
    if (!pki_enter()) {
        pki_registry_refuse_region();
        return;
    }
    begin(region);
    pki_leave();
}

/* Cold to the fast path, whose code lies as if it were never called. */
static void begin_slow(pk_region *region)
{
    begin_otherwise(region);
}

/* The innermost region, whose end has more to do, and no guard above it: an operation on a
 * communicator ends here. */
static inline bool is_top_with_work(pki_thread *t, uint32_t id)
{
    const pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    return PKI_LIKELY(pki_load(&f->id) == (id | PKI_SPECIAL) && !pki_load(&t->ended));
}

/* The record may have been one at which a call is picked to be sampled: this region's next one. */
static inline void pick_next(pk_region *region)
{
    if (pki_events_on() && pki_events_is_due()) {
        pki_thin_mark(region, pki_region_id(region), true);
        pki_events_forget_check();
    }
}

/* Events are read first: what follows is not the region's. */
static void close_sampled(pki_thread *t, pk_region *region, uint64_t now, unsigned flags)
{
    uint32_t what = pki_load(&pki_top_frame(t, pki_load(&t->state))->id);
    if (what & PKI_SAMPLED && what != PKI_NOBODY) /* a guard has all bits set */
        pki_events_read_end(t);
    pki_close(t, pki_region_id(region), now, flags);
    pki_events_forget_end();
    pick_next(region);
}

/* Below, a region that has never been used is looked up, too: one that is static in a header has
 * been begun, perhaps, as another file's copy of it. */
static PKI_COLD void end(pk_region *region, uint64_t ticks)
{
    pki_thread *t = pki_own;
    uint64_t now = PKI_UNLIKELY(t->monotonic) ? pki_ticks(t->monotonic) : ticks;
    if (is_top_with_work(t, pki_load(&region->id))) {
        pki_close_top(t, now, 0);
        pick_next(region);
        return;
    }
    t = pki_thread_joined();
    if (t)
        close_sampled(t, region, now, 0);
}

/* Where there was no room for it to begin, there is nothing to end. */
static PKI_HOT void end_otherwise(pk_region *region)
{
    if (PKI_LIKELY(end_untimed(region)))
        return;
    bool aside = pki_load(&region->reserved) != 0; /* thinned, or sampled */
    uint64_t now =                                 /* before all that is not the region's */
        PKI_UNLIKELY(aside) ? pki_cycle_counter_ordered() : pki_cycle_counter();
    if (!pki_enter())
        return;
    end(region, now);
    pki_leave();
}

static void end_slow(pk_region *region)
{
    end_otherwise(region);
}

static void next(pk_region *from, pk_region *to)
{
    uint32_t id = pki_region_id(to);
    pki_thread *t = pki_thread_joined();
    if (!t) {
        begin(to);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    bool carries, picked = pki_load(&to->id) == 0;
    close_sampled(t, from, now, PKI_FLAG_TOUCHES);
    if (pki_thin_begin(t, to, id, &carries))
        return;
    uint32_t what = announce(t, id) | (carries ? PKI_SPECIAL : 0);
    if (pki_events_on())
        what |= sample(t, id, picked);
    begin_at(t, what, what & PKI_SAMPLED ? pki_ticks(t->monotonic) : now);
}

static void next_slow(pk_region *from, pk_region *to)
{
    bool ended = end_untimed(from);
    if (ended && begin_untimed(to))
        return;
    if (ended) {
        pk_region_begin_on_(to);
        return;
    }
    if (!pki_enter()) {
        pki_registry_refuse_region();
        return;
    }
    next(from, to);
    pki_leave();
}
