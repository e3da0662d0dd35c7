/* tools/query/stream.h - the rows of many files, one file's at a time. */
#pragma once

#include "complaint.h"
#include "rows/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files that are read again whenever a table is gone through. */
typedef struct stream_files {
    char *const *paths;
    size_t count;
} stream_files;

/* Are all of them files that can be read a second time, and more text than that together? What is
 * compressed counts as what it may become. */
bool stream_is_worth(const stream_files *files, uint64_t bytes);

/* One way through the rows of a table. */
typedef struct stream {
    const stream_files *from;
    rows_table of;
    rows *rows; /* of the file that it has come to */
    size_t next;
} stream;

void stream_begin(stream *s, const stream_files *from, rows_table of, const rows_wish *wish);

/* The rows of the next file that has some: *count of them, 0 behind the last file. False, and why.
 */
bool stream_next(stream *s, size_t *count, complaint *why);

/* Those of all files, for who has to find them. NULL, and why. */
rows *stream_whole(const stream_files *from, rows_table of, const rows_wish *wish, complaint *why);
