#include "out/chrome/chrome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/model/operation.h"
#include "core/names.h"
#include "core/thread.h"
#include "out/chrome/operation.h"
#include "out/chrome/span.h"
#include "out/chrome/text.h"
#include "out/emit.h"

/* Steps have a track of their own: a region may begin in one step and end in the next, and slices
 * of one track must nest. */
#define STEP_TRACK "4294967294"

#define FLAGS_BYTES 64 /* what may follow an operation's arguments */

#define COARSE_NS 2.0 /* a clock with such steps gives different moments the same tick */

typedef pki_chrome_text text;

void pki_chrome_init(pki_chrome *c, const pki_clock_map *clock, uint32_t pid,
                     pki_chrome_names *names, void *user)
{
    *c = (pki_chrome){.clock = clock, .pid = pid, .names = names, .user = user};
    c->coarse = (double)clock->step_ticks * pki_clock_unit_ns(clock) >= COARSE_NS;
}

void pki_chrome_set_rank(pki_chrome *c, int32_t rank, int32_t world_size)
{
    size_t n = 0;
    c->rank = rank;
    c->world_size = world_size;
    c->id_base = (uint64_t)PKI_MAX(rank, 0) << 32;
    for (int32_t i = 0; world_size > 1 && i < world_size && n < sizeof c->ranks; i++)
        n += (size_t)snprintf(c->ranks + n, sizeof c->ranks - n, "%s%d%s", i ? ", " : "[", i,
                              i == world_size - 1 ? "]" : "");
    c->ranks_length = n < sizeof c->ranks ? n : 0;
}

void pki_chrome_finish(pki_chrome *c)
{
    for (size_t i = 0; i < c->text_count; i++)
        free(c->texts[i]);
    free(c->texts);
    *c = (pki_chrome){0};
}

/* In what a killed run has left, an id may be anybody's. */
static const text *region_text(pki_chrome *c, uint32_t id)
{
    const text *t = pki_chrome_text_of(c, id);
    return t && t->counter ? NULL : t;
}

static char *put_name(char *p, pki_chrome *c, const text *t, uint32_t tid)
{
    if (PKI_LIKELY(t))
        return pki_put_u64(pki_put(p, t->before, t->before_length), tid);
    p = PKI_PUT(p, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"(no memory)\",\"pid\":");
    p = pki_put_u64(p, c->pid);
    return pki_put_u64(PKI_PUT(p, ",\"tid\":"), tid);
}

typedef struct times {
    uint64_t start, duration, moved;
    bool lacks; /* the duration lacks what the start was moved by */
} times;

/* Both ends are converted, not the duration, so that what nested in ticks nests in ns. Slices that
 * begin together with the one around them are moved in by a nanosecond per tie, since viewers would
 * take the one that comes first in the file for the outer one, and inner ones come first. The
 * nanoseconds by which a slice was moved are shown as picoseconds of its start; where its duration
 * lacks as many it ends LACKS_PS early. */
static times times_of(const pki_chrome *c, const pki_record *r)
{
    uint64_t start = pki_clock_ns(c->clock, r->start), ties = pki_what_ties(r->what);
    uint64_t end = pki_clock_ns(c->clock, r->start + pki_not_negative(r->value));
    uint64_t duration = pki_saturating_sub(end, start);
    return (times){start + ties, duration - PKI_MIN(ties, duration), ties, ties && duration};
}

/* Readers find a slice's end by adding, most of them in floating point. Where that should meet the
 * next slice's beginning or the end of the one around, it may come out beyond, and speedscope then
 * nests all that follows in the wrong place. So slices that touch others end early, inner ones
 * earlier, and by less than what readers who round to nanoseconds see. For the same reason none
 * lasts no time at all: speedscope would end it before it begins, if another one begins at that
 * moment. All other durations have the three digits of their nanoseconds. */
#define EARLY_PS 200
#define EARLY_PER_LEVEL_PS 4
#define SHORTEST_PS 300
#define LACKS_PS 2

uint32_t pki_chrome_early_rest(unsigned depth)
{
    return 1000 - EARLY_PS - EARLY_PER_LEVEL_PS * PKI_MIN(depth, (unsigned)PKI_DEPTH_MAX);
}

char *pki_chrome_put_early(char *p, uint64_t duration, unsigned depth, uint32_t lacks_ps)
{
    uint32_t rest = pki_chrome_early_rest(depth) - lacks_ps;
    if (PKI_UNLIKELY(duration == 0))
        return pki_put_three(PKI_PUT(p, "0.000"), rest - (1000 - EARLY_PS - SHORTEST_PS));
    return pki_put_three(pki_put_us(p, duration - 1), rest);
}

