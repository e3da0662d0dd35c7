#include "measure/goodput/account.h"

#include <string.h>

#include <pk/goodput.h>

#include "base/compiler.h"

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

uint32_t pki_part_of_kind(const char *kind)
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
