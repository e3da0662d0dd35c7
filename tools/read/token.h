/* tools/read/token.h - the words of a JSON text, one after the other.
 *
 * What is taken, or passed over, is checked on the way: a text that is read to its end is JSON.
 * Once something has failed, nothing is taken any more, so who reads on comes to an end.
 */
#pragma once

#include "complaint.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct scan {
    const char *at, *end;
    complaint *why;
    const char *key; /* of the value that comes, for complaints; NULL: they name none */
    size_t taken;    /* bytes of memory, for what has been read */
    bool lenient;    /* what is of another type than it has to be is passed over */
    bool failed;
} scan;

/* Likewise: the value is not WANTED ("a string"). */
bool token_wrong(scan *s, const char *wanted);

/* What comes behind blanks; 0 at the end. */
char token_behind_blanks(scan *s);

static inline char token_peek(scan *s)
{
    return s->at<s->end && * s->at> ' ' ? *s->at : token_behind_blanks(s);
}

/* If it comes next, it is taken. */
static inline bool token_accept(scan *s, char c)
{
    bool comes = token_peek(s) == c && !s->failed;
    s->at += comes;
    return comes;
}

/* Always false: what was expected does not come. */
bool token_unexpected(scan *s);

/* If it does not come next, that is a failure. */
static inline bool token_expect(scan *s, char c)
{
    return token_accept(s, c) || token_unexpected(s);
}

/* Behind `count` elements of an array, or members of an object: does one more come? If not, its
 * end is taken. */
static inline bool token_more(scan *s, char end, size_t count)
{
    return !s->failed && !token_accept(s, end) && (count == 0 || token_expect(s, ',')) &&
           !s->failed;
}

bool token_null(scan *s);

/* A text as it stands between its quotes; as it is meant, allocated, never NULL. */
bool token_raw(scan *s, const char **text, size_t *length);
char *token_text(scan *s);

#define TOKEN_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Which of eight bytes is the first that is no plain character: a quote, a backslash, a control
 * character, or one that is not ASCII; 8: none. Borrows mark bytes behind a true one only. */
static inline size_t token_plain_bytes(const char *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        bytes = __builtin_bswap64(bytes);
    uint64_t quote = bytes ^ TOKEN_EACH('"'), slash = bytes ^ TOKEN_EACH('\\');
    uint64_t found =
        ((quote - TOKEN_EACH(1)) | (slash - TOKEN_EACH(1)) | (bytes - TOKEN_EACH(0x20)) | bytes) &
        TOKEN_EACH(0x80);
    return found ? (size_t)__builtin_ctzll(found) / 8 : 8;
}

/* Behind the characters of a text that stand for themselves: a quote, a backslash, what is none, or
 * the end. */
const char *token_plain_slowly(const char *at, const char *end);

static inline const char *token_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        size_t n = token_plain_bytes(at);
        at += n;
        if (n < 8)
            return *at & 0x80 ? token_plain_slowly(at, end) : at;
    }
    return token_plain_slowly(at, end);
}

/* The key of a member, and the colon behind it. */
bool token_key(scan *s, const char **key, size_t *length);

static inline bool token_is(const char *text, size_t length, const char *wanted)
{
    return strlen(wanted) == length && memcmp(text, wanted, length) == 0;
}

/* There are no digits, or too many. */
void token_no_uint(scan *s, size_t length);

/* What begins with digits, at `from`, and is more than some digits. A real that is an integer
 * counts: tools that write our files anew make 6.5e10 of 65000000000. */
uint64_t token_odd_uint(scan *s, const char *from);

/* Files of ranks are digits for the most part: in the header, so that loops have no calls. */
static inline uint64_t token_uint(scan *s)
{
    uint64_t n = 0;
    unsigned digit;
    token_peek(s);
    const char *at = s->at, *end = s->end;
    for (; at < end && (digit = (unsigned)(*at - '0')) < 10; at++)
        n = n * 10 + digit;
    const char *from = s->at;
    s->at = at;
    if ((size_t)(at - from) - 1 > 18 || (at < end && (*at == '.' || *at == 'e' || *at == 'E')))
        return token_odd_uint(s, from);
    return n;
}

/* null: NaN. */
double token_real(scan *s);

/* Any value. */
void token_skip(scan *s);

/* Nothing but blanks comes any more, and nothing has failed. */
bool token_ends(scan *s);

/* Is the text one whole object? */
bool token_is_object(const char *text, size_t length);

/* Of the object that the text begins with: the value of its first member of that key. False: there
 * is none, or the text is damaged before it. */
bool token_member(const char *text, size_t length, const char *key, const char **value,
                  const char **end);
