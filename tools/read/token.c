#include "read/token.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool token_fail(scan *s, const char *what)
{
    if (!s->failed)
        complaint_set(s->why, "is damaged: %s", what);
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

bool token_null(scan *s)
{
    bool null = token_peek(s) == 'n' && s->end - s->at >= 4 && memcmp(s->at, "null", 4) == 0;
    s->at += null ? 4 : 0;
    return null;
}

/* ---- texts ---- */

bool token_raw(scan *s, const char **text, size_t *length)
{
    if (!token_expect(s, '"'))
        return false;
    *text = s->at;
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' ? 2 : 1;
    if (s->at >= s->end)
        return token_fail(s, "it ends amid a text");
    *length = (size_t)(s->at++ - *text);
    return true;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* The character that a backslash begins. What perfkit writes has no pairs of surrogates: it leaves
 * characters as they are; halves of one become U+FFFD each. */
static char *unescape(const char **from, const char *end, char *to)
{
    static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
    char digits[5] = "", c = (*from)[1];
    const char *letter = strchr(letters, c);
    *from += 2;
    if (c == 'u' && end - *from >= 4) {
        memcpy(digits, *from, 4);
        *from += 4;
        unsigned code = (unsigned)strtoul(digits, NULL, 16);
        return put_utf8(to, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code ? code : '?');
    }
    *to = letter && c ? values[letter - letters] : c;
    return to + 1;
}

char *token_text(scan *s)
{
    const char *text = "";
    size_t length = 0;
    if (!token_raw(s, &text, &length))
        return memory_copy("");
    char *copy = memory_resized(NULL, length + 1), *to = copy;
    const char *end = text + length;
    while (text < end)
        if (*text == '\\' && end - text > 1)
            to = unescape(&text, end, to);
        else
            *to++ = *text++;
    *to = '\0';
    return copy;
}

/* ---- numbers ---- */

void token_no_uint(scan *s, size_t length)
{
    bool digits = length > 0 && length < 20;
    token_fail(s, digits ? "a number is not whole" : "a number is none, or is too large");
}

double token_real(scan *s)
{
    char copy[64];
    size_t length = 0;
    if (token_null(s))
        return NAN;
    token_peek(s);
    while (s->at < s->end && length < sizeof copy - 1 && strchr("+-.eE0123456789", *s->at))
        copy[length++] = *s->at++;
    copy[length] = '\0';
    char *end = copy;
    double value = strtod(copy, &end);
    if (length == 0 || *end)
        token_fail(s, "a number is none");
    return value;
}

/* ---- what is not known ---- */

static void skip_nested(scan *s)
{
    size_t depth = 0;
    const char *text;
    size_t length;
    do {
        char c = token_peek(s);
        if (c == '"') {
            token_raw(s, &text, &length);
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        s->at++;
    } while (depth && !s->failed && s->at < s->end);
    if (depth)
        token_fail(s, "it is cut off");
}

void token_skip(scan *s)
{
    const char *text;
    size_t length;
    char c = token_peek(s);
    if (c == '"')
        token_raw(s, &text, &length);
    else if (c == '{' || c == '[')
        skip_nested(s);
    else
        while (s->at < s->end && !strchr(",]} \n\r\t", *s->at))
            s->at++;
}
