#include "measure/machine/machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

#define FIRST_LINE "perfkit machine 1"
#define LINE_MOST 256

static PKI_PRINTF(3, 4) bool refuse(char *why, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

/* ---- words of a line ---- */

/* The next word of *line, which it is taken from. */
static bool parse_word(const char **line, char *word, size_t size)
{
    size_t n = strcspn(*line, " ");
    if (n == 0 || n >= size)
        return false;
    memcpy(word, *line, n);
    word[n] = '\0';
    *line += n + ((*line)[n] == ' ');
    return true;
}

static bool parse_number(const char **line, uint64_t *value)
{
    char word[24];
    if (!parse_word(line, word, sizeof word))
        return false;
    *value = 0;
    for (const char *c = word; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        *value = *value * 10 + (uint64_t)(*c - '0');
        if (*value > PKI_MACHINE_RATE_MOST)
            return false;
    }
    return true;
}

static bool parse_rest(const char *line, char *text, size_t size)
{
    size_t n = strlen(line);
    if (n == 0 || n >= size)
        return false;
    memset(text, 0, size); /* a word that comes twice leaves nothing of the first */
    memcpy(text, line, n);
    return true;
}

static bool parse_limit(const char *line, pki_machine *m)
{
    pki_limit limit;
    char who[8];
    memset(&limit, 0, sizeof limit);
    bool whole = parse_word(&line, limit.name, sizeof limit.name) &&
                 parse_word(&line, who, sizeof who) && parse_number(&line, &limit.best) &&
                 parse_number(&line, &limit.median) && parse_number(&line, &limit.worst) &&
                 parse_number(&line, &limit.rounds) && !*line;
    limit.all = whole && strcmp(who, "all") == 0;
    return whole && (limit.all || strcmp(who, "one") == 0) && limit.worst > 0 &&
           limit.worst <= limit.median && limit.median <= limit.best && limit.rounds > 0 &&
           pki_machine_add(m, &limit);
}

/* Is what is said behind the word what it should be? Unknown words are a later version's. */
static bool parse_line(const char *line, pki_machine *m)
{
    char word[32];
    if (!parse_word(&line, word, sizeof word))
        return false;
    if (strcmp(word, "host") == 0)
        return parse_rest(line, m->host, sizeof m->host);
    if (strcmp(word, "cpu") == 0)
        return parse_rest(line, m->cpu, sizeof m->cpu);
    if (strcmp(word, "processors") == 0)
        return parse_number(&line, &m->processors) && !*line && m->processors > 0;
    if (strcmp(word, "measured") == 0)
        return parse_number(&line, &m->measured) && !*line;
    if (strcmp(word, "limit") == 0)
        return parse_limit(line, m);
    return true;
}

/* ---- a file ---- */

/* Printable, so that a report may quote it. */
static bool is_text(const char *line, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t character = pki_utf8_length(line + i, n - i);
        if (character == 0 || (unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            return false;
        i += character;
    }
    return true;
}

bool pki_machine_parse(const char *text, size_t length, pki_machine *m, char *why, size_t size)
{
    char line[LINE_MOST];
    unsigned number = 0;
    memset(m, 0, sizeof *m);
    if (length >= PKI_MACHINE_BYTES)
        return refuse(why, size, "longer than %u bytes", PKI_MACHINE_BYTES - 1);
    for (size_t at = 0, n; at < length; at += n + 1) {
        const char *end = memchr(text + at, '\n', length - at);
        n = end ? (size_t)(end - (text + at)) : length - at;
        number++;
        if (!end)
            return refuse(why, size, "line %u is cut off", number);
        if (n >= sizeof line || !is_text(text + at, n))
            return refuse(why, size, "line %u is no text", number);
        memcpy(line, text + at, n);
        line[n] = '\0';
        if (number == 1 && strcmp(line, FIRST_LINE) != 0)
            return refuse(why, size, "does not begin with \"%s\"", FIRST_LINE);
        if (number > 1 && !parse_line(line, m))
            return refuse(why, size, "line %u makes no sense: %.60s", number, line);
    }
    if (!m->host[0] || !m->cpu[0] || !m->processors || !m->limit_count)
        return refuse(why, size, "host, cpu, processors or limits are missing");
    return true;
}

size_t pki_machine_print(const pki_machine *m, char text[PKI_MACHINE_BYTES])
{
    /* At most 32 limits of 32 + 4 x 20 bytes and a few words: it fits. */
    size_t n = (size_t)snprintf(text, PKI_MACHINE_BYTES,
                                FIRST_LINE "\nhost %s\ncpu %s\nprocessors %" PRIu64
                                           "\nmeasured %" PRIu64 "\n",
                                m->host, m->cpu, m->processors, m->measured);
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        n += (size_t)snprintf(text + n, PKI_MACHINE_BYTES - n,
                              "limit %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                              l->name, l->all ? "all" : "one", l->best, l->median, l->worst,
                              l->rounds);
    }
    return n;
}

bool pki_machine_add(pki_machine *m, const pki_limit *limit)
{
    if (m->limit_count == PKI_MACHINE_LIMITS)
        return false;
    m->limits[m->limit_count++] = *limit;
    return true;
}

uint64_t pki_machine_best(const pki_machine *m, const char *name, bool all)
{
    uint64_t best = 0;
    size_t n = strlen(name);
    bool family = n && name[n - 1] == '-';
    for (size_t i = 0; i < m->limit_count; i++) {
        const pki_limit *l = &m->limits[i];
        bool is_it = family ? strncmp(l->name, name, n) == 0 : strcmp(l->name, name) == 0;
        if (is_it && l->all == all && l->best > best)
            best = l->best;
    }
    return best;
}
