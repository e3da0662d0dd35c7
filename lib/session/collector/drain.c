#include "session/collector/drain.h"

#include <pk/region.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "core/frames.h"
#include "core/ring.h"
#include "measure/fold/walk.h"
#include "out/chrome/events.h"
#include "session/captures/captures.h"
#include "session/collector/thinning.h"
#include "session/report/run.h"
#include "session/session.h"
#include "session/trace/output.h"
#include "session/trace/rotate.h"

/* ---- the collector sees to it that full rings have somewhere to go ---- */

/* A ring of 2 MiB holds 65,536 records: at 5 million a second 13 ms, and a file system may take
 * longer than that for one write, now and then. So where a thread fills its ring within 100 ms and
 * a trace or a history is kept, spare segments (core/ring.h) are made that together hold a quarter
 * of a second of what such threads record; and some where the collector finds a ring half full,
 * whatever the reason, twice what it finds at once where that is more. They are a sixteenth of the
 * arena at most (64 MiB by default), and given back to the system when none has been wanted for a
 * minute. A program that records less has none. */

#define SHARE 16u            /* of the arena, at most */
#define LOOK_NS 50000000u    /* a rate is looked at over so long */
#define SHORT_NS 100000000u  /* a ring that lasts less than this... */
#define HOLD_NS 250000000u   /* ...gets so much more */
#define FEW 4u               /* segments, for a ring that is found half full */
#define IDLE_NS 60000000000u /* not wanted for so long: given back */
#define FRESH_NS 1000000000u
#define RETRY_NS 10000000000u /* a disk that is full is not asked in each round */

/* Of all threads whose rings are short, bytes in HOLD_NS. */
static uint64_t measure_rates(pki_session *s, uint64_t passed)
{
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        uint64_t bytes = pki_thread_position(t).bytes;
        uint64_t more = pki_not_negative(bytes - t->rated_bytes); /* one may be undone since */
        t->rated_bytes = bytes;
        double per_ns = (double)more / (double)passed;
        if (per_ns * SHORT_NS > t->ring_bytes)
            wanted += (uint64_t)(per_ns * HOLD_NS);
    }
    return wanted;
}

static uint32_t ring_bytes(const pki_session *s)
{
    return s->config.ring_records * (uint32_t)sizeof(pki_record);
}

static uint32_t most_of(const pki_session *s)
{
    uint64_t fit = s->arena->spans.bytes / SHARE / ring_bytes(s);
    return (uint32_t)PKI_MIN(fit, PKI_SPARES_MOST);
}

/* Twice what a round has found at once, if that is much. */
static uint32_t wanted_by_need(const pki_session *s)
{
    uint32_t found = pki_load(&s->fullest), ring = s->config.ring_records;
    return found < ring / 2 ? 0 : PKI_MAX(2 * (found / ring), FEW);
}

/* How many there should be, as far as this round knows. */
static uint32_t wanted_now(pki_session *s, uint64_t now)
{
    uint32_t few = wanted_by_need(s);
    uint64_t passed = now - s->spares_rated;
    if (passed < LOOK_NS)
        return few;
    bool first = s->spares_rated == 0, kept = s->writing || s->history;
    s->spares_rated = now;
    uint64_t bytes = measure_rates(s, passed);
    uint64_t n = kept && !first ? (bytes + ring_bytes(s) - 1) / ring_bytes(s) : 0;
    return (uint32_t)PKI_MIN(PKI_MAX(n, few), PKI_SPARES_MOST);
}

/* Pages of a file that has been brought to the disk meanwhile are read-only again until somebody
 * takes a page fault, for which the file system may let him wait: that is for the collector. */
static void refresh(pki_session *s, uint64_t now)
{
    const pki_spares *spares = &s->registry->spares;
    if (!s->paths.arena[0] || spares->count == 0 || now - s->spares_fresh < FRESH_NS)
        return;
    const pki_spare *next = &spares->all[s->spares_next++ % spares->count];
    if (pki_spare_state_of(pki_load(&next->word)) == PKI_SPARE_FREE)
        pki_mem_populate(pki_arena_at(s->arena, (uint64_t)next->segment * PKI_PAGE), ring_bytes(s));
    if (s->spares_next % spares->count == 0)
        s->spares_fresh = now;
}

