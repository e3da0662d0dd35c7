#include "trace/flat.h"

#include "base/compiler.h"

#include <string.h>

#define DIGITS_MOST 18  /* fewer than would overflow */
#define NUMBER_MOST 40  /* characters */
#define EXPONENT_MOST 2 /* digits */
#define LOW UINT64_C(0x0101010101010101)
#define HIGH UINT64_C(0x8080808080808080)

/* Where in the text it is; NULL: the line is not simple. */
typedef const char *place;

static place skip_blanks(place s, place end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
        s++;
    return s;
}

/* Which of eight bytes, in the order of the text, is the first that ends a string or that a simple
 * string has not: a quote, a backslash, a control character, or one that is not ASCII; 8: none.
 * Borrows mark bytes behind a true one only. */
static size_t first_end(const char *s)
{
    uint64_t bytes;
    memcpy(&bytes, s, sizeof bytes);
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        bytes = __builtin_bswap64(bytes);
    uint64_t quote = bytes ^ (LOW * '"'), slash = bytes ^ (LOW * '\\');
    uint64_t found = ((quote - LOW) | (slash - LOW) | (bytes - LOW * 0x20) | bytes) & HIGH;
    return found ? (size_t)__builtin_ctzll(found) / 8 : 8;
}

/* From behind the first quote to behind the last. */
static place read_string(place s, place end)
{
    while (end - s >= 8) {
        size_t at = first_end(s);
        s += at;
        if (at < 8)
            return *s == '"' ? s + 1 : NULL;
    }
    while (s < end && *s >= 0x20 && *s != '"' && *s != '\\' && !(*s & 0x80))
        s++;
    return s < end && *s == '"' ? s + 1 : NULL;
}

/* The text ends with a bracket, which ends numbers, too. */
static place skip_digits(place s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* The part behind the point, and that behind the e. */
static place read_fraction(place s, flat_member *m)
{
    if (*s == '.') {
        place digits = s + 1;
        s = skip_digits(digits);
        m->type = VALUE_REAL;
        if (s == digits)
            return NULL;
    }
    if (*s == 'e' || *s == 'E') {
        place digits = s[1] == '+' || s[1] == '-' ? s + 2 : s + 1;
        s = skip_digits(digits);
        m->type = VALUE_REAL;
        if (s == digits || s - digits > EXPONENT_MOST)
            return NULL;
    }
    return s;
}

static place read_number(place s, flat_member *m)
{
    bool negative = *s == '-';
    place digits = s + negative, start = s;
    uint64_t n = 0;
    for (s = digits; *s >= '0' && *s <= '9' && s - digits <= DIGITS_MOST; s++)
        n = 10 * n + (uint64_t)(*s - '0');
    if (s == digits || s - digits > DIGITS_MOST || (*digits == '0' && s - digits > 1))
        return NULL;
    m->type = VALUE_INTEGER;
    s = read_fraction(s, m);
    if (!s || s - start > NUMBER_MOST)
        return NULL;
    m->integer = m->type == VALUE_REAL ? 0 : negative ? -(int64_t)n : (int64_t)n;
    m->text = start;
    m->length = (uint32_t)(s - start);
    return s;
}

/* Of numbers: a kernel's grid. */
static place read_array(place s, place end)
{
    flat_member ignored;
    s = skip_blanks(s, end);
    if (s < end && *s == ']')
        return s + 1;
    while (s < end) {
        s = read_number(s, &ignored);
        s = s ? skip_blanks(s, end) : NULL;
        if (!s || s >= end)
            return NULL;
        if (*s == ']')
            return s + 1;
        if (*s != ',')
            return NULL;
        s = skip_blanks(s + 1, end);
    }
    return NULL;
}

static place read_word(place s, place end)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < PKI_COUNT_OF(words); i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(end - s) >= length && memcmp(s, words[i], length) == 0)
            return s + length;
    }
    return NULL;
}

static bool is_new(flat *f, const flat_member *m)
{
    size_t last = m->key_length ? m->key_length - 1 : 0;
    unsigned sum = m->key_length * 7 + (unsigned char)m->key[0] * 5u + (unsigned char)m->key[last];
    uint64_t bit = UINT64_C(1) << (sum & 63);
    bool maybe = (f->seen & bit) != 0;
    f->seen |= bit;
    for (uint32_t i = 0; maybe && i < f->count; i++)
        if (f->members[i].key_length == m->key_length &&
            memcmp(f->members[i].key, m->key, m->key_length) == 0)
            return false;
    return true;
}

static place read_key(place s, place end, flat *f, flat_member *m)
{
    place after = s < end && *s == '"' ? read_string(s + 1, end) : NULL;
    if (!after)
        return NULL;
    m->key = s + 1;
    m->key_length = (uint32_t)(after - s - 2);
    if (!is_new(f, m))
        return NULL;
    s = skip_blanks(after, end);
    return s < end && *s == ':' ? skip_blanks(s + 1, end) : NULL;
}

static place read_object(place s, place end, flat *f, flat_line *line);

/* line: NULL inside of args. */
static place read_value(place s, place end, flat_member *m, flat_line *line)
{
    place after = NULL;
    m->type = VALUE_OTHER;
    m->text = NULL;
    m->integer = 0;
    m->length = 0;
    if (s >= end)
        return NULL;
    if (*s == '"') {
        after = read_string(s + 1, end);
        m->type = VALUE_TEXT;
        m->text = s + 1;
        m->length = after ? (uint32_t)(after - s - 2) : 0;
    } else if (*s == '-' || (*s >= '0' && *s <= '9')) {
        after = read_number(s, m);
    } else if (*s == '[') {
        after = read_array(s + 1, end);
    } else if (*s == '{') {
        bool args = line && m->key_length == 4 && memcmp(m->key, "args", 4) == 0;
        after = args ? read_object(s, end, &line->args, NULL) : NULL;
        if (args)
            line->has_args = true;
    } else {
        after = read_word(s, end);
    }
    return after;
}

static place read_object(place s, place end, flat *f, flat_line *line)
{
    s = s < end && *s == '{' ? skip_blanks(s + 1, end) : NULL;
    if (s && s < end && *s == '}')
        return s + 1;
    while (s && f->count < FLAT_MEMBERS) {
        flat_member *m = &f->members[f->count];
        s = read_key(s, end, f, m);
        s = s ? read_value(s, end, m, line) : NULL;
        s = s ? skip_blanks(s, end) : NULL;
        f->count++;
        if (!s || s >= end)
            return NULL;
        if (*s == '}')
            return s + 1;
        s = *s == ',' ? skip_blanks(s + 1, end) : NULL;
    }
    return NULL;
}

/* Over the quotes. */
static void terminate(char *text, const flat *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const flat_member *m = &f->members[i];
        text[m->key - text + m->key_length] = '\0';
        if (m->type == VALUE_TEXT)
            text[m->text - text + m->length] = '\0';
    }
}

bool flat_read(flat_line *out, char *text, size_t length)
{
    place end = text + length;
    out->top.count = out->args.count = 0;
    out->top.seen = out->args.seen = 0;
    out->has_args = false;
    if (length == 0 || length > UINT32_MAX || end[-1] != '}')
        return false;
    place after = read_object(skip_blanks(text, end), end, &out->top, out);
    if (!after || skip_blanks(after, end) < end)
        return false;
    terminate(text, &out->top);
    terminate(text, &out->args);
    return true;
}

object flat_object(const flat_line *line)
{
    return (object){.members = &line->top, .args = line->has_args ? &line->args : NULL};
}
