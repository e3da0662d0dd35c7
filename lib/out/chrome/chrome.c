#include "out/chrome/chrome.h"

#include <pk/region.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "core/thread.h"
#include "out/chrome/events.h"
#include "out/emit.h"

/* ---- the events of plain regions, many in a row ---- */

static pki_chrome_text *pki_chrome_text_of(pki_chrome *c, uint32_t id);
static void pki_chrome_text_line(pki_chrome_text *t, uint32_t tid);
static uint32_t pki_chrome_early_rest(unsigned depth);

/* to the byte those of pki_chrome_event, of which a test sees to it (tests/unit/test_chrome.c). */

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
        pki_chrome_text *t = c->noted ? NULL : plain_text(c, r->what);
        if (PKI_LIKELY(t && is_in(&stretch, r)))
            p = put_plain(p, c, t, tid, &stretch, r);
        else
            p += pki_chrome_event(c, p, tid, r, r);
    }
    return (size_t)(p - out);
}

/* ---- colour ---- */

/* Reserved colour names of the trace viewer, one for each kind (catapult's color_scheme); other
 * viewers choose their own. `pk report` reads the kind back from it. */
const char *pki_chrome_colour(uint32_t kind)
{
    static const char *const names[] = {[PK_COMPUTE] = "thread_state_running",
                                        [PK_DATA] = "rail_load",
                                        [PK_COMM] = "rail_response",
                                        [PK_IO] = "thread_state_iowait",
                                        [PK_WAIT] = "thread_state_sleeping"};
    return kind < PKI_COUNT_OF(names) ? names[kind] : NULL;
}

/* ---- names as events have them, each escaped once ---- */

typedef pki_chrome_text text;

static char *pki_chrome_put_escaped(char *p, const char *s, size_t n)
{
    return p + pki_json_escape(p, 6 * n + 1, s, n);
}

static char *put_before(char *p, const pki_chrome *c, const pki_chrome_name *n)
{
    bool counter = n->kind == PKI_KIND_COUNTER;
    p = counter ? PKI_PUT(p, ",\n{\"ph\":\"C\",\"cat\":\"counter\",\"name\":\"")
                : PKI_PUT(p, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"");
    p = pki_chrome_put_escaped(p, n->name, n->length);
    const char *colour_name = pki_chrome_colour(n->kind);
    if (colour_name) {
        p = PKI_PUT(p, "\",\"cname\":\"");
        p = pki_put_string(p, colour_name);
    }
    p = PKI_PUT(p, "\",\"pid\":");
    p = pki_put_u64(p, c->pid);
    return PKI_PUT(p, ",\"tid\":");
}

static char *put_key(char *p, const pki_chrome_name *n)
{
    bool counter = n->kind == PKI_KIND_COUNTER;
    if (!n->key_length && !counter)
        return p;
    *p++ = '"';
    p = n->key_length ? pki_chrome_put_escaped(p, n->key, n->key_length) : PKI_PUT(p, "value");
    p = PKI_PUT(p, "\":");
    return counter ? p : pki_put_i64(p, n->value);
}

static text *make_text(const pki_chrome *c, uint32_t id)
{
    pki_chrome_name n = c->names(c->user, id);
    size_t room = 256 + 6u * n.length, args_room = 6u * n.key_length;
    text *t = calloc(1, sizeof *t + room + args_room + room + PKI_CHROME_BLOCK);
    if (!t)
        return NULL;
    char *args = put_before(t->before, c, &n);
    t->counter = n.kind == PKI_KIND_COUNTER;
    t->before_length = (uint32_t)(args - t->before);
    t->args = args;
    t->args_length = (uint32_t)(put_key(args, &n) - args);
    t->line = t->before + room + args_room;
    return t;
}

/* NULL: there is no memory for it. */
static pki_chrome_text *pki_chrome_text_of(pki_chrome *c, uint32_t id)
{
    if (PKI_UNLIKELY(id >= PKI_NAMES_MAX ||
                     (id >= c->text_count &&
                      !pki_array_fit(&c->texts, &c->text_count, id + (size_t)1, sizeof(text *)))))
        return NULL;
    if (PKI_UNLIKELY(!c->texts[id]))
        c->texts[id] = make_text(c, id);
    return c->texts[id];
}

