#include "trace/trace.h"

#include <stdlib.h>

#include "core/arena.h"
#include "measure/window/window.h"
#include "memory.h"
#include "out/report/report.h"
#include "read/json.h"
#include "read/token.h"

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
#define WHOLE_MOST ((size_t)512 << 20) /* of what is read at once */

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

/* An object's text, kept for whoever reads it. */
static void keep(line *to, const char *from, const char *end)
{
    to->length = (size_t)(end - from);
    to->text = memory_resized(to->text, to->length + 1);
    memcpy(to->text, from, to->length);
}

static void forget(line *kept)
{
    free(kept->text);
    *kept = (line){0};
}

static line *place_of(trace *t, const char *key, size_t length)
{
    return token_is(key, length, "perfkitReport")    ? &t->report
           : token_is(key, length, "perfkitCapture") ? &t->capture
                                                     : NULL;
}

/* From behind the bracket that closes the events. */
static void scan_members(trace *t, scan *s)
{
    const char *key;
    size_t length;
    for (size_t n = 1; token_more(s, '}', n) && token_key(s, &key, &length); n++) {
        bool wanted = token_peek(s) == '{';
        const char *from = s->at;
        line *place = wanted ? place_of(t, key, length) : NULL;
        token_skip(s);
        if (place && !s->failed)
            keep(place, from, s->at);
    }
}

/* The rest of the document, from the line of that bracket on, which has just been read. */
static bool read_tail(trace *t)
{
    complaint ignored = {""};
    line rest;
    if (t->damaged)
        return complain_of_damage(t);
    lines_unread(&t->in);
    if (!lines_rest(&t->in, WHOLE_MOST, &rest))
        return false;
    scan s = {.at = rest.text, .end = rest.text + rest.length, .why = &ignored};
    token_expect(&s, ']');
    if (!t->array)
        scan_members(t, &s);
    t->whole = token_ends(&s);
    if (!t->whole) {
        forget(&t->report);
        forget(&t->capture);
    }
    return true;
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
            return read_tail(t);
        if ((!to->wants || to->wants(to->user, l)) && !read_line(t, to, l))
            return false;
    }
    return !t->in.failed;
}

