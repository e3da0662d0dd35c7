#include "measure/goodput/goodput.h"

#include <pk/goodput.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

/* ---- where a run's time goes ---- */

/* ---- a line of the state file: a run of the job as far as it has come ---- */

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

/* ---- where a run's time goes: each moment into one part ---- */

/* Places of what has not ended: a phase, a hang. Those that have follow. */
enum { PKI_ACCOUNT_PHASE, PKI_ACCOUNT_HANG, PKI_ACCOUNT_ENDED };

const char *const pki_part_names[PKI_PARTS] = {[PKI_PART_PRODUCTIVE] = "productive",
                                               [PKI_PART_RECOMPUTED] = "recomputed",
                                               [PKI_PART_DATA] = "data_wait",
                                               [PKI_PART_STARTUP] = "startup",
                                               [PKI_PART_COMPILE] = "compilation",
                                               [PKI_PART_CHECKPOINT] = "checkpoint",
                                               [PKI_PART_RESTORE] = "restore",
                                               [PKI_PART_EVALUATION] = "evaluation",
                                               [PKI_PART_HANG] = "hang",
                                               [PKI_PART_UNFINISHED] = "unfinished",
                                               [PKI_PART_OTHER] = "other"};

uint32_t pki_part_of_phase(uint32_t phase)
{
    switch (phase) {
    case PK_PHASE_STARTUP:
        return PKI_PART_STARTUP;
    case PK_PHASE_COMPILE:
        return PKI_PART_COMPILE;
    case PK_PHASE_CHECKPOINT:
        return PKI_PART_CHECKPOINT;
    case PK_PHASE_RESTORE:
        return PKI_PART_RESTORE;
    case PK_PHASE_EVALUATION:
        return PKI_PART_EVALUATION;
    default:
        return PKI_PART_OTHER;
    }
}

static uint32_t pki_part_of_kind(const char *kind)
{
    static const struct {
        const char *kind;
        uint32_t part;
    } known[] = {{"evaluation", PKI_PART_EVALUATION},
                 {"validation", PKI_PART_EVALUATION},
                 {"test", PKI_PART_EVALUATION},
                 {"checkpoint", PKI_PART_CHECKPOINT},
                 {"compile", PKI_PART_COMPILE}};
    for (size_t i = 0; kind && i < PKI_COUNT_OF(known); i++)
        if (strcmp(kind, known[i].kind) == 0)
            return known[i].part;
    return PKI_PART_PRODUCTIVE;
}

void pki_account_begin(pki_account *a, uint64_t before, int64_t furthest_before)
{
    memset(a, 0, sizeof *a);
    a->before = before;
    a->furthest_before = furthest_before;
    a->at = -1;
    a->span_count = PKI_ACCOUNT_ENDED;
    a->spans[PKI_ACCOUNT_HANG].part = PKI_PART_HANG;
}

void pki_account_phase(pki_account *a, uint64_t since, uint32_t part)
{
    a->spans[PKI_ACCOUNT_PHASE] = (pki_account_span){since, part ? UINT64_MAX : since, part};
}

void pki_account_hang(pki_account *a, uint64_t since)
{
    a->spans[PKI_ACCOUNT_HANG].begin = since;
    a->spans[PKI_ACCOUNT_HANG].end = UINT64_MAX;
}

void pki_account_hang_over(pki_account *a, uint64_t end)
{
    pki_account_span *hang = &a->spans[PKI_ACCOUNT_HANG];
    if (hang->end == UINT64_MAX)
        pki_account_span_add(a, hang->begin, end, PKI_PART_HANG);
    hang->end = hang->begin;
}

void pki_account_span_add(pki_account *a, uint64_t begin, uint64_t end, uint32_t part)
{
    begin = PKI_MAX(begin, a->covered); /* the step that it began in has been counted without it */
    if (end > begin && a->span_count < PKI_ACCOUNT_SPANS)
        a->spans[a->span_count++] = (pki_account_span){begin, end, part};
}

void pki_account_at(pki_account *a, uint64_t step, uint64_t index)
{
    a->at_told = true;
    a->at_step = step;
    a->at_index = index;
}

/* ---- who has which moment ---- */

static uint64_t common(const pki_account_span *s, uint64_t from, uint64_t to)
{
    uint64_t begin = PKI_MAX(s->begin, from), end = PKI_MIN(s->end, to);
    return pki_saturating_sub(end, begin);
}

