/* tools/rows/events.h - rows of the events of a trace. Of rows*.c alone. */
#pragma once

#include "trace/event.h"
#include "rows/layout.h"

#define ROWS_LINES 1024u /* a power of two */

typedef struct rows_line {
    uint32_t line, region, track;
} rows_line;

/* A pk_span's beginning, or its end. */
typedef struct span_moment {
    uint64_t span, moment, id;
    uint32_t thread;
    bool begins;
} span_moment;

typedef struct rows_reader {
    rows *to;
    uint64_t events;
    rows_table begun_in; /* collectives or messages */
    size_t begun;        /* the operation whose end comes next, + 1; 0: none. Its id is... */
    uint64_t begun_id;   /* ...this */
    rows_line lines[ROWS_LINES];
    part moments; /* of span_moment */
} rows_reader;

void rows_add_event(void *reader, const event *e);

/* events.c: the region's number among those of the rows. */
uint32_t rows_region_of(rows *r, const event *e);

/* async.c: an event of a pk_span, and, behind the file's last event, which belong together. */
void rows_add_span(rows_reader *from, const event *e);
void rows_pair_spans(rows_reader *from);
