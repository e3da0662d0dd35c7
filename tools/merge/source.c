#include "merge/source.h"

#include "memory.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct reading_state {
    merge_source *source;
    source_visit *visit;
    void *user;
    fields_known *known;
    bool lengths;
} reading_state;

static bool visit_event(const reading_state *r, line l, fields *f)
{
    merge_source *s = r->source;
    fields_read_times(f, l, r->lengths);
    if (f->timed && f->start + f->length > s->when.last_ns)
        s->when.last_ns = f->start + f->length;
    return r->visit(r->user, s, l, f);
}

/* A line that is no whole event is where the file was cut, if nothing good follows. */
static bool read_line(const reading_state *r, trace *t, line l)
{
    fields f;
    if (!fields_find(&f, r->known, l)) {
        if (!t->damaged)
            t->damaged = t->in.number;
        return true;
    }
    if (t->damaged)
        return complaint_set(t->why, "is damaged: line %llu is not an event",
                             (unsigned long long)t->damaged);
    return visit_event(r, l, &f);
}

static bool read_lines(const reading_state *r, trace *t)
{
    line l;
    r->source->cut = true;
    while (lines_next(&t->in, &l)) {
        l = line_trim(l);
        if (l.length == 0)
            continue;
        if (l.text[0] == ']') {
            r->source->cut = t->damaged != 0;
            return true;
        }
        if (!read_line(r, t, l))
            return false;
    }
    return !t->in.failed;
}

/* Traces that are laid out for people. */
static bool read_document(const reading_state *r, trace *t)
{
    json_t *events =
        json_is_array(t->document) ? t->document : json_object_get(t->document, "traceEvents");
    bool going_on = true;
    for (size_t i = 0; going_on && i < json_array_size(events); i++) {
        char *text = json_dumps(json_array_get(events, i), JSON_COMPACT);
        memory_needed(text != NULL);
        line l = {text, strlen(text)};
        fields f;
        going_on = !fields_find(&f, r->known, l) || visit_event(r, l, &f);
        free(text);
    }
    return going_on;
}

bool source_read_events(merge_source *s, bool lengths, source_visit *visit, void *user,
                        complaint *why)
{
    trace t;
    if (!trace_open(&t, s->path, true, why))
        return false;
    reading_state r = {s, visit, user, memory_zeroed(1, sizeof *r.known), lengths};
    bool read = t.document ? read_document(&r, &t) : read_lines(&r, &t);
    trace_close(&t);
    free(r.known);
    return read;
}
