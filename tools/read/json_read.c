#include "read/json_read.h"

#include "memory.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>

static void fail(json_reader *r, const char *key, const char *wanted)
{
    complaint_set(r->why, "\"%s\" is not %s", key, wanted);
    r->failed = true;
}

/* NULL if there is nothing to read. */
static json_t *member(json_reader *r, json_t *object, const char *key)
{
    json_t *value = r->failed ? NULL : json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

void json_read_text(json_reader *r, json_t *object, const char *key, char **out)
{
    json_t *value = member(r, object, key);
    const char *text = "";
    if (value && !json_is_string(value))
        fail(r, key, "a string");
    else if (value)
        text = json_string_value(value);
    if (*out && !value)
        return;
    free(*out);
    *out = memory_copy(text);
}

/* An integer within bounds; a real that is one counts. */
static bool read_integer(json_reader *r, json_t *object, const char *key, double least, double most,
                         int64_t *out)
{
    json_t *value = member(r, object, key);
    if (!value)
        return false;
    double number = json_number_value(value);
    if (!json_is_number(value) || number != floor(number) || number < least || number > most) {
        fail(r, key, least < 0 ? "an integer in its range" : "an integer from 0 on in its range");
        return false;
    }
    *out = json_is_integer(value) ? json_integer_value(value) : (int64_t)number;
    return true;
}

void json_read_uint(json_reader *r, json_t *object, const char *key, uint64_t *out)
{
    int64_t value;
    /* Below 2^63 as a double: the conversion is defined. */
    json_t *member_value = json_object_get(object, key);
    double most = json_is_integer(member_value) ? 9223372036854775808.0 : 9223372036854774784.0;
    if (read_integer(r, object, key, 0, most, &value))
        *out = (uint64_t)value;
}

void json_read_u32(json_reader *r, json_t *object, const char *key, uint32_t *out)
{
    int64_t value;
    if (read_integer(r, object, key, 0, UINT32_MAX, &value))
        *out = (uint32_t)value;
}

void json_read_i32(json_reader *r, json_t *object, const char *key, int32_t *out)
{
    int64_t value;
    if (read_integer(r, object, key, INT32_MIN, INT32_MAX, &value))
        *out = (int32_t)value;
}

void json_read_real(json_reader *r, json_t *object, const char *key, double *out)
{
    json_t *value = r->failed ? NULL : json_object_get(object, key);
    if (json_is_null(value))
        *out = NAN;
    else if (json_is_number(value))
        *out = json_number_value(value);
    else if (value)
        fail(r, key, "a number");
}

void json_read_bool(json_reader *r, json_t *object, const char *key, bool *out)
{
    json_t *value = member(r, object, key);
    if (!value)
        return;
    if (json_is_boolean(value))
        *out = json_is_true(value);
    else
        fail(r, key, "true or false");
}

json_t *json_read_object(json_reader *r, json_t *object, const char *key)
{
    json_t *value = member(r, object, key);
    if (value && !json_is_object(value))
        fail(r, key, "an object");
    return json_is_object(value) ? value : NULL;
}

json_t *json_read_array(json_reader *r, json_t *object, const char *key)
{
    json_t *value = member(r, object, key);
    if (value && !json_is_array(value))
        fail(r, key, "an array");
    return json_is_array(value) ? value : NULL;
}

/* Zeroed rows, as many as the array has elements. */
static void *make_rows(const json_t *array, size_t size, size_t *count)
{
    *count = json_array_size(array);
    return *count ? memory_zeroed(*count, size) : NULL;
}

void *json_read_rows(json_reader *r, json_t *object, const char *key, size_t size, size_t *count)
{
    json_t *array = json_read_array(r, object, key);
    void *rows = make_rows(array, size, count);
    for (size_t i = 0; i < *count; i++)
        if (!json_is_object(json_array_get(array, i)))
            fail(r, key, "an array of objects");
    return rows;
}

void *json_read_tuples(json_reader *r, json_t *object, const char *key, size_t size, size_t width,
                       size_t *count)
{
    json_t *array = json_read_array(r, object, key);
    void *rows = make_rows(array, size, count);
    for (size_t i = 0; i < *count; i++)
        if (json_array_size(json_array_get(array, i)) < width)
            fail(r, key, "an array of arrays of numbers");
    return rows;
}

/* ---- memory ---- */

static size_t used, limit;
static bool refused;

static void *allocate(size_t bytes)
{
    bool fits = !refused && bytes <= limit && used <= limit - bytes;
    void *block = fits ? malloc(bytes) : NULL;
    used += block ? malloc_usable_size(block) : 0;
    refused |= !block;
    return block;
}

bool json_memory_again(void)
{
    bool was = refused;
    refused = false;
    return was;
}

static void release(void *block)
{
    used -= block ? malloc_usable_size(block) : 0;
    free(block);
}

void json_limit_memory(size_t bytes)
{
    limit = bytes;
    json_set_alloc_funcs(allocate, release);
}
