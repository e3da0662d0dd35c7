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

#include "comm/model/communicator.h"
#include "core/events.h"
#include "core/frames.h"
#include "core/join.h"
#include "core/mirror.h"
#include "core/registry.h"
#include "core/ring.h"
#include "core/thin.h"
#include "core/thread.h"

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

static uint32_t pki_mirrors_begin(uint32_t id, unsigned depth);
static bool pki_thin_begin(pki_thread *t, pk_region *region, uint32_t id, bool *timed);
static void pki_thin_settle(pki_thread *t);
static void pki_close_top(pki_thread *t, uint64_t now, unsigned flags);
static void pki_close(pki_thread *t, uint32_t id, uint64_t now, unsigned flags);

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

#define FIRST_CALLS 256u

/* A thread's first calls all leave the fast path, so that regions that an earlier session has used
 * are met. Has it made enough of them with this one? Once. */
static bool met_enough(const pki_thread *t)
{
    static _Thread_local uint32_t met, session;
    if (session != t->session) {
        session = t->session;
        met = 0;
    }
    return met <= FIRST_CALLS && ++met == FIRST_CALLS;
}

/* The flags of its frame. Last, since what follows is the call's. */
static PKI_COLD uint32_t sample(pki_thread *t, uint32_t id, bool picked)
{
    if (met_enough(t))
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

/* ---- those who hear of every region as it begins and ends, on its own thread ---- */

static const pki_mirror *all[PKI_MIRRORS_MAX];
static unsigned count;

void pki_mirrors_open(const pki_mirror *const *mirrors, unsigned n)
{
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    for (unsigned i = 0; i < n && i < PKI_MIRRORS_MAX; i++)
        pki_store(&all[i], mirrors[i]);
    pki_store_release(&count, PKI_MIN(n, (unsigned)PKI_MIRRORS_MAX));
    for (uint32_t i = 0; r && i < pki_registry_blocks(r); i++)
        pki_store(&pki_registry_block(r, i)->limit, 0u);
    pki_registry_unlock();
}

void pki_mirrors_close(void)
{
    pki_store_release(&count, 0u);
}

unsigned pki_mirrors_count(void)
{
    return pki_load_acquire(&count); /* pairs with the release in pki_mirrors_open */
}

static uint32_t pki_mirrors_begin(uint32_t id, unsigned depth)
{
    unsigned n = pki_mirrors_count();
    for (unsigned i = 0; i < n; i++)
        pki_load(&all[i])->begin(id, depth);
    return n ? PKI_SPECIAL | PKI_MIRRORED : 0;
}

static void pki_mirrors_end(uint32_t id, const pki_work *work)
{
    for (unsigned i = pki_mirrors_count(); i-- > 0;)
        pki_load(&all[i])->end(id, work);
}

/* To all of them. Begin returns the flags for the frame's id, 0 if there is no mirror. */
static void pki_mirrors_mark(uint32_t id)
{
    for (unsigned i = 0, n = pki_mirrors_count(); i < n; i++)
        pki_load(&all[i])->mark(id);
}

/* ---- thinned regions: of their calls one of n is timed, the others are counted ---- */

uint32_t pki_thin[PKI_NAMES_MAX];

/* A new array for more ids; what the old one holds goes along. */
static bool grow(pki_thread *t, uint32_t id)
{
    uint32_t size = PKI_MAX(t->counted_size, 64u);
    while (size <= id)
        size *= 2;
    pki_registry_lock();
    pki_counted *more =
        pki_pool_claim(&t->registry->arena->spans, &t->lost.pool, size * sizeof *more);
    for (uint32_t i = 0; more && i < t->counted_size; i++)
        more[i] = t->counted[i];
    if (more) {
        pki_store(&t->counted, more);
        pki_store(&t->counted_size, size);
    }
    pki_registry_unlock();
    return more;
}

/* Marsaglia's xorshift (Journal of Statistical Software 8, 14, 2003), its upper half. */
static uint32_t draw(pki_thread *t, uint32_t n)
{
    uint64_t x = t->seed ? t->seed : (uint64_t)(t->index + 1) * 0x9E3779B97F4A7C15u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    t->seed = x;
    return (uint32_t)((x >> 32) * (2 * n - 1) >> 32);
}

static void set_gap(pki_counted *e, uint32_t gap)
{
    uint64_t pending = pki_counted_pending(e);
    pki_store(&e->drawn, e->left);
    pki_store(&e->before, pending);
    pki_store(&e->left, gap);
    pki_store(&e->drawn, gap);
}

void pki_thin_mark(pk_region *region, uint32_t id, bool aside)
{
    bool marked = pki_load(&region->id) == 0;
    if (aside == marked)
        return;
    if (aside)
        pki_store(&region->reserved, id);
    pki_store(&region->id, aside ? 0 : id);
}

/* The first call on a thread is timed, so that there is a duration to go by. */
static void follow(pki_thread *t, pki_counted *e, uint32_t thin)
{
    bool skips = pki_thin_skips_calls(thin);
    if (e->n != thin)
        set_gap(e, skips && e->n ? draw(t, thin) : 0);
    pki_store(&e->n, thin);
}

/* The last call of a gap is timed for itself, the one behind it for the gap. */
static void time_it(pki_thread *t, pki_counted *e, uint32_t thin)
{
    bool skips = pki_thin_skips_calls(thin);
    pki_store(&e->carries, !skips || e->left == 0);
    if (e->carries) {
        set_gap(e, skips ? draw(t, thin) : 0);
    } else if (e->left == 1) {
        pki_store(&e->drawn, e->drawn - 1);
        pki_store(&e->left, 0u);
    }
}

/* Within pki_enter and pki_leave: a call that has left the fast path. True: it is untimed, and has
 * been counted. Else *timed says whether its record carries others, so that its end must take the
 * slow path, too. */
static bool pki_thin_begin(pki_thread *t, pk_region *region, uint32_t id, bool *timed)
{
    uint32_t thin = pki_load(&pki_thin[id]);
    bool skips = pki_thin_skips_calls(thin), aside = skips || pki_events_keep_off_fast_path(id);
    *timed = false;
    if (PKI_LIKELY(!aside && !pki_load(&region->reserved)))
        return false;
    pki_thin_mark(region, id, aside);
    if (skips && id >= t->counted_size && !grow(t, id))
        return false;
    pki_counted *e = pki_counted_at(t, id);
    if (!e)
        return false;
    follow(t, e, thin);
    uint64_t state = pki_load(&t->state);
    bool room = (uint32_t)state < PKI_FRAME_OFFSET(PKI_DEPTH_MAX);
    if (room && !pki_mirrors_count() && pki_count_call(t, id, state))
        return true;
    time_it(t, e, thin);
    *timed = true;
    return false;
}

/* How many untimed calls the record of a timed one has to carry; and that it has been written. */
static uint32_t pki_thin_pending(const pki_thread *t, uint32_t id)
{
    const pki_counted *e = pki_counted_at(t, id);
    return e && e->carries ? (uint32_t)PKI_MIN(pki_counted_pending(e), PKI_THINNED_MOST) : 0;
}

/* In this order a reader may miss calls of a thread that is amid this, and counts none twice. */
static void pki_thin_carried(pki_thread *t, uint32_t id, uint32_t others, uint64_t ticks)
{
    pki_counted *e = pki_counted_at(t, id);
    if (!e || !e->carries)
        return;
    uint64_t rest = pki_counted_pending(e) - others;
    pki_store(&e->drawn, e->left);
    pki_store(&e->before, rest);
    pki_store(&e->last, ticks);
    pki_store(&e->bytes, (uint64_t)0);
    pki_store(&e->flops, (uint64_t)0);
}

static void watch(const pki_registry *r, pki_thread *t, bool on)
{
    uint32_t usual = r->monotonic || pki_mirrors_count() ? 0 : PKI_FRAME_OFFSET(PKI_DEPTH_MAX);
    if (pki_load(&t->life) == PKI_THREAD_LIVE && !pki_load(&t->ended))
        pki_store(&t->limit, on ? 0 : usual);
}

void pki_thin_watch(const pki_registry *r, bool on)
{
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        watch(r, pki_registry_block(r, i), on);
}

/* The same for the calling thread alone, which takes the lock: not any longer. */
static void pki_thin_settle(pki_thread *t)
{
    pki_registry_lock();
    watch(t->registry, t, false);
    pki_registry_unlock();
}

void pki_thin_set(uint32_t id, uint32_t thin)
{
    if (pki_load(&pki_thin[id]) != PKI_THIN_NEVER)
        pki_store(&pki_thin[id], thin);
}

void pki_thin_reset(void)
{
    uint32_t names = pki_name_count();
    for (uint32_t id = 0; id < names; id++)
        pki_thin_set(id, 0);
}

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

/* Closes the innermost region; there is one, and no guard above it. By the owner, as all below but
 * the last. */
static void pki_close_top(pki_thread *t, uint64_t now, unsigned flags)
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

/* The innermost open region of that id; NULL: none. Within pki_enter and pki_leave. */
static pki_frame *pki_find_frame(pki_thread *t, uint32_t id)
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

/* If the innermost open call of that id is an untimed one (core/thin.h): where it is counted, else
 * NULL; and its end. */
static pki_counted *pki_untimed_call(pki_thread *t, uint32_t id)
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

/* Closes the innermost region of that id, and what is open inside it as unbalanced. Without one it
 * is a stray end. */
static void pki_close(pki_thread *t, uint32_t id, uint64_t now, unsigned flags)
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

/* ---- what is added to an open region: work, notes; and marks ---- */

static PKI_NOINLINE pki_frame *find_own_frame(pk_region *region)
{
    if (!pki_enter())
        return NULL;
    pki_thread *t = pki_thread_joined();
    uint32_t id = pki_region_id(region);
    pki_frame *f = t && !pki_untimed_call(t, id) ? pki_find_frame(t, id) : NULL;
    pki_leave();
    return f;
}

/* Of a call that is not timed; the next one that is has it in its record. */
static PKI_COLD void add_to_untimed(pk_region *region, uint64_t bytes, uint64_t flops)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_joined();
    pki_counted *e = t ? pki_untimed_call(t, pki_region_id(region)) : NULL;
    if (e) {
        pki_bump(&e->bytes, bytes);
        pki_bump(&e->flops, flops);
    }
    pki_leave();
}

