/* tools/recover/recover.h - what pk recover does */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "complaint.h"
#include "out/file.h"

/* ---- a trace written anew: under another name until it is whole ---- */

#define REWRITE_BUFFER ((size_t)1 << 18)

typedef struct rewrite {
    pki_trace_file file;
    const char *path;
    char part[PATH_MAX];
    char *buffer;
    size_t used;
    uint64_t asked; /* bytes that the system has been asked to write, behind what is kept */
    complaint *why;
} rewrite;

/* With this text at its start. All answer false, and why, after which rewrite_abandon is all that
 * is left to do. */
bool rewrite_open(rewrite *r, const char *path, const char *head, size_t n, complaint *why);
bool rewrite_put_more(rewrite *r, const char *text, size_t n);

/* Events are put in pieces of a few bytes. */
static inline bool rewrite_put(rewrite *r, const char *text, size_t n)
{
    if (n >= REWRITE_BUFFER - r->used)
        return rewrite_put_more(r, text, n);
    memcpy(r->buffer + r->used, text, n);
    r->used += n;
    return true;
}

/* Room for n bytes, to be written at once and committed by where they end. NULL: not in one piece.
 */
static inline char *rewrite_claim(rewrite *r, size_t n)
{
    return n < REWRITE_BUFFER - r->used ? r->buffer + r->used : NULL;
}

static inline void rewrite_commit(rewrite *r, const char *end)
{
    r->used = (size_t)(end - r->buffer);
}

/* Closes the document and gives it its name. */
bool rewrite_publish(rewrite *r);
void rewrite_abandon(rewrite *r);

/* ---- what pk recover does, apart from its words ---- */

typedef struct recovery {
    char out[PATH_MAX];
    bool was_arena;
    uint64_t events;      /* in the trace; for a cut trace: lines */
    uint64_t from_memory; /* of them, from the arena */
    uint64_t cut_bytes;
} recovery;

typedef struct recovery_wish {
    const char *out;   /* NULL: the arena's own trace */
    const char *trace; /* NULL: beside the arena, or where the run had it */
} recovery_wish;

/* False, and why; nothing has been written over then. */
bool recover_file(const char *path, const recovery_wish *wish, recovery *done, complaint *why);
