#include "out/columns.h"

#include "base/compiler.h"
#include "base/text.h"

#include <stdint.h>
#include <string.h>

#define CUT "..."
#define CUT_WIDTH 3

typedef struct range {
    uint32_t first, last;
} range;

/* The blocks that matter in names, not all of Unicode. */
static const range no_columns[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},   {0x0900, 0x0902},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},   {0x200B, 0x200D},
    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF},
};
static const range two_columns[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};
/* What makes a terminal act: C1 controls, and marks that change the direction of text. */
static const range unsafe[] = {{0x80, 0x9F}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};

static int is_in(uint32_t code, const range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return 1;
    return 0;
}

static uint32_t decode(const char *s, size_t length)
{
    static const uint8_t masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)s[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3F);
    return code;
}

/* A character as it is shown. */
typedef struct glyph {
    char bytes[5];
    size_t took; /* of the text */
    size_t width;
} glyph;

static glyph next_glyph(const char *s)
{
    size_t length = pki_utf8_length(s, strnlen(s, 4));
    if (length == 0)
        return (glyph){"\xEF\xBF\xBD", 1, 1};
    glyph g = {.took = length, .width = 1};
    uint32_t code = decode(s, length);
    if (code < 0x20 || code == 0x7F || is_in(code, unsafe, PKI_COUNT_OF(unsafe))) {
        g.bytes[0] = '?';
        return g;
    }
    memcpy(g.bytes, s, length);
    if (is_in(code, no_columns, PKI_COUNT_OF(no_columns)))
        g.width = 0;
    else if (is_in(code, two_columns, PKI_COUNT_OF(two_columns)))
        g.width = 2;
    return g;
}

static size_t width_of(const char *text, size_t length)
{
    size_t width = 0;
    for (const char *s = text; s < text + length;) {
        glyph g = next_glyph(s);
        width += g.width;
        s += g.took;
    }
    return width;
}

size_t pki_width(const char *text)
{
    return width_of(text, strlen(text));
}

/* What of the text fits; *rest is what follows. Returns its width. */
static size_t put_head(FILE *file, const char *text, const char *end, size_t most,
                       const char **rest)
{
    size_t width = 0;
    while (text < end) {
        glyph g = next_glyph(text);
        if (width + g.width > most)
            break;
        fputs(g.bytes, file);
        width += g.width;
        text += g.took;
    }
    *rest = text;
    return width;
}

/* The longest end of the text that fits. */
static const char *tail_of(const char *text, size_t most)
{
    size_t width = pki_width(text);
    while (*text && width > most) {
        glyph g = next_glyph(text);
        width -= g.width;
        text += g.took;
    }
    return text;
}

static size_t put_fitting(FILE *file, const char *text, size_t width)
{
    const char *end = text + strlen(text), *rest;
    if (pki_width(text) <= width)
        return put_head(file, text, end, width, &rest);
    size_t left = width > CUT_WIDTH ? width - CUT_WIDTH : 0;
    const char *tail = tail_of(text, left / 2);
    size_t used = put_head(file, text, end, left - left / 2, &rest);
    fputs(CUT, file);
    return used + CUT_WIDTH + put_head(file, tail, end, left / 2, &rest);
}

void pki_put_times(FILE *file, char c, size_t times)
{
    while (times--)
        fputc(c, file);
}

void pki_put_text(FILE *file, const char *text)
{
    const char *rest;
    put_head(file, text, text + strlen(text), SIZE_MAX, &rest);
}

void pki_put_left(FILE *file, const char *text, size_t width)
{
    size_t used = put_fitting(file, text, width);
    pki_put_times(file, ' ', used < width ? width - used : 0);
}

void pki_put_right(FILE *file, const char *text, size_t width)
{
    size_t used = pki_width(text);
    pki_put_times(file, ' ', used < width ? width - used : 0);
    put_fitting(file, text, width);
}

void pki_put_cell(FILE *file, const char *text, size_t width)
{
    fputs("  ", file);
    pki_put_right(file, text, width);
}

/* A word longer than a line, over as many as it takes. Returns the column after it. */
static size_t put_long_word(FILE *file, const char *word, const char *end, size_t at, size_t indent)
{
    while (word < end) {
        const char *rest;
        size_t used = put_head(file, word, end, PKI_PAGE_WIDTH - at, &rest);
        at += used;
        word = rest;
        if (word == end)
            break;
        fputc('\n', file);
        pki_put_times(file, ' ', indent);
        at = indent;
    }
    return at;
}

void pki_put_paragraph(FILE *file, const char *text, size_t at, size_t indent)
{
    bool begun = false; /* a word stands on this line */
    while (*(text += strspn(text, " \n"))) {
        const char *end = text + strcspn(text, " \n");
        size_t width = width_of(text, (size_t)(end - text));
        size_t gap = begun ? 1 : 0;
        if (at + gap + width <= PKI_PAGE_WIDTH) {
            pki_put_times(file, ' ', gap);
            at += gap;
        } else if (at > indent) {
            fputc('\n', file);
            pki_put_times(file, ' ', indent);
            at = indent;
        }
        begun = true;
        at = put_long_word(file, text, end, at, indent);
        text = end;
    }
    fputc('\n', file);
}