/* What is kept for one thread is there for no other. */
static uint32_t there_for_all(const pki_session *s)
{
    const pki_spares *spares = &s->registry->spares;
    return pki_spares_there(spares) - pki_spares_kept(spares);
}

/* One a round. */
static void make(pki_session *s, uint64_t now)
{
    pki_spares *spares = &s->registry->spares;
    if (now >= s->spares_retry && !pki_spare_make(spares, s->arena, ring_bytes(s), most_of(s)))
        s->spares_retry = now + RETRY_NS;
}

/* One a round. A file system that cannot, or a descriptor that the program has closed, is not asked
 * in each of them. */
static void unmake(pki_session *s, uint64_t now)
{
    if (now >= s->spares_retry && !pki_spare_unmake(&s->registry->spares, s->arena, ring_bytes(s)))
        s->spares_retry = now + RETRY_NS;
}

/* Behind a round, under the drain lock: does one thing at most, which takes a millisecond or two.
 */
static void pki_spares_round(pki_session *s)
{
    uint64_t now = pki_monotonic_ns();
    pki_spare_share(s->registry);
    if (!s->config.spares || !pki_load(&pk_gate_))
        return;
    uint32_t wanted = wanted_now(s, now); /* once: it looks at the clock */
    wanted = PKI_MIN(wanted, most_of(s));
    if (wanted) {
        s->spares_wanted = PKI_MAX(s->spares_wanted, wanted);
        s->spares_asked = now;
    }
    if (now - s->spares_asked > IDLE_NS)
        s->spares_wanted = 0;
    uint32_t there = there_for_all(s);
    if (there < s->spares_wanted)
        make(s, now);
    else if (there > s->spares_wanted ||
             (!s->spares_wanted && pki_spares_there(&s->registry->spares)))
        unmake(s, now);
    refresh(s, now);
}

/* ---- what has been folded, out of a thread's ring ---- */

/* Into the trace's buffer, and into the history. Under the drain lock. */

#define BATCH 128u /* records that are formatted in one piece */

static bool has_event(const pki_record *r)
{
    unsigned type = pki_what_type(r->what);
    return type != PKI_RECORD_STEP_SELF && type != PKI_RECORD_STEP_OPEN;
}

/* A record's event; more is its second slot. */
static void pki_emit_event(pki_session *s, uint32_t tid, const pki_record *r,
                           const pki_record *more)
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

/* If it has another name than what has been written. */
static void pki_emit_thread_name(pki_session *s, pki_thread *t)
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

/* Takes what has been folded; pieces: and writes each piece of events when it is there. */
static void pki_drain_ring(pki_session *s, pki_thread *t, bool pieces)
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

/* ---- from the rings to the file. All of it under the drain lock ---- */

#define POPULATE_AHEAD                                                                             \
    262144u /* bytes of ring brought in at a time, before their owner gets there */

#define ARENA_CHECK_NS 1000000000u /* whoever has more of it looks by itself */

#define LITTLE 128u /* records that a thread on its way out may format */

/* The owner is about to reach pages that nobody has touched yet. */
static void populate_ahead(pki_session *s, pki_thread *t)
{
    uint64_t have = pki_load(&t->populated);
    if (have >= t->ring_bytes)
        return;
    uint64_t soon = 8 * (uint64_t)pki_load(&s->fullest) * sizeof(pki_record);
    if (pki_thread_head(t) + soon > have)
        pki_store(&s->growing, true); /* at this rate, before a longer round ends */
    if (pki_thread_head(t) + have / 2 < have)
        return;
    uint64_t bytes = PKI_MIN(POPULATE_AHEAD, t->ring_bytes - have);
    pki_mem_populate((char *)t->home + have, bytes);
    pki_store(&t->populated, have + bytes);
}

static bool is_spent(const pki_session *s, const pki_thread *t)
{
    if (pki_load_acquire(&t->life) != PKI_THREAD_LEFT) /* pairs with the release in detach */
        return false;
    pki_fold_lock();
    uint64_t head = pki_fold_head(t);
    pki_fold_unlock();
    return t->taken[pki_output_in_force(s)] == head;
}

