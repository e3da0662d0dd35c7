#include "measure/fold/spans.h"

#include <pk/span.h>

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/inside.h"

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

static void count(pki_fold *fold, uint32_t name, uint64_t ns)
{
    pki_fold_range(fold, name, ns, 0, 0);
}

static void begin(pki_fold *fold, const pki_record *r)
{
    pki_open_span span = span_of(r, r->value);
    uint64_t ns = pki_spans_begin(&fold->spans, &span);
    if (ns != UINT64_MAX)
        count(fold, span.name, ns);
}

/* The time before it, which ends where it stands. */
static void mark(pki_fold *fold, const pki_record *r)
{
    pki_spans_mark(&fold->spans, pki_what_id(r->what));
    count(fold, pki_what_id(r->what), ns_of(fold, r->start - r->value, r->value));
}

static void end(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    pki_open_span span = span_of(r, more->start);
    uint64_t ns = ns_of(fold, r->start, r->value);
    if (pki_spans_end(&fold->spans, &span, ns, pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN))
        count(fold, span.name, ns);
}

void pki_fold_span(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        begin(fold, r);
        break;
    case PKI_RECORD_SPAN_MARK:
        mark(fold, r);
        break;
    default:
        end(fold, r, more);
        break;
    }
}

pki_span_summary pki_fold_span_summary(const pki_fold *fold)
{
    const pki_span_counter *c = &fold->spans;
    pki_span_tally t;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    uint64_t begun = c->all.begun - c->unbegun + t.begins_dropped;
    uint64_t ended = c->all.ended + t.ends_dropped;
    pki_span_summary s = {.begun = begun,
                          .ended = ended,
                          .unfinished = begun - PKI_MIN(begun, ended),
                          .marks = c->all.marks + t.marks_dropped,
                          .dropped = t.begins_dropped + t.marks_dropped + t.ends_dropped,
                          .ended_twice = t.ended_twice + c->open.ended,
                          .of_earlier = t.of_earlier};
    s.events = s.begun + s.marks + s.ended_twice + s.of_earlier;
    return s;
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

static pk_status answer(pk_span_counts *counts)
{
    pki_fold *fold = pki_fold_now();
    if (!fold)
        return PK_EOFF;
    pki_fold_all(fold);
    pki_span_summary s = pki_fold_span_summary(fold);
    pk_span_counts all = {.size = counts->size,
                          .begun = s.begun,
                          .ended = s.ended,
                          .open = s.unfinished,
                          .dropped = s.dropped,
                          .ended_twice = s.ended_twice,
                          .of_earlier = s.of_earlier};
    memcpy(counts, &all, counts->size);
    return PK_OK;
}

pk_status pk_get_span_counts(pk_span_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_span_counts.size has to be sizeof(pk_span_counts)");
    int saved = errno;
    if (!pki_go_inside())
        return pki_fail_inside();
    pki_fold_lock();
    pk_status status = answer(counts);
    pki_fold_unlock();
    pki_go_outside();
    errno = saved;
    return status;
}
