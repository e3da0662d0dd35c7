#include "history/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/registry.h"
#include "history/format.h"
#include "history/salvage.h"
#include "out/chrome/events.h"

/* ---- read ---- */

/* The history of an arena that lies there, up to that position. False if there is none, or none
 * that makes sense: it may come from anywhere. */
static bool pki_history_view_open(pki_history_view *v, const void *base, size_t bytes,
                                  uint64_t offset, uint64_t end_spans)
{
    *v = (pki_history_view){.base = base, .bytes = bytes, .end = end_spans};
    if (offset == 0 || offset % 8 || offset > bytes || sizeof *v->head > bytes - offset)
        return false;
    v->head = (const pki_history_head *)(const void *)(v->base + offset);
    size_t left = bytes - (size_t)offset - sizeof *v->head;
    return v->head->chunk_bytes >= PKI_PAGE && v->head->chunk_bytes % PKI_PAGE == 0 &&
           v->head->chunk_bytes <= bytes && v->head->step_room > 0 &&
           v->head->step_room <= left / sizeof *v->head->steps &&
           pki_load_acquire(&v->head->first) <= end_spans; /* pairs with the release in forget */
}

const pki_history_step *pki_history_find(const pki_history_view *v, uint64_t number)
{
    uint64_t end_spans = v->head->step_end, room = v->head->step_room;
    uint64_t first = end_spans > room ? end_spans - room : 0;
    for (uint64_t n = end_spans; n > first; n--) {
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

/* ---- tracks and activities as bytes that mean the same wherever they are read ---- */

/* A piece is: its head; the structure with its pointers set to zero; the arguments; the texts, each
 * with a NUL behind it. What is longer than its share is cut, as the trace would cut it, too. */

#define NAME_MOST 2048u
#define TEXT_MOST 255u
#define NO_TEXT UINT16_MAX

typedef struct flat_track {
    uint32_t pid, tid, sort;
    uint16_t process, thread; /* lengths; NO_TEXT: NULL */
} flat_track;

typedef struct flat_argument {
    int64_t number;
    uint16_t key, text, reserved[2];
} flat_argument;

typedef struct flat_activity {
    pki_activity activity;
    pki_operation operation;
    uint32_t has_operation, arguments;
    flat_argument args[PKI_PIECE_ARGS];
} flat_activity;

typedef struct writer {
    char *at, *end;
} writer;

static size_t finish(char *out, pki_piece_kind kind, const writer *w)
{
    size_t bytes = ((size_t)(w->at - out) + 15) & ~(size_t)15;
    memset(w->at, 0, bytes - (size_t)(w->at - out));
    *(pki_piece *)(void *)out = (pki_piece){.kind = (uint32_t)kind, .bytes = (uint32_t)bytes};
    return bytes;
}

/* Its length, as far as it has been put. */
static uint16_t put(writer *w, const char *text, size_t n, size_t most)
{
    if (!text)
        return NO_TEXT;
    n = PKI_MIN(n, most);
    if ((size_t)(w->end - w->at) < n + 1)
        n = 0;
    memcpy(w->at, text, n);
    w->at[n] = 0;
    w->at += n + 1;
    return (uint16_t)n;
}

static uint16_t put_string(writer *w, const char *text)
{
    return put(w, text, text ? strlen(text) : 0, TEXT_MOST);
}

static size_t pki_piece_put_track(char out[PKI_PIECE_BYTES], const pki_track *t)
{
    flat_track *flat = (flat_track *)(void *)(out + sizeof(pki_piece));
    writer w = {(char *)(flat + 1), out + PKI_PIECE_BYTES - 16};
    *flat = (flat_track){.pid = t->pid, .tid = t->tid, .sort = t->sort};
    flat->process = put_string(&w, t->process);
    flat->thread = put_string(&w, t->thread);
    return finish(out, PKI_PIECE_TRACK, &w);
}

static void put_operation(writer *w, flat_activity *flat, const pki_operation *o)
{
    flat->has_operation = 1;
    flat->operation = *o;
    flat->operation.comm_length = put(w, o->comm, o->comm_length, TEXT_MOST);
    flat->operation.library_length = put(w, o->library, o->library_length, TEXT_MOST);
    flat->operation.comm = flat->operation.library = NULL;
}

size_t pki_piece_put_activity(char out[PKI_PIECE_BYTES], const pki_activity *a)
{
    flat_activity *flat = (flat_activity *)(void *)(out + sizeof(pki_piece));
    writer w = {(char *)(flat + 1), out + PKI_PIECE_BYTES - 16};
    memset(flat, 0, sizeof *flat);
    flat->activity = *a;
    flat->activity.name = NULL;
    flat->activity.operation = NULL;
    flat->activity.args = NULL;
    flat->activity.name_length = put(&w, a->name, a->name_length, NAME_MOST);
    if (a->operation)
        put_operation(&w, flat, a->operation);
    flat->arguments = (uint32_t)PKI_MIN(a->arg_count, (size_t)PKI_PIECE_ARGS);
    for (uint32_t i = 0; i < flat->arguments; i++) {
        flat->args[i].number = a->args[i].number;
        flat->args[i].key = put_string(&w, a->args[i].key);
        flat->args[i].text = put_string(&w, a->args[i].text);
    }
    return finish(out, PKI_PIECE_ACTIVITY, &w);
}

/* ---- back ---- */

typedef struct texts {
    const char *at, *end;
    bool sound;
} texts;

static const char *read_text(texts *t, size_t n)
{
    const char *text = t->at;
    if (n == NO_TEXT || !t->sound)
        return NULL;
    t->sound = n < (size_t)(t->end - t->at) && text[n] == 0 && !memchr(text, 0, n);
    t->at += t->sound ? n + 1 : 0;
    return t->sound ? text : NULL;
}

bool pki_piece_track(const pki_piece *piece, pki_track *track)
{
    const flat_track *flat = (const flat_track *)(const void *)(piece + 1);
    if (piece->bytes < sizeof *piece + sizeof *flat)
        return false;
    texts t = {(const char *)(flat + 1), (const char *)piece + piece->bytes, true};
    *track = (pki_track){.pid = flat->pid, .tid = flat->tid, .sort = flat->sort};
    track->process = read_text(&t, flat->process);
    track->thread = read_text(&t, flat->thread);
    return t.sound && track->thread;
}

/* Keys are written as they stand. */
static bool is_plain(const char *key)
{
    for (; *key; key++)
        if (*key < ' ' || *key > '~' || *key == '"' || *key == '\\')
            return false;
    return true;
}

static void read_operation(texts *t, const flat_activity *flat, pki_decoded *d)
{
    d->operation = flat->operation;
    d->operation.comm = read_text(t, flat->operation.comm_length);
    d->operation.library = read_text(t, flat->operation.library_length);
    if (!d->operation.comm)
        d->operation.comm_length = 0;
    if (!d->operation.library)
        d->operation.library_length = 0;
    d->activity.operation = &d->operation;
}

bool pki_piece_activity(const pki_piece *piece, pki_decoded *d)
{
    const flat_activity *flat = (const flat_activity *)(const void *)(piece + 1);
    if (piece->bytes < sizeof *piece + sizeof *flat || flat->arguments > PKI_PIECE_ARGS ||
        flat->activity.kind >= PKI_ACTIVITY_KINDS || flat->activity.copy >= PKI_COPY_KINDS)
        return false;
    texts t = {(const char *)(flat + 1), (const char *)piece + piece->bytes, true};
    d->activity = flat->activity;
    d->activity.name = read_text(&t, flat->activity.name_length);
    d->activity.operation = NULL;
    if (flat->has_operation)
        read_operation(&t, flat, d);
    for (uint32_t i = 0; i < flat->arguments; i++) {
        const char *key = read_text(&t, flat->args[i].key);
        d->args[i] =
            (pki_activity_arg){key, read_text(&t, flat->args[i].text), flat->args[i].number};
        t.sound = t.sound && key && is_plain(key);
    }
    d->activity.args = d->args;
    d->activity.arg_count = flat->arguments;
    return t.sound && d->activity.name;
}

/* ---- keeps what the last steps left, whole and unformatted ---- */

/* Named in a chunk, so that its pieces can be read. */
typedef struct known_thread {
    uint64_t chunk; /* number of the last one that names it, and one */
    uint32_t tid, version;
    char name[64];
} known_thread;

struct pki_history {
    pki_arena *arena;
    pki_history_head *head;
    uint32_t steps;                     /* bound */
    uint32_t chunks, chunks_most;       /* claimed */
    uint64_t spare[PKI_HISTORY_CHUNKS]; /* offsets of those that hold nothing that is kept */
    uint32_t spares;
    uint64_t oldest; /* number of the oldest chunk in use */
    uint64_t number; /* of the chunk that is written */
    char *chunk;
    uint64_t used;        /* of it */
    pki_piece *run;       /* records of one thread that may grow; NULL: none */
    uint64_t round_at[2]; /* where the last two rounds began */
    uint64_t running_at;  /* and the step that runs */
    uint64_t rounds, pinned;
    known_thread *threads; /* by index */
    size_t thread_room;
    uint64_t *tracks; /* by id: as chunk of a thread */
    size_t track_room;
    uint32_t index;          /* of the thread whose records come now */
    uint64_t measured_since; /* ns, and one; 0: not measured */
};

uint64_t pki_history_end(const pki_history *h)
{
    return h ? h->number * h->head->chunk_bytes + h->used : 0;
}

/* ---- room ---- */

/* What lies before this position may be overwritten, unless it is pinned. */
static void forget(pki_history *h, uint64_t before)
{
    pki_history_head *head = h->head;
    before = PKI_MIN(before, h->pinned);
    if (before <= head->first)
        return;
    pki_store_release(&head->first, before); /* pairs with the acquires of whoever reads it */
    for (; h->oldest < before / head->chunk_bytes && h->oldest < h->number; h->oldest++)
        h->spare[h->spares++] = head->chunks[h->oldest % PKI_HISTORY_CHUNKS];
}

static void forget_step(pki_history *h)
{
    pki_history_head *head = h->head;
    uint64_t next = head->step_first + 1;
    pki_store_release(&head->step_first, next);
    forget(h, next < head->step_end ? head->steps[next % head->step_room].at : h->running_at);
}

/* The step that runs loses its beginning only if nothing else is left. */
static void free_oldest(pki_history *h)
{
    uint64_t was = h->oldest;
    while (h->oldest == was && h->head->step_first < h->head->step_end)
        forget_step(h);
    if (h->oldest == was)
        forget(h, (was + 1) * h->head->chunk_bytes);
}

/* Offset; 0 if there is none. A full disk is not asked again. */
static uint64_t claim_chunk(pki_history *h)
{
    void *chunk = pki_arena_claim(h->arena, h->head->chunk_bytes);
    if (!chunk) {
        h->chunks_most = h->chunks;
        return 0;
    }
    h->chunks++;
    return pki_arena_offset(h->arena, chunk);
}

static uint64_t spare_chunk(pki_history *h)
{
    uint64_t offset = 0;
    if (h->spares == 0 && h->chunks < h->chunks_most)
        offset = claim_chunk(h);
    if (!offset && h->spares == 0)
        free_oldest(h);
    return offset || h->spares == 0 ? offset : h->spare[--h->spares];
}

static bool next_chunk(pki_history *h)
{
    uint64_t offset = spare_chunk(h);
    if (!offset)
        return false;
    if (h->used < h->head->chunk_bytes)
        *(pki_piece *)(void *)(h->chunk + h->used) = (pki_piece){.kind = PKI_PIECE_END};
    h->number++;
    h->used = 0;
    h->run = NULL;
    h->chunk = pki_arena_at(h->arena, offset);
    h->head->chunks[h->number % PKI_HISTORY_CHUNKS] = offset;
    return true;
}

/* Where so many bytes can be written, which count once `used` says so. NULL, and counted. */
static void *room_for(pki_history *h, size_t bytes)
{
    if (h->used + bytes > h->head->chunk_bytes && !next_chunk(h)) {
        h->head->lost++;
        return NULL;
    }
    return h->chunk + h->used;
}

static void put_piece(pki_history *h, const void *piece, size_t bytes)
{
    memcpy(h->chunk + h->used, piece, bytes);
    h->used += bytes;
    h->run = NULL;
}

/* ---- who the pieces are of ---- */

static void name_thread(pki_history *h)
{
    struct {
        pki_piece piece;
        char name[64];
    } named;
    known_thread *t = h->index < h->thread_room ? &h->threads[h->index] : NULL;
    if (!t || t->chunk == h->number + 1)
        return;
    named.piece = (pki_piece){PKI_PIECE_THREAD, sizeof named, t->tid, h->index};
    memcpy(named.name, t->name, sizeof named.name);
    t->chunk = h->number + 1;
    put_piece(h, &named, sizeof named);
}

static void name_measures(pki_history *h, uint64_t ns, bool on)
{
    struct {
        pki_piece piece;
        uint64_t ns, reserved;
    } mark = {{PKI_PIECE_MEASURES, sizeof mark, on, 0}, ns, 0};
    put_piece(h, &mark, sizeof mark);
}

void pki_history_thread(pki_history *h, const pki_thread *t)
{
    if (!h ||
        !pki_array_fit(&h->threads, &h->thread_room, t->index + (size_t)1, sizeof *h->threads))
        return;
    known_thread *known = &h->threads[t->index];
    h->index = t->index;
    if (known->tid == t->tid && known->version == pki_load(&t->name_version) && known->chunk)
        return;
    pki_registry_lock();
    *known = (known_thread){.tid = t->tid, .version = t->name_version};
    memcpy(known->name, t->name, sizeof known->name);
    pki_registry_unlock();
    known->name[sizeof known->name - 1] = 0;
    h->run = NULL; /* the name stands in front of what has it */
}

/* ---- pieces ---- */

#define NAMES_BYTES 256u /* of what may have to be said of a chunk's first pieces */

static bool begin_run(pki_history *h, uint32_t tid)
{
    if (!room_for(h, NAMES_BYTES + sizeof(pki_piece) + 2 * sizeof(pki_record)))
        return false;
    if (h->used == 0 && h->measured_since)
        name_measures(h, h->measured_since - 1, true);
    name_thread(h);
    h->run = (pki_piece *)(void *)(h->chunk + h->used);
    *h->run = (pki_piece){PKI_PIECE_RECORDS, sizeof(pki_piece), tid, 0};
    h->used += sizeof(pki_piece);
    return true;
}

void pki_history_record(pki_history *h, uint32_t tid, const pki_record *r, const pki_record *more)
{
    if (!h)
        return;
    size_t bytes = pki_record_slots(r->what) * sizeof *r;
    bool goes_on = h->run && h->run->id == tid && h->used + bytes <= h->head->chunk_bytes;
    if (PKI_UNLIKELY(!goes_on) && !begin_run(h, tid))
        return;
    pki_record *to = (pki_record *)(void *)(h->chunk + h->used);
    to[0] = *r;
    if (bytes > sizeof *r)
        to[1] = *more;
    h->used += bytes;
    h->run->bytes += (uint32_t)bytes;
}

void pki_history_regions(pki_history *h, uint32_t tid, const pki_record *r, uint32_t n)
{
    if (!h)
        return;
    while (n > 0) {
        uint64_t room = (h->head->chunk_bytes - h->used) / sizeof *r;
        if (PKI_UNLIKELY(!h->run || h->run->id != tid || room == 0)) {
            uint32_t lost = !begin_run(h, tid); /* which counts it */
            r += lost;
            n -= lost;
            continue;
        }
        uint32_t some = (uint32_t)PKI_MIN(n, room), bytes = some * (uint32_t)sizeof *r;
        memcpy(h->chunk + h->used, r, bytes);
        h->used += bytes;
        h->run->bytes += bytes;
        r += some;
        n -= some;
    }
}

void pki_history_step_ended(pki_history *h, const pki_record *r, const pki_record *more,
                            uint32_t kind)
{
    if (!h)
        return;
    pki_history_head *head = h->head;
    while (head->step_end - head->step_first >= h->steps)
        forget_step(h);
    head->steps[head->step_end % head->step_room] = (pki_history_step){.at = h->running_at,
                                                                       .number = more->start,
                                                                       .start = r->start,
                                                                       .ticks = r->value,
                                                                       .items = more->value,
                                                                       .kind = kind};
    pki_store_release(&head->step_end, head->step_end + 1);
    h->running_at = h->round_at[1];
}

static void put_track(pki_history *h, uint32_t id, const pki_track *track)
{
    char piece[PKI_PIECE_BYTES] __attribute__((aligned(16)));
    if (!pki_array_fit(&h->tracks, &h->track_room, id + (size_t)1, sizeof *h->tracks) ||
        h->tracks[id] == h->number + 1)
        return;
    size_t n = pki_piece_put_track(piece, track);
    ((pki_piece *)(void *)piece)->id = id;
    put_piece(h, piece, n);
    h->tracks[id] = h->number + 1;
}

void pki_history_activity(pki_history *h, const pki_activity *a, const pki_track *track)
{
    char piece[PKI_PIECE_BYTES] __attribute__((aligned(16)));
    if (!h)
        return;
    size_t n = pki_piece_put_activity(piece, a);
    if (!room_for(h, n + NAMES_BYTES + 3 * (size_t)256))
        return;
    if (h->used == 0 && h->measured_since)
        name_measures(h, h->measured_since - 1, true);
    put_track(h, a->track, track);
    ((pki_piece *)(void *)piece)->id = a->track;
    put_piece(h, piece, n);
}

void pki_history_measures(pki_history *h, uint64_t ns, bool on)
{
    if (!h)
        return;
    h->measured_since = on ? ns + 1 : 0;
    if (room_for(h, NAMES_BYTES))
        name_measures(h, ns, on);
}

/* ---- all of it ---- */

void pki_history_round(pki_history *h)
{
    if (!h)
        return;
    h->round_at[1] = h->round_at[0];
    h->round_at[0] = pki_history_end(h);
    h->rounds++;
}

uint64_t pki_history_rounds(const pki_history *h)
{
    return h ? h->rounds : 0;
}

void pki_history_pin(pki_history *h, uint64_t position)
{
    if (h)
        h->pinned = position;
}

bool pki_history_view_now(pki_history *h, pki_history_view *view)
{
    if (!h)
        return false;
    h->run = NULL;
    const pki_spans *spans = &h->arena->spans;
    return pki_history_view_open(view, spans->start, spans->bytes, h->arena->header->history,
                                 pki_history_end(h));
}

static uint64_t chunk_bytes_of(uint64_t bytes)
{
    uint64_t part = bytes / PKI_HISTORY_CHUNKS;
    return PKI_MAX(part & ~(uint64_t)(PKI_PAGE - 1), 2 * (uint64_t)PKI_PIECE_BYTES);
}

/* Two chunks at least, so that one can be given up for the other. */
static bool claim_first(pki_history *h)
{
    uint64_t one = claim_chunk(h), other = claim_chunk(h);
    if (!one || !other)
        return false;
    h->head->chunks[0] = one;
    h->chunk = pki_arena_at(h->arena, one);
    h->spare[h->spares++] = other;
    return true;
}

pki_history *pki_history_create(pki_arena *arena, uint32_t steps, uint64_t bytes)
{
    pki_history *h = calloc(1, sizeof *h);
    size_t room = steps + (size_t)PKI_HISTORY_STEPS_PAST;
    if (!h)
        return NULL;
    h->arena = arena;
    h->steps = steps;
    h->pinned = PKI_HISTORY_FREE;
    h->head = pki_arena_claim(arena, sizeof *h->head + room * sizeof *h->head->steps);
    if (h->head) {
        h->head->chunk_bytes = chunk_bytes_of(bytes);
        h->head->step_room = (uint32_t)room;
        h->chunks_most = (uint32_t)PKI_MIN(bytes / h->head->chunk_bytes, PKI_HISTORY_CHUNKS);
    }
    if (!h->head || !claim_first(h)) {
        pki_history_destroy(h);
        return NULL;
    }
    arena->header->history = pki_arena_offset(arena, h->head);
    return h;
}

void pki_history_destroy(pki_history *h)
{
    if (!h)
        return;
    free(h->threads);
    free(h->tracks);
    free(h);
}

/* ---- what is kept of some steps, as Chrome trace events ---- */

/* A thread that has been named, and how. */
typedef struct name_seen {
    uint32_t tid, hash;
} name_seen;

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
    name_seen *threads;
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
        j->threads[j->thread_count++] = (name_seen){tid, hash};
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

static bool format_track(job *j, const pki_piece *piece)
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

static bool format_piece(job *j, const pki_history_reader *reader, const pki_piece *piece)
{
    switch (piece->kind) {
    case PKI_PIECE_RECORDS:
        return put_records(j, reader, piece);
    case PKI_PIECE_THREAD:
        return put_thread(j, piece);
    case PKI_PIECE_TRACK:
        return format_track(j, piece);
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
        done = format_piece(&j, &reader, piece);
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

static size_t end_spans(pki_open_spans *seen, const pki_chrome *c, char *out, uint32_t tid,
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
        return end_spans(seen, c, out, tid, range, r, more);
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

/* ---- the history of a run that was killed ---- */

bool pki_history_salvage(pki_salvage *s, pki_salvage_sink *sink, void *user)
{
    pki_history_view view;
    pki_history_range all = PKI_HISTORY_ALL;
    if (!pki_history_view_open(&view, s->base, s->bytes, s->header->history, s->commit.history))
        return true;
    return pki_history_format(&view, &all, &s->chrome, sink, user, &s->commit.events);
}
