#include "out/chrome/span.h"

#include "base/text.h"
#include "core/names.h"
#include "out/emit.h"

#define NAME_ROOM (6 * PKI_NAME_BYTES + 1) /* escaped */
#define EXACT ((uint64_t)1 << 53)          /* what every reader's numbers hold */

typedef struct head {
    char phase;
    uint32_t tid, name, serial;
    uint64_t ticks;
} head;

static char *put_name(char *p, const pki_chrome *c, uint32_t id)
{
    pki_chrome_name n = c->names(c->user, id);
    p += pki_json_escape(p, NAME_ROOM, n.name, PKI_MIN(n.length, (uint16_t)PKI_NAME_BYTES));
    const char *colour = pki_chrome_colour(n.kind);
    if (!colour)
        return p;
    return pki_put_text(PKI_PUT(p, "\",\"cname\":\""), colour);
}

static char *put_head(char *p, const pki_chrome *c, const head *h)
{
    p = PKI_PUT(p, ",\n{\"ph\":\"");
    *p++ = h->phase;
    p = put_name(PKI_PUT(p, "\",\"cat\":\"" PKI_CHROME_SPAN "\",\"name\":\""), c, h->name);
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), c->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), h->tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), pki_clock_ns(c->clock, h->ticks));
    return pki_put_u64(PKI_PUT(p, ",\"id\":"), c->id_base + h->serial);
}

/* As text where a double would not hold it. */
static char *put_id(char *p, uint64_t id)
{
    p = PKI_PUT(p, ",\"args\":{\"id\":");
    if (id <= EXACT)
        return pki_put_u64(p, id);
    return PKI_PUT(pki_put_u64(PKI_PUT(p, "\""), id), "\"");
}

static char *put_begin(char *p, const pki_chrome *c, uint32_t tid, const pki_chrome_open *s)
{
    p = put_head(p, c, &(head){'b', tid, s->name, s->serial, s->start});
    return PKI_PUT(put_id(p, s->id), "}}");
}

static char *put_end(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r,
                     const pki_record *more)
{
    head h = {'e', tid, pki_what_id(r->what), (uint32_t)r->extra,
              r->start + pki_not_negative(r->value)};
    return PKI_PUT(put_id(put_head(p, c, &h), more->start), "}}");
}

static char *put_mark(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r)
{
    uint64_t since = pki_clock_span_ns(c->clock, r->start - pki_not_negative(r->value),
                                       pki_not_negative(r->value));
    p = put_head(p, c, &(head){'n', tid, pki_what_id(r->what), (uint32_t)r->extra, r->start});
    return PKI_PUT(pki_put_u64(PKI_PUT(p, ",\"args\":{\"since_ns\":"), since), "}}");
}

size_t pki_chrome_span_begin(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                             const pki_chrome_open *span)
{
    return (size_t)(put_begin(out, c, tid, span) - out);
}

size_t pki_chrome_span_unfinished(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                                  const pki_chrome_open *span, uint64_t ticks)
{
    char *p = put_head(out, c, &(head){'e', tid, span->name, span->serial, ticks});
    return (size_t)(PKI_PUT(put_id(p, span->id), ",\"unfinished\":1}}") - out);
}

size_t pki_chrome_span(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                       const pki_record *r, const pki_record *more)
{
    char *p = out;
    pki_chrome_open span = {r->start, r->value, pki_what_id(r->what), (uint32_t)r->extra};
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        p = put_begin(p, c, tid, &span);
        break;
    case PKI_RECORD_SPAN_MARK:
        p = put_mark(p, c, tid, r);
        break;
    case PKI_RECORD_REQUEST:
        p = put_head(p, c, &(head){'n', tid, span.name, span.serial, r->start});
        p = pki_chrome_put_request(p, r, more);
        break;
    default:
        span.id = more->start;
        if (pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN)
            p = put_begin(p, c, tid, &span);
        p = put_end(p, c, tid, r, more);
        break;
    }
    return (size_t)(p - out);
}
