/* lib/core/span.c - pk/span.h: what begins on one thread and ends on another, as records.
 *
 * The three calls have a way of their own into the ring, for whoever has room there: pki_push
 * copies records, which costs as much again as all else. A call is amid a slow path (pki_enter) all
 * the same, so a handler that interrupts it finds out. What a call cannot do itself, it leaves to
 * its slow twin:
 *
 *   limit == 0       not joined, session over, slow clock, mirrors
 *   id == 0          first use of this pk_region
 *   no room          ring wrapped or full
 *   session differs  none, ended, of an earlier session
 */
#include "core/span.h"

#include "core/join.h"

#define SLOT ((uint32_t)sizeof(pki_record))
#define SERIALS 256u /* that a thread takes at a time */

#define ENDED 1u    /* flags */
#define NO_BEGIN 2u /* its begin has no record */

static uint32_t next_serial = 1; /* some readers take an id of 0 for none */

static inline bool has_room(const pki_thread *t, uint64_t state, uint32_t records)
{
    return (uint32_t)(state >> 32) + (records - 1) * SLOT < t->stop && pki_load(&t->limit);
}

/* Behind the records: whoever sees the new state sees them whole (pki_thread_seen). */
static inline void publish(pki_thread *t, uint64_t state, uint32_t records)
{
    pki_store_release(&t->state, state + ((uint64_t)(records * SLOT) << 32));
    pki_bump(&t->others, records);
    pki_bump(&t->points_pushed, 1);
}

static inline void write_record(pki_record *r, uint64_t start, uint64_t value, uint64_t what,
                                uint64_t extra)
{
    pki_store(&r->start, start);
    pki_store(&r->value, value);
    pki_store(&r->what, what);
    pki_store(&r->extra, extra);
}

/* ---- begin ---- */

static inline pk_span make(pki_thread *t, uint32_t name, uint64_t id, uint64_t now)
{
    t->span_left--;
    return (pk_span){id, now, now, name, t->span_serial++, t->session, 0, {0, 0}};
}

static inline pki_record begin_record(const pk_span *s)
{
    return (pki_record){s->start, s->id, PKI_WHAT(s->region, PKI_RECORD_SPAN_BEGIN, 0), s->serial};
}

static void reserve_serials(pki_thread *t)
{
    t->span_serial = pki_fetch_add(&next_serial, SERIALS);
    t->span_left = SERIALS;
}

static PKI_COLD pk_span begin_slow(pk_region *region, uint64_t id)
{
    uint32_t name = pki_region_id(region);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return (pk_span){0};
    }
    if (t->span_left == 0)
        reserve_serials(t);
    pk_span span = make(t, name, id, pki_ticks(t->monotonic));
    pki_record r = begin_record(&span);
    if (!pki_push_point(t, &r, 1)) {
        span.flags = NO_BEGIN;
        pki_bump(&t->spans.begins_dropped, 1);
    }
    return span;
}

PKI_IN_ORDER pk_span pk_span_begin_on_(pk_region *region, uint64_t id)
{
    pk_span span = {0};
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return span;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    uint32_t name = pki_load(&region->id);
    if (PKI_UNLIKELY(!has_room(t, state, 1) || name == 0 || t->span_left == 0)) {
        span = begin_slow(region, id);
    } else {
        span = make(t, name, id, pki_cycle_counter());
        pki_record r = begin_record(&span);
        write_record(pki_record_at(t, (uint32_t)(state >> 32)), r.start, r.value, r.what, r.extra);
        publish(t, state, 1);
    }
    pki_leave();
    return span;
}

/* ---- marks and ends ---- */

static inline bool is_open(const pki_thread *t, const pk_span *s)
{
    return s->session == t->session && !(s->flags & ENDED);
}

PKI_COLD pki_thread *pki_span_thread(const pk_span *s)
{
    pki_thread *t = s->region ? pki_thread_join() : NULL;
    if (t && is_open(t, s))
        return t;
    if (t)
        pki_bump(s->flags & ENDED ? &t->spans.ended_twice : &t->spans.of_earlier, 1);
    else if (s->region)
        pki_registry_refuse_point();
    return NULL;
}

/* A call without a record, in the distribution all the same. */
static void count_dropped(pki_thread *t, uint32_t name, uint64_t start, uint64_t ticks)
{
    pki_table_count(&t->registry->arena->spans, &t->lost, pki_lost_slot(t, name),
                    pki_thread_ns(t, start, ticks));
}

