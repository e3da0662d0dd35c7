#include "merge/alike.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

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

bool alike_find(const alike *a, line l, const fields *f, operation *o, uint64_t *channel,
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

void alike_add(alike *a, line l, const fields *f, const operation *o, uint64_t channel,
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
