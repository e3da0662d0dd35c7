/* tools/merge/fields.c - where the members of an event stand in its line, and which lines are alike
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "merge/merge.h"
#include "read/token.h"

/* ---- where the members of an event stand in its line ---- */

static field *field_of(fields *f, const char *key, size_t length)
{
    switch (length) {
    case 2:
        return memcmp(key, "ts", 2) == 0 ? &f->ts : memcmp(key, "id", 2) == 0 ? &f->id : NULL;
    case 3:
        return memcmp(key, "pid", 3) == 0   ? &f->pid
               : memcmp(key, "tid", 3) == 0 ? &f->tid
               : memcmp(key, "dur", 3) == 0 ? &f->dur
               : memcmp(key, "cat", 3) == 0 ? &f->cat
                                            : NULL;
    case 4:
        return memcmp(key, "name", 4) == 0   ? &f->name
               : memcmp(key, "args", 4) == 0 ? &f->args
                                             : NULL;
    default:
        return NULL;
    }
}

static void store(fields *f, line l, const char *key, size_t length, const char *value,
                  const char *end)
{
    field found = {(size_t)(value - l.text), (size_t)(end - value)};
    field *place = field_of(f, key, length);
    if (place)
        *place = found;
    else if (length == 2 && memcmp(key, "ph", 2) == 0 && found.length == 3)
        f->phase = value[1];
}

static bool find_all(fields *f, line l)
{
    complaint ignored = {""};
    scan s = {.at = l.text, .end = l.text + l.length, .why = &ignored};
    const char *key;
    size_t length;
    *f = (fields){.phase = '?'};
    token_expect(&s, '{');
    for (size_t n = 0; token_more(&s, '}', n) && token_key(&s, &key, &length); n++) {
        token_peek(&s);
        const char *value = s.at;
        token_skip(&s);
        store(f, l, key, length, value, s.at);
    }
    field_integer(l, f->pid, &f->process);
    field_integer(l, f->tid, &f->thread);
    return token_ends(&s);
}

/* ---- lines that begin as an earlier one ---- */

/* Where names differ in traces of perfkit and of PyTorch: behind phase and category. */
static fields_start *start_of(fields_known *known, line l)
{
    uint64_t a, b;
    if (l.length < 64)
        return NULL;
    memcpy(&a, l.text + 28, 8);
    memcpy(&b, l.text + 36, 8);
    uint64_t hash = (a ^ b * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return &known->all[hash >> 56];
}

static void store_start(fields_start *s, line l, const fields *f)
{
    if (!f->ts.length || f->ts.at > FIELDS_START || f->id.at || f->pid.at > f->ts.at ||
        f->name.at > f->ts.at)
        return;
    s->is = *f;
    s->is.ts.length = 0;
    s->is.dur = s->is.args = (field){0, 0};
    s->length = (uint16_t)f->ts.at;
    memcpy(s->text, l.text, f->ts.at);
}

static size_t number_at(line l, size_t at)
{
    size_t n = 0;
    while (at + n < l.length &&
           ((l.text[at + n] >= '0' && l.text[at + n] <= '9') || l.text[at + n] == '.'))
        n++;
    return n;
}

/* ---- objects without objects ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* In the highest bit of each byte: is it one of [ \ ], or of { | }, which differ from these in one
 * bit?
 */
static uint64_t nests(uint64_t eight)
{
    uint64_t low = (eight | EACH(0x20)) & EACH(0x7F);
    return (low + EACH(0x80 - '{')) & ~(low + EACH(0x80 - '}' - 1)) & ~eight & EACH(0x80);
}

/* 1 in each byte that is a quote. */
static uint64_t quotes(uint64_t eight)
{
    uint64_t other = eight ^ EACH('"');
    return ~(((other & EACH(0x7F)) + EACH(0x7F)) | other | EACH(0x7F)) >> 7;
}

/* Fewer than eight, the others 0: there are as many before them. */
static uint64_t last_bytes(const char *text, size_t length)
{
    uint64_t eight;
    unsigned others = 8 * (8 - (unsigned)length);
    memcpy(&eight, text + length - 8, 8);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? eight >> others : eight << others;
}

/* Has this, from behind `,"args":{` on, nothing nested and whole strings? Then the first brace ends
 * it. */
static bool is_flat(const char *text, size_t length)
{
    uint64_t nested = 0, odd = 0, eight;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&eight, text, 8);
        nested |= nests(eight);
        odd ^= quotes(eight);
    }
    eight = length ? last_bytes(text, length) : 0;
    nested |= nests(eight);
    odd ^= quotes(eight);
    return !nested && __builtin_parityll(odd) == 0;
}

