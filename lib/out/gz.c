#include "out/gz.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "out/deflate.h"

/* ---- a stream of deflate's blocks (RFC 1951), without a frame ---- */

static pki_deflate *pki_deflate_create(void)
{
    const pki_deflate_kind *kind = pki_deflate_isal();
    kind = kind ? kind : &pki_deflate_zlib;
    pki_deflate *stream = kind->create();
    if (stream)
        stream->kind = kind;
    return stream;
}

/* NULL without memory. */
static void pki_deflate_destroy(pki_deflate *stream)
{
    if (stream)
        stream->kind->destroy(stream);
}

/* All of the data behind what is in `out`, up to a whole byte: what comes next may stand behind it.
 * False without memory, after which only pki_deflate_restart may follow. */
static bool pki_deflate_run(pki_deflate *stream, pki_deflated *out, const char *data, size_t n)
{
    return stream->kind->run(stream, out, data, n);
}

/* What is compressed from here on refers to nothing that came before. */
static void pki_deflate_restart(pki_deflate *stream)
{
    stream->kind->restart(stream);
}

/* gzip's checksum of so many bytes more. */
static uint32_t pki_deflate_checksum(pki_deflate *stream, uint32_t sum, const char *data, size_t n)
{
    return stream->kind->checksum(sum, data, n);
}

/* ---- one gzip member that is complete after every append ---- */

/* RFC 1952: no name, no time, of whatever system. */
static const unsigned char header[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};

#define STORED_MOST 65535u      /* bytes of a block as they are */
#define PLAIN_END 512u          /* an end that is shorter is not worth a compressor */
#define PIECE ((size_t)1 << 30) /* what both compressors take at a time */

/* What has been appended, behind which the end is. */
typedef struct position {
    uint32_t sum, bytes; /* of the content, as the member's end says them */
    bool begun;          /* the header is in the file */
} position;

struct pki_gz {
    pki_deflate *stream;
    position kept, hand; /* before and behind the append in hand */
    bool in_hand;
    pki_deflated body, end;
};

bool pki_gz_available(void)
{
    return true;
}

pki_gz *pki_gz_create(void)
{
    pki_gz *gz = calloc(1, sizeof *gz);
    if (gz && (gz->stream = pki_deflate_create()))
        return gz;
    free(gz);
    errno = ENOMEM;
    return NULL;
}

void pki_gz_destroy(pki_gz *gz)
{
    if (!gz)
        return;
    pki_deflate_destroy(gz->stream);
    free(gz->body.bytes);
    free(gz->end.bytes);
    free(gz);
}

static bool put(pki_deflated *out, const void *bytes, size_t n)
{
    if (!pki_deflated_fit(out, n))
        return false;
    memcpy(out->bytes + out->used, bytes, n);
    out->used += n;
    return true;
}

static bool put_number(pki_deflated *out, uint32_t value, size_t bytes)
{
    unsigned char text[4];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(value >> 8 * i);
    return put(out, text, bytes);
}

static void count(pki_gz *gz, position *at, const char *data, size_t n)
{
    at->sum = pki_deflate_checksum(gz->stream, at->sum, data, n);
    at->bytes += (uint32_t)n;
}

static bool put_compressed(pki_deflate *stream, pki_deflated *out, const char *data, size_t n)
{
    bool done = true;
    for (size_t piece; done && n > 0; data += piece, n -= piece) {
        piece = PKI_MIN(n, PIECE);
        done = pki_deflate_run(stream, out, data, piece);
    }
    return done;
}

/* A block without compression, the last one of the member. */
static bool put_stored(pki_deflated *out, const char *data, size_t n)
{
    uint32_t length = (uint32_t)n;
    return put_number(out, 1, 1) && put_number(out, length, 2) &&
           put_number(out, ~length & STORED_MOST, 2) && put(out, data, n);
}

/* By a stream of its own, so that the next append goes on as if this one had not been. */
static bool put_compressed_apart(pki_deflated *out, const char *data, size_t n)
{
    pki_deflate *stream = pki_deflate_create();
    bool done = stream && put_compressed(stream, out, data, n) && put_stored(out, "", 0);
    pki_deflate_destroy(stream);
    return done;
}

static bool put_end(pki_gz *gz, const char *tail, size_t n)
{
    position at = gz->hand;
    bool done =
        n < PLAIN_END ? put_stored(&gz->end, tail, n) : put_compressed_apart(&gz->end, tail, n);
    count(gz, &at, tail, n);
    return done && put_number(&gz->end, at.sum, 4) && put_number(&gz->end, at.bytes, 4);
}

static bool put_body(pki_gz *gz, const char *data, size_t n)
{
    if (!gz->hand.begun && !put(&gz->body, header, sizeof header))
        return false;
    gz->hand.begun = true;
    count(gz, &gz->hand, data, n);
    return put_compressed(gz->stream, &gz->body, data, n);
}

bool pki_gz_append(pki_gz *gz, const char *data, size_t n, const char *tail, size_t tail_bytes,
                   pki_gz_output *out)
{
    pki_gz_undo(gz);
    gz->body.used = gz->end.used = 0;
    gz->hand = gz->kept;
    gz->in_hand = n > 0;
    if (!put_body(gz, data, n) || !put_end(gz, tail, tail_bytes)) {
        pki_gz_undo(gz);
        errno = ENOMEM;
        return false;
    }
    *out = (pki_gz_output){gz->body.bytes, gz->end.bytes, gz->body.used, gz->end.used};
    return true;
}

void pki_gz_commit(pki_gz *gz)
{
    gz->kept = gz->hand;
    gz->in_hand = false;
}

/* What the stream remembers is not in the file. */
void pki_gz_undo(pki_gz *gz)
{
    if (gz->in_hand)
        pki_deflate_restart(gz->stream);
    gz->hand = gz->kept;
    gz->in_hand = false;
}
