/* lib/out/deflate_zlib.c - by zlib. */
#include "out/deflate.h"

#include <stdlib.h>
#include <zlib.h>

#define WINDOW (-15) /* zlib's way of asking for no frame */
#define LEVEL 3 /* a trace shrinks to a tenth at any level; this one costs half of the default */

struct pki_deflate {
    z_stream stream;
};

pki_deflate *pki_deflate_create(void)
{
    pki_deflate *s = calloc(1, sizeof *s);
    if (s && deflateInit2(&s->stream, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return s;
    free(s);
    return NULL;
}

void pki_deflate_destroy(pki_deflate *s)
{
    if (s)
        deflateEnd(&s->stream);
    free(s);
}

void pki_deflate_restart(pki_deflate *s)
{
    deflateReset(&s->stream);
}

bool pki_deflate_run(pki_deflate *s, pki_deflated *out, const char *data, size_t n)
{
    z_stream *z = &s->stream;
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

uint32_t pki_deflate_checksum(uint32_t sum, const char *data, size_t n)
{
    return (uint32_t)crc32(sum, (const Bytef *)data, (uInt)n);
}
