/* lib/out/deflate_zlib.c - by zlib. */
#include "out/deflate.h"

#include <stdlib.h>
#include <zlib.h>

#define WINDOW (-15) /* zlib's way of asking for no frame */
#define LEVEL 3 /* a trace shrinks to a tenth at any level; this one costs half of the default */

typedef struct zlib_stream {
    pki_deflate deflate;
    z_stream stream;
} zlib_stream;

static z_stream *of(pki_deflate *s)
{
    return &((zlib_stream *)s)->stream;
}

static pki_deflate *create(void)
{
    zlib_stream *s = calloc(1, sizeof *s);
    if (s && deflateInit2(&s->stream, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return &s->deflate;
    free(s);
    return NULL;
}

static void destroy(pki_deflate *s)
{
    deflateEnd(of(s));
    free(s);
}

static void restart(pki_deflate *s)
{
    deflateReset(of(s));
}

static bool run(pki_deflate *s, pki_deflated *out, const char *data, size_t n)
{
    z_stream *z = of(s);
    z->next_in = (Bytef *)(uintptr_t)data;
    z->avail_in = (uInt)n;
    do {
        if (!pki_deflated_fit(out, 4096))
            return false;
        size_t room = out->room - out->used;
        z->next_out = (Bytef *)out->bytes + out->used;
        z->avail_out = (uInt)room;
        deflate(z, Z_SYNC_FLUSH);
        out->used += room - z->avail_out;
    } while (z->avail_out == 0 || z->avail_in > 0);
    return true;
}

static uint32_t checksum(uint32_t sum, const char *data, size_t n)
{
    return (uint32_t)crc32(sum, (const Bytef *)data, (uInt)n);
}

const pki_deflate_kind pki_deflate_zlib = {create, destroy, run, restart, checksum};
