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
static const char *tail_of(const char *text, const char *end, size_t most)
{
    size_t width = width_of(text, (size_t)(end - text));
    while (text < end && width > most) {
        glyph g = next_glyph(text);
        width -= g.width;
        text += g.took;
    }
    return text;
}

/* Parts of a text, from a byte to another one. */
typedef struct part {
    const char *first, *last;
} part;

/* What stays of a part at both of its ends if the middle is cut out. */
static part cut_middle(part p, size_t width)
{
    size_t left = width > CUT_WIDTH ? width - CUT_WIDTH : 0, used = 0;
    part hidden = {p.first, tail_of(p.first, p.last, left / 2)};
    for (glyph g; hidden.first < p.last; hidden.first += g.took, used += g.width) {
        g = next_glyph(hidden.first);
        if (used + g.width > left - left / 2)
            break;
    }
    return hidden;
}

/* Without what is hidden of it. */
static size_t put_but(FILE *file, part p, part hidden)
{
    const char *rest;
    size_t used = put_head(file, p.first, hidden.first, SIZE_MAX, &rest);
    fputs(CUT, file);
    return used + CUT_WIDTH + put_head(file, hidden.last, p.last, SIZE_MAX, &rest);
}

static size_t put_fitting(FILE *file, const char *text, size_t width)
{
    const char *rest;
    part p = {text, text + strlen(text)};
    if (width_of(text, (size_t)(p.last - text)) <= width)
        return put_head(file, text, p.last, width, &rest);
    return put_but(file, p, cut_middle(p, width));
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

/* ---- a text that is cut so that it differs from its neighbours ---- */

#define NEAR 128      /* rows before and behind that are looked at */
#define LONGEST 4096  /* bytes of a text that is compared with them */
#define AROUND 12     /* bytes of the word around what differs that are shown with it */
#define LEAST_ROOM 9u /* columns beside the dots: with fewer it is cut plainly */

pki_column pki_column_near(const void *rows, size_t count, size_t stride, size_t at,
                           const char *(*text)(const void *row))
{
    size_t from = at > NEAR ? at - NEAR : 0;
    size_t to = PKI_MIN(count, at + NEAR + 1);
    return (pki_column){text, (const char *)rows + from * stride, to > from ? to - from : 0,
                        stride};
}

static bool is_amid_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* In how many bytes both begin alike, and in how many they end alike: whole characters. */
static size_t shared_head(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    while (n > 0 && (is_amid_character(a[n]) || is_amid_character(b[n])))
        n--;
    return n;
}

static size_t shared_tail(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t n = 0, most = PKI_MIN(a_length, b_length);
    while (n < most && a[a_length - 1 - n] == b[b_length - 1 - n])
        n++;
    while (n > 0 && is_amid_character(a[a_length - n]))
        n--;
    return n;
}

/* What of the hidden part is not the same in all rows that look alike without it; with NULL for its
 * first if there are none. */
static part telling_part(const char *text, part hidden, const pki_column *column)
{
    size_t length = strlen(text), head = SIZE_MAX, tail = SIZE_MAX;
    size_t before = (size_t)(hidden.first - text), behind = length - (size_t)(hidden.last - text);
    for (size_t i = 0; i < column->count; i++) {
        const char *other = column->text(column->rows + i * column->stride);
        if (!other || strncmp(text, other, before) != 0 || strcmp(text, other) == 0)
            continue;
        size_t other_length = strnlen(other, LONGEST + 1);
        size_t ends_alike = shared_tail(text, length, other, other_length);
        if (other_length > LONGEST || ends_alike < behind)
            continue;
        head = PKI_MIN(head, shared_head(text, other));
        tail = PKI_MIN(tail, ends_alike);
    }
    if (head == SIZE_MAX)
        return (part){NULL, NULL};
    /* A text that another one repeats a part of may share all of it. */
    return (part){text + head, text + PKI_MAX(head, length - tail)};
}

/* What belongs together: "[12]", "block_3". */
static bool is_of_word(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 0x80 || (u >= '0' && u <= '9') || ((u | 0x20) >= 'a' && (u | 0x20) <= 'z') ||
           strchr("_[]#", c);
}

static part with_its_word(part telling, part whole)
{
    for (int i = 0; i < AROUND && telling.first > whole.first && is_of_word(telling.first[-1]); i++)
        telling.first--;
    for (int i = 0; i < AROUND && telling.last < whole.last && is_of_word(*telling.last); i++)
        telling.last++;
    while (telling.first < telling.last && is_amid_character(*telling.first))
        telling.first++;
    while (telling.last < whole.last && is_amid_character(*telling.last))
        telling.last++;
    return telling;
}

static size_t width_of_part(part p)
{
    return width_of(p.first, (size_t)(p.last - p.first));
}

static size_t put_part(FILE *file, const char *text, part p, size_t width,
                       const pki_column *column);

/* Some of both ends, and between them as much as there is room for of what differs. */
static size_t put_around(FILE *file, const char *text, part whole, part telling, size_t width,
                         const pki_column *column)
{
    const char *rest;
    part word = with_its_word(telling, whole);
    size_t room = width - 2 * CUT_WIDTH, most = room * 2 / 3;
    bool longer = width_of_part(word) > most && telling.first < telling.last;
    part shown = longer ? telling : word;
    size_t middle = PKI_MIN(width_of_part(shown), most), sides = room - middle;
    size_t head = width_of_part((part){whole.first, shown.first});
    size_t tail = width_of_part((part){shown.last, whole.last});
    size_t at_tail = PKI_MIN(tail, sides / 2), at_head = PKI_MIN(head, sides - at_tail);
    at_tail = PKI_MIN(tail, sides - at_head);
    size_t used = put_head(file, whole.first, shown.first, at_head, &rest);
    if (rest < shown.first)
        used += (size_t)fprintf(file, CUT);
    used += put_part(file, text, shown, middle, column);
    if (at_tail < tail)
        used += (size_t)fprintf(file, CUT);
    const char *end = tail_of(shown.last, whole.last, at_tail);
    return used + put_head(file, end, whole.last, at_tail, &rest);
}

static size_t put_part(FILE *file, const char *text, part p, size_t width, const pki_column *column)
{
    const char *rest;
    if (width_of_part(p) <= width)
        return put_head(file, p.first, p.last, width, &rest);
    part hidden = cut_middle(p, width);
    part telling = telling_part(text, hidden, column);
    if (!telling.first || width < 2 * CUT_WIDTH + LEAST_ROOM)
        return put_but(file, p, hidden);
    return put_around(file, text, p, telling, width, column);
}

void pki_put_apart(FILE *file, const char *text, size_t width, const pki_column *column)
{
    size_t length = strlen(text);
    if (length > LONGEST) {
        pki_put_left(file, text, width);
        return;
    }
    size_t used = put_part(file, text, (part){text, text + length}, width, column);
    pki_put_times(file, ' ', used < width ? width - used : 0);
}

/* ---- paragraphs ---- */

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
