/* tools/trace/trace.c - the events of a trace, from the first to the last. */
#include "trace/trace.h"

#include "memory.h"
#include "read/document.h"

#include <stdlib.h>
#include <string.h>

#define LINES_BETWEEN_LOOKS 4096

/* ---- line by line ---- */

static bool complain_of_damage(trace *t)
{
    return complaint_set(t->why, "is damaged: line %llu is not an event",
                         (unsigned long long)t->damaged);
}

static bool read_line(trace *t, const trace_visitor *to, line l)
{
    const event *e;
    reading found = event_reader_read(&t->reader, l, &e);
    if (found == READ_NO_MEMORY)
        return complaint_set(t->why, "out of memory");
    if (found == READ_NOTHING) {
        /* If nothing good follows, this is where the file was cut. */
        if (!t->damaged)
            t->damaged = t->in.number;
        return true;
    }
    if (t->damaged)
        return complain_of_damage(t);
    to->event(to->user, e);
    return true;
}

/* The rest of the document, from the bracket that closes the events. */
static bool read_tail(trace *t, line l)
{
    static const char object_opens[] = "{\"traceEvents\":[";
    const char *opens = json_is_array(t->head) ? "[" : object_opens;
    complaint ignored = {""};
    bool too_large = false;
    if (t->damaged)
        return complain_of_damage(t);
    size_t before = strlen(opens), length = before + l.length + 1;
    char *text = memory_resized(NULL, length);
    memcpy(text, opens, before);
    memcpy(text + before, l.text, l.length);
    text[length - 1] = '\n';
    t->tail = document_from_lines(text, length, &t->in, &too_large, &ignored);
    free(text);
    return !t->in.failed && (!too_large || complaint_set(t->why, "%s", ignored.text));
}

static bool read_lines(trace *t, const trace_visitor *to)
{
    line raw;
    while (lines_next(&t->in, &raw)) {
        line l = line_trim(raw);
        if (t->in.number % LINES_BETWEEN_LOOKS == 0)
            progress_show(&t->shown, source_progress(t->in.from));
        if (l.length == 0)
            continue;
        if (l.text[0] == ']')
            return read_tail(t, raw);
        if ((!to->wants || to->wants(to->user, l)) && !read_line(t, to, l))
            return false;
    }
    return !t->in.failed;
}

/* To the first event again. */
static bool rewind_lines(trace *t)
{
    json_t *head;
    line text;
    if (!lines_rewind(&t->in))
        return complaint_set(t->why, "cannot be read a second time");
    t->damaged = 0;
    json_decref(t->tail);
    t->tail = NULL;
    bool there = trace_read_head(&t->in, &head, &text, t->why);
    json_decref(head);
    free(text.text);
    return there;
}

/* ---- in memory ---- */

static void read_document(trace *t, const trace_visitor *to)
{
    json_t *events =
        json_is_array(t->document) ? t->document : json_object_get(t->document, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        event e;
        event_read(&e, (object){.tree = json_array_get(events, i)}, NULL, 0);
        to->event(to->user, &e);
    }
}

bool trace_read(trace *t, const trace_visitor *to)
{
    if (t->document) {
        read_document(t, to);
        return true;
    }
    if (t->behind_events && !rewind_lines(t))
        return false;
    t->behind_events = true;
    return read_lines(t, to);
}
