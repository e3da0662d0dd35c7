/* tools/read/json_read.h - members of JSON objects as what they have to be.
 *
 * A member that is missing (or null) is left as it is: files of older and of newer versions can be
 * read. Null for a real number is one that was not finite, and becomes NaN. A member of the wrong
 * type or out of range is a complaint that names it, and the reader is told to stop by `failed`.
 */
#pragma once

#include "complaint.h"

#include <jansson.h>
#include <stdint.h>

typedef struct json_reader {
    complaint *why;
    bool failed;
} json_reader;

void json_read_text(json_reader *r, json_t *object, const char *key,
                    char **out); /* allocated; never NULL */
void json_read_uint(json_reader *r, json_t *object, const char *key, uint64_t *out);
void json_read_u32(json_reader *r, json_t *object, const char *key, uint32_t *out);
void json_read_i32(json_reader *r, json_t *object, const char *key, int32_t *out);
void json_read_real(json_reader *r, json_t *object, const char *key, double *out);
void json_read_bool(json_reader *r, json_t *object, const char *key, bool *out);

/* NULL if it is missing; what it has to be otherwise. */
json_t *json_read_object(json_reader *r, json_t *object, const char *key);
json_t *json_read_array(json_reader *r, json_t *object, const char *key);

/* An array of objects: NULL and a count of 0 if there are none, else that many zeroed blocks of
 * `size` bytes, to be filled from the array's elements and freed. */
void *json_read_rows(json_reader *r, json_t *object, const char *key, size_t size, size_t *count);

/* Likewise an array of arrays of `width` elements at least: later versions may append some. */
void *json_read_tuples(json_reader *r, json_t *object, const char *key, size_t size, size_t width,
                       size_t *count);

/* Bounds what jansson allocates from now on: a small file can be a large tree. Once it has been
 * refused memory it gets none any more, until json_memory_again: jansson 2.14 crashes where an
 * allocation fails and the next one does not. */
#define JSON_MEMORY_MOST ((size_t)4 << 30) /* of a command */
void json_limit_memory(size_t bytes);

/* Has it been refused since the last time? */
bool json_memory_again(void);
