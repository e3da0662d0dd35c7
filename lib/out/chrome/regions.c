/* lib/out/chrome/regions.c - the events of plain regions, many in a row: to the byte those of
 * pki_chrome_event, of which a test sees to it (tests/unit/test_chrome.c). */
#include <string.h>

#include "core/thread.h"
#include "out/chrome/chrome.h"
#include "out/emit.h"

#define STEM_NS UINT64_C(100000000) /* moments share their digits above this for a while */

/* Below STEM_NS: the last five digits of the microseconds, and the three behind the point. */
static inline char *put_rest(char *p, uint32_t ns)
{
    uint32_t us = ns / 1000, low = us % 10000;
    *p = (char)('0' + us / 10000);
    pki_put_pair(p + 1, low / 100);
    pki_put_pair(p + 3, low % 100);
    p[5] = '.';
    return pki_put_three(p + 6, ns % 1000);
}

static PKI_COLD void set_stem(pki_chrome *c, uint64_t ns)
{
    c->stem_ns = ns - ns % STEM_NS;
    c->stem_length = (uint32_t)(pki_put_u64(c->stem, ns / STEM_NS) - c->stem);
}

static inline char *put_moment(char *p, pki_chrome *c, uint64_t ns)
{
    if (PKI_UNLIKELY(ns < STEM_NS))
        return pki_put_us(p, ns);
    if (PKI_UNLIKELY(ns - c->stem_ns >= STEM_NS))
        set_stem(c, ns);
    memcpy(p, c->stem, sizeof c->stem);
    return put_rest(p + c->stem_length, (uint32_t)(ns - c->stem_ns));
}

/* As pki_put_us, which is made for longer ones. */
static inline char *put_short(char *p, uint64_t ns)
{
    if (ns >= 100000)
        return pki_put_us(p, ns);
    uint32_t us = (uint32_t)ns / 1000;
    if (us >= 10)
        p = pki_put_pair(p, us);
    else
        *p++ = (char)('0' + us);
    *p++ = '.';
    return pki_put_three(p, (uint32_t)ns % 1000);
}

static inline char *put_line(char *p, pki_chrome_text *t, uint32_t tid)
{
    if (PKI_UNLIKELY(t->tid != tid || !t->line_length))
        pki_chrome_text_line(t, tid);
    const char *line = t->line, *end = line + t->line_length;
    char *next = p + t->line_length;
    for (; line < end; line += PKI_CHROME_BLOCK, p += PKI_CHROME_BLOCK)
        memcpy(p, line, PKI_CHROME_BLOCK);
    return next;
}

/* The text of a region of which a plain event says all; NULL: there is more to say. */
static inline pki_chrome_text *plain_text(pki_chrome *c, uint64_t what)
{
    unsigned more = pki_what_flags(what) & ~(PKI_FLAG_TOUCHES | PKI_FLAG_LOST);
    if (PKI_UNLIKELY(more || pki_what_ties(what)))
        return NULL;
    uint32_t id = pki_what_id(what);
    pki_chrome_text *t = id < c->text_count ? c->texts[id] : NULL;
    if (PKI_UNLIKELY(!t))
        t = pki_chrome_text_of(c, id);
    return t && !t->counter && !t->args_length ? t : NULL;
}

static inline char *put_plain(char *p, pki_chrome *c, pki_chrome_text *t, uint32_t tid,
                              const pki_clock_stretch *s, const pki_record *r)
{
    uint64_t start = pki_clock_stretch_ns(s, r->start);
    uint64_t duration = pki_clock_stretch_ns(s, r->start + pki_not_negative(r->value)) - start;
    p = put_moment(put_line(p, t, tid), c, start);
    p = PKI_PUT(p, ",\"dur\":");
    if (PKI_LIKELY(!c->coarse && !pki_what_flags(r->what) && duration))
        p = put_short(p, duration);
    else if (PKI_LIKELY(duration))
        p = pki_put_three(put_short(p, duration - 1),
                          pki_chrome_early_rest(pki_what_depth(r->what)));
    else
        p = pki_chrome_put_early(p, 0, pki_what_depth(r->what), 0);
    *p++ = '}';
    return p;
}

static inline bool is_in(const pki_clock_stretch *s, const pki_record *r)
{
    return pki_clock_stretch_has(s, r->start, pki_not_negative(r->value));
}

size_t pki_chrome_regions(pki_chrome *c, char *out, uint32_t tid, const pki_record *r, uint32_t n)
{
    pki_clock_stretch stretch = {0};
    char *p = out;
    for (const pki_record *end = r + n; r < end; r++) {
        if (PKI_UNLIKELY(!is_in(&stretch, r)))
            stretch = pki_clock_stretch_at(c->clock, r->start);
        pki_chrome_text *t = plain_text(c, r->what);
        if (PKI_LIKELY(t && is_in(&stretch, r)))
            p = put_plain(p, c, t, tid, &stretch, r);
        else
            p += pki_chrome_event(c, p, tid, r, r);
    }
    return (size_t)(p - out);
}
