#include "read/lines.h"

#include "base/compiler.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)256 * 1024) /* in a processor's own cache, with what is written */
#define ALWAYS_FINE ((size_t)1024 * 1024)

bool lines_open(lines *l, const char *path, size_t most, complaint *why)
{
    *l = (lines){.most = most, .why = why, .room = FIRST_ROOM};
    l->buffer = memory_resized(NULL, FIRST_ROOM);
    l->from = source_open(path, why);
    if (l->from)
        return true;
    lines_close(l);
    return false;
}

void lines_close(lines *l)
{
    source_close(l->from);
    free(l->buffer);
    *l = (lines){0};
}

static bool too_long(lines *l, size_t most)
{
    complaint_set(l->why, "has a line of more than %zu MiB", PKI_MAX(most, ALWAYS_FINE) >> 20);
    l->failed = l->overlong = true;
    return false;
}

static bool make_room(lines *l, size_t most)
{
    memmove(l->buffer, l->buffer + l->start, l->end - l->start);
    l->end -= l->start;
    l->start = 0;
    if (l->end < l->room)
        return true;
    most = PKI_MAX(most, ALWAYS_FINE - 1);
    if (l->room > most)
        return too_long(l, most);
    l->room = PKI_MIN(2 * l->room, most + 1); /* and a newline */
    l->buffer = memory_resized(l->buffer, l->room);
    return true;
}

/* False at the end, too. */
static bool read_more(lines *l, size_t most)
{
    if (l->failed || ((l->start > 0 || l->end == l->room) && !make_room(l, most)))
        return false;
    long got = source_read(l->from, l->buffer + l->end, l->room - l->end, l->why);
    l->failed = got < 0;
    l->end += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void consume(lines *l, size_t bytes)
{
    l->start += bytes;
    l->taken = bytes;
    l->number++;
}

bool lines_next(lines *l, line *out)
{
    size_t looked = 0;
    for (;;) {
        char *from = l->buffer + l->start;
        size_t left = l->end - l->start;
        char *newline = left > looked ? memchr(from + looked, '\n', left - looked) : NULL;
        if (newline) {
            *out = (line){from, (size_t)(newline - from)};
            consume(l, out->length + 1);
            return true;
        }
        looked = left;
        if (!read_more(l, l->most))
            break;
    }
    if (l->failed || l->start == l->end)
        return false;
    *out = (line){l->buffer + l->start, l->end - l->start};
    consume(l, out->length);
    return true;
}

bool lines_ahead(lines *l, size_t bytes)
{
    size_t looked = 0;
    for (;;) {
        const char *from = l->buffer + l->start;
        size_t left = l->end - l->start;
        if (left > looked && memchr(from + looked, '\n', left - looked))
            return true;
        looked = left;
        if (left > bytes)
            return false;
        if (!read_more(l, l->most))
            return !l->failed;
    }
}

size_t lines_read(lines *l, char *out, size_t size)
{
    size_t left = PKI_MIN(l->end - l->start, size);
    if (left) {
        memcpy(out, l->buffer + l->start, left);
        l->start += left;
        return left;
    }
    long got = l->failed ? -1 : source_read(l->from, out, size, l->why);
    l->failed = got < 0;
    return got > 0 ? (size_t)got : 0;
}

bool lines_begin_with(lines *l, const char *bytes, size_t length)
{
    while (l->end < length && read_more(l, l->most))
        ;
    return l->end >= length && memcmp(l->buffer, bytes, length) == 0;
}

void lines_unread(lines *l)
{
    l->start -= l->taken;
    l->number -= l->taken > 0;
    l->taken = 0;
}

bool lines_rest(lines *l, size_t most, line *out)
{
    while (read_more(l, most))
        ;
    if (l->failed)
        return false;
    *out = (line){l->buffer + l->start, l->end - l->start};
    consume(l, out->length);
    return true;
}

bool lines_rewind(lines *l)
{
    l->start = l->end = l->taken = 0;
    l->number = 0;
    return !l->failed && source_rewind(l->from);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

line line_trim(line l)
{
    while (l.length && (is_blank(*l.text) || *l.text == ',')) {
        l.text++;
        l.length--;
    }
    while (l.length && (is_blank(l.text[l.length - 1]) || l.text[l.length - 1] == ','))
        l.length--;
    return l;
}
