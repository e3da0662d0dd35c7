#include "bench/compare/compare.h"

#include "base/compiler.h"
#include "measure/figure.h"

#include <math.h>
#include <string.h>

/* ---- figures ---- */

compare_words compare_time_words(double ns)
{
    compare_words words = {"-"};
    if (ns > 0)
        snprintf(words.text, sizeof words.text, "%s", pki_figure_time(ns).text);
    return words;
}

static int put_ratio(char *out, size_t size, double ratio)
{
    if (isnan(ratio))
        return snprintf(out, size, "-");
    return snprintf(out, size, ratio < 10 ? "%.4f" : "%.4g", ratio);
}

compare_words compare_ratio_words(const compare_row *row)
{
    compare_words words;
    put_ratio(words.text, sizeof words.text, row->decided ? row->decision.ratio : NAN);
    return words;
}

compare_words compare_interval_words(const compare_row *row)
{
    const pki_interval *i = &row->decision.interval;
    compare_words words = {"-"};
    if (!row->decided || !isfinite(i->high))
        return words;
    int length = put_ratio(words.text, sizeof words.text, i->low);
    length += snprintf(words.text + length, sizeof words.text - (size_t)length, " .. ");
    put_ratio(words.text + length, sizeof words.text - (size_t)length, i->high);
    return words;
}

/* ---- verdicts ---- */

static const char *unit_of(const compare_row *row, bool several)
{
    if (row->evidence.method == PKI_BY_MOMENTS)
        return several ? "runs of each" : "run of each";
    return several ? "launches" : "launch";
}

compare_words compare_verdict_words(const compare_row *row)
{
    compare_words words;
    const pki_decision *d = &row->decision;
    const char *name = pki_change_name(d->change);
    size_t size = sizeof words.text;
    if (!row->decided)
        snprintf(words.text, size, "not compared: %s", row->why);
    else if (d->change != PKI_UNSURE)
        snprintf(words.text, size, "%s", name);
    else if (row->why[0])
        snprintf(words.text, size, "%s: %s", name, row->why);
    else if (d->more == PKI_TOO_MANY)
        snprintf(words.text, size, "%s: too close to the margin", name);
    else if (d->more > 0)
        snprintf(words.text, size, "%s: %zu more %s", name, d->more, unit_of(row, d->more > 1));
    else if (row->evidence.method == PKI_BY_MOMENTS)
        snprintf(words.text, size, "%s: single runs", name);
    else
        snprintf(words.text, size, "%s: too few %s", name, unit_of(row, true));
    return words;
}

compare_words compare_summary_words(const comparison *c)
{
    static const pki_change order[] = {PKI_SLOWER, PKI_FASTER, PKI_SAME, PKI_UNSURE};
    compare_words words = {""};
    size_t length = 0;
    for (size_t i = 0; i < PKI_COUNT_OF(order); i++)
        if (c->changes[order[i]])
            length += (size_t)snprintf(words.text + length, sizeof words.text - length, "%s%zu %s",
                                       length ? ", " : "", c->changes[order[i]],
                                       pki_change_name(order[i]));
    if (c->undecided)
        snprintf(words.text + length, sizeof words.text - length, "%s%zu not compared",
                 length ? ", " : "", c->undecided);
    return words;
}

/* ---- how it was decided ---- */

static size_t most_runs(const comparison *c)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++)
        most = PKI_MAX(most, c->rows[i].evidence.count);
    return most;
}

compare_words compare_method_words(const comparison *c)
{
    compare_words words;
    size_t n = most_runs(c), size = sizeof words.text;
    if (c->way == COMPARE_ONE_PROCESS)
        snprintf(words.text, size, "%zu launches of both builds in one process, signed ranks", n);
    else if (c->way == COMPARE_PAIRS)
        snprintf(words.text, size, "%zu pairs of launches in alternation, signed ranks", n);
    else if (n >= PKI_MOMENTS_DF + 1)
        snprintf(words.text, size, "one run against %zu stored ones, Student's t", n);
    else
        snprintf(words.text, size,
                 "runs at different moments, taken to move by up to %.3g %% by themselves",
                 100 * c->options.moments);
    return words;
}
