/* tools/load/trace.c - traces: the report at their end, or one made from their events. */
#include "load/load.h"

#include "rebuild/reader.h"
#include "rebuild/rebuild.h"

#include <stdlib.h>
#include <string.h>

#define LINES_BETWEEN_TELLING 4096

/* One walk over the lines of a trace. */
typedef struct walk {
    lines *in;
    complaint *why;
    progress *telling;
    bool array;                /* the document is the array of events itself */
    rebuild *to;               /* NULL: look for the report only */
    char stepper[EVENT_TRACK]; /* of the first step; "" if there is none */
    uint64_t damaged;          /* the first line that is no event, 0: none so far */
    event_reader reader;
    json_t *tail; /* what stands after the events, if the trace is whole */
} walk;

static bool out_of_memory(complaint *why)
{
    return complaint_set(why, "out of memory");
}

static bool damaged(walk *w)
{
    return complaint_set(w->why, "is damaged: line %llu is not an event",
                         (unsigned long long)w->damaged);
}

/* ---- lines ---- */

static bool take_event(walk *w, line l)
{
    const event *e;
    reading found = event_reader_read(&w->reader, l, &e);
    if (found == READ_NO_MEMORY)
        return out_of_memory(w->why);
    if (found == READ_NOTHING) {
        /* If nothing good follows, this is where the file was cut. */
        if (!w->damaged)
            w->damaged = w->in->number;
        return true;
    }
    if (e->type == EVENT_STEP && !w->stepper[0])
        memcpy(w->stepper, e->stepper, sizeof w->stepper);
    if (w->damaged)
        return damaged(w);
    return !w->to || rebuild_event(w->to, e) || out_of_memory(w->why);
}

/* The rest of the document, from the bracket that closes the events. */
static bool take_tail(walk *w, line l)
{
    static const char object_opens[] = "{\"traceEvents\":[";
    const char *opens = w->array ? "[" : object_opens;
    complaint ignored = {""};
    bool too_large = false;
    line rest;
    if (w->damaged)
        return damaged(w);
    size_t before = strlen(opens), length = l.length;
    char *text = malloc(before + length + 1);
    if (!text)
        return out_of_memory(w->why);
    memcpy(text, opens, before);
    memcpy(text + before, l.text, length);
    text[before + length] = '\n';
    bool taken = lines_rest(w->in, w->in->most, &rest);
    char *grown = taken ? realloc(text, before + length + 1 + rest.length) : NULL;
    if (grown) {
        memcpy(grown + before + length + 1, rest.text, rest.length);
        w->tail = load_json(grown, before + length + 1 + rest.length, &too_large, &ignored);
        text = grown;
    }
    free(text);
    return taken && ((grown && !too_large) || out_of_memory(w->why));
}

static bool is_step(line l)
{
    static const char mark[] = "\"ProfilerStep#";
    return memmem(l.text, l.length, mark, sizeof mark - 1) != NULL;
}

static bool walk_lines(walk *w)
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
        /* Without a rebuild only the steps' thread is of interest. */
        if ((w->to || (!w->stepper[0] && is_step(l))) && !take_event(w, l))
            return false;
    }
    return !w->in->failed;
}

/* ---- the ways to read it ---- */

static bool back_to_events(lines *in, complaint *why)
{
    json_t *head;
    line read;
    if (!lines_rewind(in))
        return complaint_set(why, "cannot be read a second time");
    bool there = load_head(in, &head, &read, why);
    json_decref(head);
    free(read.text);
    return there;
}

typedef enum outcome { DONE, FAILED, UNSORTED } outcome;

static outcome finish(walk *w, json_t *head, pki_summary *out)
{
    json_t *report = json_object_get(w->tail, "perfkitReport");
    if (json_is_object(report))
        return load_report(report, out, w->why) ? DONE : FAILED;
    if (rebuild_needs_sorting(w->to))
        return UNSORTED;
    if (rebuild_finish(w->to, head, w->tail != NULL, out))
        return DONE;
    out_of_memory(w->why);
    return FAILED;
}

static outcome rebuild_from(walk *w, json_t *head, bool sort, bool per_thread, pki_summary *out)
{
    outcome result = FAILED;
    w->to = rebuild_create(sort, per_thread);
    w->damaged = 0;
    json_decref(w->tail);
    w->tail = NULL;
    if (!w->to) {
        out_of_memory(w->why);
        return FAILED;
    }
    if (w->stepper[0])
        rebuild_expect_steps(w->to, w->stepper);
    if (walk_lines(w))
        result = finish(w, head, out);
    rebuild_destroy(w->to);
    w->to = NULL;
    return result;
}

/* A first walk finds the report, or else whose steps there are, without looking at each event. */
static outcome walk_twice(walk *w, json_t *head, bool per_thread, pki_summary *out)
{
    if (!walk_lines(w))
        return FAILED;
    json_t *report = json_object_get(w->tail, "perfkitReport");
    if (json_is_object(report))
        return load_report(report, out, w->why) ? DONE : FAILED;
    if (!back_to_events(w->in, w->why))
        return FAILED;
    outcome result = rebuild_from(w, head, false, per_thread, out);
    if (result != UNSORTED)
        return result;
    return back_to_events(w->in, w->why) ? rebuild_from(w, head, true, per_thread, out) : FAILED;
}

bool load_trace_lines(lines *in, json_t *head, const load_options *options, progress *telling,
                      pki_summary *out, complaint *why)
{
    walk w = {.in = in, .why = why, .telling = telling, .array = json_is_array(head)};
    bool again = source_is_rewindable(in->from);
    if (!event_reader_open(&w.reader))
        return out_of_memory(why);
    outcome result = again ? walk_twice(&w, head, options->per_thread, out)
                           : rebuild_from(&w, head, true, options->per_thread, out);
    event_reader_close(&w.reader);
    json_decref(w.tail);
    return result == DONE;
}

/* ---- in memory ---- */

bool load_trace_whole(json_t *trace, const load_options *options, pki_summary *out, complaint *why)
{
    json_t *events = json_is_array(trace) ? trace : json_object_get(trace, "traceEvents");
    rebuild *r = rebuild_create(true, options->per_thread);
    bool fits = r != NULL;
    for (size_t i = 0; fits && i < json_array_size(events); i++) {
        event e;
        event_read(&e, (object){.tree = json_array_get(events, i)}, NULL, 0);
        fits = rebuild_event(r, &e);
    }
    fits = fits && rebuild_finish(r, trace, true, out);
    rebuild_destroy(r);
    return fits || out_of_memory(why);
}
