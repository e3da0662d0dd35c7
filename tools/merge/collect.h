/* tools/merge/collect.h - operations on communicators, from the events of a trace. */
#pragma once

#include "merge/fields.h"
#include "job/clocks/clocks.h"
#include "merge/source.h"
#include "trace/trace.h"

/* A slice that came lately, on whatever thread. */
typedef struct recent {
    uint64_t tid, start;
} recent;

#define COLLECTOR_RECENT 1024

typedef struct collector {
    pki_joints *into;
    event_reader reader;
    char *copy; /* of a line: it is taken apart in place */
    size_t room;
    pki_joint open; /* a pair's beginning, whose end comes next */
    uint64_t open_id;
    bool is_open;
    alike known;
    recent recent[COLLECTOR_RECENT];
    uint32_t next; /* place in it */
} collector;

void collector_open(collector *c, pki_joints *into);
void collector_close(collector *c);

/* The slices of another file begin. */
void collector_new_file(collector *c);

/* A slice: a pair of events may be of the call that it is. */
void collector_note(collector *c, const fields *f);

/* Could this event be one, or the end of one? */
bool collector_wants(const collector *c, line l, const fields *f);

/* Takes the event, which became this process's in the merged trace. False, and why. */
bool collector_add(collector *c, uint32_t of, line l, const fields *f, uint32_t pid, bool written,
                   complaint *why);
