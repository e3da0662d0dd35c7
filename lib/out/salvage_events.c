/* lib/out/salvage_events.c - what was in a killed run's rings, and open on its threads' stacks. */
#include <stdio.h>

#include "comm/model/communicator.h"
#include "core/cursor.h"
#include "core/registry.h"
#include "measure/fold/order.h"
#include "out/chrome/operation.h"
#include "out/salvage.h"

/* What a pointer of the process meant. */
static const void *translate(const pki_salvage *s, const void *pointer, uint64_t bytes)
{
    return pki_salvage_at(s, (uint64_t)(uintptr_t)pointer - s->header->base, bytes);
}

typedef struct block {
    const pki_thread *t;
    uint64_t taken, head; /* places */
    unsigned depth;       /* regions that are open, still to be closed */
} block;

static bool is_offset(const pki_thread *t, uint32_t offset)
{
    return offset % sizeof(pki_record) == 0 && offset < t->ring_bytes;
}

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

/* The memory of a turn; NULL if the file does not have it. */
static const pki_record *records_of(const pki_salvage *s, const pki_thread *t, uint32_t turn)
{
    uint32_t pages = pki_turn_at(t, turn)->segment;
    const void *at = pages ? pki_salvage_at(s, (uint64_t)pages * PKI_PAGE, t->ring_bytes)
                           : translate(s, t->home, t->ring_bytes);
    return (uintptr_t)at % 8 == 0 ? at : NULL;
}

static uint64_t cursor_of(const pki_thread *t, uint64_t turn, uint64_t state)
{
    uint32_t offset = pki_cursor_offset_in(t, (uint32_t)turn, (uint32_t)(state >> 32));
    return pki_cursor_of((uint32_t)turn, offset);
}

static bool is_sound(const pki_salvage *s, const block *b)
{
    uint32_t from = pki_cursor_turn(b->taken), to = pki_cursor_turn(b->head);
    if (to - from >= PKI_TURNS || !is_offset(b->t, pki_cursor_offset(b->taken)) ||
        !is_offset(b->t, pki_cursor_offset(b->head)))
        return false;
    for (uint32_t turn = from; turn != to; turn++)
        if (!records_of(s, b->t, turn) || !is_offset(b->t, pki_turn_at(b->t, turn)->end))
            return false;
    return records_of(s, b->t, to) != NULL;
}

/* False if there is nothing in block i, or nothing that makes sense. */
static bool read_block(const pki_salvage *s, uint32_t i, block *b)
{
    const pki_thread *t = pki_salvage_at(s, (uint64_t)s->header->blocks[i] * PKI_PAGE, sizeof *t);
    if (!t || t->life == PKI_THREAD_FREE || t->ring_bytes == 0 ||
        t->ring_bytes % sizeof(pki_record) != 0)
        return false;
    b->t = t;
    b->taken = t->taken[s->generation];
    bool closed = i < s->commit.closed; /* by a pk_stop that was killed then */
    uint64_t state = closed ? t->sealed : t->state;
    b->depth = closed || t->life != PKI_THREAD_LIVE ? 0 : depth_in(state);
    b->head =
        cursor_of(t, closed ? t->sealed_turn : pki_turn_of(state, t->turn, t->turn_behind), state);
    return is_sound(s, b);
}

/* Blocks do not overlap. In a damaged list one could stand a thousand times, and be read as often.
 */
static void count_blocks(pki_salvage *s)
{
    block b;
    uint64_t together = 0;
    for (uint32_t i = 0; i < s->header->block_count; i++) {
        if (read_block(s, i, &b))
            together += sizeof *b.t + (uint64_t)b.t->ring_bytes *
                                          (1 + pki_cursor_turn(b.head) - pki_cursor_turn(b.taken));
        if (together > s->bytes)
            break;
        s->block_count = i + 1;
    }
}

/* Of each record in a block that has not been taken; false: no more of them. more: its second slot.
 */
typedef bool visitor(void *user, uint64_t place, const pki_record *record, const pki_record *more);

static bool visit_turn(const block *b, const pki_record *records, uint64_t from, uint32_t until,
                       visitor *visit, void *user)
{
    for (uint32_t at = pki_cursor_offset(from); at != until;) {
        const pki_record *r = pki_record_in(records, at);
        uint64_t place = pki_cursor_of(pki_cursor_turn(from), at);
        at = pki_ring_next(b->t, at);
        const pki_record *more = pki_record_in(records, at);
        if (pki_record_slots(r->what) == 2 && at != until)
            at = pki_ring_next(b->t, at);
        if (!visit(user, place, r, more))
            return false;
    }
    return true;
}

/* Where a turn's records end, of which those up to `at` have been taken. A handler may have been
 * undone in it, as in measure/fold/order.h: what was folded stands there for certain, and of a turn
 * that folding has left the end is noted (pki_fold_end). */
static uint32_t end_of_turn(const block *b, const pki_record *records, uint32_t turn, uint32_t at)
{
    const pki_thread *t = b->t;
    uint64_t folded = t->folded;
    uint32_t until = pki_turn_until(t, turn, at, b->head);
    bool here = pki_cursor_turn(folded) == turn && is_offset(t, pki_cursor_offset(folded));
    if ((int32_t)(pki_cursor_turn(folded) - turn) > 0)
        return until;
    return pki_fold_bound(t, records, turn, here ? pki_cursor_offset(folded) : at, until);
}

