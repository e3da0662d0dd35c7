/* tools/read/source.h - the bytes of a file, compressed or not. */
#pragma once

#include "complaint.h"

#include <stddef.h>
#include <stdint.h>

typedef struct source source;

/* "-" is the standard input. NULL, and why: it is not there, may not be read, is a directory, is
 * empty. */
source *source_open(const char *path, complaint *why);
void source_close(source *s);

/* Bytes read, 0 at the end; -1, and why. A compressed file that is cut off ends where it is cut. */
long source_read(source *s, char *out, size_t size, complaint *why);

/* False for a pipe: it cannot be read again. */
bool source_is_rewindable(const source *s);
bool source_rewind(source *s);

/* How much of the file has been taken, 0 .. 1; negative if its size is not known. */
double source_progress(source *s);
