#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool continues(const unsigned char *u, size_t n, size_t length)
{
    if (n < length)
        return false;
    for (size_t i = 1; i < length; i++)
        if ((u[i] & 0xC0) != 0x80)
            return false;
    return true;
}

size_t pki_utf8_length(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    if (n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    if (u[0] >= 0xC2 && u[0] <= 0xDF)
        return continues(u, n, 2) ? 2 : 0;
    if ((u[0] & 0xF0) == 0xE0) {
        bool overlong = u[0] == 0xE0 && n > 1 && u[1] < 0xA0;
        bool surrogate = u[0] == 0xED && n > 1 && u[1] > 0x9F;
        return continues(u, n, 3) && !overlong && !surrogate ? 3 : 0;
    }
    if (u[0] >= 0xF0 && u[0] <= 0xF4) {
        bool overlong = u[0] == 0xF0 && n > 1 && u[1] < 0x90;
        bool beyond = u[0] == 0xF4 && n > 1 && u[1] > 0x8F;
        return continues(u, n, 4) && !overlong && !beyond ? 4 : 0;
    }
    return 0;
}

/* One escaped character into piece (at least 7 bytes); returns its length and how much of s it
 * took. */
static size_t escape_one(char *piece, const char *s, size_t n, size_t *took)
{
    static const char hex[] = "0123456789abcdef";
    size_t length = pki_utf8_length(s, n);
    unsigned char c = (unsigned char)*s;
    *took = length ? length : 1;
    if (length == 0) {
        memcpy(piece, "\xEF\xBF\xBD", 3);
        return 3;
    }
    if (c == '"' || c == '\\') {
        piece[0] = '\\';
        piece[1] = (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7F) {
        memcpy(piece, "\\u00", 4);
        piece[4] = hex[c >> 4];
        piece[5] = hex[c & 15];
        return 6;
    }
    memcpy(piece, s, length);
    return length;
}

size_t pki_json_escape(char *out, size_t size, const char *s, size_t n)
{
    size_t used = 0;
    while (n > 0) {
        char piece[8];
        size_t took;
        size_t length = escape_one(piece, s, n, &took);
        if (used + length + 1 > size)
            break;
        memcpy(out + used, piece, length);
        used += length;
        s += took;
        n -= took;
    }
    if (size)
        out[used] = 0;
    return used;
}

/* What %c stands for; false if nothing. */
static bool field(char *out, size_t size, char c, const pki_path_fields *fields)
{
    switch (c) {
    case 'r':
        return snprintf(out, size, "%d", fields->rank) > 0;
    case 'p':
        return snprintf(out, size, "%d", fields->pid) > 0;
    case 'h':
        return snprintf(out, size, "%s", fields->host) >= 0;
    case '%':
        return snprintf(out, size, "%%") > 0;
    default:
        return false;
    }
}

bool pki_path_expand(char *out, size_t size, const char *pattern, const pki_path_fields *fields,
                     char *bad)
{
    size_t used = 0;
    *bad = 0;
    for (const char *p = pattern; *p; p++) {
        char piece[256] = {*p, 0};
        if (*p == '%') {
            p++;
            if (!field(piece, sizeof piece, *p, fields)) {
                *bad = *p ? *p : '%';
                return false;
            }
        }
        size_t length = strlen(piece);
        if (used + length + 1 > size)
            return false;
        memcpy(out + used, piece, length);
        used += length;
    }
    out[used] = 0;
    return used > 0;
}

bool pki_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && memcmp(s + n - m, end, m) == 0;
}

uint32_t pki_hash(const char *s, size_t n, uint32_t seed)
{
    uint32_t hash = 2166136261u ^ seed;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)s[i]) * 16777619u;
    return hash;
}

const char *pki_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
