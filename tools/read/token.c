#include "read/token.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "memory.h"

/* Always false. */
static bool token_fail(scan *s, const char *what)
{
    if (!s->failed)
        complaint_set(s->why, "is damaged: %s", what);
    s->failed = true;
    return false;
}

bool token_wrong(scan *s, const char *wanted)
{
    if (!s->key)
        return token_fail(s, "a value is of another type than it has to be");
    if (!s->failed)
        complaint_set(s->why, "\"%s\" is not %s", s->key, wanted);
    s->failed = true;
    return false;
}

char token_behind_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

bool token_unexpected(scan *s)
{
    return token_fail(s, "it is cut off, or no JSON");
}

bool token_ends(scan *s)
{
    token_peek(s);
    return s->at == s->end && !s->failed;
}

static bool take_word(scan *s, const char *word, size_t length)
{
    bool comes = (size_t)(s->end - s->at) >= length && memcmp(s->at, word, length) == 0;
    s->at += comes ? length : 0;
    return comes;
}

bool token_null(scan *s)
{
    return token_peek(s) == 'n' && take_word(s, "null", 4);
}

/* ---- texts ---- */

/* Of four digits; -1: these are none. */
static long code_at(const char *at, const char *end)
{
    long code = 0;
    if (end - at < 4)
        return -1;
    for (const char *behind = at + 4; at < behind; at++) {
        unsigned digit = (unsigned)(*at - '0'), letter = (unsigned)((*at | 0x20) - 'a');
        if (digit > 9 && letter > 5)
            return -1;
        code = 16 * code + (long)(digit > 9 ? letter + 10 : digit);
    }
    return code;
}

/* The character of an escape behind its backslash, how long that is in *length; -1: it is none. A
 * pair of surrogates is one character, half of one is none, as is the one that ends C's texts. */
static long escaped(const char *at, const char *end, size_t *length)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = at < end && *at ? strchr(letters, *at) : NULL;
    *length = 1;
    if (letter)
        return values[letter - letters];
    long code = at < end && *at == 'u' ? code_at(at + 1, end) : -1;
    *length = 5;
    if (code < 0xD800 || code > 0xDFFF)
        return code > 0 ? code : -1;
    long low = end - at > 6 && at[5] == '\\' && at[6] == 'u' ? code_at(at + 7, end) : -1;
    *length = 11;
    return code < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF
               ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
               : -1;
}

static inline bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\' && !(c & 0x80);
}

const char *token_plain_slowly(const char *at, const char *end)
{
    for (;;) {
        while (at < end && is_plain(*at))
            at++;
        size_t n = at < end && *at & 0x80 ? pki_utf8_length(at, (size_t)(end - at)) : 0;
        if (n == 0)
            return at;
        at += n;
    }
}

bool token_raw(scan *s, const char **text, size_t *length)
{
    size_t escape;
    if (!token_expect(s, '"'))
        return false;
    const char *at = *text = s->at, *end = s->end;
    while ((at = token_plain(at, end)) < end && *at == '\\') {
        if (escaped(at + 1, end, &escape) < 0)
            return token_fail(s, "a text has an escape that is none");
        at += escape + 1;
    }
    if (at >= end)
        return token_fail(s, "it ends amid a text");
    if (*at != '"')
        return token_fail(s, "a text has a byte that is no character");
    *length = (size_t)(at - *text);
    s->at = at + 1;
    return true;
}

bool token_key(scan *s, const char **key, size_t *length)
{
    return token_raw(s, key, length) && token_expect(s, ':');
}

static char *put_utf8(char *to, unsigned long code)
{
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)(first[more] | code >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return to;
}

char *token_text(scan *s)
{
    const char *text = "";
    size_t length = 0, escape;
    if (!token_raw(s, &text, &length))
        return memory_copy("");
    char *copy = memory_resized(NULL, length + 1), *to = copy;
    const char *end = text + length;
    s->taken += length;
    while (text < end)
        if (*text == '\\') {
            to = put_utf8(to, (unsigned long)escaped(text + 1, end, &escape));
            text += escape + 1;
        } else {
            *to++ = *text++;
        }
    *to = '\0';
    return copy;
}

/* ---- numbers ---- */

void token_no_uint(scan *s, size_t length)
{
    bool digits = length > 0 && length < 20;
    if (s->key)
        token_wrong(s, "an integer from 0 on in its range");
    else
        token_fail(s, digits ? "a number is not whole" : "a number is none, or is too large");
}

