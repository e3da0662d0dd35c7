/* tools/trace/lines.c - from a line of a trace to its event, in the shortest way that it allows */
#include <math.h>
#include <stdlib.h>

#include "memory.h"
#include "read/json.h"
#include "read/token.h"
#include "trace/trace.h"

/* ---- times of a trace event, exactly ---- */

static size_t digits_at(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* 1.5e3: rare, and no trace that needs all its digits has it. */
static bool scan_power(const char *text, size_t length, uint64_t *ns)
{
    char copy[64];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *end;
    double value = strtod(copy, &end) * 1000;
    if (*end || !(value >= 0) || value > (double)SCAN_MOST)
        return false;
    *ns = (uint64_t)llround(value);
    return true;
}

/* Three digits, as if those that are missing were 0; rounded by the fourth. */
static uint64_t thousandths(const char *s, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 3; i++)
        value = 10 * value + (i < count ? (uint64_t)(s[i] - '0') : 0);
    return value + (count > 3 && s[3] >= '5');
}

/* As perfkit writes it: digits, a point, and three of them. At most 18 make no number too large. */
static bool scan_plain(const char *text, size_t length, uint64_t *ns)
{
    uint64_t n = 0;
    unsigned beyond = 0; /* a digit would have been above 9 */
    if (length < 5 || length > 19 || text[length - 4] != '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (i == length - 4)
            continue;
        beyond |= digit > 9;
        n = 10 * n + digit;
    }
    if (beyond || n > SCAN_MOST)
        return false;
    *ns = n;
    return true;
}

bool scan_us(const char *text, size_t length, uint64_t *ns)
{
    if (scan_plain(text, length, ns))
        return true;
    const char *end = text + length;
    size_t whole = digits_at(text, end), decimals = 0;
    const char *s = text + whole;
    if (whole == 0)
        return false;
    if (s < end && *s == '.') {
        decimals = digits_at(s + 1, end);
        s += 1 + decimals;
    }
    if (s < end)
        return *s == 'e' || *s == 'E' ? scan_power(text, length, ns) : false;
    uint64_t us = 0;
    for (size_t i = 0; i < whole; i++) {
        us = 10 * us + (uint64_t)(text[i] - '0');
        if (us > SCAN_MOST / 1000)
            return false;
    }
    *ns = 1000 * us + (decimals ? thousandths(text + whole + 1, decimals) : 0);
    return true;
}

uint32_t scan_ps(const char *text, size_t length)
{
    const char *end = text + length, *point = text + digits_at(text, end);
    if (end - point != 7 || *point != '.' || digits_at(point + 1, end) != 6)
        return 0;
    return (uint32_t)(100 * (point[4] - '0') + 10 * (point[5] - '0') + (point[6] - '0'));
}

/* Slices end early by 4 ps per level, those that lack something by 2 more (lib/out/chrome). */
uint64_t scan_lack(uint32_t start_ps, uint32_t duration_ps)
{
    return start_ps <= 64 && duration_ps % 4 == 2 ? start_ps : 0;
}

bool scan_member_us(const char *text, size_t length, const char *key, uint64_t *ns, uint32_t *ps)
{
    const char *value, *end;
    if (!token_member(text, length, key, &value, &end))
        return false;
    *ps = scan_ps(value, (size_t)(end - value));
    return scan_us(value, (size_t)(end - value), ns);
}

/* ---- a line of JSON taken apart in place, if it is a simple one ---- */

#define DIGITS_MOST 18  /* fewer than would overflow */
#define NUMBER_MOST 40  /* characters */
#define EXPONENT_MOST 2 /* digits */

/* Where in the text it is; NULL: the line is not simple. */
typedef const char *place;

static place skip_space(place s, place end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
        s++;
    return s;
}

/* From behind the first quote to behind the last. */
static place read_string(place s, place end)
{
    s = token_plain(s, end);
    return s < end && *s == '"' ? s + 1 : NULL;
}

