/* lib/out/gz.h - one gzip member that is complete after every append.
 *
 * The compressor's state is copied; the copy compresses the closing brackets and finishes the
 * member, and its output goes behind what the original has put out. The next append continues from
 * the original and overwrites that end. One member only, since several lose data in the viewers.
 * gz_none.c stands in where zlib is not there.
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
