#include "history/spans.h"

#include "base/compiler.h"
#include "out/chrome/span.h"

static pki_open_span span_of(const pki_record *r, uint64_t id, pki_open_state state)
{
    return (pki_open_span){r->start,        id, (uint32_t)r->extra, pki_what_id(r->what),
                           (uint32_t)state, 0};
}

static size_t begin(pki_open_spans *seen, const pki_chrome *c, char *out, uint32_t tid,
                    const pki_history_range *range, const pki_record *r)
{
    pki_open_span *before = pki_open_spans_find(seen, (uint32_t)r->extra);
    if (before)
        pki_open_spans_remove(seen, before); /* its end has been seen */
    if (before || r->start > range->until)
        return 0;
    bool now = r->start >= range->from;
    pki_open_span span = span_of(r, r->value, now ? PKI_SPAN_SEEN : PKI_SPAN_OPEN);
    span.tid = tid;
    pki_open_spans_add(seen, &span);
    return now ? pki_chrome_span(c, out, tid, r, r) : 0;
}

static size_t end(pki_open_spans *seen, const pki_chrome *c, char *out, uint32_t tid,
                  const pki_history_range *range, const pki_record *r, const pki_record *more)
{
    pki_open_span *before = pki_open_spans_find(seen, (uint32_t)r->extra);
    bool written = before && before->state == PKI_SPAN_SEEN;
    pki_record whole = *r;
    if (before && before->state != PKI_SPAN_ENDED)
        pki_open_spans_remove(seen, before);
    if (!before && !(pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN)) {
        pki_open_span ended = span_of(r, more->start, PKI_SPAN_ENDED);
        pki_open_spans_add(seen, &ended);
    }
    if (r->start > range->until || pki_record_ticks(r) < range->from)
        return 0;
    whole.what |= written ? 0 : PKI_FLAGS(PKI_FLAG_NO_BEGIN);
    return pki_chrome_span(c, out, tid, &whole, more);
}

size_t pki_history_span(pki_open_spans *seen, const pki_chrome *c, char out[PKI_EVENT_BYTES],
                        uint32_t tid, const pki_history_range *range, const pki_record *r,
                        const pki_record *more)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        return begin(seen, c, out, tid, range, r);
    case PKI_RECORD_SPAN_END:
        return end(seen, c, out, tid, range, r, more);
    default:
        return r->start < range->from || r->start > range->until
                   ? 0
                   : pki_chrome_span(c, out, tid, r, more);
    }
}

/* The threads of those that began before the history may have no name in it. */
static bool put_open(const pki_chrome *c, const pki_open_span *s, uint64_t ticks,
                     pki_history_sink *sink, void *user)
{
    char event[PKI_EVENT_BYTES];
    const pki_chrome_open open = {s->start, s->id, s->name, s->serial};
    bool begun = s->state == PKI_SPAN_SEEN;
    uint32_t tid = begun ? s->tid : c->pid;
    if (!begun && !sink(user, event, pki_chrome_span_begin(c, event, tid, &open)))
        return false;
    return sink(user, event,
                pki_chrome_span_unfinished(c, event, tid, &open, PKI_MAX(ticks, s->start)));
}

bool pki_history_open_spans(const pki_open_spans *seen, const pki_chrome *c,
                            const pki_history_range *range, uint64_t ticks, pki_history_sink *sink,
                            void *user)
{
    bool done = true;
    for (size_t i = 0; done && i < seen->room; i++)
        if (seen->cells[i].state == PKI_SPAN_OPEN || seen->cells[i].state == PKI_SPAN_SEEN)
            done = put_open(c, &seen->cells[i], ticks, sink, user);
    for (size_t i = 0; done && i < range->open_count; i++) {
        const pki_open_span *s = &range->open[i];
        if (s->start <= range->until && !pki_open_spans_find(seen, s->serial))
            done = put_open(c, s, ticks, sink, user);
    }
    return done;
}
