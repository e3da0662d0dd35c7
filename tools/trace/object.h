/* tools/trace/object.h - the members of a JSON object, whoever read it.
 *
 * A trace of five million events is five million small objects, and a tree of allocations for each
 * takes longer than all the rest. So lines are first tried with flat.h, which takes apart what a
 * trace writer usually writes; what it does not know becomes jansson's tree. Whoever asks for
 * members does not see which of the two it was, and gets the same answers (tests/fuzz/fuzz_flat.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* What flat.h finds. */
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

/* All NULL: an object without members. */
typedef struct object {
    json_t *tree;
    const flat *members, *args;
} object;

member object_of_tree(json_t *json);
member object_of_flat(const flat_member *m);

/* Inline, since keys are constants: each comparison becomes that of a word or two. */
static inline member object_get(object o, const char *key)
{
    size_t length = strlen(key);
    if (!o.members)
        return object_of_tree(json_object_get(o.tree, key));
    for (uint32_t i = 0; i < o.members->count; i++) {
        const flat_member *m = &o.members->members[i];
        if (m->key_length == length && memcmp(m->key, key, length) == 0)
            return object_of_flat(m);
    }
    return (member){.type = VALUE_NONE};
}

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
static inline const char *object_text(object o, const char *key)
{
    member v = object_get(o, key);
    return v.type == VALUE_TEXT ? v.text : "";
}

static inline int64_t object_integer(object o, const char *key)
{
    return object_get(o, key).integer;
}
