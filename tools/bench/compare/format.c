#include "bench/compare/compare.h"

#include "base/compiler.h"
#include "measure/figure.h"

#include <math.h>

/* ---- figures ---- */

compare_string compare_format_time(double ns)
{
    compare_string string = {"-"};
    if (ns > 0)
        snprintf(string.text, sizeof string.text, "%s", pki_figure_time(ns).text);
    return string;
}

static int put_ratio(char *out, size_t size, double ratio)
{
    if (isnan(ratio))
        return snprintf(out, size, "-");
    return snprintf(out, size, ratio < 10 ? "%.4f" : "%.4g", ratio);
}

compare_string compare_format_ratio(const compare_row *row)
{
    compare_string string;
    put_ratio(string.text, sizeof string.text, row->decided ? row->decision.ratio : NAN);
    return string;
}

compare_string compare_format_interval(const compare_row *row)
{
    const pki_interval *i = &row->decision.interval;
    compare_string string = {"-"};
    if (!row->decided || !isfinite(i->high))
        return string;
    int length = put_ratio(string.text, sizeof string.text, i->low);
    length += snprintf(string.text + length, sizeof string.text - (size_t)length, " .. ");
    put_ratio(string.text + length, sizeof string.text - (size_t)length, i->high);
    return string;
}

/* ---- verdicts ---- */

static const char *unit_of(const compare_row *row, bool several)
{
    if (row->evidence.method == PKI_BY_MOMENTS)
        return several ? "runs of each" : "run of each";
    return several ? "process runs" : "process run";
}

compare_string compare_format_verdict(const compare_row *row)
{
    compare_string string;
    const pki_decision *d = &row->decision;
    const char *name = pki_change_name(d->change);
    size_t size = sizeof string.text;
    if (!row->decided)
        snprintf(string.text, size, "not compared: %s", row->why);
    else if (d->change != PKI_UNSURE)
        snprintf(string.text, size, "%s", name);
    else if (row->why[0])
        snprintf(string.text, size, "%s: %s", name, row->why);
    else if (d->more == PKI_TOO_MANY)
        snprintf(string.text, size, "%s: too close to the margin", name);
    else if (d->more > 0)
        snprintf(string.text, size, "%s: %zu more %s", name, d->more, unit_of(row, d->more > 1));
    else if (row->evidence.method == PKI_BY_MOMENTS)
        snprintf(string.text, size, "%s: single runs", name);
    else
        snprintf(string.text, size, "%s: too few %s", name, unit_of(row, true));
    return string;
}

compare_string compare_format_summary(const comparison *c)
{
    static const pki_change order[] = {PKI_SLOWER, PKI_FASTER, PKI_SAME, PKI_UNSURE};
    compare_string string = {""};
    size_t length = 0;
    for (size_t i = 0; i < PKI_COUNT_OF(order); i++)
        if (c->changes[order[i]])
            length += (size_t)snprintf(string.text + length, sizeof string.text - length,
                                       "%s%zu %s", length ? ", " : "", c->changes[order[i]],
                                       pki_change_name(order[i]));
    if (c->undecided)
        snprintf(string.text + length, sizeof string.text - length, "%s%zu not compared",
                 length ? ", " : "", c->undecided);
    return string;
}

/* ---- how it was decided ---- */

static size_t most_runs(const comparison *c)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++)
        most = PKI_MAX(most, c->rows[i].evidence.count);
    return most;
}

compare_string compare_format_method(const comparison *c)
{
    compare_string string;
    size_t n = most_runs(c), size = sizeof string.text;
    if (c->way == COMPARE_ONE_PROCESS)
        snprintf(string.text, size, "%zu process runs of both builds in one process, signed ranks",
                 n);
    else if (c->way == COMPARE_PAIRS)
        snprintf(string.text, size, "%zu pairs of process runs in alternation, signed ranks", n);
    else if (n >= PKI_MOMENTS_DF + 1)
        snprintf(string.text, size, "one run against %zu stored ones, Student's t", n);
    else
        snprintf(string.text, size,
                 "runs at different moments, taken to move by up to %.3g %% by themselves",
                 100 * c->options.moments);
    return string;
}
