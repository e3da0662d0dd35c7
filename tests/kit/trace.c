#include "trace.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <zlib.h>

#define OPENING "\"traceEvents\":["

static bool fail(trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(trace *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->why, sizeof t->why, format, args);
    va_end(args);
    return false;
}

/* ---- bytes ---- */

char *trace_load(trace *t, const char *path, size_t *bytes)
{
    size_t room = 1 << 16, used = 0;
    gzFile file = gzopen(path, "rb"); /* reads plain files, too */
    if (!file) {
        fail(t, "%s cannot be opened", path);
        return NULL;
    }
    char *text = malloc(room);
    for (int got; (got = gzread(file, text + used, (unsigned)(room - used))) > 0;) {
        used += (size_t)got;
        if (used == room)
            text = realloc(text, room *= 2);
    }
    if (gzclose(file) != Z_OK) {
        fail(t, "%s: the compressed data are cut or spoilt", path);
        free(text);
        return NULL;
    }
    *bytes = used;
    return text;
}

/* ---- events ---- */

static uint64_t in_ps(const json_t *event, const char *key)
{
    return (uint64_t)llround(json_number_value(json_object_get(event, key)) * 1e6);
}

static uint64_t whole(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static trace_event *add(trace *t)
{
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->events = realloc(t->events, t->room * sizeof *t->events);
    }
    return &t->events[t->count++];
}

static bool take_event(trace *t, const json_t *e)
{
    const char *ph = json_string_value(json_object_get(e, "ph"));
    const char *name = json_string_value(json_object_get(e, "name"));
    const json_t *args = json_object_get(e, "args");
    if (!ph || !ph[0] || ph[1] || !name || !json_is_number(json_object_get(e, "ts")) ||
        !json_is_integer(json_object_get(e, "tid")))
        return fail(t, "an event lacks ph, name, ts or tid");
    if (ph[0] == 'M') {
        t->thread_names += strcmp(name, "thread_name") == 0;
        return true;
    }
    if (!strchr("XCi", ph[0]) || (ph[0] == 'X' && !json_is_number(json_object_get(e, "dur"))))
        return fail(t, "an event \"%s\" is none that perfkit writes", name);
    trace_event *event = add(t);
    *event = (trace_event){.ph = ph[0],
                           .unbalanced = whole(args, "unbalanced"),
                           .step = strncmp(name, "ProfilerStep#", 13) == 0,
                           .tid = (uint32_t)whole(e, "tid"),
                           .ts = in_ps(e, "ts"),
                           .dur = in_ps(e, "dur"),
                           .bytes = whole(args, "bytes"),
                           .flops = whole(args, "flops")};
    snprintf(event->name, sizeof event->name, "%.39s", name);
    return true;
}

/* ---- the document ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool next_line(cursor *c, const char **line, size_t *n)
{
    if (c->at == c->end)
        return false;
    const char *newline = memchr(c->at, '\n', (size_t)(c->end - c->at));
    *line = c->at;
    *n = (size_t)((newline ? newline : c->end) - c->at);
    c->at = newline ? newline + 1 : c->end;
    return true;
}

static bool ends_with(const char *line, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n >= m && memcmp(line + n - m, end, m) == 0;
}

/* Lines up to the one that opens the list. */
static bool skip_head(trace *t, cursor *c)
{
    const char *line;
    size_t n;
    while (next_line(c, &line, &n))
        if (ends_with(line, n, OPENING))
            return true;
    return fail(t, "no list of events");
}

/* One event per line, a comma behind each but the last; c stands behind the list then. */
static bool read_events(trace *t, cursor *c)
{
    const char *line;
    size_t n;
    bool comma = true;
    for (size_t number = 1;; number++) {
        cursor before = *c;
        if (!next_line(c, &line, &n))
            return fail(t, "the list of events has no end");
        if (n && line[0] == ']') {
            *c = before;
            return !comma || fail(t, "a comma behind the last event");
        }
        if (!comma)
            return fail(t, "event %zu: no comma before it", number);
        comma = ends_with(line, n, ",");
        json_t *e = json_loadb(line, n - comma, 0, NULL);
        bool good = json_is_object(e) ? take_event(t, e)
                                      : fail(t, "event %zu is no object: %.*s", number,
                                             (int)(n < 200 ? n : 200), line);
        json_decref(e);
        if (!good)
            return false;
    }
}

/* What is around the events is JSON, and so are they: then so is the whole. */
static bool read_frame(trace *t, const char *head, size_t head_bytes, cursor rest)
{
    size_t n = head_bytes + (size_t)(rest.end - rest.at);
    char *frame = malloc(n + 1);
    memcpy(frame, head, head_bytes);
    memcpy(frame + head_bytes, rest.at, n - head_bytes);
    json_error_t error;
    json_t *document = json_loadb(frame, n, 0, &error);
    free(frame);
    if (!json_is_object(document)) {
        json_decref(document);
        return fail(t, "the document around the events: %s", error.text);
    }
    const json_t *metadata = json_object_get(document, "metadata");
    const json_t *counts = json_object_get(metadata, "counts");
    t->complete = json_is_true(json_object_get(metadata, "complete"));
    t->has_report = json_object_get(document, "perfkitReport");
    t->begun = whole(counts, "begun");
    t->recorded = whole(counts, "recorded");
    t->written = whole(counts, "written");
    t->dropped = whole(counts, "dropped");
    t->unwritten = whole(counts, "unwritten");
    json_decref(document);
    return true;
}

bool trace_parse(trace *t, const char *text, size_t bytes)
{
    cursor c = {text, text + bytes};
    *t = (trace){0};
    if (!skip_head(t, &c))
        return false;
    size_t head_bytes = (size_t)(c.at - text);
    return read_events(t, &c) && read_frame(t, text, head_bytes, c);
}

bool trace_read(trace *t, const char *path)
{
    size_t bytes;
    *t = (trace){0};
    char *text = trace_load(t, path, &bytes);
    bool good = text && trace_parse(t, text, bytes);
    free(text);
    return good;
}

void trace_free(trace *t)
{
    free(t->events);
    t->events = NULL;
    t->count = t->room = 0;
}

/* ---- what the events say ---- */

static int by_place(const void *a, const void *b)
{
    const trace_event *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->dur > y->dur ? -1 : x->dur < y->dur;
}

bool trace_nests(trace *t)
{
    static const trace_event *open[4096];
    size_t depth = 0;
    if (t->count)
        qsort(t->events, t->count, sizeof *t->events, by_place);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (e->ph != 'X')
            continue;
        while (depth && (open[depth - 1]->tid != e->tid ||
                         open[depth - 1]->ts + open[depth - 1]->dur <= e->ts))
            depth--;
        if (depth && e->ts + e->dur > open[depth - 1]->ts + open[depth - 1]->dur)
            return fail(t, "thread %u: %s at %llu ps, %llu long, outlasts %s at %llu, %llu long",
                        e->tid, e->name, (unsigned long long)e->ts, (unsigned long long)e->dur,
                        open[depth - 1]->name, (unsigned long long)open[depth - 1]->ts,
                        (unsigned long long)open[depth - 1]->dur);
        if (depth == sizeof open / sizeof *open)
            return fail(t, "deeper than any thread can be");
        open[depth++] = e;
    }
    return true;
}

uint64_t trace_slices(const trace *t, const char *name)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        n += e->ph == 'X' && !e->step && (!name || strcmp(e->name, name) == 0);
    }
    return n;
}
