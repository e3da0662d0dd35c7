/* tools/trace/line_cache.h - lines that differ from an earlier one in nothing but their times.
 *
 * A region's call is written as {what it is,"ts":1.002,"dur":3.004}, and what it is stays the same
 * for every call of the region on its thread. So that part is read once and then compared: eight of
 * ten lines of a trace are known ones. What a line is not known for is read as any other.
 */
#pragma once

#include "trace/flat.h"
#include "trace/event.h"

typedef struct line_cache line_cache;

line_cache *line_cache_create(void);
void line_cache_destroy(line_cache *k);

/* The event of a line like one before, with this one's times; valid until the next call. NULL: it
 * is not known. */
const event *line_cache_find(line_cache *k, const char *text, size_t length);

/* The line that was not found, as it has been read since. */
void line_cache_add(line_cache *k, const flat_line *line, const char *text, const event *e);