/* ---- the rest of a line ---- */

/* The time that stands there, and how long it is, in one pass; 0: no digits, a point and three. */
static size_t plain_time_at(line l, size_t at, uint64_t *ns)
{
    const char *begin = l.text + at, *end = l.text + l.length, *s = begin;
    uint64_t n = 0;
    unsigned digit;
    for (; s < end && (digit = (unsigned)(*s - '0')) < 10; s++)
        n = 10 * n + digit;
    if (s == begin || s - begin > 15 || end - s < 5 || *s != '.')
        return 0;
    for (int i = 0; i < 3; i++) {
        if ((digit = (unsigned)(*++s - '0')) > 9)
            return 0;
        n = 10 * n + digit;
    }
    *ns = n;
    return s[1] == ',' || s[1] == '}' ? (size_t)(s + 1 - begin) : 0;
}

static void read_start(fields *f, line l)
{
    f->ts.length = plain_time_at(l, f->ts.at, &f->start);
    f->timed = f->ts.length > 0 && f->start <= SCAN_MOST;
    if (!f->timed)
        f->ts.length = number_at(l, f->ts.at);
}

static bool is_next(line l, size_t at, const char *key, size_t n)
{
    return l.length - at > n && memcmp(l.text + at, key, n) == 0;
}

/* False: it has to be looked at from its beginning. */
static bool find_behind(fields *f, const fields_start *s, line l)
{
    if (s->length == 0 || l.length <= s->length || memcmp(l.text, s->text, s->length) != 0)
        return false;
    *f = s->is;
    read_start(f, l);
    size_t at = f->ts.at + f->ts.length;
    if (is_next(l, at, ",\"dur\":", 7)) {
        f->dur = (field){at + 7, number_at(l, at + 7)};
        at = f->dur.at + f->dur.length;
    }
    if (is_next(l, at, ",\"args\":{", 9)) {
        const char *args = l.text + at + 9, *last = l.text + l.length - 2;
        if (last >= args && memcmp(last, "}}", 2) == 0 && is_flat(args, (size_t)(last - args))) {
            f->args = (field){at + 8, (size_t)(last - args) + 2};
            return true;
        }
        complaint ignored = {""};
        scan nested = {.at = l.text + at + 8, .end = l.text + l.length, .why = &ignored};
        token_skip(&nested);
        if (nested.failed)
            return false;
        f->args = (field){at + 8, (size_t)(nested.at - l.text) - at - 8};
        at += 8 + f->args.length;
    }
    return at + 1 == l.length && l.text[at] == '}';
}

bool fields_find(fields *f, fields_known *known, line l)
{
    fields_start *s = start_of(known, l);
    if (s && find_behind(f, s, l))
        return true;
    bool found = find_all(f, l);
    if (s && found)
        store_start(s, l, f);
    return found;
}

/* A time of the line, and of it what is kept. */
/* ---- what they say ---- */

static bool field_time(line l, field f, uint64_t *ns, size_t *kept)
{
    const char *text = l.text + f.at;
    *kept = f.length > 7 && text[f.length - 7] == '.' ? 3 : 0;
    return f.length > 0 && scan_us(text, f.length - *kept, ns);
}

void fields_read_times(fields *f, line l, bool lengths)
{
    if (!f->timed)
        f->timed = field_time(l, f->ts, &f->start, &f->start_kept);
    if (lengths && f->dur.length && !field_time(l, f->dur, &f->length, &f->length_kept))
        f->timed = false;
}

bool field_is(line l, field f, const char *text)
{
    return f.length == strlen(text) && memcmp(l.text + f.at, text, f.length) == 0;
}

bool field_begins(line l, field f, const char *text)
{
    size_t n = strlen(text);
    return f.length >= n && memcmp(l.text + f.at, text, n) == 0;
}

