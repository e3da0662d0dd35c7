/* tools/read/json.h - JSON as one document in memory, and what its members have to be */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "complaint.h"
#include "read/lines.h"

/* ---- JSON as one document in memory: from a text, or from a file piece by piece ---- */

/* NULL if it is not JSON, and why; also without memory or beyond a bound, and then *too_large is
 * set. */
json_t *document_from_text(const char *text, size_t length, bool *too_large, complaint *why);

/* The same of what is left of a file, with this text (NULL: none) before it: in the memory of the
 * document, not of its text. */
json_t *document_from_lines(const char *before, size_t length, lines *in, bool *too_large,
                            complaint *why);

/* ---- members of JSON objects as what they have to be ---- */

/* A member that is missing (or null) is left as it is: files of older and of newer versions can be
 * read. Null for a real number is one that was not finite, and becomes NaN. A member of the wrong
 * type or out of range is a complaint that names it, and the reader is told to stop by `failed`. */

typedef struct json_reader {
    complaint *why;
    bool failed;
} json_reader;

void json_read_text(json_reader *r, json_t *object, const char *key,
                    char **out); /* allocated; never NULL */
void json_read_uint(json_reader *r, json_t *object, const char *key, uint64_t *out);
void json_read_real(json_reader *r, json_t *object, const char *key, double *out);
void json_read_bool(json_reader *r, json_t *object, const char *key, bool *out);

/* NULL if it is missing; what it has to be otherwise. */
json_t *json_read_object(json_reader *r, json_t *object, const char *key);
json_t *json_read_array(json_reader *r, json_t *object, const char *key);

/* Bounds what jansson allocates from now on: a small file can be a large tree. Once it has been
 * refused memory it gets none any more, until json_memory_again: jansson 2.14 crashes where an
 * allocation fails and the next one does not. */
#define JSON_MEMORY_MOST ((size_t)4 << 30) /* of a command */
void json_limit_memory(size_t bytes);
