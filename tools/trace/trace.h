/* tools/trace/trace.h - files of runs: traces, event by event, and reports */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/activity.h"
#include "core/overhead.h"
#include "files.h"
#include "measure/summary.h"
#include "read/lines.h"

/* ---- the members of a JSON object, whoever read it ---- */

/* A trace of five million events is five million small objects, and a tree of allocations for each
 * takes longer than all the rest. So lines are first tried with flat.h, which takes apart what a
 * trace writer usually writes; what it does not know becomes jansson's tree. Whoever asks for
 * members does not see which of the two it was, and gets the same answers
 * (tests/fuzz/fuzz_tools.c).
 */

typedef enum value_type {
    VALUE_NONE, /* no such member */
    VALUE_TEXT,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_OTHER /* true, null, an array, an object */
} value_type;

typedef struct member {
    value_type type;
    uint32_t length;  /* of digits */
    const char *text; /* NUL-terminated, of VALUE_TEXT */
    /* Of a number as it stood in the file, not terminated; NULL if only its value is known. */
    const char *digits;
    int64_t integer;
    double real; /* if digits is NULL; value_number knows in any case */
} member;

/* What flat.h finds. */
#define FLAT_MEMBERS 48

typedef struct flat_member {
    const char *key;  /* NUL-terminated */
    const char *text; /* of a string, NUL-terminated, or of a number */
    uint32_t key_length, length;
    int64_t integer;
    value_type type;
} flat_member;

typedef struct flat {
    uint32_t count;
    uint64_t seen; /* of its keys, some bits */
    flat_member members[FLAT_MEMBERS];
} flat;

/* All NULL: an object without members. */
typedef struct object {
    json_t *tree;
    const flat *members, *args;
} object;

member object_of_tree(json_t *json);
member object_of_flat(const flat_member *m);

/* Inline, since keys are constants: each comparison becomes that of a word or two. */
static inline member object_get(object o, const char *key)
{
    size_t length = strlen(key);
    if (!o.members)
        return object_of_tree(json_object_get(o.tree, key));
    for (uint32_t i = 0; i < o.members->count; i++) {
        const flat_member *m = &o.members->members[i];
        if (m->key_length == length && memcmp(m->key, key, length) == 0)
            return object_of_flat(m);
    }
    return (member){.type = VALUE_NONE};
}

/* The object that is its member "args"; without members if there is none. */
object object_args(object o);

/* One member after the other: from a cursor of zeros on; false behind the last. */
typedef struct object_cursor {
    bool begun;
    uint32_t next;
    void *member;
} object_cursor;

bool object_next(object o, object_cursor *at, const char **key, member *v);

static inline bool value_is_number(const member *v)
{
    return v->type == VALUE_INTEGER || v->type == VALUE_REAL;
}

/* 0 if it is none. */
double value_number(const member *v);

/* What is asked for most: "" and 0 where it is something else. */
static inline const char *object_text(object o, const char *key)
{
    member v = object_get(o, key);
    return v.type == VALUE_TEXT ? v.text : "";
}

static inline int64_t object_integer(object o, const char *key)
{
    return object_get(o, key).integer;
}

/* ---- one event of a Chrome trace, as far as a report needs it ---- */

typedef enum event_type {
    EVENT_OTHER, /* nothing that a report shows */
    EVENT_REGION,
    EVENT_STEP,    /* ProfilerStep#N */
    EVENT_BETWEEN, /* the time between two of them */
    EVENT_COUNTER,
    EVENT_MARK,
    EVENT_THREAD_NAME,
    EVENT_PROCESS_NAME,
    EVENT_ACTIVITY,   /* of a device or a library */
    EVENT_MEASURES,   /* devices are measured from here on, or no longer */
    EVENT_PROGRESS,   /* how far a communicator has come */
    EVENT_COMM_BEGIN, /* an operation on a communicator that may overlap with others */
    EVENT_COMM_END,
    EVENT_COMM,       /* the same as one event, by what listens to the library */
    EVENT_SPAN_BEGIN, /* of a pk_span */
    EVENT_SPAN_MARK,
    EVENT_SPAN_END,
    EVENT_STATE,  /* a thread had no processor: args "thread", "off_ns" */
    EVENT_REQUEST /* that has ended: what is known of it stands in its arguments */
} event_type;

#define EVENT_TRACK 80

/* What an event says of an operation on a communicator; op NULL: nothing. */
typedef struct event_comm {
    const char *op, *library, *name;
    uint64_t id; /* of a pair of events */
    uint64_t sequence, exposed;
    uint32_t ranks, in_flight;
    int32_t rank, peer, tag; /* -1: none */
    uint32_t calls, sharers; /* alike in this one, and communicators whose time it is; at least 1 */
    bool unrated, unfinished, on_stream;
    const char *algorithm, *protocol; /* "": unknown */
    uint32_t channels;
    uint64_t enqueued, started, completed, under_way; /* EVENT_PROGRESS */
} event_comm;

typedef struct event {
    event_type type;
    const char *name;        /* the object's; of what is named, for the last two types */
    uint32_t kind;           /* a pk_kind */
    char track[EVENT_TRACK]; /* "pid/tid" */
    uint32_t tid;
    uint64_t start, end;       /* ns; of regions and steps */
    uint64_t lacks;            /* ns that end - start of a region has too few */
    uint64_t index, items;     /* of a step */
    double model, hardware;    /* its operations */
    const char *step_kind;     /* of a step; "" or NULL: the usual one; the object's */
    char stepper[EVENT_TRACK]; /* the track whose thread made the step */
    uint64_t bytes, flops;
    bool unbalanced, cut_off;
    bool on;               /* EVENT_MEASURES */
    pki_activity activity; /* but for its track and its region; names are the object's. Also of
                              EVENT_COMM */
    event_comm comm;       /* also of regions */
    uint64_t span;         /* of a pk_span's: its id in the trace */
    uint64_t since;        /* of its mark: ns since the one before */
    object args;           /* of nothing but members */
    uint32_t line;         /* the same for events that differ in their times alone; 0: unknown */
} event;

