#include "core/cursor.h"

#include "core/registry.h"

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
        behind = pki_load_acquire(&t->turn_behind); /* pairs with the releases in spare.c */
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
