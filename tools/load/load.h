/* tools/load/load.h - the summary of a run from a file: its report, the report inside its trace, or its
 * trace. */
#ifndef TOOLS_LOAD_H
#define TOOLS_LOAD_H

#include "complaint.h"
#include "measure/summary.h"
#include "progress.h"
#include "read/lines.h"

#include <jansson.h>

typedef struct load_options {
    bool per_thread; /* each thread's regions, if they have to be made from events */
    bool events;     /* made from the events also where a trace has its report in it */
    bool progress;   /* on stderr, when it takes long */
} load_options;

/* False, and why. */
bool load_run(const char *path, const load_options *options, pki_summary *out, complaint *why);

/* load/report.c: from the report's JSON object. */
bool load_report(json_t *report, pki_summary *out, complaint *why);

/* load/trace.c: from a trace's object or array, in memory... */
bool load_trace_whole(json_t *trace, const load_options *options, pki_summary *out, complaint *why);

/* ...or line by line. `in` stands behind the trace's head, which is given with an empty
 * "traceEvents". */
bool load_trace_lines(lines *in, json_t *head, const load_options *options, progress *telling,
                      pki_summary *out, complaint *why);

/* The head of a trace in lines: everything up to "traceEvents":[ and the end of that line, as an
 * object (or an empty array, for a trace that is one). If the file is not like that, *head is NULL.
 * What was read is in *read, the caller's to free. False, and why, if it cannot be read. */
bool load_head(lines *in, json_t **head, line *read, complaint *why);

/* Is the next line, behind the head, an event or the end? Traces that are laid out for people begin
 * like ours, but then it is not. */
bool load_events_are_lines(lines *in);

/* read/document.c: NULL if it is not JSON, and why; also without memory or beyond a bound, and then
 * *too_large is set. */
json_t *load_json(const char *text, size_t length, bool *too_large, complaint *why);

/* The same of what is left of a file, with this text (NULL: none) before it: in the memory of the document, not
 * of its text. */
json_t *load_json_rest(const char *before, size_t length, lines *in, bool *too_large,
                       complaint *why);

#endif
