#include "base/spans.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/mem.h"

static uint64_t pages_up(uint64_t bytes)
{
    return (bytes + PKI_PAGE - 1) & ~(uint64_t)(PKI_PAGE - 1);
}

bool pki_spans_map(pki_spans *spans, const pki_owned *file, size_t bytes, size_t head, size_t used)
{
    bool locked;
    bytes = (size_t)pages_up(bytes);
    char *start = pki_mem_map(file, bytes, &locked);
    if (!start || !pki_mem_back(file, start, 0, pages_up(head), locked)) {
        pki_mem_unmap(start, bytes);
        return false;
    }
    *spans = (pki_spans){.start = start,
                         .used = (uint64_t *)(void *)(start + used),
                         .bytes = bytes,
                         .file = *file,
                         .locked = locked};
    *spans->used = pages_up(head);
    return true;
}

void pki_spans_unmap(pki_spans *spans)
{
    pki_mem_unmap(spans->start, spans->bytes);
    pki_own_close(&spans->file);
}

static void *refuse(pki_spans *spans, int error)
{
    pki_store(&spans->refused, error);
    return NULL;
}

void *pki_spans_claim(pki_spans *spans, size_t bytes)
{
    uint64_t at = pki_load(spans->used);
    bytes = (size_t)pages_up(bytes);
    do {
        if (bytes > spans->bytes - at)
            return refuse(spans, ENOMEM);
    } while (!__atomic_compare_exchange_n(spans->used, &at, at + bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    int saved = errno; /* whoever records may be the one who claims */
    if (pki_mem_back(&spans->file, spans->start, at, bytes, spans->locked))
        return pki_spans_at(spans, at);
    refuse(spans, errno);
    errno = saved;
    uint64_t end = at + bytes; /* a full disk is no reason to use up the bound */
    __atomic_compare_exchange_n(spans->used, &end, at, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return NULL;
}

bool pki_spans_discard(const pki_spans *spans, const void *span, size_t bytes)
{
    int saved = errno;
    bool done =
        pki_mem_discard(&spans->file, pki_spans_offset(spans, span), (size_t)pages_up(bytes));
    errno = saved;
    return done;
}

bool pki_spans_restore(const pki_spans *spans, const void *span, size_t bytes)
{
    int saved = errno;
    bool done = pki_mem_back(&spans->file, spans->start, pki_spans_offset(spans, span),
                             (size_t)pages_up(bytes), spans->locked);
    errno = saved;
    return done;
}
