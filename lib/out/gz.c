#include "out/gz.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's way of asking for gzip's frame */
#define LEVEL 3 /* a trace shrinks to a tenth at any level; this one costs half of the default */

typedef struct buffer {
    char *bytes;
    size_t room, used;
} buffer;

struct pki_gz {
    z_stream streams[2]; /* [now] before the append in hand, the other one after it */
    int now;
    bool in_hand;
    buffer body, end;
};

static z_stream *current_stream(pki_gz *gz)
{
    return &gz->streams[gz->now];
}

static z_stream *trial(pki_gz *gz)
{
    return &gz->streams[!gz->now];
}

bool pki_gz_available(void)
{
    return true;
}

pki_gz *pki_gz_create(void)
{
    pki_gz *gz = calloc(1, sizeof *gz);
    if (gz && deflateInit2(&gz->streams[0], LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                           Z_DEFAULT_STRATEGY) == Z_OK)
        return gz;
    free(gz);
    errno = ENOMEM;
    return NULL;
}

void pki_gz_destroy(pki_gz *gz)
{
    if (!gz)
        return;
    pki_gz_undo(gz);
    deflateEnd(current_stream(gz));
    free(gz->body.bytes);
    free(gz->end.bytes);
    free(gz);
}

static bool make_room(buffer *b)
{
    if (b->room - b->used >= 4096)
        return true;
    size_t room = b->room ? 2 * b->room : 65536;
    char *bytes = realloc(b->bytes, room);
    if (!bytes)
        return false;
    b->bytes = bytes;
    b->room = room;
    return true;
}

static bool run(z_stream *z, buffer *out, const char *data, size_t n, int flush)
{
    z->next_in = (Bytef *)(uintptr_t)data;
    z->avail_in = (uInt)n;
    do {
        if (!make_room(out))
            return false;
        size_t room = out->room - out->used;
        z->next_out = (Bytef *)out->bytes + out->used;
        z->avail_out = (uInt)room;
        deflate(z, flush);
        out->used += room - z->avail_out;
    } while (z->avail_out == 0 || z->avail_in > 0);
    return true;
}

static bool finish_copy(pki_gz *gz, const char *tail, size_t n)
{
    z_stream last;
    if (deflateCopy(&last, trial(gz)) != Z_OK)
        return false;
    bool done = run(&last, &gz->end, tail, n, Z_FINISH);
    deflateEnd(&last);
    return done;
}

bool pki_gz_append(pki_gz *gz, const char *data, size_t n, const char *tail, size_t tail_bytes,
                   pki_gz_output *out)
{
    pki_gz_undo(gz);
    gz->body.used = gz->end.used = 0;
    if (deflateCopy(trial(gz), current_stream(gz)) != Z_OK) {
        errno = ENOMEM;
        return false;
    }
    gz->in_hand = true;
    /* All of it goes out, so that the end, which is written each time, has little to repeat. */
    if ((n && !run(trial(gz), &gz->body, data, n, Z_SYNC_FLUSH)) ||
        !finish_copy(gz, tail, tail_bytes)) {
        pki_gz_undo(gz);
        errno = ENOMEM;
        return false;
    }
    *out = (pki_gz_output){gz->body.bytes, gz->end.bytes, gz->body.used, gz->end.used};
    return true;
}

void pki_gz_commit(pki_gz *gz)
{
    if (!gz->in_hand)
        return;
    deflateEnd(current_stream(gz));
    gz->now = !gz->now;
    gz->in_hand = false;
}

void pki_gz_undo(pki_gz *gz)
{
    if (gz->in_hand)
        deflateEnd(trial(gz));
    gz->in_hand = false;
}
