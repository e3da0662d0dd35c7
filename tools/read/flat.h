/* tools/read/flat.h - a line of JSON taken apart in place, if it is a simple one.
 *
 * Simple is: one object; strings of printable ASCII without escapes; numbers that fit into 64 bits;
 * no key twice; nothing inside but arrays of numbers and one object, "args", of the same kind. That
 * is what perfkit and PyTorch's profiler write but for names in other alphabets. False says nothing
 * about the line: it may be good JSON or none.
 */
#ifndef TOOLS_FLAT_H
#define TOOLS_FLAT_H

#include "read/object.h"

#define FLAT_MEMBERS 48

typedef struct flat_member {
    const char *key;  /* NUL-terminated */
    const char *text; /* of a string, NUL-terminated, or of a number */
    uint32_t key_length, length;
    int64_t integer;
    value_type type;
} flat_member;

typedef struct flat {
    uint32_t count;
    uint64_t seen; /* of its keys, some bits */
    flat_member members[FLAT_MEMBERS];
} flat;

typedef struct flat_line {
    flat top, args;
    bool has_args;
} flat_line;

/* Puts a NUL behind each string in the text, if the line is a simple one; else leaves it as it is.
 * What is in `out` points into the text. */
bool flat_read(flat_line *out, char *text, size_t length);

object flat_object(const flat_line *line);

#endif