static bool visit_records(const pki_salvage *s, const block *b, visitor *visit, void *user)
{
    uint64_t from = b->taken;
    for (uint32_t turn = pki_cursor_turn(from);; from = pki_cursor_of(++turn, 0)) {
        const pki_record *records = records_of(s, b->t, turn);
        uint32_t until = end_of_turn(b, records, turn, pki_cursor_offset(from));
        if (!visit_turn(b, records, from, until, visit, user))
            return false;
        if (turn == pki_cursor_turn(b->head))
            return true;
    }
}

static void note_time(pki_salvage *s, uint64_t ticks)
{
    s->last_ticks = PKI_MAX(s->last_ticks, ticks);
}

static bool note_record(void *user, uint64_t place, const pki_record *r, const pki_record *more)
{
    unsigned type = pki_what_type(r->what);
    bool lasts = type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK;
    (void)place;
    (void)more;
    note_time(user, r->start + (lasts ? pki_not_negative(r->value) : 0));
    return true;
}

/* Regions that were open when the process ended are closed at the last moment that anything is
 * known of, and a microsecond later, so that one that had just begun is seen inside the others. */
static void find_last_moment(pki_salvage *s)
{
    block b;
    double unit_ns = pki_clock_unit_ns(&s->header->clock);
    note_time(s, s->header->clock.last.ticks);
    note_time(s, s->commit.ticks);
    for (uint32_t i = 0; i < s->block_count; i++) {
        if (!read_block(s, i, &b))
            continue;
        visit_records(s, &b, note_record, s);
        for (unsigned d = b.depth; d > 0; d--)
            note_time(s, b.t->frames[d].start);
    }
    s->last_ticks += unit_ns > 0.001 ? (uint64_t)(1000 / unit_ns) : 0;
}

typedef struct output {
    pki_salvage *from;
    pki_salvage_sink *sink;
    void *user;
} output;

/* Who folded the rings had not counted it yet. */
static void count_point(pki_salvage *s, const pki_record *r, const pki_record *more)
{
    unsigned type = pki_what_type(r->what);
    s->counts.points += type >= PKI_RECORD_STEP;
    if (type == PKI_RECORD_STEP)
        s->counts.steps =
            PKI_MAX(s->counts.steps, more->start + !(pki_what_flags(r->what) & PKI_FLAG_BETWEEN));
}

static bool put_record(output *o, const block *b, const pki_record *r, const pki_record *more)
{
    char event[PKI_EVENT_BYTES];
    size_t n = pki_chrome_event(&o->from->chrome, event, b->t->tid, r, more);
    o->from->commit.events += n > 0;
    return n == 0 || o->sink(o->user, event, n);
}

typedef struct putting {
    output *o;
    const block *b;
    bool folded; /* what comes next has been */
} putting;

static bool put_next(void *user, uint64_t place, const pki_record *r, const pki_record *more)
{
    putting *p = user;
    uint64_t folded = p->b->t->folded;
    p->folded &= place != folded && pki_cursor_turn(place) <= pki_cursor_turn(folded);
    if (!p->folded)
        count_point(p->o->from, r, more);
    return put_record(p->o, p->b, r, more);
}

static bool put_ring(output *o, const block *b)
{
    putting p = {o, b, true};
    return visit_records(o->from, b, put_next, &p);
}

static bool put_open_regions(output *o, const block *b)
{
    for (unsigned d = b->depth; d > 0; d--) {
        const pki_frame *f = &b->t->frames[d];
        uint64_t ticks = pki_not_negative(o->from->last_ticks - f->start);
        pki_record r = {f->start, ticks,
                        (f->id & PKI_FRAME_ID) | PKI_WHAT(0, PKI_RECORD_REGION, d) |
                            PKI_FLAGS(PKI_FLAG_UNBALANCED | PKI_FLAG_CUT_OFF),
                        0};
        if (!put_record(o, b, &r, &r))
            return false;
    }
    return true;
}

/* Even if it has been written: perhaps into a part of the buffer that was not in force. */
static bool put_name(output *o, const block *b)
{
    char event[PKI_EVENT_BYTES], name[sizeof b->t->name + 1];
    snprintf(name, sizeof name, "%.*s", (int)sizeof b->t->name, b->t->name);
    return o->sink(o->user, event,
                   pki_chrome_thread(&o->from->chrome, event, b->t->tid, name, b->t->index));
}

/* ---- communicators ---- */

static bool put_entry(output *o, const pki_comms_entry *e)
{
    char event[PKI_EVENT_BYTES];
    uint64_t now = pki_clock_ns(o->from->chrome.clock, o->from->last_ticks);
    return !e->name || !e->enqueued ||
           o->sink(o->user, event, pki_chrome_progress(&o->from->chrome, event, now, e));
}

static bool put_comms(output *o)
{
    uint64_t offset = o->from->header->comms;
    for (unsigned i = 0; offset && i <= PKI_COMMS_MAX / PKI_COMMS_IN_SPAN; i++) {
        const pki_comms_span *span =
            offset % PKI_PAGE == 0 ? pki_salvage_at(o->from, offset, sizeof *span) : NULL;
        if (!span)
            break;
        for (size_t k = 0; k < PKI_COMMS_IN_SPAN; k++)
            if (!put_entry(o, &span->entries[k]))
                return false;
        offset = span->next;
    }
    return true;
}

bool pki_salvage_events(pki_salvage *s, pki_salvage_sink *sink, void *user)
{
    output o = {s, sink, user};
    block b;
    count_blocks(s);
    find_last_moment(s);
    for (uint32_t i = 0; i < s->block_count; i++) {
        if (!read_block(s, i, &b))
            continue;
        pki_thread_counts(b.t, &s->counts);
        if (!put_name(&o, &b) || !put_ring(&o, &b) || !put_open_regions(&o, &b))
            return false;
    }
    return put_comms(&o);
}
