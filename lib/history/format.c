#include "history/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "history/history.h"
#include "out/chrome/events.h"

/* ---- read ---- */

bool pki_history_view_open(pki_history_view *v, const void *base, size_t bytes, uint64_t offset,
                           uint64_t end)
{
    *v = (pki_history_view){.base = base, .bytes = bytes, .end = end};
    if (offset == 0 || offset % 8 || offset > bytes || sizeof *v->head > bytes - offset)
        return false;
    v->head = (const pki_history_head *)(const void *)(v->base + offset);
    size_t left = bytes - (size_t)offset - sizeof *v->head;
    return v->head->chunk_bytes >= PKI_PAGE && v->head->chunk_bytes % PKI_PAGE == 0 &&
           v->head->chunk_bytes <= bytes && v->head->step_room > 0 &&
           v->head->step_room <= left / sizeof *v->head->steps &&
           pki_load_acquire(&v->head->first) <= end; /* pairs with the release in forget */
}

const pki_history_step *pki_history_find(const pki_history_view *v, uint64_t number)
{
    uint64_t end = v->head->step_end, room = v->head->step_room;
    uint64_t first = end > room ? end - room : 0;
    for (uint64_t n = end; n > first; n--) {
        const pki_history_step *step = &v->head->steps[(n - 1) % v->head->step_room];
        if (step->number == number)
            return step;
    }
    return NULL;
}

pki_history_reader pki_history_read(const pki_history_view *v, uint64_t from)
{
    uint64_t first = pki_load_acquire(&v->head->first); /* pairs with the release in forget */
    from = PKI_MAX(from, first);
    return (pki_history_reader){v, from - from % v->head->chunk_bytes, 0};
}

/* The chunk in which the position lies. */
static const char *chunk_of(const pki_history_view *v, uint64_t at)
{
    uint64_t bytes = v->head->chunk_bytes;
    uint64_t offset = v->head->chunks[at / bytes % PKI_HISTORY_CHUNKS];
    bool there =
        offset && offset % PKI_PAGE == 0 && offset <= v->bytes && bytes <= v->bytes - offset;
    return there ? v->base + offset : NULL;
}

static bool is_whole(const pki_piece *piece, uint64_t left)
{
    return piece->bytes >= sizeof *piece && piece->bytes <= left && piece->bytes % 16 == 0;
}

const pki_piece *pki_history_next(pki_history_reader *r)
{
    uint64_t bytes = r->view->head->chunk_bytes;
    while (r->at < r->view->end && r->read < r->view->bytes) {
        const char *chunk = chunk_of(r->view, r->at);
        uint64_t within = r->at % bytes;
        const pki_piece *piece = (const pki_piece *)(const void *)(chunk + within);
        if (!chunk || piece->kind == PKI_PIECE_END || !is_whole(piece, bytes - within)) {
            r->at += bytes - within;
            r->read += sizeof *piece;
            continue;
        }
        r->at += piece->bytes;
        r->read += piece->bytes;
        return piece;
    }
    return NULL;
}

const pki_record *pki_piece_records(const pki_history_reader *r, const pki_piece *piece,
                                    uint32_t *count)
{
    uint64_t beyond = r->at > r->view->end ? r->at - r->view->end : 0;
    uint64_t bytes = piece->bytes - sizeof *piece;
    *count = (uint32_t)((bytes - PKI_MIN(beyond, bytes)) / sizeof(pki_record));
    return (const pki_record *)(const void *)(piece + 1);
}

/* ---- what is kept of some steps, as Chrome trace events ---- */

/* A thread that has been named, and how. */
typedef struct named {
    uint32_t tid, hash;
} named;

typedef struct job {
    const pki_history_view *view;
    pki_history_range range;
    uint64_t from_ns, until_ns;
    uint64_t latest; /* ticks of what has been read */
    pki_chrome *chrome;
    pki_history_sink *sink;
    void *user;
    uint64_t events;
    pki_track *tracks; /* by id; thread NULL: not met yet */
    size_t track_room;
    named *threads;
    size_t thread_count, thread_room;
    bool measured;
    uint64_t measured_from; /* ns; if it is */
    pki_open_spans spans;
} job;

static bool emit(job *j, const char *event, size_t n)
{
    return n == 0 || j->sink(j->user, event, n);
}

/* ---- who they are of ---- */

/* Each chunk says it again. */
static bool is_named(job *j, uint32_t tid, uint32_t hash)
{
    for (size_t i = 0; i < j->thread_count; i++)
        if (j->threads[i].tid == tid) {
            bool same = j->threads[i].hash == hash;
            j->threads[i].hash = hash;
            return same;
        }
    if (pki_array_fit(&j->threads, &j->thread_room, j->thread_count + 1, sizeof *j->threads))
        j->threads[j->thread_count++] = (named){tid, hash};
    return false;
}

static bool put_thread(job *j, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES], name[64];
    if (piece->bytes < sizeof *piece + sizeof name)
        return true;
    memcpy(name, piece + 1, sizeof name);
    name[sizeof name - 1] = 0;
    if (is_named(j, piece->id, pki_hash(name, strlen(name), piece->number)))
        return true;
    return emit(j, event, pki_chrome_thread(j->chrome, event, piece->id, name, piece->number));
}

