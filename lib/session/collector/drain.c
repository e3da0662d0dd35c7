#include "session/collector/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "core/close.h"
#include "measure/fold/order.h"
#include "out/chrome/span.h"
#include "session/trace/output.h"
#include "session/captures/history.h"
#include "session/trace/rotate.h"
#include "session/collector/spares.h"
#include "session/collector/drain_ring.h"
#include "session/report/run.h"
#include "session/trace/tail.h"
#include "session/service.h"

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
