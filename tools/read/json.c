#include "read/json.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "memory.h"

/* ---- members of JSON objects as what they have to be ---- */

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

/* A real number that is an integer counts. */
void json_read_uint(json_reader *r, json_t *object, const char *key, uint64_t *out)
{
    json_t *value = member(r, object, key);
    double number = json_number_value(value);
    /* Below 2^63 as a double: the conversion is defined. */
    double most = json_is_integer(value) ? 9223372036854775808.0 : 9223372036854774784.0;
    if (!value)
        return;
    if (!json_is_number(value) || number != floor(number) || number < 0 || number > most)
        fail(r, key, "an integer from 0 on in its range");
    else
        *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)number;
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

/* Has it been refused since the last time? */
static bool json_memory_again(void)
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

/* ---- JSON as one document: from memory, or from a file piece by piece ---- */

/* The text of a file is not kept, since a small compressed one may hold any amount of it. What
 * grows is the document, whose memory json_limit_memory bounds, and the string or number that is
 * being read, which is bounded here. */

#define WHOLE_MOST ((uint64_t)512 << 20)
#define TOKEN_MOST ((size_t)16 << 20)

static const char too_large_text[] = "is too large to be read whole (only traces with one event per"
                                     " line are read piece by piece)";

static json_t *document_fail(const json_error_t *error, bool too_large, complaint *why)
{
    enum json_error_code code = json_error_code(error);
    if (too_large)
        complaint_set(why, too_large_text);
    else if (code == json_error_premature_end_of_input)
        complaint_set(why, "is cut off: its JSON has not ended in line %d", error->line);
    else if (code == json_error_stack_overflow)
        complaint_set(why, "is nested too deep in line %d", error->line);
    else
        complaint_set(why, "is not JSON: line %d: %s", error->line, error->text);
    return NULL;
}

static json_t *conclude(json_t *json, const json_error_t *error, bool *too_large, complaint *why)
{
    *too_large |= json_memory_again();
    if (json && !*too_large)
        return json;
    json_decref(json);
    return document_fail(error, *too_large, why);
}

json_t *document_from_text(const char *text, size_t length, bool *too_large, complaint *why)
{
    json_error_t error;
    *too_large = false;
    json_memory_again();
    json_t *json = json_loadb(text, length, 0, &error);
    return conclude(json, &error, too_large, why);
}

/* ---- piece by piece ---- */

typedef struct feed {
    const char *before;
    size_t left; /* of before */
    lines *in;
    uint64_t taken;
    size_t token; /* bytes of the string, number or word so far */
    bool in_string, escaped, after_blank;
    bool long_token, too_large, has_nul;
} feed;

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

static void scan(feed *f, char c)
{
    bool opens = !f->in_string && c == '"';
    bool closes = f->in_string && c == '"' && !f->escaped;
    f->escaped = f->in_string && c == '\\' && !f->escaped;
    f->in_string = (f->in_string || opens) && !closes;
    f->token = f->in_string || is_word(c) ? f->token + 1 : 0;
}

/* Of several blanks between tokens the first will do: the parser takes four times as long over each
 * as this, and a file laid out for readers is full of them. Newlines stay: it counts lines. */
static bool is_needed(feed *f, char c)
{
    bool blank = !f->in_string && (c == ' ' || c == '\t');
    bool needed = !(blank && f->after_blank);
    f->after_blank = blank;
    return needed;
}

/* What is needed of it moves to its beginning; how much that is. A NUL, which no JSON has, would go
 * unnoticed: jansson takes it for the end of the piece. */
static size_t check(feed *f, char *text, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        scan(f, c);
        f->long_token |= f->token > TOKEN_MOST;
        f->has_nul |= c == '\0';
        text[kept] = c;
        kept += is_needed(f, c);
    }
    f->taken += n;
    f->too_large = f->taken > WHOLE_MOST;
    return kept;
}

static size_t next_bytes(feed *f, char *buffer, size_t size)
{
    size_t n = PKI_MIN(f->left, size);
    memcpy(buffer, f->before, n);
    f->before += n;
    f->left -= n;
    return n > 0 ? n : lines_read(f->in, buffer, size);
}

/* No more than both bounds allow; 0 ends it. */
static size_t next_piece(void *buffer, size_t size, void *user)
{
    feed *f = user;
    size_t n, kept = 0;
    while (kept == 0 && (n = next_bytes(f, buffer, size)) > 0) {
        kept = check(f, buffer, n);
        if (f->long_token || f->too_large || f->has_nul)
            return 0;
    }
    return kept;
}

json_t *document_from_lines(const char *before, size_t length, lines *in, bool *too_large,
                            complaint *why)
{
    json_error_t error;
    feed f = {.before = before ? before : "", .left = length, .in = in};
    json_memory_again();
    json_t *json = json_load_callback(next_piece, &f, 0, &error);
    if (f.long_token)
        complaint_set(why, "has a string or a number of more than %zu MiB", TOKEN_MOST >> 20);
    if (f.has_nul)
        complaint_set(why, "is not JSON: it has a byte that is zero");
    *too_large = f.too_large;
    return conclude(json, &error, too_large, why);
}
