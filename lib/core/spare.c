#include "core/spare.h"

#include <string.h>

#include "base/memory.h"
#include "core/cursor.h"
#include "core/registry.h"

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

bool pki_spare_return(pki_thread *t)
{
    uint64_t released = pki_load_acquire(&t->released);
    if (pki_cursor_turn(released) <= t->ring_turn)
        return false;
    begin_turn(t, 0, t->home);
    return true;
}

bool pki_spare_enter(pki_thread *t)
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
