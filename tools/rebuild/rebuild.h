/* tools/rebuild/rebuild.h - the summary of a run from the events of its trace */
#pragma once

#include "measure/summary.h"
#include "trace/event.h"

/* ---- rebuild ---- */

/* The summary of a run from the events of its trace, for traces that hold
 * no report.
 *
 * Self times come from nesting: a slice's self time is what the slices inside it on its thread
 * leave. Traces of perfkit list each thread's slices by their ends, inner ones first, so this goes
 * event by event and keeps only what is open, per name, per thread; rebuild_needs_sorting says when
 * a trace is not like that, and a rebuild made with `sort` keeps the events (about 50 bytes each)
 * until the end.
 *
 * What a trace does not have, the summary lacks: calls that were dropped, the cost of perfkit, the
 * CPU time. In steps, time of regions that were open across more than REBUILD_WINDOW steps is
 * untracked. */

#define REBUILD_WINDOW 8
#define REBUILD_NAMES_MOST 65536
#define REBUILD_THREADS_MOST 65536

typedef struct rebuild rebuild;

/* per_thread: each thread's regions, too. */
rebuild *rebuild_create(bool sort, bool per_thread);
void rebuild_destroy(rebuild *r);

/* Before the first event: the call tree, too. */
void rebuild_want_tree(rebuild *r);

/* A thread that makes steps. The first one's self times the steps are made of, and its process is
 * the one that the report is of; needed before the first event unless sorting. */
void rebuild_expect_steps(rebuild *r, const char *track);

void rebuild_event(rebuild *r, const event *e);

/* What follows is another file's: events that were known (event.h) are no more. */
void rebuild_next_file(rebuild *r);
bool rebuild_needs_sorting(const rebuild *r);

/* What a capture says of itself ("perfkitCapture"); NULL: it is none. It has to live until
 * rebuild_finish. Figures of the whole run are none of its steps', and stay away. */
void rebuild_set_capture(rebuild *r, json_t *capture);

/* head: the members of the trace's object but for the events, or NULL. whole: the file was read to
 * its end, and that was the document's end. */
void rebuild_finish(rebuild *r, json_t *head, bool whole, pki_summary *out);
