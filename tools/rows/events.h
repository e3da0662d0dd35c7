/* tools/rows/events.h - rows of the events of a trace. Of rows*.c alone. */
#pragma once

#include "trace/event.h"
#include "rows/layout.h"

#define ROWS_KNOWN 1024u /* a power of two */

typedef struct rows_known {
    uint32_t known, region, track;
} rows_known;

typedef struct rows_reader {
    rows *to;
    uint64_t events;
    rows_table begun_in; /* collectives or messages */
    size_t begun;        /* the operation whose end comes next, + 1; 0: none. Its id is... */
    uint64_t begun_id;   /* ...this */
    rows_known known[ROWS_KNOWN];
} rows_reader;

void rows_take_event(void *reader, const event *e);
