#include "core/ring.h"

#include <string.h>

#include "base/memory.h"
#include "core/arena.h"
#include "core/events.h"
#include "core/registry.h"
#include "core/thread.h"

/* ---- where a reader stands in what a thread has recorded ---- */

const pki_record *pki_turn_records(const pki_thread *t, uint32_t turn)
{
    uint32_t pages = pki_load(&pki_turn_at(t, turn)->segment);
    return pages ? pki_arena_at(t->registry->arena, (uint64_t)pages * PKI_PAGE) : t->home;
}

/* Within the change from one to the other the state is the old turn's until it is at the start of
 * the new one; an old one that is at the start, too, has nothing that the new one has not. */
uint32_t pki_turn_of(uint64_t state, uint32_t turn, uint32_t behind)
{
    return state >> 32 ? behind : turn;
}

/* The owner stores turn, state and turn_behind in this order as a turn begins, and both turns are
 * the same otherwise. */
static uint64_t find_head(const pki_thread *t)
{
    uint64_t state;
    uint32_t behind, turn;
    do {
        behind = pki_load_acquire(&t->turn_behind); /* pairs with the releases below */
        turn = pki_load_acquire(&t->turn);
        state = pki_load_acquire(&t->state); /* pairs with the release of state */
    } while (pki_load(&t->turn) != turn || pki_load(&t->turn_behind) != behind);
    return pki_cursor_of(pki_turn_of(state, turn, behind), (uint32_t)(state >> 32));
}

uint64_t pki_thread_head(const pki_thread *t)
{
    uint64_t sealed = pki_load(&t->sealed);
    uint64_t head =
        sealed ? pki_cursor_of((uint32_t)t->sealed_turn, (uint32_t)(sealed >> 32)) : find_head(t);
    uint32_t turn = pki_cursor_turn(head);
    return pki_cursor_of(turn, pki_cursor_offset_in(t, turn, pki_cursor_offset(head)));
}

uint64_t pki_cursor_bytes_between(const pki_thread *t, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0;
    uint32_t turn = pki_cursor_turn(from), at = pki_cursor_offset(from);
    for (; turn != pki_cursor_turn(to); turn++, at = 0)
        bytes += pki_ring_bytes_between(t, at, pki_turn_until(t, turn, at, to));
    return bytes + pki_ring_bytes_between(t, at, pki_turn_until(t, turn, at, to));
}

/* ---- memory that rings reach into while the collector is held up ---- */

/* Index of the block that it is kept for, from 1; 0: anybody may have it. */
static inline uint32_t pki_spare_keeper_of(uint32_t word)
{
    return word >> 2;
}

static uint32_t in_state(uint32_t word, enum pki_spare_state state)
{
    return (word & ~3u) | state;
}

