#include "stats/pool.h"

#include <string.h>

#include "base/compiler.h"

typedef struct span {
    uint64_t next; /* offset, 0 for none */
    uint64_t bytes;
    uint64_t pad[6];
} span;

static size_t lines_up(size_t bytes)
{
    return (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1);
}

static void enter_span(const pki_spans *spans, pki_pool *pool, uint64_t offset)
{
    span *s = pki_spans_at(spans, offset);
    pool->span_now = offset;
    pool->spare = (char *)(s + 1);
    pool->spare_end = (char *)s + s->bytes;
}

static bool append_span(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    size_t whole = PKI_MAX(sizeof(span) + bytes, PKI_POOL_SPAN_BYTES);
    span *s = pki_spans_claim(spans, whole);
    if (!s)
        return false;
    s->bytes = whole;
    uint64_t offset = pki_spans_offset(spans, s);
    if (pool->span_now)
        ((span *)pki_spans_at(spans, pool->span_now))->next = offset;
    else
        pool->spans = offset;
    enter_span(spans, pool, offset);
    return true;
}

/* On to the next span: one left from before a reset, or a new one. */
static bool next_span(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    uint64_t next = pool->span_now ? ((span *)pki_spans_at(spans, pool->span_now))->next : 0;
    if (!next)
        return append_span(spans, pool, bytes);
    enter_span(spans, pool, next);
    return true;
}

void *pki_pool_claim(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    bytes = lines_up(bytes);
    while ((size_t)(pool->spare_end - pool->spare) < bytes)
        if (!next_span(spans, pool, bytes))
            return NULL;
    void *at = pool->spare;
    pool->spare += bytes;
    return memset(at, 0, bytes);
}

void pki_pool_reset(const pki_spans *spans, pki_pool *pool)
{
    if (pool->spans)
        enter_span(spans, pool, pool->spans);
}
