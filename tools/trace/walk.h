/* tools/trace/walk.h - the events of a trace that has one on each line, and what stands behind them. */
#ifndef TOOLS_WALK_H
#define TOOLS_WALK_H

#include "progress.h"
#include "read/lines.h"
#include "trace/reader.h"

typedef struct walk {
    lines *in; /* behind the trace's head */
    complaint *why;
    progress *telling;
    bool array; /* the document is the array of events itself */
    void *user;
    bool (*wants)(void *user, line l); /* NULL: every line is of interest */
    bool (*take)(void *user, const event *e); /* false: no memory */
    event_reader reader;
    uint64_t damaged; /* the first line that is no event, 0: none so far */
    json_t *tail;     /* what stands after the events, if the trace is whole */
} walk;

/* The members above user are set; false, and why, without memory. */
bool walk_open(walk *w);
void walk_close(walk *w);

/* To the end of the file. False, and why: it is damaged amid its events, or there is no memory. A
 * file that is cut off, even in a line, is none of it: then there is no tail. */
bool walk_lines(walk *w);

/* Once more: `in` stands behind the head again. */
void walk_again(walk *w);

#endif
