/* tools/read/object.h - the members of a JSON object, whoever read it.
 *
 * A trace of five million events is five million small objects, and a tree of allocations for each
 * takes longer than all the rest. So lines are first tried with flat.h, which takes apart what a
 * trace writer usually writes; what it does not know becomes jansson's tree. Whoever asks for members
 * does not see which of the two it was, and gets the same answers (tests/fuzz/fuzz_flat.c).
 */
#ifndef TOOLS_OBJECT_H
#define TOOLS_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum value_type {
    VALUE_NONE, /* no such member */
    VALUE_TEXT,
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_OTHER /* true, null, an array, an object */
} value_type;

typedef struct member {
    value_type type;
    uint32_t length;  /* of digits */
    const char *text; /* NUL-terminated, of VALUE_TEXT */
    /* Of a number as it stood in the file, not terminated; NULL if only its value is known. */
    const char *digits;
    int64_t integer;
    double real; /* if digits is NULL; value_number knows in any case */
} member;

struct flat;

/* All NULL: an object without members. */
typedef struct object {
    json_t *tree;
    const struct flat *flat, *flat_args;
} object;

member object_get(object o, const char *key);

/* The object that is its member "args"; without members if there is none. */
object object_args(object o);

/* One member after the other: from a cursor of zeros on; false behind the last. */
typedef struct object_cursor {
    bool begun;
    uint32_t next;
    void *member;
} object_cursor;

bool object_next(object o, object_cursor *at, const char **key, member *v);

static inline bool value_is_number(const member *v)
{
    return v->type == VALUE_INTEGER || v->type == VALUE_REAL;
}

/* 0 if it is none. */
double value_number(const member *v);

/* What is asked for most: "" and 0 where it is something else. */
const char *object_text(object o, const char *key);
int64_t object_integer(object o, const char *key);

#endif
