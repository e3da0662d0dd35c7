/* tools/event.h - one event of a Chrome trace, as far as a report needs it. */
#ifndef TOOLS_EVENT_H
#define TOOLS_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum event_type {
    EVENT_OTHER, /* nothing that a report shows */
    EVENT_REGION,
    EVENT_STEP, /* ProfilerStep#N */
    EVENT_COUNTER,
    EVENT_MARK,
    EVENT_THREAD_NAME,
    EVENT_PROCESS_NAME
} event_type;

#define EVENT_TRACK 80

typedef struct event {
    event_type type;
    const char *name;        /* the JSON value's; of what is named, for the last two types */
    uint32_t kind;           /* a pk_kind */
    char track[EVENT_TRACK]; /* "pid/tid" */
    uint32_t tid;
    uint64_t start, end;     /* ns; of regions and steps */
    uint64_t index, items;   /* of a step */
    char stepper[EVENT_TRACK]; /* the track whose thread made the step */
    uint64_t bytes, flops;
    bool unbalanced;
    json_t *args; /* NULL or an object */
} event;

/* From the value, which must outlive the event. With its text, if there is one, times are exact to
 * the last digit for any length of the run; else to 2^53 ns, 104 days. EVENT_OTHER if its times
 * make no sense. */
void event_read(event *e, json_t *value, const char *text, size_t length);

#endif