/* It is the innermost one, nearly always: the same test as an end's. */
pki_work *pki_region_work(pk_region *region, uint32_t *parent)
{
    pki_thread *t = pki_self;
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    if (PKI_UNLIKELY(pki_load(&f->id) != pki_load(&region->id) || pki_load(&t->ended)))
        f = find_own_frame(region);
    if (!f)
        return NULL;
    pki_store(&f->id, pki_load(&f->id) | PKI_SPECIAL);
    *parent = f - t->frames > 1 ? pki_load(&f[-1].id) & PKI_FRAME_ID : 0;
    return &t->work[f - t->frames];
}

void pk_region_add_on_(pk_region *region, uint64_t bytes, uint64_t flops)
{
    uint32_t parent;
    pki_work *work = pki_region_work(region, &parent);
    if (!work) {
        add_to_untimed(region, bytes, flops);
        return;
    }
    pki_bump(&work->bytes, bytes);
    pki_bump(&work->flops, flops);
}

void pki_region_payload(pk_region *region, pki_payload_type type, uint64_t bits)
{
    uint32_t parent;
    pki_work *work = pki_region_work(region, &parent);
    if (!work)
        return;
    pki_store(&work->payload, bits);
    pki_store(&work->payload_type, (uint64_t)type);
}

/* ---- notes ---- */