static char *put_duration(char *p, times t, unsigned depth, bool touches)
{
    if (PKI_LIKELY(!touches && t.duration > 0))
        return pki_put_us(p, t.duration);
    return pki_chrome_put_early(p, t.duration, depth, t.lacks ? LACKS_PS : 0);
}

static char *put_times(char *p, times t, unsigned depth, bool touches)
{
    p = PKI_PUT(p, ",\"ts\":");
    p = pki_put_us(p, t.start);
    if (PKI_UNLIKELY(t.moved))
        p = pki_put_three(p, (uint32_t)t.moved);
    p = PKI_PUT(p, ",\"dur\":");
    return put_duration(p, t, depth, touches);
}

static char *put_payload(char *p, uint64_t type, uint64_t bits)
{
    double real;
    if (type < PKI_PAYLOAD_UNSIGNED || type > PKI_PAYLOAD_REAL)
        return p; /* in what a killed run has left it may be anything */
    if (type == PKI_PAYLOAD_UNSIGNED)
        return pki_put_field(p, "payload", bits);
    p = PKI_PUT(p, ",\"payload\":");
    memcpy(&real, &bits, sizeof real);
    if (type == PKI_PAYLOAD_SIGNED)
        return pki_put_i64(p, (int64_t)bits);
    return isfinite(real) ? pki_put_double(p, real) : PKI_PUT(p, "null");
}

/* Takes away the comma before the first of them, and closes the list that begins at start. */
static char *end_args(char *start, char *p)
{
    if (p > start && *start == ',') {
        memmove(start, start + 1, (size_t)(p - start - 1));
        p--;
    }
    *p++ = '}';
    return p;
}

/* Everything but a plain region has arguments. */
static char *put_args(char *p, const char *end, const pki_chrome *c, const text *t,
                      const pki_record *r, const pki_record *more)
{
    char *start = PKI_PUT(p, ",\"args\":{");
    p = t ? pki_put(start, t->args, t->args_length) : start;
    if (pki_what_type(r->what) == PKI_RECORD_REGION_WORK) {
        if (more->start)
            p = pki_put_field(p, "bytes", more->start);
        if (more->value)
            p = pki_put_field(p, "flops", more->value);
        uint64_t tag = pki_what_flags(r->what) & PKI_FLAG_LOST ? 0 : r->extra & PKI_THINNED_REST;
        if (!pki_is_operation(more->what))
            p = put_payload(p, more->what, more->extra);
        else if (end - p > PKI_OPERATION_BYTES) /* unless names of the longest leave no room */
            p = pki_chrome_put_recorded(p, c, more, tag);
    }
    if (pki_record_untimed(r))
        p = pki_put_field(p, "calls", pki_record_untimed(r) + (uint64_t)1);
    if (pki_what_flags(r->what) & PKI_FLAG_UNBALANCED)
        p = pki_put_field(p, "unbalanced", 1);
    if (pki_what_flags(r->what) & PKI_FLAG_CUT_OFF)
        p = pki_put_field(p, "cut_off", 1);
    return end_args(start, p);
}

static char *put_region(char *p, pki_chrome *c, uint32_t tid, const pki_record *r,
                        const pki_record *more)
{
    const text *t = region_text(c, pki_what_id(r->what));
    const char *end = p + PKI_EVENT_BYTES - FLAGS_BYTES;
    bool touches = c->coarse || pki_what_flags(r->what) || pki_what_ties(r->what);
    p = put_times(put_name(p, c, t, tid), times_of(c, r), pki_what_depth(r->what), touches);
    bool plain = pki_what_type(r->what) == PKI_RECORD_REGION && t && !t->args_length &&
                 !(pki_what_flags(r->what) & (PKI_FLAG_UNBALANCED | PKI_FLAG_THINNED));
    if (PKI_UNLIKELY(!plain))
        p = put_args(p, end, c, t, r, more);
    *p++ = '}';
    return p;
}

static char *put_mark(char *p, pki_chrome *c, uint32_t tid, const pki_record *r)
{
    const text *t = region_text(c, pki_what_id(r->what));
    char *start = p;
    p = put_name(p, c, t, tid);
    start[sizeof ",\n{\"ph\":\"" - 1] = 'i';
    p = PKI_PUT(p, ",\"s\":\"t\",\"ts\":");
    p = pki_put_us(p, pki_clock_ns(c->clock, r->start));
    if ((t && t->args_length) || r->extra) {
        p = PKI_PUT(p, ",\"args\":{");
        char *args = p;
        p = t ? pki_put(p, t->args, t->args_length) : p;
        p = end_args(args, put_payload(p, r->extra, r->value));
    }
    *p++ = '}';
    return p;
}

