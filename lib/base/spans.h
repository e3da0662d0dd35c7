/* lib/base/spans.h - a mapping of a file, handed out span by span.
 *
 * Reserved whole, backed piece by piece (base/mem.h): a span is backed before anybody has it. How
 * much has been handed out is counted in the mapping itself, where a reader of the file finds it.
 * What the mapping begins with, and what the spans hold, is its user's business (core/arena.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define PKI_PAGE 4096u

typedef struct pki_spans {
    char *start;
    uint64_t *used; /* bytes handed out, the head's included */
    size_t bytes;
    pki_owned file;
    bool locked; /* the process wants what it uses to stay in memory */
    int refused; /* why there was no room, the last time; 0: there has always been */
} pki_spans;

/* Maps so many bytes of a memory file or a fresh empty file, which is the mapping's from then on,
 * with a backed and zeroed head; `used` lies at this offset of it. False and errno; the file stays
 * the caller's then. */
bool pki_spans_map(pki_spans *spans, const pki_owned *file, size_t bytes, size_t head, size_t used);
void pki_spans_unmap(pki_spans *spans);

/* A page-aligned, zeroed, backed span; NULL if the bound or the file system leaves no room. Any
 * thread, no lock. */
void *pki_spans_claim(pki_spans *spans, size_t bytes);

/* Of a span that nobody uses: gives its memory back, until it is restored, zeroed. False: it stays
 * as it is, backed or not. errno stays as it was. */
bool pki_spans_discard(const pki_spans *spans, const void *span, size_t bytes);
bool pki_spans_restore(const pki_spans *spans, const void *span, size_t bytes);

static inline uint64_t pki_spans_offset(const pki_spans *spans, const void *at)
{
    return (uint64_t)((const char *)at - spans->start);
}

static inline void *pki_spans_at(const pki_spans *spans, uint64_t offset)
{
    return spans->start + offset;
}
