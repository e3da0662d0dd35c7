#include "session/collector/drain_ring.h"

#include <string.h>

#include "core/cursor.h"
#include "session/trace/output.h"
#include "session/captures/history.h"
#include "session/collector/thinning.h"

#define BATCH 128u /* records that are formatted in one piece */

static bool has_event(const pki_record *r)
{
    unsigned type = pki_what_type(r->what);
    return type != PKI_RECORD_STEP_SELF && type != PKI_RECORD_STEP_OPEN;
}

void pki_emit_event(pki_session *s, uint32_t tid, const pki_record *r, const pki_record *more)
{
    if (!has_event(r) || (s->thinning && pki_thinning_excludes(s, r)))
        return;
    if (!pki_output_room(s)) {
        s->pending.unwritten += s->writing;
        return;
    }
    size_t n = pki_chrome_event(&s->chrome, s->buffer + s->pending.buffered, tid, r, more);
    s->pending.buffered += n;
    s->pending.events += n > 0;
    s->pending.unwritten += n == 0; /* no memory for its name */
}

void pki_emit_thread_name(pki_session *s, pki_thread *t)
{
    char name[sizeof t->name];
    if (pki_load(&t->name_version) == t->name_written)
        return;
    pki_registry_lock();
    memcpy(name, t->name, sizeof name);
    t->name_written = t->name_version;
    pki_registry_unlock();
    if (pki_output_room(s))
        s->pending.buffered +=
            pki_chrome_thread(&s->chrome, s->buffer + s->pending.buffered, t->tid, name, t->index);
}

/* ---- rings ---- */

/* The rest of a turn of a thread, from `at` to `until`. */
typedef struct piece {
    pki_thread *t;
    const pki_record *records;
    uint32_t turn, at, until;
} piece;

/* Regions that follow each other, before the ring's end. */
static uint32_t regions_from(const piece *p)
{
    uint32_t end = p->until > p->at ? p->until : p->t->ring_bytes;
    uint32_t n = 0, most = PKI_MIN((end - p->at) / (uint32_t)sizeof(pki_record), BATCH);
    const pki_record *r = pki_record_in(p->records, p->at);
    while (n < most && pki_what_type(r[n].what) == PKI_RECORD_REGION)
        n++;
    return n;
}

/* As many of those as can be taken in one piece. False: one at a time, for its own reasons. */
static bool drain_regions(pki_session *s, piece *p)
{
    uint32_t n = s->thinning ? 0 : regions_from(p), tid = p->t->tid;
    if (s->writing) /* of half the span, so that each write is of the other half at least */
        n = PKI_MIN(n, (uint32_t)(pki_output_span(s) / 2 / PKI_EVENT_BYTES));
    const pki_record *r = pki_record_in(p->records, p->at);
    if (n == 0 || (s->writing && !pki_output_room_for(s, n)))
        return false;
    if (s->writing)
        pki_output_wrote(
            s, pki_chrome_regions(&s->chrome, s->buffer + s->pending.buffered, tid, r, n), n);
    pki_history_regions(s->history, tid, r, n);
    p->at += n * (uint32_t)sizeof(pki_record);
    p->at = p->at == p->t->ring_bytes ? 0 : p->at;
    return true;
}

/* One record, or two slots; what is cut has replaced what was undone. */
static void drain_record(pki_session *s, piece *p)
{
    const pki_record *r = pki_record_in(p->records, p->at);
    p->at = pki_ring_next(p->t, p->at);
    const pki_record *more = pki_record_in(p->records, p->at);
    bool two = pki_record_slots(r->what) == 2, cut = two && p->at == p->until;
    if (!cut && pki_is_record(r->what)) {
        pki_emit_event(s, p->t->tid, r, more);
        pki_session_history_record(s, p->t->tid, r, more);
    }
    p->at = two && !cut ? pki_ring_next(p->t, p->at) : p->at;
}

/* Writing commits: what it wrote is taken by then. */
static void drain_records(pki_session *s, piece *p, bool pieces)
{
    while (p->at != p->until) {
        if (!drain_regions(s, p))
            drain_record(s, p);
        p->t->taken[pki_output_in_preparation(s)] = pki_cursor_of(p->turn, p->at);
        if (pieces)
            pki_output_write_piece(s);
    }
}

static void drain_until(pki_session *s, pki_thread *t, uint64_t until, bool pieces)
{
    uint64_t at = t->taken[pki_output_in_preparation(s)];
    piece p = {.t = t, .turn = pki_cursor_turn(at), .at = pki_cursor_offset(at)};
    for (;; p.turn++, p.at = 0) {
        p.records = pki_turn_records(t, p.turn);
        p.until = pki_turn_until(t, p.turn, p.at, until);
        drain_records(s, &p, pieces);
        if (p.turn == pki_cursor_turn(until))
            return;
    }
}

void pki_drain_ring(pki_session *s, pki_thread *t, bool pieces)
{
    uint64_t at = t->taken[pki_output_in_preparation(s)];
    uint64_t until = pki_load_acquire(&t->folded); /* pairs with the release in pki_fold_note, whose
                                                      caller may be a reader of statistics */
    uint64_t records = pki_cursor_bytes_between(t, at, until) / sizeof(pki_record);
    pki_store(&s->fullest, PKI_MAX(s->fullest, (uint32_t)records));
    if (records) {
        pki_emit_thread_name(s, t);
        pki_history_thread(s->history, t);
    }
    if (records && (s->writing || s->history))
        drain_until(s, t, until, pieces);
    t->taken[pki_output_in_preparation(s)] = until; /* which may be another turn's beginning */
}