#define TRACKS_MOST 65536u /* more are damage */

static bool put_track(job *j, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES];
    pki_track is;
    if (piece->id >= TRACKS_MOST || !pki_piece_track(piece, &is) ||
        !pki_array_fit(&j->tracks, &j->track_room, piece->id + (size_t)1, sizeof *j->tracks))
        return true;
    bool known = j->tracks[piece->id].thread;
    j->tracks[piece->id] = is;
    return known || emit(j, event, pki_chrome_track(event, &is));
}

/* ---- events ---- */

static bool is_wanted(const job *j, const pki_record *r, const pki_record *more)
{
    bool between = pki_what_flags(r->what) & PKI_FLAG_BETWEEN;
    if (pki_what_type(r->what) == PKI_RECORD_STEP && !between)
        return more->start >= j->range.first && more->start <= j->range.last;
    if (pki_what_type(r->what) == PKI_RECORD_NOTE || pki_what_type(r->what) == PKI_RECORD_NOTE_TEXT)
        return r->start <= j->range.until; /* its call may reach into the range */
    return pki_record_ticks(r) >= j->range.from && r->start <= j->range.until;
}

static bool is_span(const pki_record *r)
{
    unsigned type = pki_what_type(r->what);
    return type >= PKI_RECORD_SPAN_BEGIN && type <= PKI_RECORD_REQUEST;
}

/* Its length; 0: none is wanted. */
static size_t put_record(job *j, char event[PKI_EVENT_BYTES], uint32_t tid, const pki_record *r,
                         const pki_record *more)
{
    j->latest = PKI_MAX(j->latest, pki_record_ticks(r));
    if (is_span(r))
        return pki_history_span(&j->spans, j->chrome, event, tid, &j->range, r, more);
    return is_wanted(j, r, more) ? pki_chrome_event(j->chrome, event, tid, r, more) : 0;
}

static bool put_records(job *j, const pki_history_reader *reader, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES];
    uint32_t count;
    const pki_record *r = pki_piece_records(reader, piece, &count);
    for (uint32_t i = 0; i < count; i++) {
        const pki_record *at = &r[i], *more = &r[i];
        if (pki_record_slots(at->what) == 2 && ++i < count)
            more = &r[i];
        if (i >= count)
            continue;
        size_t n = put_record(j, event, piece->id, at, more);
        j->events += n > 0;
        if (!emit(j, event, n))
            return false;
    }
    return true;
}

static bool put_activity(job *j, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES];
    pki_decoded d;
    if (piece->id >= j->track_room || !j->tracks[piece->id].thread ||
        !pki_piece_activity(piece, &d))
        return true;
    if (d.activity.end < j->from_ns || d.activity.start > j->until_ns)
        return true;
    pki_chrome_name region = {0};
    if (d.activity.region)
        region = j->chrome->names(j->chrome->user, d.activity.region);
    return emit(j, event,
                pki_chrome_activity(j->chrome, event, &j->tracks[piece->id], &d.activity,
                                    region.name, region.length));
}

static void note_measured(pki_history_range *range, uint64_t ns, bool on)
{
    pki_history_measured *last =
        range->measured_count ? &range->measured[range->measured_count - 1] : NULL;
    if (on && last && last->until == UINT64_MAX)
        last->from = PKI_MAX(last->from, ns);
    else if (on && range->measured_count < PKI_HISTORY_MEASURED)
        range->measured[range->measured_count++] = (pki_history_measured){ns, UINT64_MAX};
    else if (!on && last)
        last->until = PKI_MIN(last->until, ns);
}

/* Each chunk says again that it is on, perhaps from a later moment on, which may lie behind all of
 * this (UINT64_MAX: nothing had come by then, which says nothing of what came later); that it is
 * off may be said again of an earlier one. */
static bool put_measures(job *j, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES];
    uint64_t ns;
    bool on = piece->id != 0;
    if (piece->bytes < sizeof *piece + sizeof ns)
        return true;
    memcpy(&ns, piece + 1, sizeof ns);
    bool behind = ns > j->until_ns;
    bool later = on && j->measured && ns > j->measured_from && ns < UINT64_MAX;
    if (on && behind && !later)
        return true;
    note_measured(&j->range, ns, on);
    if (on == j->measured && !later)
        return true;
    j->measured = on;
    j->measured_from = ns;
    if (!on && behind)
        return true;
    ns = PKI_MIN(PKI_MAX(ns, j->from_ns), j->until_ns);
    return emit(j, event, pki_chrome_measures(event, j->chrome->pid, ns, on));
}

static bool put_piece(job *j, const pki_history_reader *reader, const pki_piece *piece)
{
    switch (piece->kind) {
    case PKI_PIECE_RECORDS:
        return put_records(j, reader, piece);
    case PKI_PIECE_THREAD:
        return put_thread(j, piece);
    case PKI_PIECE_TRACK:
        return put_track(j, piece);
    case PKI_PIECE_ACTIVITY:
        return put_activity(j, piece);
    case PKI_PIECE_MEASURES:
        return put_measures(j, piece);
    default:
        return true;
    }
}

