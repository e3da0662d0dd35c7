/* tools/rebuild/rebuild.h - the summary of a run from the events of its trace */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/figures/figures.h"
#include "measure/device/device.h"
#include "measure/requests/requests.h"
#include "measure/spans/spans.h"
#include "measure/steps/steps.h"
#include "measure/summary.h"
#include "measure/timeline.h"
#include "stats/tally.h"
#include "table.h"
#include "trace/trace.h"

/* ---- calls by path: of each region, in which regions it was called ---- */

/*
 *     tree t = {0};
 *     tree_call(&t, track, name, start, end);      (in the order of their ends, inner ones first)
 *     tree_walk(&t, tree_finish(&t), show, me);
 *     tree_free(&t);
 *
 * Which slice lies in which is known when the outer one comes (trace/trace.h). Until then a slice
 * waits with the tree of what lies in it, which then becomes part of its parent's: so no more is
 * kept than has not found its place, and the calls of one name within one path are one node. */

#define TREE_DEPTH_MOST 512 /* what is deeper counts as its parent's own */

typedef struct tree_node {
    uint32_t name;
    uint32_t next, inner; /* its neighbour, the first of those in it; 0: none */
    uint32_t height;      /* of what is in it */
    uint64_t calls, time, self;
} tree_node;

typedef struct tree {
    tree_node *nodes; /* from 1 on */
    size_t room;
    uint32_t count, unused; /* a list by `next` */
    uint32_t live;
    nest *waiting; /* by track; value: a list of nodes */
    size_t tracks;
} tree;

void tree_call(tree *t, uint32_t track, uint32_t name, uint64_t start, uint64_t end);

/* All tracks' as one list of nodes, by time, most first; 0: none. Then only the list is good. */
uint32_t tree_finish(tree *t);

/* Each node of the list and below, outer ones first. False from `visit`: not what is in it. */
typedef bool tree_visit(void *user, const tree_node *node, uint32_t depth);
void tree_walk(const tree *t, uint32_t list, tree_visit *visit, void *user);

void tree_free(tree *t);

/* Forgets all calls and keeps the memory. */
void tree_clear(tree *t);

/* ---- the summary of a run from its events, for traces that hold no report ---- */

/* Self times come from nesting: a slice's self time is what the slices inside it on its thread
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

/* It is a capture, which says this of its environment; that becomes the summary's. Figures of the
 * whole run are none of its steps', and stay away. */
void rebuild_set_capture(rebuild *r, const pki_environment *environment);

/* about: what the trace says of itself. whole: the file was read to its end, and that was the
 * document's end. */
void rebuild_finish(rebuild *r, const trace_about *about, bool whole, pki_summary *out);

/* ---- what a rebuilt run has beside its regions ---- */

/* Devices, communicators, spans, steps */

/* A slice or a step, while it waits to be sorted. */
#define REBUILD_BETWEEN UINT32_MAX /* ...this: no step, but the time between two */

typedef struct span {
    uint64_t start, end;
    uint64_t bytes, flops;   /* a step's items and index */
    float model, hardware;   /* a step's operations, in the bits that its record had */
    uint32_t thread, region; /* region TABLE_NONE: a step */
    uint32_t step_kind;      /* its place in rebuild.step_kinds, from 1; 0: the usual one, or... */
    uint8_t moved;           /* its start was, for viewers: by less than what lies inside it */
    bool unbalanced;
} span;

typedef struct rebuilt_region {
    pki_tally time;
    uint64_t self, bytes, flops;
} rebuilt_region;

typedef struct rebuilt_thread {
    char *name;
    uint32_t tid;
    uint32_t process; /* of rebuild.processes */
    uint64_t recorded, last_end;
    uint64_t kinds[PKI_KINDS];
    nest inner; /* slices that may yet turn out to lie inside another; value: how much of its time
                   is covered, less than all if several were joined */
    size_t region_room;
    rebuilt_region *regions; /* by id; only with per_thread */
    size_t work_room;
    uint64_t *work; /* by region's id: ns of its calls with bytes or flops */
} rebuilt_thread;

