#include "measure/fold/spans.h"

#include <stdlib.h>

static uint64_t ns_of(const pki_fold *fold, uint64_t start, uint64_t ticks)
{
    return pki_clock_span_ns(&fold->registry->arena->header->clock, start, pki_not_negative(ticks));
}

static pki_open_span span_of(const pki_record *r, uint64_t id)
{
    return (pki_open_span){.start = r->start,
                           .id = id,
                           .serial = (uint32_t)r->extra,
                           .name = pki_what_id(r->what),
                           .state = PKI_SPAN_OPEN};
}

/* If its end has come before it, that is one of the region's calls. */
static uint64_t begin(pki_fold *fold, uint32_t tid, const pki_record *r)
{
    pki_open_span span = span_of(r, r->value);
    span.tid = tid;
    return pki_spans_begin(&fold->spans, &span);
}

/* The time before it, which ends where it stands. */
static uint64_t mark(pki_fold *fold, const pki_record *r)
{
    pki_spans_mark(&fold->spans, pki_what_id(r->what));
    return ns_of(fold, r->start - r->value, r->value);
}

static uint64_t end(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    pki_open_span span = span_of(r, more->start);
    uint64_t ns = ns_of(fold, r->start, r->value);
    bool unbegun = pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN;
    return pki_spans_end(&fold->spans, &span, ns, unbegun) ? ns : PKI_NO_CALL;
}

uint64_t pki_fold_span(pki_fold *fold, uint32_t tid, const pki_record *r, const pki_record *more)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        return begin(fold, tid, r);
    case PKI_RECORD_SPAN_MARK:
        return mark(fold, r);
    default:
        return end(fold, r, more);
    }
}

void pki_fold_request(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    pki_request_done done = pki_request_unpack(r, more);
    uint64_t end = pki_clock_ns(&fold->registry->arena->header->clock, r->start);
    if (!fold->requests)
        fold->requests = calloc(1, sizeof *fold->requests);
    if (fold->requests)
        pki_requests_add(fold->requests, &done, pki_what_id(r->what), (uint32_t)r->extra, end);
}