bool pki_history_format(const pki_history_view *view, pki_history_range *range, pki_chrome *chrome,
                        pki_history_sink *sink, void *user, uint64_t *events)
{
    job j = {.view = view, .range = *range, .chrome = chrome, .sink = sink, .user = user};
    j.from_ns = range->from ? pki_clock_ns(chrome->clock, range->from) : 0;
    j.until_ns =
        range->until == UINT64_MAX ? UINT64_MAX : pki_clock_ns(chrome->clock, range->until);
    pki_history_reader reader = pki_history_read(view, range->first_at);
    bool done = true;
    for (const pki_piece *piece; done && (piece = pki_history_next(&reader));)
        done = put_piece(&j, &reader, piece);
    done = done && pki_history_open_spans(&j.spans, chrome, range, PKI_MIN(j.latest, range->until),
                                          sink, user);
    *events += j.events;
    *range = j.range;
    pki_open_spans_finish(&j.spans);
    free(j.tracks);
    free(j.threads);
    return done;
}

/* ---- which pk_spans overlap with some steps of the history ---- */

static pki_open_span span_of(const pki_record *r, uint64_t id, pki_open_state state)
{
    return (pki_open_span){r->start,        id, (uint32_t)r->extra, pki_what_id(r->what),
                           (uint32_t)state, 0};
}

static size_t begin(pki_open_spans *seen, const pki_chrome *c, char *out, uint32_t tid,
                    const pki_history_range *range, const pki_record *r)
{
    pki_open_span *before = pki_open_spans_find(seen, (uint32_t)r->extra);
    if (before)
        pki_open_spans_remove(seen, before); /* its end has been seen */
    if (before || r->start > range->until)
        return 0;
    bool now = r->start >= range->from;
    pki_open_span span = span_of(r, r->value, now ? PKI_SPAN_SEEN : PKI_SPAN_OPEN);
    span.tid = tid;
    pki_open_spans_add(seen, &span);
    return now ? pki_chrome_span(c, out, tid, r, r) : 0;
}

static size_t end(pki_open_spans *seen, const pki_chrome *c, char *out, uint32_t tid,
                  const pki_history_range *range, const pki_record *r, const pki_record *more)
{
    pki_open_span *before = pki_open_spans_find(seen, (uint32_t)r->extra);
    bool written = before && before->state == PKI_SPAN_SEEN;
    pki_record whole = *r;
    if (before && before->state != PKI_SPAN_ENDED)
        pki_open_spans_remove(seen, before);
    if (!before && !(pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN)) {
        pki_open_span ended = span_of(r, more->start, PKI_SPAN_ENDED);
        pki_open_spans_add(seen, &ended);
    }
    if (r->start > range->until || pki_record_ticks(r) < range->from)
        return 0;
    whole.what |= written ? 0 : PKI_FLAGS(PKI_FLAG_NO_BEGIN);
    return pki_chrome_span(c, out, tid, &whole, more);
}

size_t pki_history_span(pki_open_spans *seen, const pki_chrome *c, char out[PKI_EVENT_BYTES],
                        uint32_t tid, const pki_history_range *range, const pki_record *r,
                        const pki_record *more)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        return begin(seen, c, out, tid, range, r);
    case PKI_RECORD_SPAN_END:
        return end(seen, c, out, tid, range, r, more);
    default:
        return r->start < range->from || r->start > range->until
                   ? 0
                   : pki_chrome_span(c, out, tid, r, more);
    }
}

/* The threads of those that began before the history may have no name in it. */
static bool put_open(const pki_chrome *c, const pki_open_span *s, uint64_t ticks,
                     pki_history_sink *sink, void *user)
{
    char event[PKI_EVENT_BYTES];
    const pki_chrome_open open = {s->start, s->id, s->name, s->serial};
    bool begun = s->state == PKI_SPAN_SEEN;
    uint32_t tid = begun ? s->tid : c->pid;
    if (!begun && !sink(user, event, pki_chrome_span_begin(c, event, tid, &open)))
        return false;
    return sink(user, event,
                pki_chrome_span_unfinished(c, event, tid, &open, PKI_MAX(ticks, s->start)));
}

bool pki_history_open_spans(const pki_open_spans *seen, const pki_chrome *c,
                            const pki_history_range *range, uint64_t ticks, pki_history_sink *sink,
                            void *user)
{
    bool done = true;
    for (size_t i = 0; done && i < seen->room; i++)
        if (seen->cells[i].state == PKI_SPAN_OPEN || seen->cells[i].state == PKI_SPAN_SEEN)
            done = put_open(c, &seen->cells[i], ticks, sink, user);
    for (size_t i = 0; done && i < range->open_count; i++) {
        const pki_open_span *s = &range->open[i];
        if (s->start <= range->until && !pki_open_spans_find(seen, s->serial))
            done = put_open(c, s, ticks, sink, user);
    }
    return done;
}
