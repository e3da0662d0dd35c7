#include "trace/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t digits_at(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* 1.5e3: rare, and no trace that needs all its digits has it. */
static bool scan_power(const char *text, size_t length, uint64_t *ns)
{
    char copy[64];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *end;
    double value = strtod(copy, &end) * 1000;
    if (*end || !(value >= 0) || value > (double)SCAN_MOST)
        return false;
    *ns = (uint64_t)llround(value);
    return true;
}

/* Three digits, as if those that are missing were 0; rounded by the fourth. */
static uint64_t thousandths(const char *s, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 3; i++)
        value = 10 * value + (i < count ? (uint64_t)(s[i] - '0') : 0);
    return value + (count > 3 && s[3] >= '5');
}

/* As perfkit writes it: digits, a point, and three of them. At most 18 make no number too large. */
static bool scan_plain(const char *text, size_t length, uint64_t *ns)
{
    uint64_t n = 0;
    unsigned beyond = 0; /* a digit would have been above 9 */
    if (length < 5 || length > 19 || text[length - 4] != '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (i == length - 4)
            continue;
        beyond |= digit > 9;
        n = 10 * n + digit;
    }
    if (beyond || n > SCAN_MOST)
        return false;
    *ns = n;
    return true;
}

bool scan_us(const char *text, size_t length, uint64_t *ns)
{
    if (scan_plain(text, length, ns))
        return true;
    const char *end = text + length;
    size_t whole = digits_at(text, end), decimals = 0;
    const char *s = text + whole;
    if (whole == 0)
        return false;
    if (s < end && *s == '.') {
        decimals = digits_at(s + 1, end);
        s += 1 + decimals;
    }
    if (s < end)
        return *s == 'e' || *s == 'E' ? scan_power(text, length, ns) : false;
    uint64_t us = 0;
    for (size_t i = 0; i < whole; i++) {
        us = 10 * us + (uint64_t)(text[i] - '0');
        if (us > SCAN_MOST / 1000)
            return false;
    }
    *ns = 1000 * us + (decimals ? thousandths(text + whole + 1, decimals) : 0);
    return true;
}

uint32_t scan_ps(const char *text, size_t length)
{
    const char *end = text + length, *point = text + digits_at(text, end);
    if (end - point != 7 || *point != '.' || digits_at(point + 1, end) != 6)
        return 0;
    return (uint32_t)(100 * (point[4] - '0') + 10 * (point[5] - '0') + (point[6] - '0'));
}

/* Slices end early by 4 ps per level, those that lack something by 2 more (lib/out/chrome). */
uint64_t scan_lack(uint32_t start_ps, uint32_t duration_ps)
{
    return start_ps <= 64 && duration_ps % 4 == 2 ? start_ps : 0;
}

static const char *skip_string(const char *s, const char *end)
{
    for (s++; s < end && *s != '"'; s++)
        if (*s == '\\')
            s++;
    return s < end ? s + 1 : end;
}

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n'))
        s++;
    return s;
}

/* What follows the colon, if the string at s is this key of the outermost object. */
static const char *value_of(const char *s, const char *after, const char *end, const char *key)
{
    size_t length = strlen(key);
    if ((size_t)(after - s) != length + 2 || memcmp(s + 1, key, length) != 0)
        return NULL;
    s = skip_blanks(after, end);
    return s < end && *s == ':' ? skip_blanks(s + 1, end) : NULL;
}

bool scan_member_us(const char *text, size_t length, const char *key, uint64_t *ns, uint32_t *ps)
{
    const char *end = text + length;
    int depth = 0;
    for (const char *s = text; s < end;) {
        if (*s == '"') {
            const char *after = skip_string(s, end);
            const char *value = depth == 1 ? value_of(s, after, end, key) : NULL;
            if (value) {
                size_t n = 0;
                while (value + n < end && strchr("+-.0123456789eE", value[n]) && value[n])
                    n++;
                *ps = scan_ps(value, n);
                return scan_us(value, n, ns);
            }
            s = after;
            continue;
        }
        depth += (*s == '{' || *s == '[') - (*s == '}' || *s == ']');
        s++;
    }
    return false;
}
