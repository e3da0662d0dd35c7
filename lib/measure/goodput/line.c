#include "measure/goodput/line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

#define SEED 0x676f6f64u
#define CHECK " check="

static const char *const whys[PKI_LIFE_WHYS] = {"start", "beat", "end"};

/* A number of the line under its name; all but `why`. */
typedef struct word {
    const char *name;
    size_t at;
    bool is_signed;
} word;

#define WORD(m)                                                                                    \
    {                                                                                              \
#m, offsetof(pki_life_line, m), false                                                      \
    }
#define SIGNED(m)                                                                                  \
    {                                                                                              \
#m, offsetof(pki_life_line, m), true                                                       \
    }
static const word fields[] = {
    WORD(run),        WORD(n),          {"unix", offsetof(pki_life_line, unix_ns), false},
    WORD(boot),       WORD(boot_ns),    WORD(up),
    WORD(beat),       WORD(rank),       WORD(pid),
    WORD(steps),      WORD(recomputed), SIGNED(at),
    SIGNED(furthest), WORD(saves),      WORD(save_ns),
    WORD(save_bytes), SIGNED(saved)};

static uint64_t get(const pki_life_line *line, size_t at)
{
    uint64_t value;
    memcpy(&value, (const char *)line + at, sizeof value);
    return value;
}

static void set(pki_life_line *line, size_t at, uint64_t value)
{
    memcpy((char *)line + at, &value, sizeof value);
}

/* 20 numbers of 20 digits and their names fit. */
static size_t put(char *text, size_t used, const char *format, ...)
{
    va_list all;
    va_start(all, format);
    int n = vsnprintf(text + used, PKI_LIFE_LINE - used, format, all);
    va_end(all);
    return used + (n > 0 ? PKI_MIN((size_t)n, PKI_LIFE_LINE - used - 1) : 0);
}

size_t pki_life_put(const pki_life_line *line, char text[PKI_LIFE_LINE])
{
    size_t used = put(text, 0, PKI_LIFE_MAGIC "why=%s", whys[line->why % PKI_LIFE_WHYS]);
    for (size_t i = 0; i < PKI_COUNT_OF(fields); i++) {
        uint64_t value = get(line, fields[i].at);
        if (fields[i].is_signed)
            used = put(text, used, " %s=%" PRId64, fields[i].name, (int64_t)value);
        else
            used = put(text, used, " %s=%" PRIu64, fields[i].name, value);
    }
    for (size_t i = 0; i < PKI_PARTS; i++)
        used = put(text, used, " part.%s=%" PRIu64, pki_part_names[i], line->parts[i]);
    return put(text, used, CHECK "%08" PRIx32 "\n", pki_hash(text, used, SEED));
}

static bool is_whole(const char *text, size_t length)
{
    size_t tail = sizeof CHECK - 1 + 8, magic = sizeof PKI_LIFE_MAGIC - 1;
    char check[sizeof CHECK + 8];
    if (length < magic + tail || length >= PKI_LIFE_LINE ||
        memcmp(text, PKI_LIFE_MAGIC, magic) != 0)
        return false;
    snprintf(check, sizeof check, CHECK "%08" PRIx32, pki_hash(text, length - tail, SEED));
    return memcmp(text + length - tail, check, tail) == 0;
}

static void parse_field(pki_life_line *line, const char *name, const char *value)
{
    for (uint32_t i = 0; i < PKI_LIFE_WHYS && strcmp(name, "why") == 0; i++)
        if (strcmp(value, whys[i]) == 0)
            line->why = i;
    for (size_t i = 0; i < PKI_COUNT_OF(fields); i++)
        if (strcmp(name, fields[i].name) == 0)
            set(line, fields[i].at,
                fields[i].is_signed ? (uint64_t)strtoll(value, NULL, 10)
                                    : (uint64_t)strtoull(value, NULL, 10));
    for (size_t i = 0; i < PKI_PARTS && strncmp(name, "part.", 5) == 0; i++)
        if (strcmp(name + 5, pki_part_names[i]) == 0)
            line->parts[i] = strtoull(value, NULL, 10);
}

#define YEAR (365 * UINT64_C(86400000000000)) /* ns */

/* No machine stays up for a century, and no calendar here goes beyond that of signed ns. */
static bool can_be(const pki_life_line *l)
{
    bool can = l->up <= 100 * YEAR && l->boot_ns <= 100 * YEAR && l->beat <= YEAR &&
               l->unix_ns <= INT64_MAX && l->save_ns <= l->up && l->steps <= l->up &&
               l->recomputed <= l->steps;
    for (size_t i = 0; i < PKI_PARTS; i++)
        can = can && l->parts[i] <= l->up;
    return can;
}

bool pki_life_read(const char *text, size_t length, pki_life_line *line)
{
    char copy[PKI_LIFE_LINE], *rest = NULL;
    if (!is_whole(text, length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *line = (pki_life_line){.why = PKI_LIFE_BEAT, .at = -1, .furthest = -1, .saved = -1};
    for (char *w = strtok_r(copy + sizeof PKI_LIFE_MAGIC - 1, " ", &rest); w;
         w = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(w, '=');
        if (!value)
            continue;
        *value = '\0';
        parse_field(line, w, value + 1);
    }
    return can_be(line);
}
