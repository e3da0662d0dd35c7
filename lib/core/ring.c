/* lib/core/ring.c - the owner's side of its ring, off the fast path. */
#include "core/events.h"
#include "core/cursor.h"
#include "core/registry.h"

#define SLOT ((uint32_t)sizeof(pki_record))

/* The collector sleeps long where little is recorded, and is rung for where much is: the owner
 * looks each time that it has filled so many of these parts of its ring. That costs the fast path
 * nothing, since it stops there as it would at the ring's end. */
#define PARTS 8u
#define FULL_ENOUGH 2u /* parts */

pki_bell pki_collector_bell;

/* Pages that nobody has touched are brought in ahead of the owner, in the first lap. */
static bool nears_untouched(const pki_thread *t, uint32_t at)
{
    uint64_t populated = pki_load(&t->populated);
    return t->laps == 0 && populated < t->ring_bytes && at >= populated / 2;
}

static uint32_t next_check(const pki_thread *t, uint32_t at)
{
    uint64_t half = pki_load(&t->populated) / 2 / SLOT * SLOT;
    uint32_t part = PKI_MAX(t->ring_bytes / PARTS / SLOT * SLOT, SLOT);
    uint32_t look = at < t->ring_bytes - part ? at + part : t->ring_bytes;
    return t->laps == 0 && at < half ? PKI_MIN(look, (uint32_t)half) : look;
}

/* Where in this turn nothing is free any more. A segment, and a ring that its readers have not come
 * back to, are gone through from the start. */
static uint32_t released_here(const pki_thread *t)
{
    uint64_t released = pki_load_acquire(&t->released); /* pairs with pki_spare_release */
    return pki_cursor_turn(released) == t->turn && !pki_is_in_segment(t)
               ? pki_cursor_offset(released)
               : 0;
}

/* Free slots, all but the one that keeps full and empty apart, and where the fast path has to stop.
 */
static unsigned find_room(pki_thread *t, uint32_t at)
{
    uint32_t released = released_here(t);
    uint32_t bound = released > at   ? released - SLOT
                     : released == 0 ? t->ring_bytes - SLOT
                                     : t->ring_bytes;
    uint32_t distance = released > at ? released - at : t->ring_bytes - at + released;
    t->stop = PKI_MIN(bound, next_check(t, at));
    if (pki_events_on()) {
        uint32_t look = pki_events_check(t, at);
        t->stop = PKI_MIN(t->stop, look);
    }
    if (t->ring_bytes - distance >= t->ring_bytes / PARTS * FULL_ENOUGH || nears_untouched(t, at))
        pki_bell_ring(&pki_collector_bell);
    return distance / SLOT - 1;
}

/* Back to the start of the ring, before `stop` is moved away from its end: the fast path knows no
 * other bound. A segment has no slot there: who has been undone amid it may have written one. */
static void wrap(pki_thread *t)
{
    uint64_t state = pki_load(&t->state);
    if (state >> 32 != t->ring_bytes)
        return;
    if (pki_is_in_segment(t)) {
        pki_store_release(&t->state, state - ((uint64_t)SLOT << 32));
        return;
    }
    pki_store(&t->laps, t->laps + t->ring_bytes);
    pki_store(&t->turns[t->turn % PKI_TURNS].lapped, 1u);
    pki_store_release(&t->state, (uint64_t)(uint32_t)state);
    pki_store_release(&t->laps_behind, t->laps); /* pairs with the acquire in pki_thread_position */
}

/* Readers are ahead: a handler's records had been read when the store of whom it had interrupted
 * undid where the owner stood. What it writes up to there is read by nobody, and all behind is free
 * although it looks as if nothing were: so it goes on there. False: it is not so. */
