#include "trace/line_cache.h"

#include "memory.h"
#include "trace/scan.h"

#include <stdlib.h>
#include <string.h>

#define PLACES 1024u     /* a power of two */
#define BEFORE_MOST 1024 /* bytes of what it is */

#define TS ",\"ts\":"
#define DUR ",\"dur\":"
#define ID ",\"id\":" /* of arrows, which no report shows: a third of a GPU's lines */

typedef struct cached_line {
    uint32_t length;
    bool arrow;
    char *before; /* the line up to its times; the event's name is behind it */
    event e;
} cached_line;

struct line_cache {
    uint32_t kept;          /* so many so far */
    uint32_t length, place; /* of the line asked for last; length 0: it can't be kept */
    bool arrow;
    char before[BEFORE_MOST];
    cached_line lines[PLACES];
};

/* A line in its parts. */
typedef struct parts {
    size_t before;        /* bytes up to TS */
    const char *ts, *dur; /* dur: or the id */
    size_t ts_length, dur_length;
    bool arrow;
} parts;

line_cache *line_cache_create(void)
{
    return memory_zeroed(1, sizeof(line_cache));
}

void line_cache_destroy(line_cache *k)
{
    for (uint32_t i = 0; k && i < PLACES; i++)
        free(k->lines[i].before);
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

const event *line_cache_find(line_cache *k, const char *text, size_t length)
{
    parts p;
    uint64_t duration;
    k->length = 0;
    if (!split(&p, text, length))
        return NULL;
    uint32_t place = slot_of(text, p.before);
    cached_line *line = &k->lines[place];
    if (line->length == p.before && line->arrow == p.arrow &&
        memcmp(line->before, text, p.before) == 0)
        return is_json(p.ts, p.ts_length) && is_json(p.dur, p.dur_length) &&
                       scan_us(p.ts, p.ts_length, &line->e.start) &&
                       scan_us(p.dur, p.dur_length, &duration)
                   ? set_times(&line->e, &p, duration)
                   : NULL;
    k->length = (uint32_t)p.before;
    k->arrow = p.arrow;
    k->place = place;
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
static bool is_cacheable(const line_cache *k, const flat_line *line, const char *text,
                         const event *e)
{
    if (!k->length || line->has_args || !ends_with_times(k, &line->top, text))
        return false;
    const char *phase = object_text(flat_object(line), "ph");
    return k->arrow ? phase[0] && strchr("stf", phase[0]) && !phase[1] : e->type == EVENT_REGION;
}

void line_cache_add(line_cache *k, const flat_line *line, const char *text, const event *e)
{
    static const event arrow = {.type = EVENT_OTHER, .name = ""};
    if (!is_cacheable(k, line, text, e))
        return;
    e = k->arrow ? &arrow : e;
    size_t name = strlen(e->name) + 1;
    cached_line *to = &k->lines[k->place];
    char *before = memory_resized(to->before, k->length + name);
    memcpy(before, k->before, k->length);
    memcpy(before + k->length, e->name, name);
    *to = (cached_line){.length = k->length, .arrow = k->arrow, .before = before, .e = *e};
    to->e.name = before + k->length;
    to->e.line = ++k->kept;
    to->e.args = (object){0};
}