static inline pki_record mark_record(const pk_span *s, uint32_t name, uint64_t now, uint64_t ticks)
{
    return (pki_record){now, ticks, PKI_WHAT(name, PKI_RECORD_SPAN_MARK, 0),
                        s->serial | (uint64_t)s->region << 32};
}

PKI_COLD void pki_span_sample(pki_thread *t, const pk_span *s, uint32_t name, uint64_t now,
                              uint64_t ticks)
{
    pki_record r = mark_record(s, name, now, ticks);
    if (!pki_push_point(t, &r, 1)) {
        pki_bump(&t->spans.marks_dropped, 1);
        count_dropped(t, name, now - ticks, ticks);
    }
}

static PKI_COLD void mark_slow(pk_span *s, pk_region *region)
{
    uint32_t name = pki_region_id(region);
    pki_thread *t = pki_span_thread(s);
    if (!t)
        return;
    uint64_t now = pki_ticks(t->monotonic);
    pki_span_sample(t, s, name, now, pki_not_negative(now - s->marked));
    s->marked = now;
}

PKI_IN_ORDER void pk_span_mark_on_(pk_span *s, pk_region *region)
{
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    uint32_t name = pki_load(&region->id);
    if (PKI_UNLIKELY(!has_room(t, state, 1) || name == 0 || !is_open(t, s))) {
        mark_slow(s, region);
    } else {
        uint64_t now = pki_cycle_counter();
        pki_record r = mark_record(s, name, now, pki_not_negative(now - s->marked));
        write_record(pki_record_at(t, (uint32_t)(state >> 32)), r.start, r.value, r.what, r.extra);
        publish(t, state, 1);
        s->marked = r.start;
    }
    pki_leave();
}

static inline pki_record end_record(const pk_span *s, uint64_t now)
{
    uint64_t flags = s->flags & NO_BEGIN ? PKI_FLAGS(PKI_FLAG_NO_BEGIN) : 0;
    return (pki_record){s->start, pki_not_negative(now - s->start),
                        PKI_WHAT(s->region, PKI_RECORD_SPAN_END, 0) | flags, s->serial};
}

/* Of those that wait to be folded. */
static bool has_ended(const pki_thread *t, uint32_t serial)
{
    for (uint32_t i = pki_load_acquire(&t->ends_folded); i != t->ends_made; i++)
        if (t->ends[i % PKI_ENDS].extra == serial)
            return true;
    return false;
}

/* Not straight into the distribution: it may be a copy's, and its span have ended. The same one
 * again takes no room here. False: there is none. */
static bool leave_to_fold(pki_thread *t, const pki_record *end)
{
    if (t->ends_made - pki_load_acquire(&t->ends_folded) == PKI_ENDS)
        return false;
    t->ends[t->ends_made % PKI_ENDS] = *end;
    pki_store_release(&t->ends_made, t->ends_made + 1); /* pairs with pki_fold_ends */
    return true;
}

static void end_without_record(pki_thread *t, const pki_record *end)
{
    pki_bump(&t->spans.ends_dropped, 1);
    if (has_ended(t, (uint32_t)end->extra)) {
        pki_bump(&t->spans.ended_twice, 1);
        return;
    }
    if (leave_to_fold(t, end))
        return;
    pki_bump(&t->spans.ends_lost, 1);
    count_dropped(t, pki_what_id(end->what), end->start, end->value);
}

static PKI_COLD void end_slow(pk_span *s)
{
    pki_thread *t = pki_span_thread(s);
    if (!t)
        return;
    pki_record r[2] = {end_record(s, pki_ticks(t->monotonic)), {s->id, 0, 0, 0}};
    if (!pki_push_point(t, r, 2))
        end_without_record(t, r);
    s->flags |= ENDED;
}

PKI_IN_ORDER void pk_span_end_on_(pk_span *s)
{
    if (PKI_UNLIKELY(!pki_enter())) {
        pki_registry_refuse_point();
        return;
    }
    pki_thread *t = pki_own;
    uint64_t state = t->state;
    if (PKI_UNLIKELY(!has_room(t, state, 2) || !is_open(t, s))) {
        end_slow(s);
    } else {
        pki_record r = end_record(s, pki_cycle_counter()),
                   *at = pki_record_at(t, (uint32_t)(state >> 32));
        write_record(at, r.start, r.value, r.what, r.extra);
        write_record(at + 1, s->id, 0, 0, 0);
        publish(t, state, 2);
        s->flags |= ENDED;
    }
    pki_leave();
}