typedef struct rebuilt_counter {
    pki_tally value;
    pki_timeline timeline;
    double last;
} rebuilt_counter;

/* Self times by region id. */
typedef struct own {
    size_t count;
    uint64_t *ns;
} own;

typedef struct open_step {
    pki_step step;
    own parts;
} open_step;

/* So much self time of a region somewhere between start and end. */
typedef struct own_span {
    uint64_t start, end, ns;
    uint32_t region;
} own_span;

/* A communicator, by its name and library. */
typedef struct rebuilt_comm {
    int32_t rank, size;
    uint64_t last; /* sequence number of those that the trace has */
    uint64_t enqueued, started, completed, under_way; /* as in the trace; 0: absent */
} rebuilt_comm;

/* What a known event's region and thread are. */
#define REBUILD_LINES 1024u /* a power of two */
typedef struct rebuilt_line {
    uint32_t line, region, thread;
} rebuilt_line;

struct rebuild {
    bool sort, per_thread, wants_tree, disordered;
    tree tree; /* if wanted: by region and thread */

    table names; /* kind as a digit, then the name */
    size_t region_room;
    rebuilt_region *regions;
    table tracks;
    table processes; /* pids, as tracks begin with them */
    table announced; /* those that have been named */
    size_t stepping_room;
    uint8_t *stepping;  /* by process: 1 if it has steps */
    bool mixed;         /* one of them twice: two processes of one pid, as in containers */
    uint64_t elsewhere; /* slices and steps of other processes than the stepper's: left out */
    size_t thread_room;
    rebuilt_thread *threads;
    pki_device *device;
    pki_comm_figures *collectives;
    table comms; /* library, '\x1f', name */
    size_t comm_room;
    rebuilt_comm *comm_facts;
    pki_timed_operation begun; /* the operation whose end comes next; its id is... */
    uint64_t begun_id;         /* ...this, 0: none */
    table launchers;           /* regions, by name alone, that activities name */
    table streams;             /* tracks of activities */
    uint64_t activities;
    pki_span_counter async; /* pk_spans, by region id */
    pki_requests requests;
    table counters; /* name, '\x1f', unit */
    size_t counter_room;
    rebuilt_counter *values;

    size_t span_count, span_room;
    span *spans; /* to be sorted */

    rebuilt_line lines[REBUILD_LINES];
    uint32_t stepper; /* TABLE_NONE: not known, no steps so far */
    table step_kinds;
    pki_steps *steps;
    uint64_t steps_end;
    size_t open_count;
    open_step open[REBUILD_WINDOW]; /* oldest first */
    size_t recent_count;
    own_span *recent; /* the stepper's self times after steps_end */
    own folded;       /* the same of those that were too many to keep apart */

    char *process;
    bool capture; /* rebuild_set_capture */
    pki_environment environment;
    uint64_t slices, points, unbalanced, first, last;
};

uint32_t rebuild_region(rebuild *r, const event *e);
uint32_t rebuild_kind(const rebuild *r, uint32_t region);
const char *rebuild_name(const rebuild *r, uint32_t region);

/* rebuild/parts.c: the stepper's self times, and the ends of steps. */
void rebuild_own(rebuild *r, own_span part);
void rebuild_step(rebuild *r, const span *step);
void rebuild_close_steps(rebuild *r);
void rebuild_free_steps(rebuild *r);

/* rebuild/parts.c */
void rebuild_comm(rebuild *r, const event *e);
void rebuild_progress(rebuild *r, const event *e);
void rebuild_fill_comms(rebuild *r, pki_summary *out);

/* rebuild/parts.c: an event of a pk_span. */
void rebuild_span(rebuild *r, const event *e);
void rebuild_fill_spans(const rebuild *r, pki_summary *out);

/* rebuild/parts.c. The region that it names: ids from 1 on; 0: none, or one of too many. */
void rebuild_activity(rebuild *r, const event *e);
void rebuild_sample(rebuild *r, const event *e, double value);
void rebuild_fill_devices(rebuild *r, pki_summary *out);

/* rebuild/parts.c */
void rebuild_fill_tree(rebuild *r, pki_summary *out);
