/* tools/trace/event.h - one event of a Chrome trace, as far as a report needs it */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/activity.h"

/* ---- the members of a JSON object, whoever read it ---- */

/* A trace of five million events is five million small objects, and a tree of allocations for each
 * takes longer than all the rest. So lines are first tried with flat.h, which takes apart what a
 * trace writer usually writes; what it does not know becomes jansson's tree. Whoever asks for
 * members does not see which of the two it was, and gets the same answers (tests/fuzz/fuzz_flat.c).
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
