#include "load/load.h"

#include "core/arena.h"
#include "read/json_read.h"
#include "out/report/report.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_MOST ((size_t)4 << 20)
#define HEAD_LINES 64
#define EVENTS "\"traceEvents\":["

/* ---- bytes ---- */

static bool append(line *to, const char *text, size_t length, complaint *why)
{
    char *grown = realloc(to->text, to->length + length + 1);
    if (!grown)
        return complaint_set(why, "out of memory");
    memcpy(grown + to->length, text, length);
    to->text = grown;
    to->length += length;
    return true;
}

/* ---- what the file is ---- */

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

/* The head as a document of its own; NULL if it is none. False, and why, without memory. */
static bool close_head(const line *read, json_t **head, complaint *why)
{
    complaint ignored = {""};
    line closed = {0}, trimmed = line_trim((line){read->text, read->length - 1});
    const char *end = trimmed.length == 1 ? "]" : "]}";
    bool fits =
        append(&closed, read->text, read->length, why) && append(&closed, end, strlen(end), why);
    bool too_large = false;
    if (fits)
        *head = load_json(closed.text, closed.length, &too_large, &ignored);
    free(closed.text);
    return fits && (!too_large || complaint_set(why, "%s", ignored.text));
}

bool load_head(lines *in, json_t **head, line *read, complaint *why)
{
    line l;
    *head = NULL;
    *read = (line){0};
    for (int i = 0; i < HEAD_LINES && read->length < HEAD_MOST && lines_ahead(in, HEAD_MOST) &&
                    lines_next(in, &l);
         i++) {
        bool ends = ends_head(l, i == 0);
        if (!append(read, l.text, l.length, why) || !append(read, "\n", 1, why))
            return false;
        if (ends)
            return close_head(read, head, why);
    }
    return !in->failed;
}

bool load_events_are_lines(lines *in)
{
    line l;
    complaint ignored = {""};
    bool too_large = false;
    if (!lines_ahead(in, LINES_LONGEST) || !lines_next(in, &l))
        return false;
    line trimmed = line_trim(l);
    bool tail = trimmed.length && trimmed.text[0] == ']';
    json_t *event = tail ? NULL : load_json(trimmed.text, trimmed.length, &too_large, &ignored);
    bool whole_line = json_is_object(event);
    json_decref(event);
    lines_unread(in);
    return tail || whole_line || too_large;
}

static bool load_document(json_t *document, const load_options *options, pki_summary *out,
                          complaint *why)
{
    const char *format = json_string_value(json_object_get(document, "format"));
    json_t *report = json_object_get(document, "perfkitReport");
    if (format && strcmp(format, PKI_REPORT_FORMAT) == 0)
        return load_report(document, out, why);
    if (json_is_object(report) && !options->events)
        return load_report(report, out, why);
    if (json_is_array(document) || json_is_array(json_object_get(document, "traceEvents")))
        return load_trace_whole(document, options, out, why);
    return complaint_set(why, "is JSON, but neither a report of perfkit nor a Chrome trace");
}

static bool load_whole(lines *in, line *read, const load_options *options, pki_summary *out,
                       complaint *why)
{
    bool too_large;
    json_t *document = load_json_rest(read->text, read->length, in, &too_large, why);
    bool loaded = document && load_document(document, options, out, why);
    json_decref(document);
    return loaded;
}

static bool load_lines(lines *in, const char *path, const load_options *options, pki_summary *out,
                       complaint *why)
{
    json_t *head;
    line read;
    if (lines_begin_with(in, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC))
        return complaint_set(why, "is the arena of a run, not its report: `pk recover` makes a"
                                  " trace of it");
    progress telling = progress_start(path, options->progress);
    bool loaded = load_head(in, &head, &read, why);
    if (loaded && head && load_events_are_lines(in))
        loaded = load_trace_lines(in, head, options, &telling, out, why);
    else if (loaded)
        loaded = load_whole(in, &read, options, out, why);
    json_decref(head);
    free(read.text);
    progress_end(&telling);
    return loaded;
}

bool load_run(const char *path, const load_options *options, pki_summary *out, complaint *why)
{
    lines in;
    if (!lines_open(&in, path, LINES_LONGEST, why))
        return false;
    bool loaded = load_lines(&in, path, options, out, why);
    lines_close(&in);
    return loaded;
}
