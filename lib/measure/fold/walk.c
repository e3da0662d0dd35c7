#include "measure/fold/walk.h"

#include "core/ring.h"
#include "core/registry.h"
#include "core/thin.h"
#include "core/thread.h"
#include "measure/fold/fold.h"

/* ---- a ring's records stand in the order in which they were written ---- */

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

/* Nothing is left to be folded: notes for an owner that has stepped back how far it has. */
static void pki_fold_note_undone(pki_thread *t)
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

/* The same of a turn that the owner has left, if folding stands at `at` in it: other readers of a
 * turn in the ring find that end from then on. */
static uint32_t pki_fold_end(pki_thread *t, uint32_t turn, uint32_t at)
{
    pki_turn *ended = &t->turns[turn % PKI_TURNS];
    uint32_t end = pki_fold_bound(t, t->home, turn, at, pki_load(&ended->end));
    if (!ended->segment)
        pki_store(&ended->end, end);
    return end;
}

/* Folded up to there, so many bytes; the last record of them, NULL for none, and how many slots
 * were no regions. */
static void pki_fold_note(pki_thread *t, const pki_record *last, uint64_t at, uint64_t bytes,
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

/* ---- self time, from records alone ---- */

/* The next lost call that has to be looked at; NULL: there is none. */
static inline const pki_loss *pki_next_loss(const pki_thread *t)
{
    bool more = t->losses_folded != pki_load_acquire(&t->losses_made); /* pairs with note_loss */
    return more ? &t->losses[t->losses_folded % PKI_LOSSES] : NULL;
}

static inline void pki_loss_folded(pki_thread *t)
{
    pki_store_release(&t->losses_folded,
                      t->losses_folded + 1); /* pairs with the acquire in ring.c */
}

/* ---- what nearly all records are ---- */

/* The owner wrote them on another processor: asked for so far ahead, they are here in time. */
#define AHEAD 16 /* records */

/* Region records without flags, but for the one that matters to traces alone. */
#define PLAIN_MASK                                                                                 \
    ((uint64_t)(0xFFu & ~PKI_FLAG_TOUCHES) << 56 | (uint64_t)(PKI_PLACE_STEP - 1) << 32)
#define PLAIN ((uint64_t)PKI_RECORD_REGION << 32)

/* Where one call goes. */
typedef struct targets {
    pki_slot *all;
    uint64_t *step; /* the self time of whoever makes steps */
} targets;

static inline bool find_targets(const pki_fold *fold, const pki_thread_fold *alone, uint32_t id,
                                targets *to)
{
    static uint64_t nowhere;
    to->all = pki_table_slot(&fold->totals, id);
    to->step = &nowhere;
    if (PKI_UNLIKELY(!to->all))
        return false;
    if (!alone->tracked)
        return true;
    pki_slot *mine = pki_table_slot(&alone->calls, id);
    to->step = mine ? &mine->self : NULL;
    return mine;
}

static inline void count(pki_fold *fold, pki_thread_fold *alone, const targets *to, uint64_t ns,
                         uint64_t own)
{
    pki_slot *slot = to->all;
    pki_bump(&slot->self, own);
    pki_table_count(pki_fold_memory(fold), &fold->totals, slot, ns);
    if (PKI_LIKELY(slot->kind < PKI_KINDS))
        alone->kinds[slot->kind] += own;
    pki_bump(to->step, own);
}

/* Both ends, each as in the trace. False: they are not in one stretch. */
static inline bool duration_in(const pki_clock_stretch *s, const pki_record *r, uint64_t *ns)
{
    uint64_t start = r->start, ticks = pki_not_negative(r->value);
    if (PKI_UNLIKELY(!pki_clock_stretch_has(s, start, ticks)))
        return false;
    *ns = pki_clock_stretch_ns(s, start + ticks) - pki_clock_stretch_ns(s, start);
    return true;
}

static uint64_t duration_of(const pki_clock_map *map, const pki_record *r, pki_clock_stretch *s)
{
    *s = pki_clock_stretch_at(map, r->start);
    return pki_clock_span_ns(map, r->start, pki_not_negative(r->value));
}

/* Up to where records follow each other with no lost call among them. */
static uint32_t straight_until(const pki_thread *t, uint32_t at, uint32_t head, uint32_t loss)
{
    uint32_t until = at < head ? head : t->ring_bytes;
    return loss > at ? PKI_MIN(until, loss) : until;
}

/* Folds such records of a turn from `at` on. Returns where it has stopped: at the first that is
 * none, at the head, at the next lost call, or at the ring's end. Under the fold lock. */
static uint32_t pki_fold_plain(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                               const pki_record *records, uint32_t at, uint32_t head, uint32_t loss)
{
    const pki_clock_map *map = pki_fold_clock(fold);
    const pki_record *first = pki_record_in(records, at), *r = first,
                     *end = pki_record_in(records, straight_until(t, at, head, loss));
    pki_clock_stretch stretch = {0};
    targets to;
    uint64_t ns;
    if (fold->thinned || fold->per_thread)
        return at;
    for (; r < end; r++) {
        __builtin_prefetch((const char *)r + AHEAD * sizeof *r);
        uint64_t what = pki_load(&r->what); /* once: what is undone may change meanwhile */
        if (PKI_UNLIKELY((what & PLAIN_MASK) != PLAIN) ||
            PKI_UNLIKELY(!find_targets(fold, alone, pki_what_id(what), &to)))
            break;
        if (PKI_UNLIKELY(!duration_in(&stretch, r, &ns)))
            ns = duration_of(map, r, &stretch);
        count(fold, alone, &to, ns, pki_not_negative((uint64_t)pki_self_of_plain(t, what, ns)));
    }
    pki_bump(&t->recorded, (uint64_t)(r - first));
    return at + (uint32_t)((const char *)r - (const char *)first);
}

/* ---- counted calls that come before no timed one: the last of a thread ---- */

/* What is known of them is that they are calls: of about the last timed one's length, and with as
 * much of it their own as with the others. */
typedef struct last_calls {
    uint32_t id;
    uint32_t calls;
    uint64_t ns, own, bytes, flops;
} last_calls;

static void add_to(pki_fold *fold, pki_table *table, const last_calls *c)
{
    pki_slot *slot = pki_table_slot(table, c->id);
    if (!slot)
        return;
    pki_bump(&slot->self, c->own);
    pki_bump(&slot->bytes, c->bytes);
    pki_bump(&slot->flops, c->flops);
    if (!c->calls || (table != &fold->totals && !fold->per_thread))
        return;
    pki_slot_count_times(&fold->registry->arena->spans, &table->pool, slot, c->ns, c->calls);
    pki_bump(&slot->untimed, 1);
    pki_bump(&slot->spread, c->calls);
}

/* Of all calls so far. */
static uint64_t own_of(const pki_fold *fold, uint32_t id, uint64_t calls)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    uint64_t self = slot ? pki_not_negative(slot->self) : 0;
    return slot && slot->count ? (uint64_t)((double)self / (double)slot->count * (double)calls) : 0;
}

