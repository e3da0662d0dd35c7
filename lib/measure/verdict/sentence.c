/* lib/measure/verdict/sentence.c - a verdict's words, and its place among the others */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

/* ---- the sentences of a verdict, put together, and the list of verdicts ---- */

#define REGIONS_MOST 3
#define REGION_LEAST 0.01 /* of the step, to be worth a mention */

static void fail(pki_sentence *words)
{
    free(words->text);
    words->text = NULL;
    words->failed = true;
}

void pki_sentence_add(pki_sentence *words, const char *format, ...)
{
    va_list args;
    if (words->failed)
        return;
    char *more = NULL, *both = NULL;
    va_start(args, format);
    int length = vasprintf(&more, format, args);
    va_end(args);
    if (length < 0) {
        fail(words);
        return;
    }
    size_t before = words->text ? strlen(words->text) : 0;
    both = realloc(words->text, before + (size_t)length + 1);
    if (both) {
        memcpy(both + before, more, (size_t)length + 1);
        words->text = both;
    } else {
        fail(words);
    }
    free(more);
}

/* Of the step; of a run without steps if there is but one thread that it can be a share of. */
static double share_of(const pki_summary *s, const pki_region_row *row)
{
    if (!s->whole_run.time)
        return row->step_share;
    return s->thread_count == 1 ? (double)row->self / (double)s->whole_run.time : 0;
}

/* The next one in falling order of share after `last`. */
static const pki_region_row *next_largest(const pki_summary *s, unsigned kinds,
                                          const pki_region_row *last)
{
    const pki_region_row *found = NULL;
    for (size_t i = 0; i < s->region_count; i++) {
        const pki_region_row *row = &s->regions[i];
        double share = share_of(s, row), limit = last ? share_of(s, last) : 0;
        if (row->kind >= PKI_KINDS || !(kinds >> row->kind & 1) || share < REGION_LEAST)
            continue;
        /* Equal shares: in the order of the rows. */
        bool after = !last || share < limit || (share <= limit && row > last);
        if (after && (!found || share > share_of(s, found)))
            found = row;
    }
    return found;
}

void pki_sentence_add_regions(pki_sentence *words, const pki_summary *summary, unsigned kinds)
{
    const pki_region_row *row = NULL;
    for (int i = 0; i < REGIONS_MOST && (row = next_largest(summary, kinds, row)); i++)
        pki_sentence_add(words, "%s\"%s\" %s", i ? ", " : ": ", row->name,
                         pki_figure_percent(share_of(summary, row)).text);
    pki_sentence_add(words, ".");
}

void pki_sentence_add_slowest(pki_sentence *words, const pki_summary *summary)
{
    const pki_step_row *slowest = summary->steps.slowest;
    if (summary->steps.slowest_count == 0 || slowest->part_count == 0)
        return;
    const pki_step_part *part = slowest->parts;
    bool named = part->kind != PKI_UNTRACKED;
    pki_sentence_add(words, " The slowest is step %s with %s: %s%s%s took %s longer than usual.",
                     pki_figure_count(slowest->index).text,
                     pki_figure_time((double)slowest->duration).text, named ? "\"" : "",
                     named ? part->name : "time outside every region", named ? "\"" : "",
                     pki_figure_time((double)part->self - part->usual).text);
}

static bool yields(const pki_sentence *words, double value, double threshold)
{
    return words->starved > 0 &&
           (words->yielding == PKI_YIELDS ||
            (words->yielding == PKI_YIELDS_SHARE && value - words->starved <= threshold));
}

bool pki_verdict_add_sentence(pki_sentence *words, pki_summary *summary, const char *name,
                              pki_severity severity, double value, double threshold)
{
    if (words->text && severity != PKI_GOOD && yields(words, value, threshold)) {
        pki_sentence_add(words, " Without a processor (cpu-starved), that can come of itself.");
        severity = PKI_NOTE;
    }
    return words->text && pki_verdict_add(summary, name, severity, value, threshold, words->text);
}

/* ---- the list ---- */

/* Warnings come first. */
bool pki_verdict_has_warning(const pki_summary *s)
{
    return s->verdict_count > 0 && s->verdicts[0].severity == PKI_WARN;
}

static int rank_of(pki_severity severity)
{
    return severity == PKI_WARN ? 0 : severity == PKI_GOOD ? 1 : 2;
}

bool pki_verdict_add(pki_summary *summary, const char *name, pki_severity severity, double value,
                     double threshold, const char *text)
{
    size_t count = summary->verdict_count, place = count;
    pki_verdict *grown = realloc(summary->verdicts, (count + 1) * sizeof *grown);
    if (!grown)
        return false;
    summary->verdicts = grown;
    pki_verdict verdict = {strdup(name), severity, value, threshold, strdup(text)};
    if (!verdict.name || !verdict.text) {
        free(verdict.name);
        free(verdict.text);
        return false;
    }
    while (place && rank_of(grown[place - 1].severity) > rank_of(severity))
        place--;
    memmove(&grown[place + 1], &grown[place], (count - place) * sizeof *grown);
    grown[place] = verdict;
    summary->verdict_count++;
    return true;
}
