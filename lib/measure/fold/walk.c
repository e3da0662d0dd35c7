#include "measure/fold/walk.h"

#include "core/cursor.h"
#include "measure/fold/order.h"
#include "measure/fold/self_time.h"
#include "measure/fold/plain.h"

/* From where folding stood to a thread's head. */
typedef struct walk {
    pki_fold *fold;
    pki_thread_fold *alone;
    pki_thread *t;
    const pki_record *last; /* record; NULL: none yet */
    uint64_t bytes, others;
} walk;

/* Whoever makes steps is followed alone, and the first thread from the start, since it most often
 * will. */
static void decide_tracking(const pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    bool first = t->index == 0 || fold->per_thread;
    if (alone->tracked || alone == &fold->nobody || (!first && !pki_load_acquire(&t->steps)))
        return;
    alone->tracked = true;
    alone->partial = !first;
}

/* Readers are there, or past it: what a handler has recorded and lost may have been undone since.
 * In the ring they come by again, or leave it. */
static bool is_due(const pki_thread *t, const pki_loss *loss, uint32_t turn, uint32_t at)
{
    int32_t turns = (int32_t)(turn - pki_cursor_turn(loss->at));
    uint32_t offset = pki_cursor_offset(loss->at);
    if (turns != 0)
        return turns > 0;
    return offset == at || (offset < at && !pki_turn_is_in_ring(t, turn));
}

/* Lost calls that ended at this place: what was recorded inside them has been folded, what follows
 * has not. Returns where in this turn the next one did; UINT32_MAX: there is none. */
static uint32_t fold_losses(walk *w, uint32_t turn, uint32_t at)
{
    const pki_loss *loss;
    while ((loss = pki_next_loss(w->t)) && is_due(w->t, loss, turn, at)) {
        pki_fold_loss(w->fold, w->alone, w->t, loss);
        pki_loss_folded(w->t);
    }
    return loss && pki_cursor_turn(loss->at) == turn ? pki_cursor_offset(loss->at) : UINT32_MAX;
}

/* One record that is not plain, at `at`. Returns where the next one is. */
static uint32_t fold_next(walk *w, const pki_record *records, uint32_t at, uint32_t until)
{
    const pki_record *r = pki_record_in(records, at);
    uint64_t what = pki_load(&r->what); /* once: what is undone may change meanwhile */
    at = pki_ring_next(w->t, at);
    const pki_record *more = pki_record_in(records, at);
    bool two = pki_record_slots(what) == 2;
    if (PKI_UNLIKELY(two && at == until)) { /* it has replaced what was undone */
        w->others++;
        return at;
    }
    w->last = pki_is_record(what) ? r : w->last;
    w->others += pki_record_others(what);
    pki_fold_record(w->fold, w->alone, w->t, what, r, more);
    return two ? pki_ring_next(w->t, at) : at;
}

/* What of a turn has not been folded; returns where that ends. */
static uint32_t fold_turn(walk *w, uint32_t turn, uint32_t at, uint32_t until)
{
    const pki_record *records = pki_turn_records(w->t, turn);
    uint32_t loss = fold_losses(w, turn, at);
    w->bytes += pki_ring_bytes_between(w->t, at, until);
    while (at != until) {
        if (PKI_UNLIKELY(at == loss))
            loss = fold_losses(w, turn, at);
        uint32_t plain = pki_fold_plain(w->fold, w->alone, w->t, records, at, until, loss);
        if (plain == at) {
            at = fold_next(w, records, at, until);
            continue;
        }
        w->last = pki_record_in(records, plain) - 1;
        at = plain == w->t->ring_bytes ? 0 : plain;
    }
    fold_losses(w, turn, at);
    return at;
}

static void fold_ring(pki_fold *fold, pki_thread *t)
{
    uint64_t at = t->folded, head = pki_fold_head(t);
    if (at == head)
        pki_fold_note_undone(t);
    if (at == head && !pki_next_loss(t))
        return;
    walk w = {.fold = fold, .alone = pki_fold_thread(fold, t), .t = t};
    decide_tracking(fold, w.alone, t);
    fold->starved = w.alone->starved;
    uint32_t turn = pki_cursor_turn(at), offset = pki_cursor_offset(at);
    for (; turn != pki_cursor_turn(head); turn++, offset = 0)
        fold_turn(&w, turn, offset, pki_fold_end(t, turn, offset));
    offset = fold_turn(&w, turn, offset, pki_cursor_offset(head));
    w.alone->starved = fold->starved;
    pki_fold_note(t, w.last, pki_cursor_of(turn, offset), w.bytes, w.others);
}

/* Begins before ends: most of those are in the same ring. */
void pki_fold_one(pki_fold *fold, pki_thread *t)
{
    fold_ring(fold, t);
    pki_fold_ends(fold, t);
}

void pki_fold_all(pki_fold *fold)
{
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++)
        pki_fold_one(fold, pki_registry_block(fold->registry, i));
}