static const char *digits_behind(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Behind a number; NULL: it is none. */
static const char *number_end(const char *at, const char *end)
{
    at += at < end && *at == '-';
    const char *behind = digits_behind(at, end);
    if (behind == at || (*at == '0' && behind - at > 1))
        return NULL;
    if (behind < end && *behind == '.') {
        at = behind + 1;
        behind = digits_behind(at, end);
        if (behind == at)
            return NULL;
    }
    if (behind < end && (*behind == 'e' || *behind == 'E')) {
        at = behind + 1;
        at += at < end && (*at == '+' || *at == '-');
        behind = digits_behind(at, end);
        if (behind == at)
            return NULL;
    }
    return behind;
}

double token_real(scan *s)
{
    char copy[64];
    if (token_null(s))
        return NAN;
    token_peek(s);
    const char *behind = number_end(s->at, s->end);
    size_t length = behind ? (size_t)(behind - s->at) : 0;
    if (length == 0 || length >= sizeof copy) {
        token_wrong(s, "a number");
        return 0;
    }
    memcpy(copy, s->at, length);
    copy[length] = '\0';
    double value = strtod(copy, NULL);
    s->at = behind;
    if (isinf(value))
        token_wrong(s, "a number");
    return value;
}

uint64_t token_odd_uint(scan *s, const char *from)
{
    const double below_2_63 = 9223372036854774784.0; /* the conversion is defined */
    size_t length = (size_t)(s->at - from);
    if (length > 0 && s->at < s->end && (*s->at == '.' || *s->at == 'e' || *s->at == 'E')) {
        s->at = from;
        double real = token_real(s);
        if (!s->failed && real == floor(real) && real <= below_2_63)
            return (uint64_t)real;
    }
    token_no_uint(s, length);
    return 0;
}

/* ---- any value ---- */

#define NESTED_MOST 2048

/* What is no array and no object. */
static bool skip_plain(scan *s, char first)
{
    const char *text;
    size_t length;
    if (first == '"')
        return token_raw(s, &text, &length);
    if (first == '-' || (first >= '0' && first <= '9')) {
        const char *behind = number_end(s->at, s->end);
        s->at = behind ? behind : s->at;
        return behind || token_fail(s, "a number is none");
    }
    return take_word(s, "true", 4) || take_word(s, "false", 5) || take_word(s, "null", 4) ||
           token_unexpected(s);
}

/* A value, or what opens one. *depth: how many are open, which are objects says `objects`. */
static bool skip_begin(scan *s, uint64_t objects[NESTED_MOST / 64], size_t *depth)
{
    char first = token_peek(s);
    if (first != '{' && first != '[')
        return skip_plain(s, first);
    if (*depth == NESTED_MOST)
        return token_fail(s, "it is nested too deep");
    uint64_t bit = UINT64_C(1) << (*depth % 64), *word = &objects[*depth / 64];
    *word = first == '{' ? *word | bit : *word & ~bit;
    ++*depth;
    s->at++;
    return true;
}

void token_skip(scan *s)
{
    uint64_t objects[NESTED_MOST / 64];
    size_t depth = 0, length;
    const char *key;
    bool opened = false; /* just now: its first element comes, or its end */
    while (!s->failed) {
        bool object = depth && objects[(depth - 1) / 64] >> ((depth - 1) % 64) & 1;
        if (depth && !token_more(s, object ? '}' : ']', !opened)) {
            depth--;
            opened = false;
        } else {
            size_t before = depth;
            if (object && !token_key(s, &key, &length))
                return;
            opened = skip_begin(s, objects, &depth) && depth > before;
        }
        if (depth == 0)
            return;
    }
}

bool token_is_object(const char *text, size_t length)
{
    complaint ignored = {""};
    scan s = {.at = text, .end = text + length, .why = &ignored};
    if (token_peek(&s) != '{')
        return false;
    token_skip(&s);
    return token_ends(&s);
}

bool token_member(const char *text, size_t length, const char *key, const char **value,
                  const char **end)
{
    complaint ignored = {""};
    scan s = {.at = text, .end = text + length, .why = &ignored};
    const char *name;
    size_t n;
    token_expect(&s, '{');
    for (size_t i = 0; token_more(&s, '}', i) && token_key(&s, &name, &n); i++) {
        token_peek(&s);
        *value = s.at;
        token_skip(&s);
        *end = s.at;
        if (!s.failed && token_is(name, n, key))
            return true;
    }
    return false;
}