/* The text ends with a bracket, which ends numbers, too. */
static place skip_digits(place s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* The part behind the point, and that behind the e. */
static place read_fraction(place s, flat_member *m)
{
    if (*s == '.') {
        place digits = s + 1;
        s = skip_digits(digits);
        m->type = VALUE_REAL;
        if (s == digits)
            return NULL;
    }
    if (*s == 'e' || *s == 'E') {
        place digits = s[1] == '+' || s[1] == '-' ? s + 2 : s + 1;
        s = skip_digits(digits);
        m->type = VALUE_REAL;
        if (s == digits || s - digits > EXPONENT_MOST)
            return NULL;
    }
    return s;
}

static place read_number(place s, flat_member *m)
{
    bool negative = *s == '-';
    place digits = s + negative, start = s;
    uint64_t n = 0;
    for (s = digits; *s >= '0' && *s <= '9' && s - digits <= DIGITS_MOST; s++)
        n = 10 * n + (uint64_t)(*s - '0');
    if (s == digits || s - digits > DIGITS_MOST || (*digits == '0' && s - digits > 1))
        return NULL;
    m->type = VALUE_INTEGER;
    s = read_fraction(s, m);
    if (!s || s - start > NUMBER_MOST)
        return NULL;
    m->integer = m->type == VALUE_REAL ? 0 : negative ? -(int64_t)n : (int64_t)n;
    m->text = start;
    m->length = (uint32_t)(s - start);
    return s;
}

/* Of numbers: a kernel's grid. */
static place read_array(place s, place end)
{
    flat_member ignored;
    s = skip_space(s, end);
    if (s < end && *s == ']')
        return s + 1;
    while (s < end) {
        s = read_number(s, &ignored);
        s = s ? skip_space(s, end) : NULL;
        if (!s || s >= end)
            return NULL;
        if (*s == ']')
            return s + 1;
        if (*s != ',')
            return NULL;
        s = skip_space(s + 1, end);
    }
    return NULL;
}

static place read_word(place s, place end)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < PKI_COUNT_OF(words); i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(end - s) >= length && memcmp(s, words[i], length) == 0)
            return s + length;
    }
    return NULL;
}

static bool is_new(flat *f, const flat_member *m)
{
    size_t last = m->key_length ? m->key_length - 1 : 0;
    unsigned sum = m->key_length * 7 + (unsigned char)m->key[0] * 5u + (unsigned char)m->key[last];
    uint64_t bit = UINT64_C(1) << (sum & 63);
    bool maybe = (f->seen & bit) != 0;
    f->seen |= bit;
    for (uint32_t i = 0; maybe && i < f->count; i++)
        if (f->members[i].key_length == m->key_length &&
            memcmp(f->members[i].key, m->key, m->key_length) == 0)
            return false;
    return true;
}

static place read_key(place s, place end, flat *f, flat_member *m)
{
    place after = s < end && *s == '"' ? read_string(s + 1, end) : NULL;
    if (!after)
        return NULL;
    m->key = s + 1;
    m->key_length = (uint32_t)(after - s - 2);
    if (!is_new(f, m))
        return NULL;
    s = skip_space(after, end);
    return s < end && *s == ':' ? skip_space(s + 1, end) : NULL;
}

static place read_object(place s, place end, flat *f, flat_line *into);

/* into: NULL inside of args. */
static place read_value(place s, place end, flat_member *m, flat_line *into)
{
    place after = NULL;
    m->type = VALUE_OTHER;
    m->text = NULL;
    m->integer = 0;
    m->length = 0;
    if (s >= end)
        return NULL;
    if (*s == '"') {
        after = read_string(s + 1, end);
        m->type = VALUE_TEXT;
        m->text = s + 1;
        m->length = after ? (uint32_t)(after - s - 2) : 0;
    } else if (*s == '-' || (*s >= '0' && *s <= '9')) {
        after = read_number(s, m);
    } else if (*s == '[') {
        after = read_array(s + 1, end);
    } else if (*s == '{') {
        bool args = into && m->key_length == 4 && memcmp(m->key, "args", 4) == 0;
        after = args ? read_object(s, end, &into->args, NULL) : NULL;
        if (args)
            into->has_args = true;
    } else {
        after = read_word(s, end);
    }
    return after;
}

static place read_object(place s, place end, flat *f, flat_line *into)
{
    s = s < end && *s == '{' ? skip_space(s + 1, end) : NULL;
    if (s && s < end && *s == '}')
        return s + 1;
    while (s && f->count < FLAT_MEMBERS) {
        flat_member *m = &f->members[f->count];
        s = read_key(s, end, f, m);
        s = s ? read_value(s, end, m, into) : NULL;
        s = s ? skip_space(s, end) : NULL;
        f->count++;
        if (!s || s >= end)
            return NULL;
        if (*s == '}')
            return s + 1;
        s = *s == ',' ? skip_space(s + 1, end) : NULL;
    }
    return NULL;
}

