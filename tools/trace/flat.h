/* tools/trace/flat.h - a line of JSON taken apart in place, if it is a simple one.
 *
 * Simple is: one object; strings of printable ASCII without escapes; numbers that fit into 64 bits;
 * no key twice; nothing inside but arrays of numbers and one object, "args", of the same kind. That
 * is what perfkit and PyTorch's profiler write but for names in other alphabets. False says nothing
 * about the line: it may be good JSON or none.
 */
#pragma once

#include "trace/event.h"

typedef struct flat_line {
    flat top, args;
    bool has_args;
} flat_line;

/* Puts a NUL behind each string in the text, if the line is a simple one; else leaves it as it is.
 * What is in `out` points into the text. */
bool flat_read(flat_line *out, char *text, size_t length);

object flat_object(const flat_line *line);