/* The line, for that thread. */
static void pki_chrome_text_line(pki_chrome_text *t, uint32_t tid)
{
    char *end = pki_put(t->line, t->before, t->before_length);
    end = PKI_PUT(pki_put_u64(end, tid), ",\"ts\":");
    t->tid = tid;
    t->line_length = (uint32_t)(end - t->line);
}

/* ---- records as Chrome trace events ---- */

/* Steps have a track of their own: a region may begin in one step and end in the next, and slices
 * of one track must nest. */
#define STEP_TRACK "4294967294"

#define FLAGS_BYTES 64 /* what may follow an operation's arguments */

#define COARSE_NS 2.0 /* a clock with such steps gives different moments the same tick */

typedef pki_chrome_text chrome_text;

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
    free(c->notes);
    *c = (pki_chrome){0};
}

/* In what a killed run has left, an id may be anybody's. */
static const chrome_text *region_text(pki_chrome *c, uint32_t id)
{
    const chrome_text *t = pki_chrome_text_of(c, id);
    return t && t->counter ? NULL : t;
}

static char *put_name(char *p, pki_chrome *c, const chrome_text *t, uint32_t tid)
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

/* The picoseconds that it shows behind a nanosecond less, unless it lacks some. */
static uint32_t pki_chrome_early_rest(unsigned depth)
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

/* ---- notes on calls, which come before the record of their call ---- */

#define NOTED_PLACES 64u /* threads share them */
#define NOTED_EACH 8u

typedef struct noted {
    uint32_t tid, depth;
    pki_record record[2];
} noted;

typedef struct pki_chrome_notes {
    struct {
        uint32_t count;
        noted kept[NOTED_EACH];
    } places[NOTED_PLACES];
} pki_chrome_notes;

/* Without room the oldest goes; without memory, this one. */
static PKI_COLD void keep_note(pki_chrome *c, uint32_t tid, const pki_record *r,
                               const pki_record *more)
{
    if (!c->notes)
        c->notes = calloc(1, sizeof *c->notes);
    if (!c->notes)
        return;
    uint32_t *count = &c->notes->places[tid % NOTED_PLACES].count;
    noted *kept = c->notes->places[tid % NOTED_PLACES].kept;
    if (*count == NOTED_EACH) {
        memmove(kept, kept + 1, (NOTED_EACH - 1) * sizeof *kept);
        --*count;
        c->noted--;
    }
    noted *n = &kept[(*count)++];
    *n = (noted){tid, pki_what_depth(r->what), {*r, {0}}};
    /* Of one slot, `more` is of the next record, which its thread may be writing. */
    if (pki_record_slots(r->what) == 2)
        n->record[1] = *more;
    c->noted++;
}

static char *put_note(char *p, const char *end, const pki_chrome *c, const noted *n)
{
    char bytes[PKI_NOTE_BYTES];
    pki_chrome_name key = c->names(c->user, pki_what_id(n->record[0].what));
    if (end - p < 6 * (key.length + (ptrdiff_t)PKI_NOTE_BYTES) + 32)
        return p; /* names of the longest leave no room */
    p = PKI_PUT(pki_chrome_put_escaped(PKI_PUT(p, ",\""), key.name, key.length), "\":");
    if (pki_what_type(n->record[0].what) == PKI_RECORD_NOTE)
        return pki_put_i64(p, (int64_t)n->record[0].value);
    size_t length = pki_note_text(&n->record[0], &n->record[1], bytes);
    return PKI_PUT(pki_chrome_put_escaped(PKI_PUT(p, "\""), bytes, length), "\"");
}

/* Those of this call; how many. One that is older, at this depth or further in, had a call without
 * a record. */
static PKI_COLD uint32_t take_notes(pki_chrome *c, uint32_t tid, const pki_record *r,
                                    noted taken[NOTED_EACH])
{
    uint32_t *count = &c->notes->places[tid % NOTED_PLACES].count, left = 0, n = 0;
    noted *kept = c->notes->places[tid % NOTED_PLACES].kept;
    unsigned depth = pki_what_depth(r->what);
    for (uint32_t i = 0; i < *count; i++)
        if (kept[i].tid != tid || kept[i].depth < depth)
            kept[left++] = kept[i];
        else if (kept[i].depth == depth && kept[i].record[0].start >= r->start)
            taken[n++] = kept[i];
    c->noted -= *count - left;
    *count = left;
    return n;
}