/* From the object, which must outlive the event. With its digits, or its text, times are exact to
 * the last digit for any length of the run; else to 2^53 ns, 104 days. EVENT_OTHER if its times
 * make no sense. */
void event_read(event *e, object o, const char *text, size_t length);

/* Of a counter: the next value that is a finite number, and its unit; from a cursor of zeros on.
 * False behind the last. */
bool event_next_sample(const event *e, object_cursor *at, const char **unit, double *value);

/* An argument that is a count; 0: it is none. */
uint64_t event_count(const event *e, const char *key);

/* "region" among its arguments; "" if there is none. */
const char *event_launcher(const event *e);

/* ---- times of a trace event, exactly ---- */

/* Traces give times in microseconds with three decimals. No double is in between here: digits
 * become integer nanoseconds. */

#define SCAN_MOST (INT64_MAX / 4) /* 73 years: times beyond are not believed */

/* The nanoseconds of a number of microseconds: "12.345", "7", "1.5e3". False if it is not one,
 * negative, or beyond SCAN_MOST. More decimals than three are rounded. */
bool scan_us(const char *text, size_t length, uint64_t *ns);

/* The picoseconds of such a number, if it has six decimals; else 0. */
uint32_t scan_ps(const char *text, size_t length);

/* What perfkit has taken off a duration, ns, so that viewers see a slice within the one around it
 * (docs/internals/trace-format.md): from the picoseconds of its start and of its duration. */
uint64_t scan_lack(uint32_t start_ps, uint32_t duration_ps);

/* The same of the member `key` of the object on this line (valid JSON), not of objects inside it.
 * False also if there is no such member. */
bool scan_member_us(const char *text, size_t length, const char *key, uint64_t *ns, uint32_t *ps);

/* ---- a line of JSON taken apart in place, if it is a simple one ---- */

/* Simple is: one object; strings without escapes; numbers that fit into 64 bits; no key twice;
 * nothing inside but arrays of numbers and one object, "args", of the same kind. That is what
 * perfkit and PyTorch's profiler write. False says nothing about the line: it may be good JSON or
 * none. */

typedef struct flat_line {
    flat top, args;
    bool has_args;
} flat_line;

/* Puts a NUL behind each string in the text, if the line is a simple one; else leaves it as it is.
 * What is in `out` points into the text. */
bool flat_read(flat_line *out, char *text, size_t length);

object flat_object(const flat_line *line);

/* ---- lines that differ from an earlier one in nothing but their times ---- */

/* A region's call is written as {what it is,"ts":1.002,"dur":3.004}, and what it is stays the same
 * for every call of the region on its thread. So that part is read once and then compared: eight of
 * ten lines of a trace are known ones. What a line is not known for is read as any other. */

typedef struct line_cache line_cache;

/* ---- from a line of a trace to its event, in the shortest way that it allows ---- */

typedef struct event_reader {
    line_cache *lines;
    flat_line flat;
    json_t *tree;
    event e;
} event_reader;

typedef enum reading { READ_EVENT, READ_NOTHING, READ_NO_MEMORY } reading;

void event_reader_open(event_reader *r);
void event_reader_close(event_reader *r);

/* A trimmed line, of which nobody needs the text any more. *e is valid until the next call;
 * READ_NOTHING: the line is no JSON object. */
reading event_reader_read(event_reader *r, line l, const event **e);

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

/* ---- what a trace says of itself ---- */

/* Before its events, perfkit's or another profiler's: whatever of it there is, and makes sense. */
typedef struct trace_about {
    uint64_t base_unix; /* ns since 1970 at "ts":0; 0: not said */
    pki_run run; /* of it program, host, version, clock: never NULL; world_size 0: not said */
    bool has_rank;
    pk_counts counts;
    pki_toll toll;
    uint64_t base_monotonic, merged; /* merged: of so many files; 0: it is not */
    char *clock_id;
} trace_about;

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
    trace_about about;
    line report, capture; /* texts of objects, to be freed; known once the events have been read */
    json_t *document;     /* of a file that is laid out in another way than ours: all of it */
    event_reader reader;
    bool lines, array;  /* its events are lines; they are all of it, no member of an object */
    bool behind_events; /* of lines */
    bool whole;         /* it has its end; of lines once they have been read */
    bool windows;       /* it is a file of windows (load/load.h): lines, and nothing else */
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

/* What it says of itself if it is a capture; known when the report is, the caller's then. False: it
 * is none. */
bool trace_captured(const trace *t, pki_capture *capture, pki_environment *environment);

/* The head of a trace in lines: everything up to "traceEvents":[ and the end of that line, or the
 * bracket of a trace that is an array. HEAD_NONE: the file is not like that. What was read is in
 * *text, the caller's to free, as `about` is. False if it cannot be read. */
typedef enum trace_head { HEAD_NONE, HEAD_OBJECT, HEAD_ARRAY } trace_head;
bool trace_read_head(lines *in, trace_head *head, trace_about *about, line *text);

/* ---- ...as it is read (about.c) ---- */

/* From `begin` on any number of texts, each an object. False: this one is none. Behind `end` it is
 * complete. */
void trace_about_begin(trace_about *a);
bool trace_about_read(trace_about *a, const char *text, size_t length);
void trace_about_end(trace_about *a);
void trace_about_forget(trace_about *a);
