#include "trace/walk.h"

#include "load/load.h"

#include <stdlib.h>
#include <string.h>

#define LINES_BETWEEN_TELLING 4096

static bool out_of_memory(walk *w)
{
    return complaint_set(w->why, "out of memory");
}

static bool damaged(walk *w)
{
    return complaint_set(w->why, "is damaged: line %llu is not an event",
                         (unsigned long long)w->damaged);
}

static bool take_event(walk *w, line l)
{
    const event *e;
    reading found = event_reader_read(&w->reader, l, &e);
    if (found == READ_NO_MEMORY)
        return out_of_memory(w);
    if (found == READ_NOTHING) {
        /* If nothing good follows, this is where the file was cut. */
        if (!w->damaged)
            w->damaged = w->in->number;
        return true;
    }
    if (w->damaged)
        return damaged(w);
    return w->take(w->user, e) || out_of_memory(w);
}

/* The rest of the document, from the bracket that closes the events. */
static bool take_tail(walk *w, line l)
{
    static const char object_opens[] = "{\"traceEvents\":[";
    const char *opens = w->array ? "[" : object_opens;
    complaint ignored = {""};
    bool too_large = false;
    if (w->damaged)
        return damaged(w);
    size_t before = strlen(opens), length = before + l.length + 1;
    char *text = malloc(length);
    if (!text)
        return out_of_memory(w);
    memcpy(text, opens, before);
    memcpy(text + before, l.text, l.length);
    text[length - 1] = '\n';
    w->tail = load_json_rest(text, length, w->in, &too_large, &ignored);
    free(text);
    return !w->in->failed && (!too_large || complaint_set(w->why, "%s", ignored.text));
}

bool walk_lines(walk *w)
{
    line raw;
    while (lines_next(w->in, &raw)) {
        line l = line_trim(raw);
        if (w->in->number % LINES_BETWEEN_TELLING == 0)
            progress_tell(w->telling, source_progress(w->in->from));
        if (l.length == 0)
            continue;
        if (l.text[0] == ']')
            return take_tail(w, raw);
        if ((!w->wants || w->wants(w->user, l)) && !take_event(w, l))
            return false;
    }
    return !w->in->failed;
}

void walk_again(walk *w)
{
    w->damaged = 0;
    json_decref(w->tail);
    w->tail = NULL;
}

bool walk_open(walk *w)
{
    w->damaged = 0;
    w->tail = NULL;
    return event_reader_open(&w->reader) || out_of_memory(w);
}

void walk_close(walk *w)
{
    walk_again(w);
    event_reader_close(&w->reader);
}
