/* lib/core/ring.c - the owner's side of its ring, off the fast path. */
#include "core/events.h"
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

static uint32_t next_look(const pki_thread *t, uint32_t at)
{
    uint64_t half = pki_load(&t->populated) / 2 / SLOT * SLOT;
    uint32_t part = PKI_MAX(t->ring_bytes / PARTS / SLOT * SLOT, SLOT);
    uint32_t look = at < t->ring_bytes - part ? at + part : t->ring_bytes;
    return t->laps == 0 && at < half ? PKI_MIN(look, (uint32_t)half) : look;
}

/* Free slots, all but the one that keeps full and empty apart, and where the fast path has to stop.
 */
static unsigned find_room(pki_thread *t, uint32_t at)
{
    uint32_t released =
        pki_load_acquire(&t->released); /* pairs with the release in pki_fold_release */
    uint32_t bound = released > at   ? released - SLOT
                     : released == 0 ? t->ring_bytes - SLOT
                                     : t->ring_bytes;
    uint32_t distance = released > at ? released - at : t->ring_bytes - at + released;
    t->stop = PKI_MIN(bound, next_look(t, at));
    if (pki_events_on()) {
        uint32_t look = pki_events_look(t, at);
        t->stop = PKI_MIN(t->stop, look);
    }
    if (t->ring_bytes - distance >= t->ring_bytes / PARTS * FULL_ENOUGH || nears_untouched(t, at))
        pki_bell_ring(&pki_collector_bell);
    return distance / SLOT - 1;
}

/* Back to the start of the ring, before `stop` is moved away from its end: the fast path knows no
 * other bound. */
static uint64_t wrap(pki_thread *t)
{
    uint64_t state = pki_load(&t->state);
    if (state >> 32 != t->ring_bytes)
        return state;
    state = (uint32_t)state;
    pki_store(&t->laps, t->laps + t->ring_bytes);
    pki_store_release(&t->state, state);
    pki_store_release(&t->laps_behind, t->laps); /* pairs with the acquire in pki_thread_position */
    return state;
}

/* After a loss nothing is recorded until whatever is open can be lost again and told. */
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

bool pki_push(pki_thread *t, const pki_record *records, unsigned n, unsigned pop)
{
    bool wrapped = pki_load(&t->state) >> 32 == t->ring_bytes;
    uint64_t state = wrap(t);
    uint32_t at = (uint32_t)(state >> 32);
    uint64_t laps = t->laps;
    if (!has_room(t, at, n, wrapped) || !has_room_for_losses(t)) {
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
    if (laps != t->laps)
        find_room(t, at); /* `stop` was for the round before */
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