/* To the first event again. */
static bool rewind_lines(trace *t)
{
    trace_head head;
    trace_about about;
    line text;
    if (!lines_rewind(&t->in))
        return complaint_set(t->why, "cannot be read a second time");
    t->damaged = 0;
    t->whole = false;
    forget(&t->report);
    forget(&t->capture);
    bool there = trace_read_head(&t->in, &head, &about, &text);
    trace_about_forget(&about);
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
    if (!t->lines) {
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

/* What kind of a head it is, if it is one. */
static trace_head close_head(const line *text, trace_about *about)
{
    line closed = {0}, trimmed = line_trim((line){text->text, text->length - 1});
    bool array = trimmed.length == 1;
    append(&closed, text->text, text->length);
    append(&closed, "]}", 2);
    bool whole = !array && trace_about_read(about, closed.text, closed.length);
    free(closed.text);
    return array ? HEAD_ARRAY : whole ? HEAD_OBJECT : HEAD_NONE;
}

bool trace_read_head(lines *in, trace_head *head, trace_about *about, line *text)
{
    line l;
    *head = HEAD_NONE;
    *text = (line){0};
    trace_about_begin(about);
    for (int i = 0; *head == HEAD_NONE && i < HEAD_LINES && text->length < HEAD_MOST &&
                    lines_ahead(in, HEAD_MOST) && lines_next(in, &l);
         i++) {
        bool ends = ends_head(l, i == 0);
        append(text, l.text, l.length);
        append(text, "\n", 1);
        if (!ends)
            continue;
        *head = close_head(text, about);
        break;
    }
    trace_about_end(about);
    return !in->failed;
}

/* Is the next line, behind the head, an event or the end? Traces that are laid out for people begin
 * like ours, but then it is not. */
static bool events_are_lines(lines *in)
{
    line l;
    if (!lines_ahead(in, LINES_LONGEST) || !lines_next(in, &l))
        return false;
    l = line_trim(l);
    bool ends = l.length && l.text[0] == ']', whole = !ends && token_is_object(l.text, l.length);
    lines_unread(in);
    return ends || whole;
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

/* ---- laid out in another way than ours: by way of jansson ---- */

/* What our own reader is to read of it is written anew. */

static int put_text(const char *text, size_t length, void *user)
{
    line *to = user;
    to->text = memory_resized(to->text, to->length + length + 1);
    memcpy(to->text + to->length, text, length);
    to->length += length;
    return 0;
}

static bool write_anew(json_t *json, line *to)
{
    *to = (line){0};
    bool written =
        json_is_object(json) && json_dump_callback(json, put_text, to, JSON_COMPACT) == 0;
    if (!written)
        forget(to);
    return written;
}

/* An object of these of its members. */
static void read_about(trace *t, const char *const *keys, size_t count)
{
    json_t *some = json_object();
    line text = {0};
    memory_needed(some != NULL);
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(t->document, keys[i]);
        memory_needed(!value || json_object_set(some, keys[i], value) == 0);
    }
    if (write_anew(some, &text))
        trace_about_read(&t->about, text.text, text.length);
    forget(&text);
    json_decref(some);
}

static bool open_document(trace *t, const line *text)
{
    static const char *const about[] = {"baseTimeNanoseconds", "distributedInfo", "metadata"};
    bool too_large;
    t->document = document_from_lines(text->text, text->length, &t->in, &too_large, t->why);
    if (!t->document)
        return false;
    trace_about_begin(&t->about);
    read_about(t, about, sizeof about / sizeof *about);
    trace_about_end(&t->about);
    write_anew(is_report(t->document) ? t->document : json_object_get(t->document, "perfkitReport"),
               &t->report);
    write_anew(json_object_get(t->document, "perfkitCapture"), &t->capture);
    t->whole = true;
    return json_is_array(events_of(t->document)) || t->report.text ||
           complaint_set(t->why, "is JSON, but neither a report of perfkit nor a Chrome trace");
}

/* ---- any ---- */

/* A report, as we begin it. */
static bool begins_report(const line *text)
{
    complaint ignored = {""};
    scan s = {.at = text->text, .end = text->text + text->length, .why = &ignored};
    const char *is;
    size_t length;
    return token_expect(&s, '{') && token_key(&s, &is, &length) && token_is(is, length, "format") &&
           token_raw(&s, &is, &length) && token_is(is, length, PKI_REPORT_FORMAT);
}

static bool open_report(trace *t, const line *text)
{
    line rest;
    if (!lines_rest(&t->in, WHOLE_MOST, &rest))
        return false;
    keep(&t->report, text->text, text->text + text->length);
    append(&t->report, rest.text, rest.length);
    t->whole = true;
    return true;
}

static bool open_lines(trace *t)
{
    trace_head head;
    line text;
    if (lines_begin_with(&t->in, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC))
        return complaint_set(t->why, "is the arena of a run, not its report: `pk recover` makes a"
                                     " trace of it");
    if (lines_begin_with(&t->in, PKI_RANKS_BEGIN, sizeof PKI_RANKS_BEGIN - 1))
        return complaint_set(t->why, "is the file of a job (job_path), which `pk job` reads");
    t->windows = lines_begin_with(&t->in, WINDOWS, sizeof WINDOWS - 1);
    if (t->windows)
        return true;
    bool opened = trace_read_head(&t->in, &head, &t->about, &text);
    t->lines = opened && head != HEAD_NONE && events_are_lines(&t->in);
    t->array = head == HEAD_ARRAY;
    if (t->lines) {
        event_reader_open(&t->reader);
    } else if (opened) {
        trace_about_forget(&t->about);
        opened = begins_report(&text) ? open_report(t, &text) : open_document(t, &text);
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
    trace_about_forget(&t->about);
    forget(&t->report);
    forget(&t->capture);
    json_decref(t->document);
    lines_close(&t->in);
}

bool trace_has_events(const trace *t)
{
    return t->lines || json_is_array(events_of(t->document));
}

bool trace_can_be_read_again(const trace *t)
{
    return !t->lines || source_is_rewindable(t->in.from);
}