/* Over the quotes. */
static void terminate(char *text, const flat *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const flat_member *m = &f->members[i];
        text[m->key - text + m->key_length] = '\0';
        if (m->type == VALUE_TEXT)
            text[m->text - text + m->length] = '\0';
    }
}

bool flat_read(flat_line *out, char *text, size_t length)
{
    place end = text + length;
    out->top.count = out->args.count = 0;
    out->top.seen = out->args.seen = 0;
    out->has_args = false;
    if (length == 0 || length > UINT32_MAX || end[-1] != '}')
        return false;
    place after = read_object(skip_space(text, end), end, &out->top, out);
    if (!after || skip_space(after, end) < end)
        return false;
    terminate(text, &out->top);
    terminate(text, &out->args);
    return true;
}

object flat_object(const flat_line *into)
{
    return (object){.members = &into->top, .args = into->has_args ? &into->args : NULL};
}

/* ---- lines that differ from an earlier one in nothing but their times ---- */

#define PLACES 1024u     /* a power of two */
#define BEFORE_MOST 1024 /* bytes of what it is */

#define TS ",\"ts\":"
#define DUR ",\"dur\":"
#define ID ",\"id\":" /* of arrows, which no report shows: a third of a GPU's lines */

typedef struct cached_line {
    uint32_t length;
    bool arrow;
    const char *before; /* the line up to its times; the event's name is behind it */
    event e;
} cached_line;

struct line_cache {
    uint32_t kept;         /* so many so far */
    uint32_t length, slot; /* of the line asked for last; length 0: it can't be kept */
    bool arrow;
    char before[BEFORE_MOST];
    char
        *texts[PLACES]; /* what lines point into: of a short trace few pages of lines are touched */
    cached_line lines[PLACES];
};

/* A line in its parts. */
typedef struct parts {
    size_t before;        /* bytes up to TS */
    const char *ts, *dur; /* dur: or the id */
    size_t ts_length, dur_length;
    bool arrow;
} parts;

static line_cache *line_cache_create(void)
{
    return memory_zeroed(1, sizeof(line_cache));
}

static void line_cache_destroy(line_cache *k)
{
    for (uint32_t i = 0; k && i < PLACES; i++)
        free(k->texts[i]);
    free(k);
}

static bool is_number(char c)
{
    return (c >= '0' && c <= '9') || c == '.';
}

/* The number that ends at `end`, and the key in front of it; NULL if it is another. */
static const char *number_before(const char *text, const char *end, const char *key, size_t length,
                                 const char **number)
{
    const char *s = end;
    while (s > text && is_number(s[-1]))
        s--;
    *number = s;
    return s < end && (size_t)(s - text) > length && memcmp(s - length, key, length) == 0
               ? s - length
               : NULL;
}

static bool split(parts *p, const char *text, size_t length)
{
    const char *end = text + length - 1;
    if (length < 2 || *end != '}')
        return false;
    const char *dur = number_before(text, end, DUR, sizeof DUR - 1, &p->dur);
    p->arrow = !dur;
    if (p->arrow)
        dur = number_before(text, end, ID, sizeof ID - 1, &p->dur);
    const char *ts = dur ? number_before(text, dur, TS, sizeof TS - 1, &p->ts) : NULL;
    if (!ts)
        return false;
    p->before = (size_t)(ts - text);
    p->ts_length = (size_t)(dur - p->ts);
    p->dur_length = (size_t)(end - p->dur);
    return p->before >= sizeof(uint64_t) && p->before <= BEFORE_MOST;
}

static uint32_t slot_of(const char *text, size_t length)
{
    uint64_t hash = length, word;
    for (size_t i = 0; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    memcpy(&word, text + length - sizeof word, sizeof word);
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32) & (PLACES - 1);
}

/* A number of JSON begins with no zero but its only one, and ends with a digit. */
static bool is_json(const char *digits, size_t length)
{
    bool zero = length > 1 && digits[0] == '0' && digits[1] != '.';
    return !zero && digits[0] != '.' && digits[length - 1] != '.' && length <= 18;
}