bool field_integer(line l, field f, uint64_t *n)
{
    *n = 0;
    if (f.length == 0 || f.length > 19)
        return false;
    for (size_t i = 0; i < f.length; i++) {
        char c = l.text[f.at + i];
        if (c < '0' || c > '9')
            return false;
        *n = 10 * *n + (uint64_t)(c - '0');
    }
    return true;
}

/* ---- alike ---- */

#define NUMBER "\"Seq\":"
#define NUMBER_BYTES (sizeof NUMBER - 1)
#define DURATION ",\"dur\":"
#define DURATION_BYTES (sizeof DURATION - 1)
#define DIGITS_MOST 18

void alike_free(alike *a)
{
    for (size_t i = 0; i < ALIKE_KEPT; i++)
        free(a->all[i].text);
}

/* Its time, and behind that its duration, as perfkit writes them. */
static bool is_plain(line l, const fields *f)
{
    size_t end = f->ts.at + f->ts.length;
    return f->phase == 'X' && f->timed && f->start_kept == 0 && f->ts.length &&
           f->dur.at == end + DURATION_BYTES && f->dur.length &&
           memcmp(l.text + end, DURATION, DURATION_BYTES) == 0;
}

static size_t read_number(const char *text, size_t most, uint64_t *number)
{
    size_t n = 0;
    *number = 0;
    for (; n < most && n < DIGITS_MOST && (unsigned)(text[n] - '0') < 10; n++)
        *number = 10 * *number + (uint64_t)(text[n] - '0');
    return n;
}

static bool is_like(const alike_line *k, line l, const fields *f, uint64_t *number)
{
    const char *rest = l.text + f->dur.at + f->dur.length, *end = l.text + l.length;
    size_t before = k->number - k->behind, after = k->length - k->after;
    if (!k->text || k->begin != f->ts.at || (size_t)(end - rest) <= before + after ||
        memcmp(rest, k->text + k->behind, before) != 0 || memcmp(l.text, k->text, k->begin) != 0)
        return false;
    rest += before;
    rest += read_number(rest, (size_t)(end - rest), number);
    return *number && (size_t)(end - rest) == after && memcmp(rest, k->text + k->after, after) == 0;
}

bool alike_find(const alike *a, line l, const fields *f, pki_joint *o, uint64_t *channel,
                uint64_t *number)
{
    uint64_t duration;
    size_t kept;
    if (!is_plain(l, f) || !field_time(l, f->dur, &duration, &kept) || kept)
        return false;
    for (size_t i = 0; i < ALIKE_KEPT; i++) {
        const alike_line *k = &a->all[i];
        if (!is_like(k, l, f, number))
            continue;
        *o = k->is;
        o->start = f->start;
        o->end = f->start + duration;
        *channel = k->channel;
        return true;
    }
    return false;
}

/* 0: it stands there not once, or is another one. */
static size_t find_number(line l, size_t from, uint64_t number, size_t *after)
{
    const char *end = l.text + l.length;
    const char *at = memmem(l.text + from, l.length - from, NUMBER, NUMBER_BYTES);
    uint64_t found;
    if (!at)
        return 0;
    at += NUMBER_BYTES;
    size_t n = read_number(at, (size_t)(end - at), &found);
    if (n == 0 || found != number || memmem(at, (size_t)(end - at), NUMBER, NUMBER_BYTES))
        return 0;
    *after = (size_t)(at - l.text) + n;
    return (size_t)(at - l.text);
}

void alike_add(alike *a, line l, const fields *f, const pki_joint *o, uint64_t channel,
               uint64_t number)
{
    size_t behind = f->dur.at + f->dur.length, after = 0;
    size_t at = is_plain(l, f) ? find_number(l, behind, number, &after) : 0;
    if (!at)
        return;
    alike_line *k = &a->all[a->next++ % ALIKE_KEPT];
    memory_fit(&k->text, &k->room, l.length, 1);
    memcpy(k->text, l.text, l.length);
    k->length = l.length;
    k->begin = f->ts.at;
    k->behind = behind;
    k->number = at;
    k->after = after;
    k->is = *o;
    k->channel = channel;
}
