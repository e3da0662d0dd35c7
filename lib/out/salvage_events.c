/* lib/out/salvage_events.c - what was in a killed run's rings, and open on its threads' stacks. */
#include <stdio.h>

#include "comm/model/communicator.h"
#include "core/registry.h"
#include "out/chrome/operation.h"
#include "out/salvage.h"

/* What a pointer of the process meant. */
static const void *translate(const pki_salvage *s, const void *pointer, uint64_t bytes)
{
    return pki_salvage_at(s, (uint64_t)(uintptr_t)pointer - s->header->base, bytes);
}

typedef struct block {
    const pki_thread *t;
    const pki_record *ring;
    uint32_t taken, head; /* offsets in the ring */
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

/* False if there is nothing in block i, or nothing that makes sense. */
static bool read_block(const pki_salvage *s, uint32_t i, block *b)
{
    const pki_thread *t = pki_salvage_at(s, (uint64_t)s->header->blocks[i] * PKI_PAGE, sizeof *t);
    if (!t || t->life == PKI_THREAD_FREE || t->ring_bytes == 0 ||
        t->ring_bytes % sizeof(pki_record) != 0)
        return false;
    b->t = t;
    b->ring = translate(s, t->ring, t->ring_bytes);
    b->taken = t->taken[s->generation];
    bool closed = i < s->commit.closed; /* by a pk_stop that was killed then */
    uint64_t state = closed ? t->sealed : t->state;
    b->depth = closed || t->life != PKI_THREAD_LIVE ? 0 : depth_in(state);
    b->head = (uint32_t)(state >> 32) == t->ring_bytes ? 0 : (uint32_t)(state >> 32);
    return b->ring && (uintptr_t)b->ring % 8 == 0 && is_offset(t, b->taken) &&
           is_offset(t, b->head);
}

/* Blocks do not overlap. In a damaged list one could stand a thousand times, and be read as often.
 */
static void count_blocks(pki_salvage *s)
{
    block b;
    uint64_t together = 0;
    for (uint32_t i = 0; i < s->header->block_count; i++) {
        if (read_block(s, i, &b))
            together += sizeof *b.t + b.t->ring_bytes;
        if (together > s->bytes)
            break;
        s->block_count = i + 1;
    }
}

static const pki_record *record_at(const block *b, uint32_t offset)
{
    return (const pki_record *)((const char *)b->ring + offset);
}

static void note_time(pki_salvage *s, uint64_t ticks)
{
    s->last_ticks = PKI_MAX(s->last_ticks, ticks);
}

static void note_ring(pki_salvage *s, const block *b)
{
    for (uint32_t at_offset = b->taken; at_offset != b->head;) {
        const pki_record *r = record_at(b, at_offset);
        unsigned type = pki_what_type(r->what);
        bool lasts = type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK;
        note_time(s, r->start + (lasts ? pki_not_negative(r->value) : 0));
        at_offset = pki_ring_next(b->t, at_offset);
        if (pki_record_slots(r->what) == 2 && at_offset != b->head)
            at_offset = pki_ring_next(b->t, at_offset);
    }
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
        note_ring(s, &b);
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

static bool put_ring(output *o, const block *b)
{
    bool folded = true;
    for (uint32_t at_offset = b->taken; at_offset != b->head;) {
        const pki_record *r = record_at(b, at_offset);
        folded = folded && at_offset != b->t->folded;
        at_offset = pki_ring_next(b->t, at_offset);
        const pki_record *more = record_at(b, at_offset);
        if (pki_record_slots(r->what) == 2 && at_offset != b->head)
            at_offset = pki_ring_next(b->t, at_offset);
        if (!folded)
            count_point(o->from, r, more);
        if (!put_record(o, b, r, more))
            return false;
    }
    return true;
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
