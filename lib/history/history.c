#include "history/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "core/registry.h"

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
        const char *text = a->args[i].text;
        flat->args[i].text = put(&w, text, text ? strlen(text) : 0, NAME_MOST);
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