/* Everything but a plain region has arguments. */
static char *put_args(char *p, const char *end, const pki_chrome *c, const chrome_text *t,
                      const pki_record *r, const pki_record *more, const noted *notes,
                      uint32_t note_count)
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
    for (uint32_t i = 0; i < note_count; i++)
        p = put_note(p, end, c, &notes[i]);
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
    const chrome_text *t = region_text(c, pki_what_id(r->what));
    const char *end = p + PKI_EVENT_BYTES - FLAGS_BYTES;
    bool touches = c->coarse || pki_what_flags(r->what) || pki_what_ties(r->what);
    p = put_times(put_name(p, c, t, tid), times_of(c, r), pki_what_depth(r->what), touches);
    noted notes[NOTED_EACH];
    uint32_t note_count = PKI_UNLIKELY(c->noted) ? take_notes(c, tid, r, notes) : 0;
    bool plain = pki_what_type(r->what) == PKI_RECORD_REGION && t && !t->args_length &&
                 !note_count &&
                 !(pki_what_flags(r->what) & (PKI_FLAG_UNBALANCED | PKI_FLAG_THINNED));
    if (PKI_UNLIKELY(!plain))
        p = put_args(p, end, c, t, r, more, notes, note_count);
    *p++ = '}';
    return p;
}

static char *put_mark(char *p, pki_chrome *c, uint32_t tid, const pki_record *r)
{
    const chrome_text *t = region_text(c, pki_what_id(r->what));
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
    const chrome_text *t = pki_chrome_text_of(c, pki_what_id(r->what));
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
    case PKI_RECORD_NOTE:
    case PKI_RECORD_NOTE_TEXT:
        keep_note(c, tid, r, more);
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

/* ---- what stands before the first event, and who the tracks are ---- */

#define HEAD_STEP_TRACK 4294967294u
#define FIGURE_WIDTH 20 /* digits of the largest uint64_t */

typedef struct writer {
    char *at, *end;
} writer;

static PKI_PRINTF(2, 3) void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->at, (size_t)(w->end - w->at), format, args);
    va_end(args);
    if (n > 0)
        w->at += PKI_MIN(n, w->end - w->at - 1);
}

static void put_text(writer *w, const char *key, const char *value)
{
    char escaped[6 * 256 + 1];
    pki_json_escape(escaped, sizeof escaped, value, strnlen(value, 256));
    put(w, "\"%s\":\"%s\",", key, escaped);
}

/* A figure of any size takes the same room: JSON allows blanks before it. */
static void put_count(writer *w, const char *key, uint64_t value, const char *after)
{
    put(w, "\"%s\":%*" PRIu64 "%s", key, FIGURE_WIDTH, value, after);
}

/* In the clock of a damaged arena a figure may be none. */
static void put_figure(writer *w, const char *key, double value)
{
    char digits[32];
    char *end = isfinite(value) ? pki_put_double(digits, value) : PKI_PUT(digits, "null");
    size_t n = (size_t)(end - digits);
    put(w, "\"%s\":%*.*s,", key, 25, (int)n, digits);
}

static void put_clock(writer *w, const pki_chrome_run *run)
{
    put(w, "\"clock\":{");
    put_text(w, "source", run->clock_name);
    put_text(w, "id", run->clock_id ? run->clock_id : "");
    put_figure(w, "hz", run->clock_hz);
    put_figure(w, "step_ns", run->clock_step_ns);
    put_figure(w, "uncertainty_ns", run->clock_uncertainty_ns);
    put_figure(w, "drift_ppm", run->clock_ppm);
    put_count(w, "base_monotonic_ns", run->base_ns, "},");
}

static void put_counts(writer *w, const pk_counts *c)
{
    put(w, "\"counts\":{");
    put_count(w, "begun", c->begun, ",");
    put_count(w, "recorded", c->recorded, ",");
    put_count(w, "written", c->written, ",");
    put_count(w, "dropped", c->dropped, ",");
    put_count(w, "unbalanced", c->unbalanced, ",");
    put_count(w, "too_deep", c->too_deep, ",");
    put_count(w, "stray_ends", c->stray_ends, ",");
    put_count(w, "points", c->points, ",");
    put_count(w, "points_dropped", c->points_dropped, ",");
    put_count(w, "not_finite", c->not_finite, ",");
    put_count(w, "unwritten", c->unwritten, ",");
    put_count(w, "threads", c->threads, ",");
    put_count(w, "regions", c->regions, ",");
    put_count(w, "steps", c->steps, "},");
}

