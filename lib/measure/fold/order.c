#include "measure/fold/order.h"

#include "core/registry.h"

/* A clock may lag on another core, but not by as much as a quarter of a round through the ring. */
static bool is_older(const pki_thread *t, const pki_record *r, uint64_t ticks)
{
    uint64_t lag = t->ring_bytes / sizeof(pki_record) / 4;
    return (int64_t)(pki_record_ticks(r) + lag - ticks) < 0;
}

static PKI_COLD uint32_t find_older(const pki_thread *t, const pki_record *records, uint32_t at,
                                    uint32_t head)
{
    uint64_t last = t->folded_ticks;
    uint32_t left = pki_ring_bytes_between(t, at, head);
    while (left > 0) {
        const pki_record *r = pki_record_in(records, at);
        uint64_t what = pki_load(&r->what); /* 0: left out by what has been undone */
        uint32_t bytes = (what ? pki_record_slots(what) : 1) * (uint32_t)sizeof(pki_record);
        if (bytes > left || (what && is_older(t, r, last)))
            return at;
        last = what ? pki_record_ticks(r) : last;
        left -= bytes;
        at = (at + bytes) % t->ring_bytes;
    }
    return head;
}

uint32_t pki_fold_bound(const pki_thread *t, const pki_record *ring, uint32_t turn, uint32_t at,
                        uint32_t head)
{
    if (pki_turn_is_straight(t, turn, head))
        return PKI_MAX(at, head);
    bool sure = pki_ring_bytes_between(t, at, head) <= t->ring_bytes / 2;
    return sure ? head : find_older(t, ring, at, head);
}

uint64_t pki_fold_head(const pki_thread *t)
{
    uint64_t folded = t->folded, head = pki_thread_head(t);
    uint32_t turn = pki_cursor_turn(head), offset = pki_cursor_offset(head);
    uint32_t at = pki_cursor_turn(folded) == turn ? pki_cursor_offset(folded) : 0;
    return pki_cursor_of(turn, pki_fold_bound(t, t->home, turn, at, offset));
}

void pki_fold_note_undone(pki_thread *t)
{
    pki_position now = pki_thread_position(t);
    uint32_t turn = (uint32_t)now.turn, at = pki_cursor_offset(t->folded);
    uint32_t head = pki_cursor_offset_in(t, turn, (uint32_t)(now.state >> 32));
    if (head == at || turn != pki_cursor_turn(t->folded) || !pki_turn_is_in_ring(t, turn) ||
        pki_fold_bound(t, t->home, turn, at, head) != at)
        return;
    pki_store(&t->undone_until, now.bytes + pki_ring_bytes_between(t, head, at));
    pki_store(&t->undone_turn, now.turn);
}

uint32_t pki_fold_end(pki_thread *t, uint32_t turn, uint32_t at)
{
    pki_turn *ended = &t->turns[turn % PKI_TURNS];
    uint32_t end = pki_fold_bound(t, t->home, turn, at, pki_load(&ended->end));
    if (!ended->segment)
        pki_store(&ended->end, end);
    return end;
}

void pki_fold_note(pki_thread *t, const pki_record *last, uint64_t at, uint64_t bytes,
                   uint64_t others)
{
    if (last)
        t->folded_ticks = pki_record_ticks(last);
    t->folded_bytes += bytes;
    t->folded_others += others;
    pki_store_release(&t->folded, at); /* pairs with the acquire in pki_drain_ring */
}

void pki_fold_settle(pki_thread *t)
{
    uint64_t points = pki_load(&t->points), pushed = pki_load(&t->points_pushed);
    if (pushed > points)
        pki_bump(&t->points_dropped, pushed - points);
    pki_store(&t->points_pushed, points);     /* an owner that is amid a call may still add to it */
    pki_store(&t->undone_until, (uint64_t)0); /* by a count of its own that ends here */
    t->sealed_bytes = t->folded_bytes;
    t->sealed_others = t->folded_others;
    if (!t->sealed) {
        uint64_t laps = t->folded_bytes - (pki_load(&t->state) >> 32);
        pki_store(&t->laps, laps);
        pki_store(&t->laps_behind, laps);
        pki_store(&t->others, t->folded_others);
    }
}
