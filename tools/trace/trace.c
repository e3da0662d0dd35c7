#include "trace/trace.h"

#include <stdlib.h>

#include "core/arena.h"
#include "measure/window/window.h"
#include "memory.h"
#include "out/report/report.h"
#include "read/json.h"

/* ---- which slices of a thread lie in which ---- */

size_t nest_inside(const nest *n, uint64_t start)
{
    size_t inside = n->count;
    while (inside && n->waiting[inside - 1].start >= start)
        inside--;
    return inside;
}

void nest_add(nest *n, size_t inside, nest_slice slice)
{
    memory_fit(&n->waiting, &n->room, inside + 1, sizeof *n->waiting);
    n->waiting[inside] = slice;
    n->count = inside + 1;
}

/* ---- the events of a trace, from the first to the last ---- */

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

/* ---- what a file of a run is, and what stands before its events ---- */

#define HEAD_MOST ((size_t)4 << 20)
#define HEAD_LINES 64
#define EVENTS "\"traceEvents\":["
#define WINDOWS "{\"format\":\"" PKI_WINDOW_FORMAT "\""

static void append(line *to, const char *text, size_t length)
{
    to->text = memory_resized(to->text, to->length + length + 1);
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

static bool ends_head(line l, bool first)
{
    char tight[sizeof EVENTS] = "";
    size_t kept = sizeof EVENTS - 1;
    l = line_trim(l);
    if (first && l.length == 1 && l.text[0] == '[')
        return true;
    /* From the end, without the blanks that some writers put around the colon. */
    for (size_t i = l.length; i > 0 && kept > 0; i--)
        if (l.text[i - 1] != ' ')
            tight[--kept] = l.text[i - 1];
    return kept == 0 && memcmp(tight, EVENTS, sizeof EVENTS - 1) == 0;
}

/* The head as a document of its own; NULL if it is none. False, and why, if it is too large. */
static bool close_head(const line *text, json_t **head, complaint *why)
{
    complaint ignored = {""};
    line closed = {0}, trimmed = line_trim((line){text->text, text->length - 1});
    const char *end = trimmed.length == 1 ? "]" : "]}";
    bool too_large = false;
    append(&closed, text->text, text->length);
    append(&closed, end, strlen(end));
    *head = document_from_text(closed.text, closed.length, &too_large, &ignored);
    free(closed.text);
    return !too_large || complaint_set(why, "%s", ignored.text);
}

bool trace_read_head(lines *in, json_t **head, line *text, complaint *why)
{
    line l;
    *head = NULL;
    *text = (line){0};
    for (int i = 0; i < HEAD_LINES && text->length < HEAD_MOST && lines_ahead(in, HEAD_MOST) &&
                    lines_next(in, &l);
         i++) {
        bool ends = ends_head(l, i == 0);
        append(text, l.text, l.length);
        append(text, "\n", 1);
        if (ends)
            return close_head(text, head, why);
    }
    return !in->failed;
}

/* Is the next line, behind the head, an event or the end? Traces that are laid out for people begin
 * like ours, but then it is not. */
static bool events_are_lines(lines *in)
{
    line l;
    bool too_large = false;
    if (!lines_ahead(in, LINES_LONGEST) || !lines_next(in, &l))
        return false;
    l = line_trim(l);
    bool ends = l.length && l.text[0] == ']';
    bool whole_line = !ends && document_is_object(l, &too_large);
    lines_unread(in);
    return ends || whole_line || too_large;
}

/* ---- the file ---- */

static json_t *events_of(const json_t *document)
{
    return json_is_array(document) ? (json_t *)document : json_object_get(document, "traceEvents");
}

static bool is_report(const json_t *document)
{
    const char *format = json_string_value(json_object_get(document, "format"));
    return format && strcmp(format, PKI_REPORT_FORMAT) == 0;
}

static bool open_document(trace *t, const line *text)
{
    bool too_large;
    t->document = document_from_lines(text->text, text->length, &t->in, &too_large, t->why);
    return t->document &&
           (json_is_array(events_of(t->document)) || trace_report(t) ||
            complaint_set(t->why, "is JSON, but neither a report of perfkit nor a Chrome trace"));
}

static bool open_lines(trace *t)
{
    line text;
    if (lines_begin_with(&t->in, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC))
        return complaint_set(t->why, "is the arena of a run, not its report: `pk recover` makes a"
                                     " trace of it");
    if (lines_begin_with(&t->in, PKI_RANKS_BEGIN, sizeof PKI_RANKS_BEGIN - 1))
        return complaint_set(t->why, "is the file of a job (job_path), which `pk job` reads");
    t->windows = lines_begin_with(&t->in, WINDOWS, sizeof WINDOWS - 1);
    if (t->windows)
        return true;
    bool opened = trace_read_head(&t->in, &t->head, &text, t->why);
    if (opened && !(t->head && events_are_lines(&t->in))) {
        json_decref(t->head);
        t->head = NULL;
        opened = open_document(t, &text);
    } else if (opened) {
        event_reader_open(&t->reader);
    }
    free(text.text);
    return opened;
}

bool trace_open_run(trace *t, const char *path, bool show, complaint *why)
{
    *t = (trace){.why = why};
    if (!lines_open(&t->in, path, LINES_LONGEST, why))
        return false;
    t->shown = progress_start(path, show);
    if (open_lines(t))
        return true;
    trace_close(t);
    return false;
}

bool trace_open(trace *t, const char *path, bool show, complaint *why)
{
    if (!trace_open_run(t, path, show, why))
        return false;
    if (!t->windows)
        return true;
    trace_close(t);
    return complaint_set(why, "holds the windows of a run, which `pk report` reads");
}

void trace_close(trace *t)
{
    progress_end(&t->shown);
    event_reader_close(&t->reader);
    json_decref(t->head);
    json_decref(t->tail);
    json_decref(t->document);
    lines_close(&t->in);
}

bool trace_has_events(const trace *t)
{
    return !t->document || json_is_array(events_of(t->document));
}

bool trace_can_be_read_again(const trace *t)
{
    return t->document || source_is_rewindable(t->in.from);
}

json_t *trace_head(const trace *t)
{
    return t->document ? t->document : t->head;
}

static json_t *object_behind(const trace *t, const char *key)
{
    json_t *found = json_object_get(t->document ? t->document : t->tail, key);
    return json_is_object(found) ? found : NULL;
}

json_t *trace_report(const trace *t)
{
    return t->document && is_report(t->document) ? t->document : object_behind(t, "perfkitReport");
}

json_t *trace_capture(const trace *t)
{
    return object_behind(t, "perfkitCapture");
}

bool trace_is_whole(const trace *t)
{
    return t->document || t->tail;
}
