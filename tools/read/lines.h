/* tools/read/lines.h - a file line by line, in the memory of its longest one. */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include "read/source.h"

typedef struct lines {
    source *from;
    complaint *why;
    char *buffer; /* what has been read and not yet been given */
    size_t start, end, room;
    size_t most;     /* longest line, bytes */
    size_t taken;    /* of the buffer, by the line given last */
    uint64_t number; /* of the line given last, from 1 */
    bool failed;     /* why says how */
} lines;

typedef struct line {
    char *text; /* not NUL-terminated; valid until the next call */
    size_t length;
} line;

bool lines_open(lines *l, const char *path, size_t most, complaint *why);
void lines_close(lines *l);

/* The next line, without its newline. False at the end and on failure. */
bool lines_next(lines *l, line *out);

/* Before the first line: are these the file's first bytes? */
bool lines_begin_with(lines *l, const char *bytes, size_t length);

/* The line given last will be given again. */
void lines_unread(lines *l);

/* All that is left, read to the end, at most so many bytes; false and why. */
bool lines_rest(lines *l, size_t most, line *out);

bool lines_rewind(lines *l);

/* Removes blanks at both ends, and a comma. */
line line_trim(line l);

#endif
