/* lib/out/deflate.h - a stream of deflate's blocks (RFC 1951), without a frame.
 *
 * Intel's ISA-L takes a third of zlib's time for as small a file. It is opened while the program
 * runs, as backends open their libraries, so nobody needs it; where it is not there, zlib it is.
 * A stream is one of the two from its beginning to its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/compiler.h"

typedef struct pki_deflated {
    char *bytes;
    size_t used, room;
} pki_deflated;

typedef struct pki_deflate pki_deflate;

/* What the functions below are made of. */
typedef struct pki_deflate_kind {
    pki_deflate *(*create)(void);
    void (*destroy)(pki_deflate *stream);
    bool (*run)(pki_deflate *stream, pki_deflated *out, const char *data, size_t n);
    void (*restart)(pki_deflate *stream);
    uint32_t (*checksum)(uint32_t sum, const char *data, size_t n);
} pki_deflate_kind;

struct pki_deflate {
    const pki_deflate_kind *kind; /* the first member of each kind's own structure */
};

const pki_deflate_kind *pki_deflate_isal(void); /* NULL: it is not there */
extern const pki_deflate_kind pki_deflate_zlib;

/* Room for so many bytes more. False without memory: nothing has changed. */
static inline bool pki_deflated_fit(pki_deflated *out, size_t more)
{
    if (out->room - out->used >= more)
        return true;
    size_t room = PKI_MAX(2 * out->room, PKI_MAX(out->used + more, (size_t)65536));
    char *bytes = realloc(out->bytes, room);
    if (!bytes)
        return false;
    out->bytes = bytes;
    out->room = room;
    return true;
}