/* Of [from, to) what a hang has of this phase: hangs do not overlap. */
static uint64_t hung(const pki_account *a, const pki_account_span *s, uint64_t from, uint64_t to)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < a->span_count; i++)
        if (a->spans[i].part == PKI_PART_HANG)
            ns += common(&a->spans[i], PKI_MAX(from, s->begin), PKI_MIN(to, s->end));
    return ns;
}

/* Phases and hangs in [from, to) into their parts; returns what is left of it. */
static uint64_t claim(const pki_account *a, uint64_t from, uint64_t to, uint64_t parts[PKI_PARTS])
{
    uint64_t left = pki_saturating_sub(to, from);
    for (size_t i = 0; i < a->span_count; i++) {
        const pki_account_span *s = &a->spans[i];
        uint64_t ns = common(s, from, to);
        if (ns && s->part != PKI_PART_HANG)
            ns -= PKI_MIN(ns, hung(a, s, from, to));
        ns = PKI_MIN(ns, left);
        parts[s->part] += ns;
        left -= ns;
    }
    return left;
}

static void forget(pki_account *a, uint64_t until)
{
    size_t kept = PKI_ACCOUNT_ENDED;
    for (size_t i = PKI_ACCOUNT_ENDED; i < a->span_count; i++)
        if (a->spans[i].end > until)
            a->spans[kept++] = a->spans[i];
    if (a->spans[PKI_ACCOUNT_HANG].begin < until)
        a->spans[PKI_ACCOUNT_HANG].end = a->spans[PKI_ACCOUNT_HANG].begin; /* something has ended */
    a->span_count = kept;
    a->covered = until;
}

/* ---- steps ---- */

/* A step that takes the training on, or once more to where it has been. */
static uint32_t advance(pki_account *a, uint64_t index)
{
    if (a->at_told && index >= a->at_index) {
        a->at = (int64_t)PKI_MIN(a->at_step, (uint64_t)INT64_MAX / 2);
        a->at_told = false;
    }
    a->steps++;
    if (a->at < 0)
        return PKI_PART_PRODUCTIVE;
    a->at++;
    bool again = a->at <= a->furthest_before;
    a->recomputed += again;
    return again ? PKI_PART_RECOMPUTED : PKI_PART_PRODUCTIVE;
}

static void add_usual(pki_account *a, const pki_account_step *s, uint64_t left)
{
    uint32_t part = advance(a, s->index);
    if (!a->begun && s->start == 0) {
        a->first_held = true;
        a->first_part = part;
        a->first = left;
        return;
    }
    a->later += left;
    a->later_count++;
    uint64_t data = part == PKI_PART_PRODUCTIVE ? PKI_MIN(s->data, left) : 0;
    a->parts[PKI_PART_DATA] += data;
    a->parts[part] += left - data;
}

void pki_account_add(pki_account *a, const pki_account_step *s)
{
    if (!a)
        return;
    uint64_t start = PKI_MAX(s->start, a->covered), end = s->start + s->duration;
    uint32_t kind = pki_part_of_kind(s->kind);
    uint32_t around = a->begun ? PKI_PART_OTHER : PKI_PART_STARTUP;
    uint64_t missing = claim(a, a->covered, start, a->parts); /* steps that found no room */
    uint64_t left = claim(a, start, end, a->parts);
    a->parts[around] += missing;
    if (s->between)
        a->parts[around] += left;
    else if (kind != PKI_PART_PRODUCTIVE)
        a->parts[kind] += left;
    else
        add_usual(a, s, left);
    a->begun |= !s->between;
    forget(a, PKI_MAX(end, a->covered));
}

/* ---- the parts ---- */

static void put_first(const pki_account *a, uint64_t parts[PKI_PARTS])
{
    uint64_t usual = a->later_count ? a->later / a->later_count : 0;
    uint64_t own = a->first_held ? PKI_MIN(a->first, usual) : 0;
    parts[a->first_part] += own;
    parts[PKI_PART_STARTUP] += a->first_held ? a->first - own : 0;
}

void pki_account_parts(const pki_account *a, uint64_t now, bool last, uint64_t parts[PKI_PARTS])
{
    uint32_t rest = !a->begun ? PKI_PART_STARTUP : last ? PKI_PART_OTHER : PKI_PART_UNFINISHED;
    memcpy(parts, a->parts, sizeof a->parts);
    uint64_t left = claim(a, a->covered, now, parts);
    parts[rest] += left;
    parts[PKI_PART_STARTUP] += a->before;
    put_first(a, parts);
}
