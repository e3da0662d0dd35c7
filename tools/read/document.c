/* tools/read/document.c - JSON as one document: from memory, or from a file piece by piece.
 *
 * The text of a file is not kept, since a small compressed one may hold any amount of it. What
 * grows is the document, whose memory json_limit_memory bounds, and the string or number that is
 * being read, which is bounded here.
 */
#include "read/document.h"

#include "base/compiler.h"
#include "read/json_read.h"

#include <string.h>

#define WHOLE_MOST ((uint64_t)512 << 20)
#define TOKEN_MOST ((size_t)16 << 20)

static const char too_large_text[] = "is too large to be read whole (only traces with one event per"
                                     " line are read piece by piece)";

static json_t *fail(const json_error_t *error, bool too_large, complaint *why)
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
    return fail(error, *too_large, why);
}

json_t *document_from_text(const char *text, size_t length, bool *too_large, complaint *why)
{
    json_error_t error;
    *too_large = false;
    json_memory_again();
    json_t *json = json_loadb(text, length, 0, &error);
    return conclude(json, &error, too_large, why);
}

bool document_is_object(line l, bool *too_large)
{
    complaint ignored = {""};
    json_t *json = document_from_text(l.text, l.length, too_large, &ignored);
    bool is = json_is_object(json);
    json_decref(json);
    return is;
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
