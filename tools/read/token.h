/* tools/read/token.h - the words of a JSON text, one after the other.
 *
 * Once something has failed, nothing is taken any more, so who reads on comes to an end.
 */
#pragma once

#include "complaint.h"

#include <stddef.h>
#include <stdint.h>

typedef struct scan {
    const char *at, *end;
    complaint *why;
    bool failed;
} scan;

/* Always false. */
bool token_fail(scan *s, const char *what);

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

bool token_null(scan *s);

/* A text as it stands between its quotes; as it is meant, allocated, never NULL. */
bool token_raw(scan *s, const char **text, size_t *length);
char *token_text(scan *s);

/* Of `length` digits, of which there are none or too many, or which a fraction follows. */
void token_no_uint(scan *s, size_t length);

/* Files of ranks are digits for the most part: in the header, so that loops have no calls. */
static inline uint64_t token_uint(scan *s)
{
    uint64_t n = 0;
    unsigned digit;
    token_peek(s);
    const char *at = s->at, *end = s->end;
    for (; at < end && (digit = (unsigned)(*at - '0')) < 10; at++)
        n = n * 10 + digit;
    size_t length = (size_t)(at - s->at);
    s->at = at;
    if (length - 1 > 18 || (at < end && (*at == '.' || *at == 'e' || *at == 'E')))
        token_no_uint(s, length);
    return n;
}

double token_real(scan *s);

/* Any value. */
void token_skip(scan *s);