static void recycle(pki_session *s)
{
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (!is_spent(s, t))
            continue;
        pki_emit_thread_name(s, t); /* the name that it had at its end */
        pki_fold_lock();
        pki_fold_recycle(pki_fold_now(), t);
        pki_fold_unlock();
    }
}

static void fold(void)
{
    pki_fold_lock();
    pki_fold_all(pki_fold_now());
    pki_fold_unlock();
}

static bool time_to_write(const pki_session *s)
{
    return s->pending.buffered >= pki_output_span(s) / 2 ||
           pki_monotonic_ns() - s->last_write >= (uint64_t)s->config.flush_ms * 1000000;
}

/* What has been recorded stays and is written; but nothing more can be had. */
static void check_arena(pki_session *s, bool now)
{
    uint64_t t = pki_monotonic_ns();
    if (s->arena_lost || (!now && t - s->arena_checked < ARENA_CHECK_NS))
        return;
    s->arena_checked = t;
    if (pki_own_check(&s->arena->spans.file))
        return;
    s->arena_lost = true;
    pki_log(PK_LOG_ERROR,
            "recording memory %s: %s; recording goes on in the memory that it has, and what does "
            "not fit is counted as dropped",
            s->paths.arena, pki_own_why(EBADF));
}

void pki_drain_round(pki_session *s, bool write_now)
{
    pki_output_round(s);
    check_arena(s, write_now);
    pki_store(&s->fullest, 0u);
    pki_store(&s->growing, false);
    pki_history_round(s->history);
    pki_services_each(drain, (s));
    fold();
    pki_services_each(folded, (s));
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        pki_drain_ring(s, t, true);
        populate_ahead(s, t);
    }
    pki_output_commit(s);
    recycle(s);
    pki_spares_round(s);
    pki_services_each(drained, (s));
    if (write_now || time_to_write(s))
        pki_output_write(s);
}

/* No more than takes some microseconds, and never a write. Under the fold lock. */
static bool is_little(const pki_session *s, const pki_thread *t)
{
    uint64_t at = t->taken[pki_output_in_preparation(s)], head = pki_fold_head(t);
    uint64_t records = pki_cursor_bytes_between(t, at, head) / sizeof(pki_record);
    size_t room = pki_output_free(s);
    return records <= LITTLE && (!s->writing || (records + 4) * PKI_EVENT_BYTES <= room);
}

bool pki_drain_ended(pki_session *s)
{
    bool all = true;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (pki_load_acquire(&t->life) != PKI_THREAD_LEFT)
            continue;
        pki_fold_lock();
        bool little = is_little(s, t);
        if (little)
            pki_fold_one(pki_fold_now(), t);
        pki_fold_unlock();
        if (little)
            pki_drain_ring(s, t, false);
        all &= little;
    }
    pki_output_commit_little(s);
    recycle(s);
    return all && s->pending.buffered < pki_output_span(s) / 2;
}

/* ---- beginning and end ---- */

void pki_drain_rewrite_head(pki_session *s, bool complete)
{
    char head[PKI_HEAD_BYTES];
    pki_chrome_run run;
    pki_run_describe(s, complete, &run);
    size_t n = pki_chrome_head(&s->chrome, head, &run);
    pki_trace_file_rewrite_head(&s->file, head, n);
}

pk_status pki_drain_open(pki_session *s)
{
    char head[PKI_HEAD_BYTES];
    pki_chrome_run run;
    pki_arena_header *h = s->arena->header;
    pki_chrome_init(&s->chrome, &h->clock, s->config.world.pid, pki_chrome_name_of, NULL);
    pki_chrome_set_rank(&s->chrome, s->config.world.rank, s->config.world.size);
    if (!s->paths.trace[0])
        return PK_OK;
    s->buffer = pki_arena_claim(s->arena, PKI_OUTPUT_BYTES);
    if (!s->buffer)
        return pki_fail(PK_ENOMEM, "no room for the output buffer");
    h->output = pki_arena_offset(s->arena, s->buffer);
    h->output_bytes = PKI_OUTPUT_BYTES;
    pki_run_describe(s, false, &run);
    size_t n = pki_chrome_head(&s->chrome, head, &run);
    if (!pki_trace_file_create(&s->file, s->paths.trace, s->config.compressed, head, n,
                               PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1))
        return pki_paths_trace_error(s->paths.trace, errno);
    s->writing = true;
    pki_rotate_open(s);
    s->pending.file_bytes = n;
    h->commit[pki_output_in_force(s)] = s->pending;
    return PK_OK;
}

