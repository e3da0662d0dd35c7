/* lib/history/pieces.c - tracks and activities as bytes that mean the same wherever they are read.
 *
 * A piece is: its head; the structure with its pointers set to zero; the arguments; the texts, each
 * with a NUL behind it. What is longer than its share is cut, as the trace would cut it, too.
 */
#include <string.h>

#include "base/compiler.h"
#include "history/layout.h"

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

size_t pki_piece_put_track(char out[PKI_PIECE_BYTES], const pki_track *t)
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
