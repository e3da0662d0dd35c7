/* tools/trace/event.h - one event of a Chrome trace, as far as a report needs it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/activity.h"
#include "trace/object.h"

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

/* event_device.c: the slice, which has been read so far, as an activity; false if it is none, but a
 * thread's own time. */
bool event_read_activity(event *e, object o, const char *cat);

/* event_comm.c: fills in comm, if there is one. */
void event_read_comm(event *e, object o);
void event_read_progress(event *e);

/* Of a counter: the next value that is a finite number, and its unit; from a cursor of zeros on.
 * False behind the last. */
bool event_next_sample(const event *e, object_cursor *at, const char **unit, double *value);

/* An argument that is a count; 0: it is none. */
uint64_t event_count(const event *e, const char *key);

/* "region" among its arguments; "" if there is none. */
const char *event_launcher(const event *e);
