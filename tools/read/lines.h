/* tools/read/lines.h - a file line by line, in the memory of its longest one.
 *
 * A small compressed file may hold a line of any length, so one beyond a bound is a complaint.
 */
#pragma once

#include "read/source.h"

/* The report at a trace's end is one line. */
#define LINES_LONGEST ((size_t)64 << 20)

typedef struct lines {
    source *from;
    complaint *why;
    char *buffer; /* what has been read and not yet been given */
    size_t start, end, room;
    size_t most;     /* longest line, bytes; up to a MiB is always fine */
    size_t taken;    /* of the buffer, by the line given last */
    uint64_t number; /* of the line given last, from 1 */
    bool failed;     /* why says how */
    bool overlong;   /* by a line beyond the bound; what there is of it is in the buffer */
} lines;

typedef struct line {
    char *text; /* not NUL-terminated; valid until the next call */
    size_t length;
} line;

bool lines_open(lines *l, const char *path, size_t most, complaint *why);
void lines_close(lines *l);

/* The next line, without its newline. False at the end and on failure. */
bool lines_next(lines *l, line *out);

/* Does the next line end within so many bytes, or the file in it? */
bool lines_ahead(lines *l, size_t bytes);

/* Before the first line: are these the file's first bytes? */
bool lines_begin_with(lines *l, const char *bytes, size_t length);

/* The line given last will be given again. */
void lines_unread(lines *l);

/* The next bytes of what is left, whatever they are; 0 at the end and on failure. */
size_t lines_read(lines *l, char *out, size_t size);

/* All that is left, read to the end, at most so many bytes; false and why. */
bool lines_rest(lines *l, size_t most, line *out);

bool lines_rewind(lines *l);

/* Removes blanks at both ends, and a comma. */
line line_trim(line l);