/* The depth at which that region is open; 0: it is not, or this call of it is counted alone. */
static PKI_NOINLINE unsigned find_depth(pki_thread *t, pk_region *region)
{
    uint32_t id = pki_region_id(region);
    pki_frame *f = pki_untimed_call(t, id) ? NULL : pki_find_frame(t, id);
    return f ? (unsigned)(f - t->frames) : 0;
}

/* A region that is thinned has no id in itself (core/thin.h). */
static inline unsigned open_depth(pki_thread *t, pk_region *region)
{
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    uint32_t id = pki_load(&region->id);
    if (PKI_LIKELY(id && (pki_load(&f->id) & PKI_FRAME_ID) == id))
        return (unsigned)(f - t->frames);
    return find_depth(t, region);
}

/* Who formats it gives it to the next region of this depth that began before it. */
static inline void note(pk_region *region, pk_region *key, pki_record_type type, unsigned n,
                        pki_record *record)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_joined();
    unsigned depth = t ? open_depth(t, region) : 0;
    if (depth) {
        uint32_t id = pki_load(&key->id);
        record->start = pki_ticks(t->monotonic);
        record->what = PKI_WHAT(id ? id : pki_region_id(key), type, depth);
        pki_push_point(t, record, n);
    }
    pki_leave();
}

void pk_region_note_on_(pk_region *region, pk_region *key, int64_t value)
{
    pki_record record = {.value = (uint64_t)value};
    note(region, key, PKI_RECORD_NOTE, 1, &record);
}

void pk_region_note_text_on_(pk_region *region, pk_region *key, const char *text)
{
    pki_record record[2] = {{0}};
    pki_note_pack(record, text ? text : "");
    note(region, key, PKI_RECORD_NOTE_TEXT, 2, record);
}

/* ---- marks ---- */

void pk_region_mark_on_(pk_region *region)
{
    pki_mark_payload(region, PKI_PAYLOAD_NONE, 0);
}

/* False: there is nowhere to put it. */
static bool mark(uint32_t id, pki_payload_type type, uint64_t bits)
{
    pki_thread *t = pki_thread_join();
    if (!t)
        return false;
    pki_record record = {pki_ticks(t->monotonic), bits, PKI_WHAT(id, PKI_RECORD_MARK, 0), type};
    pki_push_point(t, &record, 1);
    return true;
}

void pki_mark_payload(pk_region *region, pki_payload_type type, uint64_t bits)
{
    bool entered = pki_enter(), marked = false;
    uint32_t id = 0;
    if (entered) {
        id = pki_region_id(region);
        marked = mark(id, type, bits);
        pki_leave();
    }
    if (marked)
        pki_mirrors_mark(id);
    else
        pki_registry_refuse_point();
}
