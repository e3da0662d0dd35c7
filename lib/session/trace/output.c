#include "session/trace/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "core/registry.h"
#include "session/session.h"

/* ---- the output span in the arena, and the way from there to the file ---- */

#define PKI_TRACE_GONE_TEXT "it was deleted or replaced while it was written"

/* Events go to the file in pieces of so many bytes: what is written soon is still in the cache of
 * the processor that has formatted it. */
#define PKI_OUTPUT_PIECE ((size_t)128 << 10)

/* ---- the commit: see lib/core/arena.h ---- */

uint32_t pki_output_in_force(const pki_session *s)
{
    return s->arena->header->generation & 1;
}

uint32_t pki_output_in_preparation(const pki_session *s)
{
    return !pki_output_in_force(s);
}

static void commit(pki_session *s, bool turns)
{
    pki_arena_header *h = s->arena->header;
    s->pending.ticks = pki_ticks(s->config.monotonic);
    s->pending.history = pki_history_end(s->history);
    h->commit[pki_output_in_preparation(s)] = s->pending;
    pki_store_release(&h->generation, h->generation + 1);
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        uint64_t taken = t->taken[pki_output_in_force(s)];
        t->taken[pki_output_in_preparation(s)] = taken;
        bool same = (taken ^ t->released) >> 32 == 0; /* turn */
        if (taken != t->released && (turns || same))
            pki_spare_release(t, taken);
    }
}

void pki_output_commit(pki_session *s)
{
    commit(s, true);
}

void pki_output_commit_little(pki_session *s)
{
    commit(s, false);
}

/* ---- output ---- */

void pki_output_error(pki_session *s, int error)
{
    pk_status status = pki_status_of_errno(error);
    if (s->error_status != status)
        pki_log(PK_LOG_ERROR, "trace %s: %s; recording goes on, and events not written are counted",
                s->paths.trace, pki_own_why(error));
    s->error_status = s->error_status ? s->error_status : status;
    s->unreported = status;
}

static void (*look_behind)(pki_session *);

void pki_output_on_written(void (*look)(pki_session *))
{
    look_behind = look;
}

void pki_output_write(pki_session *s)
{
    s->last_write = pki_monotonic_ns();
    if (!s->writing || s->full || s->trace_location == PKI_TRACE_GONE || s->pending.buffered == 0)
        return;
    if (!pki_trace_file_append(&s->file, s->buffer, s->pending.buffered, PKI_CHROME_TAIL,
                               sizeof PKI_CHROME_TAIL - 1)) {
        s->stuck = s->full = true;
        pki_output_error(s, errno);
        return;
    }
    s->stuck = false;
    s->file_events = s->pending.events;
    s->pending.file_bytes += s->pending.buffered;
    s->pending.buffered = 0;
    pki_output_commit(s);
    if (look_behind)
        look_behind(s);
}

void pki_output_round(pki_session *s)
{
    s->full = false;
}

void pki_output_check(pki_session *s)
{
    pki_trace_location now = s->writing && s->trace_location != PKI_TRACE_GONE
                                 ? pki_trace_file_location(&s->file, s->trace_at)
                                 : s->trace_location;
    if (now == PKI_TRACE_MOVED && s->trace_location != PKI_TRACE_MOVED)
        pki_log(PK_LOG_WARNING,
                "trace %s: has been moved or renamed; it is written where it is now",
                s->paths.trace);
    s->trace_location = now;
    if (now != PKI_TRACE_GONE)
        return;
    if (s->error_status != PK_EIO)
        pki_log(PK_LOG_ERROR,
                "trace %s: " PKI_TRACE_GONE_TEXT
                "; recording goes on for the report, but the events are lost",
                s->paths.trace);
    s->error_status = s->unreported = PK_EIO;
}

/* Room for one more event: in a buffer that cannot be written out there may be none. */
bool pki_output_room_for(pki_session *s, uint32_t events)
{
    size_t most = (size_t)events * PKI_EVENT_BYTES;
    if (!s->writing || s->trace_location == PKI_TRACE_GONE)
        return false;
    if (pki_output_free(s) < most)
        pki_output_write(s);
    uint64_t size = s->earlier_bytes + s->pending.file_bytes + s->pending.buffered;
    return pki_output_free(s) >= most && size + most <= s->config.trace_max_bytes;
}

bool pki_output_room(pki_session *s)
{
    return pki_output_room_for(s, 1);
}

/* Compressed pieces are larger: each of them ends a block of the stream. */
void pki_output_write_piece(pki_session *s)
{
    size_t piece = s->config.compressed ? PKI_OUTPUT_BYTES / 2 : PKI_OUTPUT_PIECE;
    if (s->pending.buffered >= piece)
        pki_output_write(s);
}

void pki_output_wrote(pki_session *s, size_t n, unsigned events)
{
    s->pending.buffered += n;
    s->pending.events += events;
}

void pki_output_counts(const pki_session *s, pk_counts *c)
{
    bool gone = s->trace_location == PKI_TRACE_GONE;
    c->written = gone ? 0 : s->file_events;
    c->unwritten = s->pending.unwritten + (s->stuck || gone ? s->pending.events - c->written : 0);
    c->trace_bytes = s->earlier_bytes + s->pending.file_bytes;
}

const char *pki_output_error_text(const pki_session *s, pk_status status)
{
    return s->trace_location == PKI_TRACE_GONE ? PKI_TRACE_GONE_TEXT : pk_status_text(status);
}

/* ---- what stands behind the events of a trace ---- */

#define MEMBERS 8

typedef struct member {
    char *key, *json;
} member;

static member members[MEMBERS];
static size_t count;

static void after_fork(void)
{
    count = 0; /* it may be half of something */
}

void pki_tail_reset(void)
{
    for (size_t i = 0; i < count; i++) {
        free(members[i].key);
        free(members[i].json);
    }
    count = 0;
}

void pki_tail_set(const char *key, const char *json)
{
    member m = {strdup(key), strdup(json)};
    size_t i = 0;
    while (i < count && strcmp(members[i].key, key) != 0)
        i++;
    if (!m.key || !m.json || i == MEMBERS) {
        free(m.key);
        free(m.json);
        return;
    }
    if (i < count) {
        free(members[i].key);
        free(members[i].json);
    }
    members[i] = m;
    count = PKI_MAX(count, i + 1);
}

char *pki_tail_text(const char *report, size_t n, size_t *bytes)
{
    static const char before[] = "\n]", name[] = ",\"perfkitReport\":", after[] = "}\n";
    size_t room = sizeof before + sizeof name + n + sizeof after;
    for (size_t i = 0; i < count; i++)
        room += strlen(members[i].key) + strlen(members[i].json) + sizeof ",\n\"\":";
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, room, "%s", before);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, ",\"%s\":%s", members[i].key, members[i].json);
    at += (size_t)snprintf(text + at, room - at, "%s", name);
    memcpy(text + at, report, n);
    memcpy(text + at + n, after, sizeof after - 1);
    *bytes = at + n + sizeof after - 1;
    return text;
}

const pki_service pki_service_tail = {
    .name = "tail",
    .reset = pki_tail_reset,
    .after_fork = after_fork,
};