static bool catch_up(pki_thread *t)
{
    uint64_t state = pki_load(&t->state), released = pki_load_acquire(&t->released);
    uint32_t at = (uint32_t)(state >> 32), to = pki_cursor_offset(released);
    uint64_t ahead = pki_load(&t->undone_until) - (t->laps + at);
    if (pki_load(&t->undone_turn) != t->turn || pki_cursor_turn(released) != t->turn ||
        ahead == 0 || ahead != pki_ring_bytes_between(t, at, to))
        return false;
    if (to < at) {
        pki_store(&t->laps, t->laps + t->ring_bytes);
        pki_store(&t->turns[t->turn % PKI_TURNS].lapped, 1u);
    }
    pki_store_release(&t->state, (uint64_t)to << 32 | (uint32_t)state);
    pki_store_release(&t->laps_behind, t->laps); /* pairs with the acquire in pki_thread_position */
    return true;
}

/* After a loss nothing is recorded until the loss of whatever is open can be reported, too. */
static bool has_room_for_losses(const pki_thread *t)
{
    return t->mixed == PKI_DEPTH_MAX ||
           t->losses_made - pki_load_acquire(&t->losses_folded) <= PKI_LOSSES - PKI_DEPTH_MAX;
}

/* What lies before `stop` is free, unless `stop` is from the lap before. */
static bool has_room(pki_thread *t, uint32_t at, unsigned n, bool wrapped)
{
    return (!wrapped && at + n * SLOT <= t->stop) || find_room(t, at) >= n;
}

/* Where the thread is, or where its readers are, or else in a spare segment; and from there back
 * into its ring, whose lines are in the cache, as soon as that is free. */
static bool make_room(pki_thread *t, unsigned n, bool wrapped)
{
    if (pki_is_in_segment(t))
        wrapped |= pki_spare_return(t);
    if (has_room(t, (uint32_t)(pki_load(&t->state) >> 32), n, wrapped))
        return true;
    if (catch_up(t))
        return find_room(t, (uint32_t)(pki_load(&t->state) >> 32)) >= n;
    return pki_spare_enter(t) && find_room(t, 0) >= n;
}

bool pki_push(pki_thread *t, const pki_record *records, unsigned n, unsigned pop)
{
    bool wrapped = pki_load(&t->state) >> 32 == t->ring_bytes;
    wrap(t);
    bool room = make_room(t, n, wrapped) && has_room_for_losses(t);
    uint64_t state = pki_load(&t->state), laps = t->laps;
    uint32_t at = (uint32_t)(state >> 32);
    if (!room) {
        t->stop = at; /* nor does the fast path, if a smaller record would have room */
        return false;
    }
    t->mixed = PKI_DEPTH_MAX;
    for (unsigned i = 0; i < n; i++) {
        *pki_record_at(t, at) = records[i];
        at += SLOT;
        if (at == t->ring_bytes) {
            at = 0;
            laps += t->ring_bytes;
        }
    }
    if (laps != t->laps) {
        pki_store(&t->turns[t->turn % PKI_TURNS].lapped, 1u);
        find_room(t, at); /* `stop` was for the round before */
    }
    pki_store(&t->laps, laps);
    pki_store_release(&t->state, ((uint64_t)at << 32 | (uint32_t)state) - pop * sizeof(pki_frame));
    pki_store_release(&t->laps_behind, laps);
    return true;
}

bool pki_push_point(pki_thread *t, const pki_record *records, unsigned n)
{
    bool pushed = pki_push(t, records, n, 0);
    if (pushed) {
        pki_bump(&t->others, n);
        pki_bump(&t->points_pushed, 1);
    } else {
        pki_bump(&t->points_dropped, 1);
    }
    return pushed;
}

pki_slot *pki_lost_slot(pki_thread *t, uint32_t id)
{
    pki_slot *slot = pki_table_slot(&t->lost, id);
    if (slot)
        return slot;
    if (!t->starved) {
        pki_registry_lock();
        slot = pki_table_add(&t->registry->arena->spans, &t->lost, id, pki_name_kind(id));
        pki_registry_unlock();
        t->starved = !slot;
    }
    return slot ? slot : &t->last_resort;
}
