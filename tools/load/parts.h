/* tools/load/parts.h - the other files of a trace that its run has cut into several
 * (out/file.h): those beside it that are of the same run, the oldest first. */
#pragma once

#include "trace/trace.h"

#include <limits.h>
#include <stdint.h>

typedef struct trace_parts {
    char folder[PATH_MAX], name[256]; /* of the one that was named */
    uint32_t *numbers;
    size_t count;
} trace_parts;

/* None for the standard input, for what is itself a part, and without memory. head: of the file
 * that was named. */
void parts_find(trace_parts *parts, const char *path, const json_t *head);
void parts_forget(trace_parts *parts);

/* All events of all of them; begins is called, with the visitor's user, before those of each file.
 * False, and why. */
bool parts_read(const trace_parts *parts, void (*begins)(void *user), const trace_visitor *to,
                complaint *why);
