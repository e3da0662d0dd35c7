/* tools/recover/rewrite.h - a trace written anew: under another name until it is whole. */
#pragma once

#include "complaint.h"
#include "out/file.h"

#include <limits.h>
#include <string.h>

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
