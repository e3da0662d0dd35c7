/* tools/load/load.h - the summary of a run from a file, or from several */
#pragma once

#include "complaint.h"
#include "measure/summary.h"

typedef struct load_options {
    bool per_thread;   /* each thread's regions, if they have to be made from events */
    bool events;       /* made from the events also where a trace has its report in it */
    bool tree;         /* the call tree; made from events alone */
    bool progress;     /* on stderr, when it takes long */
    const char *steps; /* "A-B" or "A": of windows only those with any of these; NULL: all */
} load_options;

/* False, and why. */
bool load_run(const char *path, const load_options *options, pki_summary *out, complaint *why);

/* The same of a file that is open; if its events have been read, and its report found, not again.
 */
struct trace;
bool load_trace(struct trace *t, const load_options *options, pki_summary *out);

/* From the report's text. */
bool load_report(const char *text, size_t length, pki_summary *out, complaint *why);

/* One window from its line. False, and why: then there is nothing to be finished. */
struct pki_window;
bool load_window(const char *text, size_t length, struct pki_window *window, complaint *why);
