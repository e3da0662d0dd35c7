/* tools/trace/reader.h - from a line of a trace to its event, in the shortest way that it allows.
 */
#pragma once

#include "read/lines.h"
#include "trace/line_cache.h"

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