/* Whose it is stays; it is in the word, so it cannot have changed meanwhile. */
static bool claim(pki_spare *s, uint32_t word)
{
    return __atomic_compare_exchange_n(&s->word, &word, in_state(word, PKI_SPARE_USED), false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* One in that state of that keeper's. */
static pki_spare *claim_of(pki_spares *spares, enum pki_spare_state state, uint32_t keeper)
{
    uint32_t count = pki_load_acquire(&spares->count); /* pairs with the release in add */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = pki_load(&spares->all[i].word);
        if (word == (state | keeper << 2) && claim(&spares->all[i], word))
            return &spares->all[i];
    }
    return NULL;
}

/* Anybody's, or else anyone's. */
static pki_spare *claim_any(pki_spares *spares, enum pki_spare_state state)
{
    pki_spare *s = claim_of(spares, state, 0);
    for (uint32_t i = 0; !s && i < spares->count; i++) {
        uint32_t word = pki_load(&spares->all[i].word);
        if (pki_spare_state_of(word) == state && claim(&spares->all[i], word))
            s = &spares->all[i];
    }
    return s;
}

static void release_as(pki_spare *s, enum pki_spare_state state)
{
    pki_store_release(&s->word, in_state(s->word, state)); /* pairs with the acquire in claim */
}

static void *memory_of(const pki_arena *arena, uint32_t segment)
{
    return pki_arena_at(arena, (uint64_t)segment * PKI_PAGE);
}

/* ---- turns ---- */

/* A segment's last slot stays empty; who has been undone amid it may have come past that. */
static uint32_t end_of_turn(const pki_thread *t, uint64_t state)
{
    uint32_t end = (uint32_t)(state >> 32);
    return pki_is_in_segment(t) ? PKI_MIN(end, t->ring_bytes - (uint32_t)sizeof(pki_record)) : end;
}

/* Where the old turn ends, and the memory of the new one, are published before the turn; see
 * find_head. */
static void begin_turn(pki_thread *t, uint32_t segment, pki_record *records)
{
    uint64_t state = pki_load(&t->state);
    uint32_t turn = t->turn + 1, end = end_of_turn(t, state);
    pki_turn *next = &t->turns[turn % PKI_TURNS];
    pki_store(&t->turns[t->turn % PKI_TURNS].end, end);
    pki_store(&next->segment, segment);
    pki_store(&next->lapped, 0u);
    t->ring = records;
    pki_store(&t->laps, t->laps + end);
    pki_store_release(&t->turn, turn); /* pairs with the acquire in find_head: an old state at the
                                          start of its turn passes for the new turn's */
    pki_store_release(&t->state, (uint64_t)(uint32_t)state);
    pki_store_release(&t->laps_behind, t->laps);
    pki_store_release(&t->turn_behind, turn); /* pairs with the acquire in find_head */
    if (!segment)
        t->ring_turn = turn;
}

/* Back into the ring, if readers have left it. False: it stays where it is. */
static bool pki_spare_return(pki_thread *t)
{
    uint64_t released = pki_load_acquire(&t->released);
    if (pki_cursor_turn(released) <= t->ring_turn)
        return false;
    begin_turn(t, 0, t->home);
    return true;
}

/* Into a spare segment. False: there is none. */
static bool pki_spare_enter(pki_thread *t)
{
    if (!t->registry || t->turn + 2 - pki_cursor_turn(pki_load_acquire(&t->released)) >= PKI_TURNS)
        return false;
    pki_spares *spares = &t->registry->spares;
    const pki_spare *s = claim_of(spares, PKI_SPARE_FREE, t->index + 1);
    if (!s)
        s = claim_of(spares, PKI_SPARE_FREE, 0);
    if (!s)
        return false;
    begin_turn(t, s->segment, memory_of(t->registry->arena, s->segment));
    return true;
}

/* ---- the collector's ---- */

static bool has_open_region(const pki_thread *t)
{
    return pki_depth_in(pki_load_acquire(&t->state)) > 0; /* pairs with the release of state */
}

static void release_segment(pki_thread *t, uint32_t segment)
{
    pki_spares *spares = &t->registry->spares;
    for (uint32_t i = 0; i < spares->count; i++) {
        pki_spare *s = &spares->all[i];
        if (s->segment != segment)
            continue;
        memset(memory_of(t->registry->arena, segment), 0, t->ring_bytes);
        uint32_t keeper = has_open_region(t) ? t->index + 1 : 0;
        s->outermost = pki_load(&t->frames[1].start);
        pki_store_release(&s->word,
                          PKI_SPARE_FREE | keeper << 2); /* pairs with the acquire in claim */
    }
}

void pki_spare_share(pki_registry *registry)
{
    pki_spares *spares = &registry->spares;
    for (uint32_t i = 0; i < spares->count; i++) {
        pki_spare *s = &spares->all[i];
        uint32_t word = pki_load(&s->word), keeper = pki_spare_keeper_of(word);
        if (!keeper || pki_spare_state_of(word) == PKI_SPARE_USED)
            continue;
        const pki_thread *t = pki_registry_block(registry, keeper - 1);
        if (!has_open_region(t) || pki_load(&t->frames[1].start) != s->outermost)
            __atomic_compare_exchange_n(&s->word, &word, word & 3u, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
    }
}

/* The owner is in a later turn, and does not come back before that has been released. */
static void release_turn(pki_thread *t, uint32_t turn)
{
    if (pki_turn_is_in_ring(t, turn))
        memset(t->home, 0, t->ring_bytes);
    else
        release_segment(t, pki_load(&pki_turn_at(t, turn)->segment));
}

void pki_spare_release(pki_thread *t, uint64_t cursor)
{
    for (uint32_t turn = pki_cursor_turn(t->released); turn != pki_cursor_turn(cursor); turn++)
        release_turn(t, turn);
    pki_store_release(&t->released, cursor); /* pairs with the acquire in released_here */
}

void pki_spare_bring_home(pki_thread *t)
{
    if (pki_is_in_segment(t))
        pki_spare_return(t);
}

/* Half of the arena stays for what has no other place. */
static bool add(pki_spares *spares, pki_arena *arena, uint32_t bytes)
{
    uint64_t used = pki_load(arena->spans.used);
    if (used + bytes > arena->spans.bytes / 2)
        return false;
    void *at = pki_arena_claim(arena, bytes);
    if (!at)
        return false;
    pki_mem_populate(at, bytes);
    pki_spare *s = &spares->all[spares->count];
    s->segment = (uint32_t)(pki_arena_offset(arena, at) / PKI_PAGE);
    release_as(s, PKI_SPARE_FREE);
    pki_store_release(&spares->count, spares->count + 1); /* pairs with the acquire in claim_any */
    return true;
}

bool pki_spare_make(pki_spares *spares, pki_arena *arena, uint32_t bytes, uint32_t most)
{
    pki_spare *s = claim_any(spares, PKI_SPARE_GONE);
    if (!s)
        return spares->count < PKI_MIN(most, PKI_SPARES_MOST) && add(spares, arena, bytes);
    void *at = memory_of(arena, s->segment);
    bool back = pki_spans_restore(&arena->spans, at, bytes);
    if (back)
        pki_mem_populate(at, bytes);
    release_as(s, back ? PKI_SPARE_FREE : PKI_SPARE_GONE);
    return back;
}

bool pki_spare_unmake(pki_spares *spares, pki_arena *arena, uint32_t bytes)
{
    pki_spare *s = claim_any(spares, PKI_SPARE_FREE);
    if (!s)
        return false;
    bool gone = pki_spans_discard(&arena->spans, memory_of(arena, s->segment), bytes);
    release_as(s, gone ? PKI_SPARE_GONE : PKI_SPARE_FREE);
    return gone;
}

uint32_t pki_spares_there(const pki_spares *spares)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < pki_load(&spares->count); i++)
        there += pki_spare_state_of(pki_load(&spares->all[i].word)) != PKI_SPARE_GONE;
    return there;
}

uint32_t pki_spares_kept(const pki_spares *spares)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pki_load(&spares->count); i++) {
        uint32_t word = pki_load(&spares->all[i].word);
        kept += pki_spare_state_of(word) == PKI_SPARE_FREE && pki_spare_keeper_of(word);
    }
    return kept;
}

/* ---- the owner's side of its ring, off the fast path ---- */

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