static char *put_counter(char *p, pki_chrome *c, uint32_t tid, const pki_record *r)
{
    const text *t = pki_chrome_text_of(c, pki_what_id(r->what));
    double value;
    memcpy(&value, &r->value, sizeof value);
    if (!t || !t->counter || !isfinite(value))
        return p;
    p = put_name(p, c, t, tid);
    p = PKI_PUT(p, ",\"ts\":");
    p = pki_put_us(p, pki_clock_ns(c->clock, r->start));
    p = PKI_PUT(p, ",\"args\":{");
    p = pki_put(p, t->args, t->args_length);
    p = pki_put_double(p, value);
    return PKI_PUT(p, "}}");
}

/* No viewer takes it for a step: those go by the name. */
static char *put_between(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r)
{
    p = PKI_PUT(p,
                ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"between steps\",\"pid\":");
    p = pki_put_u64(p, c->pid);
    p = put_times(PKI_PUT(p, ",\"tid\":" STEP_TRACK), times_of(c, r), 0, true);
    p = pki_put_u64(PKI_PUT(p, ",\"args\":{\"thread\":"), tid);
    return PKI_PUT(p, "}}");
}

static char *put_step_kind(char *p, const pki_chrome *c, uint32_t id)
{
    if (!id)
        return p;
    pki_chrome_name kind = c->names(c->user, id);
    p = pki_chrome_put_escaped(PKI_PUT(p, ",\"kind\":\""), kind.name, kind.length);
    return PKI_PUT(p, "\"");
}

static char *put_flops(char *p, const pki_record *more)
{
    double model = pki_step_model(more), hardware = pki_step_hardware(more);
    if (model > 0)
        p = pki_put_double(PKI_PUT(p, ",\"model_flops\":"), model);
    if (hardware > 0)
        p = pki_put_double(PKI_PUT(p, ",\"hardware_flops\":"), hardware);
    return p;
}

static char *put_step(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r,
                      const pki_record *more)
{
    times t = times_of(c, r);
    p = PKI_PUT(p, ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#");
    p = pki_put_u64(p, more->start);
    p = PKI_PUT(p, "\",\"pid\":");
    p = pki_put_u64(p, c->pid);
    p = put_times(PKI_PUT(p, ",\"tid\":" STEP_TRACK), t, 0, true);
    p = PKI_PUT(
        p, ",\"args\":{\"thread\":"); /* which made it: `pk report` takes the step apart by that */
    p = pki_put_u64(p, tid);
    p = PKI_PUT(p, ",\"items\":");
    p = pki_put_count(p, more->value);
    if (t.duration && more->value) {
        p = PKI_PUT(p, ",\"items_per_second\":");
        p = pki_put_double(p, (double)more->value * 1e9 / (double)t.duration);
    }
    p = put_flops(p, more);
    p = put_step_kind(p, c, pki_step_kind_of(more));
    return PKI_PUT(p, "}}");
}

size_t pki_chrome_event(pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid, const pki_record *r,
                        const pki_record *more)
{
    char *end = out;
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_REGION:
    case PKI_RECORD_REGION_WORK:
        end = put_region(out, c, tid, r, more);
        break;
    case PKI_RECORD_MARK:
        end = put_mark(out, c, tid, r);
        break;
    case PKI_RECORD_COUNTER:
        end = put_counter(out, c, tid, r);
        break;
    case PKI_RECORD_OPERATION:
        return pki_chrome_operation(c, out, tid, r, more);
    case PKI_RECORD_REQUEST:
    case PKI_RECORD_SPAN_BEGIN:
    case PKI_RECORD_SPAN_MARK:
    case PKI_RECORD_SPAN_END:
        return pki_chrome_span(c, out, tid, r, more);
    case PKI_RECORD_STEP:
        end = pki_what_flags(r->what) & PKI_FLAG_BETWEEN ? put_between(out, c, tid, r)
                                                         : put_step(out, c, tid, r, more);
        break;
    default:
        break;
    }
    return (size_t)(end - out);
}

pki_chrome_name pki_chrome_name_of(void *user, uint32_t id)
{
    const pki_name *n = pki_name_at(id);
    (void)user;
    if (!n)
        return (pki_chrome_name){.name = "(unknown)", .key = "", .length = 9, .kind = UINT32_MAX};
    return (pki_chrome_name){n->name, n->key, n->length, n->key_length, n->kind, n->value};
}