static void close_for_owner(pki_session *s, pki_thread *t, const pki_record record[2])
{
    pki_fold_lock();
    pki_fold_extra(pki_fold_now(), t, record);
    pki_fold_unlock();
    pki_emit_event(s, t->tid, &record[0], &record[1]);
    pki_history_thread(s->history, t);
    pki_session_history_record(s, t->tid, &record[0], &record[1]);
}

void pki_drain_settle(pki_session *s)
{
    pki_fold_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_fold_pending(pki_fold_now(), pki_registry_block(s->registry, i));
        pki_fold_settle(pki_registry_block(s->registry, i));
    }
    pki_fold_unlock();
}

void pki_drain_seal(pki_session *s)
{
    pki_fold_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++)
        pki_thread_seal(pki_registry_block(s->registry, i));
    pki_fold_unlock();
}

static void close_regions_of(pki_session *s, pki_thread *t, uint64_t now)
{
    pki_record record[2];
    for (unsigned depth = pki_depth_in(pki_thread_seen(t)); depth > 0; depth--) {
        pki_emit_thread_name(s, t);
        pki_record_open(t, depth, now, record);
        close_for_owner(s, t, record);
    }
}

/* A commit must not come between a thread's regions: after a kill they are closed all or none. */
void pki_drain_open_regions(pki_session *s, uint64_t now)
{
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (pki_output_free(s) < (PKI_DEPTH_MAX + 2) * PKI_EVENT_BYTES)
            pki_output_write(s);
        if (pki_load(&t->life) == PKI_THREAD_LIVE)
            close_regions_of(s, t, now);
        s->pending.closed = i + 1;
    }
}

static bool next_open_span(size_t *at, pki_open_span *span)
{
    pki_fold_lock();
    bool any = pki_fold_next_open_span(pki_fold_now(), at, span);
    pki_fold_unlock();
    return any;
}

/* They are no events of the program, and counted nowhere. */
void pki_drain_open_spans(pki_session *s, uint64_t now)
{
    pki_open_span span;
    for (size_t at = 0; s->writing && next_open_span(&at, &span) && pki_output_room(s);) {
        const pki_chrome_open open = {span.start, span.id, span.name, span.serial};
        pki_output_wrote(s,
                         pki_chrome_span_unfinished(&s->chrome, s->buffer + s->pending.buffered,
                                                    span.tid, &open, PKI_MAX(now, span.start)),
                         0);
        pki_output_write_piece(s);
    }
}

/* The report behind the events, on the document's last line. */
static bool close_with_report(pki_session *s, const char *report, size_t n)
{
    size_t bytes;
    char *tail = pki_tail_text(report, n, &bytes);
    if (!tail) {
        errno = ENOMEM;
        return false;
    }
    bool closed = pki_trace_file_append(&s->file, "", 0, tail, bytes);
    free(tail);
    return closed;
}

/* Without room for the report the document is closed as before. */
static void close_document(pki_session *s, const char *report, size_t n)
{
    if (report && close_with_report(s, report, n))
        return;
    if (report)
        pki_output_error(s, errno);
    if (!pki_trace_file_append(&s->file, "", 0, PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1))
        pki_output_error(s, errno);
}

void pki_drain_close(pki_session *s, const char *report, size_t n)
{
    if (s->writing && s->trace_location != PKI_TRACE_GONE) {
        close_document(s, report, n);
        pki_drain_rewrite_head(s, true);
    }
    pki_drain_abandon(s);
}

void pki_drain_abandon(pki_session *s)
{
    pki_rotate_close();
    if (s->writing)
        pki_trace_file_close(&s->file);
    pki_chrome_finish(&s->chrome);
    pki_session_history_close(s);
    s->writing = false;
}
