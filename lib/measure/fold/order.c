#include "measure/fold/order.h"

static uint32_t distance(const pki_thread *t, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : t->ring_bytes - from + to;
}

/* A clock may lag on another core, but not by as much as a quarter of a round through the ring. */
static bool is_older(const pki_thread *t, const pki_record *r, uint64_t ticks)
{
    uint64_t lag = t->ring_bytes / sizeof(pki_record) / 4;
    return (int64_t)(pki_record_ticks(r) + lag - ticks) < 0;
}

static PKI_COLD uint32_t find_older(const pki_thread *t, uint32_t at, uint32_t head)
{
    uint64_t last = t->folded_ticks;
    uint32_t left = distance(t, at, head);
    while (left > 0) {
        const pki_record *r = pki_record_at(t, at);
        uint32_t bytes = pki_record_slots(r->what) * (uint32_t)sizeof(pki_record);
        if (bytes > left || is_older(t, r, last))
            return at;
        last = pki_record_ticks(r);
        left -= bytes;
        at = (at + bytes) % t->ring_bytes;
    }
    return head;
}

uint32_t pki_fold_head(const pki_thread *t)
{
    uint32_t at = t->folded, head = pki_thread_head(t);
    return distance(t, at, head) <= t->ring_bytes / 2 ? head : find_older(t, at, head);
}

void pki_fold_note(pki_thread *t, const pki_record *last, uint32_t at, uint64_t others)
{
    if (last) {
        t->folded_ticks = pki_record_ticks(last);
        t->folded_bytes += at > t->folded ? at - t->folded : t->ring_bytes - t->folded + at;
        t->folded_others += others;
    }
    pki_store_release(&t->folded, at); /* pairs with the acquire in format_ring */
}

void pki_fold_settle(pki_thread *t)
{
    uint64_t points = pki_load(&t->points), pushed = pki_load(&t->points_pushed);
    if (pushed > points)
        pki_bump(&t->points_dropped, pushed - points);
    pki_store(&t->points_pushed, points); /* an owner that is amid a call may still add to it */
    t->sealed_bytes = t->folded_bytes;
    t->sealed_others = t->folded_others;
    if (!t->sealed) {
        uint64_t laps = t->folded_bytes - t->folded_bytes % t->ring_bytes;
        pki_store(&t->laps, laps);
        pki_store(&t->laps_behind, laps);
        pki_store(&t->others, t->folded_others);
    }
}
