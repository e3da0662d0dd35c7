#include "recover/rewrite.h"

#include "base/text.h"
#include "out/chrome/chrome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define TAIL PKI_CHROME_TAIL
#define TAIL_BYTES (sizeof TAIL - 1)

static bool trouble(rewrite *r)
{
    return complaint_set(r->why, "%s: %s", r->path, strerror(errno));
}

bool rewrite_open(rewrite *r, const char *path, const char *head, size_t n, complaint *why)
{
    *r = (rewrite){.path = path, .why = why, .file.fd = -1};
    if (snprintf(r->part, sizeof r->part, "%s.part", path) >= (int)sizeof r->part)
        return complaint_set(why, "%s: the name is too long", path);
    r->buffer = malloc(BUFFER_BYTES);
    if (!r->buffer)
        return complaint_set(why, "no memory");
    bool compressed = pki_ends_with(path, ".gz");
    return pki_trace_file_create(&r->file, r->part, compressed, head, n, TAIL, TAIL_BYTES) ||
           trouble(r);
}

static bool flush(rewrite *r)
{
    if (r->used && !pki_trace_file_append(&r->file, r->buffer, r->used, TAIL, TAIL_BYTES))
        return trouble(r);
    r->used = 0;
    return true;
}

bool rewrite_put(rewrite *r, const char *text, size_t n)
{
    while (n > 0) {
        size_t part = BUFFER_BYTES - r->used < n ? BUFFER_BYTES - r->used : n;
        memcpy(r->buffer + r->used, text, part);
        r->used += part;
        text += part;
        n -= part;
        if (r->used == BUFFER_BYTES && !flush(r))
            return false;
    }
    return true;
}

bool rewrite_publish(rewrite *r)
{
    if (!flush(r))
        return false;
    pki_trace_file_close(&r->file);
    free(r->buffer);
    r->buffer = NULL;
    return pki_file_publish(r->part, r->path) || trouble(r);
}

void rewrite_abandon(rewrite *r)
{
    bool created = r->file.fd >= 0;
    pki_trace_file_close(&r->file);
    free(r->buffer);
    if (created)
        unlink(r->part);
}
