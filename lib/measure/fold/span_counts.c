/* lib/measure/fold/span_counts.c - pk/span.h and pk/request.h: what has been counted, to the
 * caller.
 */
#include <pk/request.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/inside.h"
#include "measure/fold/fold.h"

pki_span_summary pki_fold_span_summary(const pki_fold *fold)
{
    const pki_span_counter *c = &fold->spans;
    pki_span_tally t;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    uint64_t begun = c->all.begun - c->unbegun + t.begins_dropped;
    uint64_t ended = c->all.ended + t.ends_lost;
    pki_span_summary s = {.begun = begun,
                          .ended = ended,
                          .unfinished = begun - PKI_MIN(begun, ended),
                          .marks = c->all.marks + t.marks_dropped,
                          .dropped = t.begins_dropped + t.marks_dropped + t.ends_dropped,
                          .ended_twice = t.ended_twice + c->open.ended + c->again,
                          .of_earlier = t.of_earlier};
    s.events = s.begun + s.marks + s.ended_twice + s.of_earlier;
    return s;
}

bool pki_fold_next_open_span(const pki_fold *fold, size_t *at, pki_open_span *out)
{
    const pki_open_spans *open = &fold->spans.open;
    while (*at < open->room) {
        const pki_open_span *s = &open->cells[(*at)++];
        if (s->state == PKI_SPAN_OPEN) {
            *out = *s;
            return true;
        }
    }
    return false;
}

size_t pki_fold_open_spans(const pki_fold *fold, pki_open_span *out, size_t most)
{
    const pki_open_spans *open = &fold->spans.open;
    size_t n = 0;
    for (size_t i = 0; i < open->room && n < most; i++)
        if (open->cells[i].state == PKI_SPAN_OPEN)
            out[n++] = open->cells[i];
    return n;
}

bool pki_fold_requests(const pki_fold *fold, pki_request_summary *out)
{
    uint64_t ttft, tpot;
    pki_span_tally t;
    *out = (pki_request_summary){0};
    if (!fold->requests)
        return true;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    pki_request_limits(&ttft, &tpot);
    return pki_requests_fill(fold->requests, ttft, tpot, t.requests_dropped, out);
}

/* ---- public ---- */

/* Fills in `out`, under the fold lock; what it answers is the call's. */
typedef pk_status filler(const pki_fold *fold, uint32_t size, void *out);

static pk_status fill_spans(const pki_fold *fold, uint32_t size, void *out)
{
    pki_span_summary s = pki_fold_span_summary(fold);
    pk_span_counts all = {.size = size,
                          .begun = s.begun,
                          .ended = s.ended,
                          .open = s.unfinished,
                          .dropped = s.dropped,
                          .ended_twice = s.ended_twice,
                          .of_earlier = s.of_earlier};
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status fill_requests(const pki_fold *fold, uint32_t size, void *out)
{
    pki_request_summary s;
    if (!pki_fold_requests(fold, &s))
        return pki_fail(PK_ENOMEM, "no memory for the requests");
    pk_request_counts all = {.size = size,
                             .finished = s.finished,
                             .cancelled = s.cancelled,
                             .failed = s.failed,
                             .good = s.good,
                             .tokens = s.tokens,
                             .preemptions = s.preemptions,
                             .dropped = s.dropped};
    free(s.slowest);
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status answer(filler *fill, uint32_t size, void *out)
{
    int saved = errno;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        pki_fold_all(fold);
    pk_status status = fold ? fill(fold, size, out) : PK_EOFF;
    pki_fold_unlock();
    pki_inside_leave();
    errno = saved;
    return status;
}

pk_status pk_get_span_counts(pk_span_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_span_counts.size has to be sizeof(pk_span_counts)");
    return answer(fill_spans, counts->size, counts);
}

pk_status pk_get_request_counts(pk_request_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_request_counts.size has to be sizeof(pk_request_counts)");
    return answer(fill_requests, counts->size, counts);
}
