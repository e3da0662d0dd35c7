#include "history/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/compiler.h"
#include "base/text.h"
#include "history/spans.h"
#include "out/chrome/activity.h"

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
    if (on && range->measured_count < PKI_HISTORY_MEASURED)
        range->measured[range->measured_count++] = (pki_history_measured){ns, UINT64_MAX};
    else if (!on && range->measured_count)
        range->measured[range->measured_count - 1].until = ns;
}

/* Each chunk says again that it is on. */
static bool put_measures(job *j, const pki_piece *piece)
{
    char event[PKI_EVENT_BYTES];
    uint64_t ns;
    bool on = piece->id != 0;
    if (piece->bytes < sizeof *piece + sizeof ns || on == j->measured)
        return true;
    memcpy(&ns, piece + 1, sizeof ns);
    if (ns > j->until_ns)
        return true;
    j->measured = on;
    note_measured(&j->range, ns, on);
    ns = PKI_MAX(ns, j->from_ns);
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
