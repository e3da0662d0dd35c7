/* lib/out/gz.h - one gzip member that is complete after every append.
 *
 * What is appended ends at a whole byte (lib/out/deflate.h). Behind it come the closing brackets in
 * a last block of their own, which refers to nothing before it, and the member's checksum; the next
 * append overwrites them. One member only, since several lose data in the viewers. gz_none.c stands
 * in where there is no compressor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct pki_gz pki_gz;

/* Valid until the next call. */
typedef struct pki_gz_output {
    const char *body, *end;
    size_t body_bytes, end_bytes;
} pki_gz_output;

/* Can this build compress? */
bool pki_gz_available(void);

/* NULL and errno. */
pki_gz *pki_gz_create(void);
void pki_gz_destroy(pki_gz *gz);

/* False and errno, nothing changed. The body is not final before pki_gz_commit; pki_gz_undo takes
 * the append back. */
bool pki_gz_append(pki_gz *gz, const char *data, size_t n, const char *tail, size_t tail_bytes,
                   pki_gz_output *out);
void pki_gz_commit(pki_gz *gz);
void pki_gz_undo(pki_gz *gz);
