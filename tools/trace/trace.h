/* tools/trace/trace.h - a file of a run: a trace, event by event, or a report */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files.h"
#include "trace/reader.h"

/* ---- which slices of a thread lie in which ---- */

/* Slices come in the order of their ends, inner ones first, as perfkit lists them. So a slice lies
 * in the first one after it that begins no later; until that one comes it waits here, with those
 * that began before it. */

typedef struct nest_slice {
    uint64_t start, end;
    uint64_t value; /* its owner's */
} nest_slice;

typedef struct nest {
    size_t count, room;
    nest_slice *waiting; /* by start; to be freed */
} nest;

/* Those that lie directly in a slice that begins then: waiting[the answer .. count). */
size_t nest_inside(const nest *n, uint64_t start);

/* The slice waits in their place. */
void nest_add(nest *n, size_t inside, nest_slice slice);

/* For qsort: the order in which slices have to come. 0: both are of the same times. */
static inline int nest_order(uint64_t start, uint64_t end, uint64_t other_start, uint64_t other_end)
{
    if (end != other_end)
        return end < other_end ? -1 : 1;
    return (start < other_start) - (start > other_start);
}

/* ---- a file of a run: a trace, event by event, or a report ---- */

/*
 *     trace t;
 *     if (trace_open(&t, "run.json", true, &why)) {
 *         read = trace_read(&t, &(trace_visitor){.user = me, .event = take_event});
 *         trace_close(&t);
 *     }
 *
 * A trace with one event on each line, as perfkit writes them, is read in the memory of its longest
 * line. What is laid out in another way becomes a document in memory first; who reads the events
 * does not see which of the two it was. */

typedef struct trace {
    lines in;
    complaint *why;
    progress shown;
    /* Of a file in lines: the members of its object but for the events, or an empty array if it is
     * one; and what stands behind the events, once they have been read: NULL if the file is cut
     * off. Else `document`: all of it. */
    json_t *head, *tail, *document;
    event_reader reader;
    bool behind_events; /* of a file in lines */
    bool windows;       /* it is a file of windows (load/windows.h): lines, and nothing else */
    uint64_t damaged;   /* the first line that is no event, 0: none so far */
} trace;

/* Who wants the events. */
typedef struct trace_visitor {
    void *user;
    bool (*wants)(void *user, line l); /* NULL: all lines are of interest. Of lines alone */
    void (*event)(void *user, const event *e);
} trace_visitor;

/* "-" is the standard input. show: on stderr how far it is, if it takes long. False, and why, if it
 * is no file of a run; then it need not be closed. */
bool trace_open(trace *t, const char *path, bool show, complaint *why);

/* The same, and a file of windows is one, too. */
bool trace_open_run(trace *t, const char *path, bool show, complaint *why);
void trace_close(trace *t);

/* Are there events? If not, it is a report. */
bool trace_has_events(const trace *t);

/* All events, from the first on: also a second time, if it can be read again. False, and why: it is
 * damaged amid its events. A file that is cut off, even in a line, is none
 * of it. */
bool trace_read(trace *t, const trace_visitor *to);

/* False for lines from a pipe. */
bool trace_can_be_read_again(const trace *t);

/* The members of its object: of a file in lines those before the events. */
json_t *trace_head(const trace *t);

/* The report: all of it, or what stands in a trace; of lines known once they have been read. NULL:
 * none. */
json_t *trace_report(const trace *t);

/* What it says of itself if it is a capture; known when the report is. NULL: it is none. */
json_t *trace_capture(const trace *t);

/* Does it have its end? Of lines once they have been read. */
bool trace_is_whole(const trace *t);

/* The head of a trace in lines: everything up to "traceEvents":[ and the end of that line, as an
 * object (or an empty array, for a trace that is one). If the file is not like that, *head is NULL.
 * What was read is in *text, the caller's to free. False, and why, if it cannot be read. */
bool trace_read_head(lines *in, json_t **head, line *text, complaint *why);
