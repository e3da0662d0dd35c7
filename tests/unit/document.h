/* tests/unit/document.h - traces as jansson reads them: strictly, and the whole file. */
#ifndef TESTS_DOCUMENT_H
#define TESTS_DOCUMENT_H

#include "folder.h"

#include <stdbool.h>

#include <jansson.h>
#include <zlib.h>

/* All of it, compressed or not, and a 0 behind it, in room that grows with it: most are small, and
 * for valgrind each byte of a block costs something. */
static inline char *read_unpacked(const char *path, size_t *size)
{
    size_t room = (size_t)1 << 18, used = 0;
    char *text = malloc(room);
    gzFile file = gzopen(path, "rb");
    if (!file || !text)
        fail_msg("%s cannot be read", path);
    for (int n; (n = gzread(file, text + used, (unsigned)(room - used))) != 0; used += (size_t)n) {
        if (n < 0)
            fail_msg("%s is not a whole gzip member", path);
        if (room - used > (size_t)n)
            continue;
        text = realloc(text, room *= 2);
        if (!text)
            fail_msg("%s is too large", path);
    }
    if (gzclose(file) != Z_OK)
        fail_msg("%s is not a whole gzip member", path);
    *size = used;
    text[used] = 0;
    return text;
}

/* Fails the test if it is not one whole JSON document. Compressed or not. */
static inline json_t *load_document(const char *path)
{
    json_error_t error;
    size_t n;
    char *text = read_unpacked(path, &n);
    json_t *document = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        fail_msg("%s, line %d, column %d: %s", path, error.line, error.column, error.text);
    free(text);
    return document;
}

static inline json_t *member(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("there is no %s", key);
    return value;
}

static inline uint64_t count_in(const json_t *document, const char *name)
{
    return (uint64_t)json_integer_value(
        member(member(member(document, "metadata"), "counts"), name));
}

/* Events of that phase and name; either may be NULL for any. */
static inline size_t count_events(const json_t *document, const char *phase, const char *name)
{
    size_t i, count = 0;
    json_t *event;
    json_array_foreach(member(document, "traceEvents"), i, event)
    {
        bool same = !phase || strcmp(json_string_value(member(event, "ph")), phase) == 0;
        count += same && (!name || strcmp(json_string_value(member(event, "name")), name) == 0);
    }
    return count;
}

static inline const json_t *find_event(const json_t *document, const char *name)
{
    size_t i;
    json_t *event;
    json_array_foreach(member(document, "traceEvents"), i, event)
    {
        if (strcmp(json_string_value(member(event, "name")), name) == 0)
            return event;
    }
    fail_msg("there is no event named %s", name);
    return NULL;
}

#endif