static last_calls pending_of(const pki_fold *fold, const pki_thread *t, uint32_t id,
                             const pki_counted *e)
{
    uint64_t calls = PKI_MIN(pki_counted_pending(e), PKI_THINNED_MOST);
    uint64_t last = pki_not_negative(pki_load(&e->last));
    return (last_calls){.id = id,
                        .calls = (uint32_t)calls,
                        .ns = pki_thread_ns(t, t->folded_ticks - last, last),
                        .own = own_of(fold, id, calls),
                        .bytes = pki_load(&e->bytes),
                        .flops = pki_load(&e->flops)};
}

static void add(pki_fold *fold, pki_thread *t, const last_calls *c)
{
    pki_thread_fold *alone = pki_fold_thread(fold, t);
    uint32_t kind = pki_name_kind(c->id);
    add_to(fold, &fold->totals, c);
    if (alone->tracked)
        add_to(fold, &alone->calls, c);
    if (kind < PKI_KINDS)
        alone->kinds[kind] += c->own;
    pki_bump(&t->untimed_counted, c->calls);
    pki_bump(&t->recorded, c->calls);
}

void pki_fold_pending(pki_fold *fold, pki_thread *t)
{
    if (t->pending_counted)
        return;
    t->pending_counted = 1;
    pki_registry_lock();
    const pki_counted *counted = pki_load(&t->counted);
    uint32_t size = pki_load(&t->counted_size);
    pki_registry_unlock();
    for (uint32_t id = 0; id < size; id++) {
        last_calls c = pending_of(fold, t, id, &counted[id]);
        if ((c.calls || c.bytes || c.flops) && pki_table_slot(&fold->totals, id))
            add(fold, t, &c);
    }
}

/* ---- what a walk through a thread's records does with each ---- */

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
