/* lib/stats/pool.h - memory for a table's distributions, in 64 KiB spans of a mapping.
 *
 * Nothing is given back by itself: a reset takes all of it again, from the start.
 */
#pragma once

#include "base/spans.h"

#define PKI_POOL_SPAN_BYTES 65536u

/* All zero is an empty one. */
typedef struct pki_pool {
    char *spare; /* memory left in the current span, up to spare_end */
    char *spare_end;
    uint64_t spans;    /* offset of the first span; each starts with the next one's offset */
    uint64_t span_now; /* the one in use */
} pki_pool;

/* Zeroed, by the cache line; NULL without room. */
void *pki_pool_claim(pki_spans *spans, pki_pool *pool, size_t bytes);
void pki_pool_reset(const pki_spans *spans, pki_pool *pool);