static const event *set_times(event *e, const parts *p, uint64_t duration)
{
    e->end = e->start + duration;
    uint64_t lack = scan_lack(scan_ps(p->ts, p->ts_length), scan_ps(p->dur, p->dur_length));
    e->lacks = lack < e->start ? lack : e->start;
    return e;
}

/* The event of a line like one before, with this one's times; valid until the next call. NULL: it
 * is not known. */
static const event *line_cache_find(line_cache *k, const char *text, size_t length)
{
    parts p;
    uint64_t duration;
    k->length = 0;
    if (!split(&p, text, length))
        return NULL;
    uint32_t slot = slot_of(text, p.before);
    cached_line *known = &k->lines[slot];
    if (known->length == p.before && known->arrow == p.arrow &&
        memcmp(known->before, text, p.before) == 0)
        return is_json(p.ts, p.ts_length) && is_json(p.dur, p.dur_length) &&
                       scan_us(p.ts, p.ts_length, &known->e.start) &&
                       scan_us(p.dur, p.dur_length, &duration)
                   ? set_times(&known->e, &p, duration)
                   : NULL;
    k->length = (uint32_t)p.before;
    k->arrow = p.arrow;
    k->slot = slot;
    memcpy(k->before, text, p.before);
    return NULL;
}

/* Is what stands behind the first part the last two members, and the outer object's? */
static bool ends_with_times(const line_cache *k, const flat *f, const char *text)
{
    const flat_member *ts = &f->members[f->count - 2];
    return f->count > 2 && ts->key == text + k->length + 2 && ts->key_length == 2;
}

/* What it is must not hang on its times: an arrow is nothing whatever they are. */
static bool is_cacheable(const line_cache *k, const flat_line *known, const char *text,
                         const event *e)
{
    if (!k->length || known->has_args || !ends_with_times(k, &known->top, text))
        return false;
    const char *phase = object_text(flat_object(known), "ph");
    return k->arrow ? phase[0] && strchr("stf", phase[0]) && !phase[1] : e->type == EVENT_REGION;
}

/* The line that was not found, as it has been read since. */
static void line_cache_add(line_cache *k, const flat_line *known, const char *text, const event *e)
{
    static const event arrow = {.type = EVENT_OTHER, .name = ""};
    if (!is_cacheable(k, known, text, e))
        return;
    e = k->arrow ? &arrow : e;
    size_t name = strlen(e->name) + 1;
    cached_line *to = &k->lines[k->slot];
    char *before = memory_resized(k->texts[k->slot], k->length + name);
    k->texts[k->slot] = before;
    memcpy(before, k->before, k->length);
    memcpy(before + k->length, e->name, name);
    *to = (cached_line){.length = k->length, .arrow = k->arrow, .before = before, .e = *e};
    to->e.name = before + k->length;
    to->e.line = ++k->kept;
    to->e.args = (object){0};
}

/* ---- from a line of a trace to its event, in the shortest way that it allows ---- */

void event_reader_open(event_reader *r)
{
    r->tree = NULL;
    r->lines = line_cache_create();
}

void event_reader_close(event_reader *r)
{
    line_cache_destroy(r->lines);
    json_decref(r->tree);
    r->lines = NULL;
    r->tree = NULL;
}

static reading read_tree(event_reader *r, line l)
{
    complaint ignored = {""};
    bool too_large = false;
    json_decref(r->tree);
    r->tree = document_from_text(l.text, l.length, &too_large, &ignored);
    if (too_large)
        return READ_NO_MEMORY;
    if (!json_is_object(r->tree))
        return READ_NOTHING;
    event_read(&r->e, (object){.tree = r->tree}, l.text, l.length);
    return READ_EVENT;
}

reading event_reader_read(event_reader *r, line l, const event **e)
{
    *e = line_cache_find(r->lines, l.text, l.length);
    if (*e)
        return READ_EVENT;
    *e = &r->e;
    if (!flat_read(&r->flat, l.text, l.length))
        return read_tree(r, l);
    event_read(&r->e, flat_object(&r->flat), l.text, l.length);
    line_cache_add(r->lines, &r->flat, l.text, &r->e);
    return READ_EVENT;
}