static void put_toll(writer *w, const pki_toll *t)
{
    put_count(w, "cpu_ns", t->process, ",");
    put(w, "\"overhead\":{");
    put_figure(w, "region_ns", t->region_ns);
    put_count(w, "collector_ns", t->collector, ",");
    put_count(w, "callers_ns", t->callers, ",");
    put_count(w, "captures_ns", t->captures, ",");
    put_count(w, "readings_ns", t->readings, ",");
    put_count(w, "backends_ns", t->backends, "},");
    put(w, "\"stepping_thread\":{");
    put_count(w, "observed_ns", t->stepper.observed, ",");
    put_count(w, "running_ns", t->stepper.running, ",");
    put_count(w, "ready_ns", t->stepper.ready, "}");
}

static void put_metadata(writer *w, const pki_chrome *c, const pki_chrome_run *run)
{
    put(w, "\"metadata\":{\"perfkit\":\"%s\",", pk_version());
    put_text(w, "host", run->host);
    put_text(w, "program", run->program);
    put(w, "\"pid\":%" PRIu32 ",\"rank\": %" PRId32 ",\"world_size\":%" PRId32 ",", c->pid,
        run->rank, run->world_size);
    put(w, "\"local_rank\":%" PRId32 ",\"local_size\":%" PRId32 ",\"node\":%" PRId32 ",",
        run->local_rank, run->local_size, run->node);
    put_text(w, "job", run->job ? run->job : "");
    put(w, "\"start_unix_ns\":%" PRIu64 ",", run->start_unix);
    put(w, "\"complete\":%s,", run->complete ? "true " : "false");
    put_clock(w, run);
    put_counts(w, &run->counts);
    put_toll(w, &run->toll);
    put(w, "},");
}

/* The first event has no cat: so speedscope never takes the file for a CPU profile. All others have
 * one, since catapult's streaming reader passes over events without. */
static void put_process(writer *w, const pki_chrome *c, const pki_chrome_run *run)
{
    char program[6 * 128 + 1], host[6 * 64 + 1];
    pki_json_escape(program, sizeof program, run->program, strnlen(run->program, 128));
    pki_json_escape(host, sizeof host, run->host, strnlen(run->host, 64));
    put(w,
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
        ",\"ts\":0.000,\"args\":{\"name\":\"%s\"}}",
        c->pid, c->pid, program);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_labels\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"labels\":\"rank %" PRId32 ", %s\"}}",
        c->pid, c->pid, run->rank, host);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"process_sort_index\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"sort_index\":%" PRId32 "}}",
        c->pid, c->pid, run->rank);
}

static void put_track(writer *w, uint32_t pid, uint32_t tid, const char *name, uint32_t index)
{
    char escaped[6 * 64 + 1];
    pki_json_escape(escaped, sizeof escaped, name, strnlen(name, 64));
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_name\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"name\":\"%s\"}}",
        pid, tid, escaped);
    put(w,
        ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\"thread_sort_index\",\"pid\":%" PRIu32
        ",\"tid\":%" PRIu32 ",\"ts\":0.000,\"args\":{\"sort_index\":%" PRIu32 "}}",
        pid, tid, index);
}

size_t pki_chrome_thread(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                         const char *name, uint32_t index)
{
    writer w = {out, out + PKI_EVENT_BYTES};
    put_track(&w, c->pid, tid, *name ? name : "(unnamed)", index + 1);
    return (size_t)(w.at - out);
}

/* HTA finds the rank by a pattern that wants the blank. */
size_t pki_chrome_head(const pki_chrome *c, char out[PKI_HEAD_BYTES], const pki_chrome_run *run)
{
    writer w = {out, out + PKI_HEAD_BYTES};
    put(&w,
        "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRIu64 ",\n",
        run->start_unix);
    put(&w,
        "\"distributedInfo\":{\"backend\":\"unknown\",\"rank\": %" PRId32 ",\"world_size\":%" PRId32
        "},\n",
        run->rank, PKI_MAX(run->world_size, 1));
    put_metadata(&w, c, run);
    put(&w, "\n\"traceEvents\":[\n");
    put_process(&w, c, run);
    put_track(&w, c->pid, HEAD_STEP_TRACK, "steps", 0);
    return (size_t)(w.at - out);
}
