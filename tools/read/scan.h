/* tools/read/scan.h - a JSON object as a struct, by its shape, straight from the text: without a
 * tree between, for thousands of files.
 *
 * What the shape does not know is passed over. What it knows has to be of its type; a member that
 * is missing (or null) is left as it is.
 */
#pragma once

#include "measure/shape.h"
#include "read/token.h"

/* What may be taken of memory for what is read, all in all: a small file can be many empty rows. */
#define SCAN_MEMORY_MOST ((size_t)4 << 30)
void scan_limit_memory(size_t bytes);

/* The object that begins at s->at, behind blanks. The struct is zeroed before, and finished by the
 * caller also after a failure. False, and why. */
bool scan_object(scan *s, const pki_shape *shape, void *object);
