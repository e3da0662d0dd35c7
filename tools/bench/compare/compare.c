#include "bench/compare/compare.h"

#include "base/compiler.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the files have in common ---- */

static void warn(comparison *c, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

static void warn(comparison *c, const char *format, ...)
{
    va_list args;
    if (c->warning_count == PKI_COUNT_OF(c->warnings))
        return;
    va_start(args, format);
    vsnprintf(c->warnings[c->warning_count++], sizeof *c->warnings, format, args);
    va_end(args);
}

static const char *or_unknown(const char *text)
{
    return text[0] ? text : "unknown";
}

/* Files that do not say it are taken at their word. */
static bool differ(const char *a, const char *b)
{
    return a[0] && b[0] && strcmp(a, b) != 0;
}

static bool machines_differ(comparison *c, const bench_file *const *olds, size_t old_count,
                            const bench_file *fresh)
{
    for (size_t i = 0; i < old_count; i++) {
        const bench_file *old = olds[i];
        if (!differ(old->fingerprint, fresh->fingerprint))
            continue;
        warn(c, "the machines differ: %s was measured on %s (%s), %s on %s (%s)", old->path,
             or_unknown(old->host), or_unknown(old->cpu), fresh->path, or_unknown(fresh->host),
             or_unknown(fresh->cpu));
        return true;
    }
    return false;
}

static void check_configurations(comparison *c, const bench_file *const *olds, size_t old_count,
                                 const bench_file *fresh)
{
    for (size_t i = 0; i < old_count; i++)
        if (differ(olds[i]->configuration, fresh->configuration)) {
            warn(c, "the options differ: %s and %s were not measured in the same way",
                 olds[i]->path, fresh->path);
            return;
        }
}

static compare_way way_of(const bench_file *const *olds, size_t old_count, const bench_file *fresh)
{
    const bench_file *old = olds[0];
    bool together = old_count == 1 && old->session[0] &&
                    strcmp(old->session, fresh->session) == 0 &&
                    strcmp(old->side, fresh->side) != 0;
    if (!together)
        return COMPARE_MOMENTS_APART;
    return strcmp(fresh->method, "one-process") == 0 ? COMPARE_ONE_PROCESS : COMPARE_PAIRS;
}

/* ---- one benchmark ---- */

static const char *why_not(const bench_series *old, const bench_series *fresh)
{
    if (!old)
        return "only in the new file";
    if (!fresh)
        return "only in the old file";
    if (differ(old->clock, fresh->clock))
        return "measured by different clocks";
    return NULL;
}

static void judge(compare_row *row, const bench_series *old, const bench_series *fresh)
{
    const char *why = why_not(old, fresh);
    const bench_series *wrong = fresh && fresh->error ? fresh : old && old->error ? old : NULL;
    row->decided = !why && row->old_time > 0 && row->new_time > 0;
    if (row->decided)
        return;
    if (why)
        snprintf(row->why, sizeof row->why, "%s", why);
    else if (wrong)
        snprintf(row->why, sizeof row->why, "%s in the %s file: %s",
                 wrong->skipped ? "skipped" : "failed", wrong == fresh ? "new" : "old",
                 wrong->error);
    else
        snprintf(row->why, sizeof row->why, "no time was measured");
}

static bool fill(comparison *c, const char *name, const bench_file *const *olds, size_t old_count,
                 const bench_file *fresh)
{
    const bench_series **series = calloc(PKI_MAX(old_count, 1), sizeof *series), *last = NULL;
    compare_row *row = &c->rows[c->count++];
    *row = (compare_row){.name = name, .old_time = NAN, .new_time = NAN};
    if (!series)
        return false;
    for (size_t i = 0; i < old_count; i++) {
        series[i] = bench_file_find(olds[i], name);
        last = series[i] ? series[i] : last;
    }
    compare_source from = {
        .olds = series,
        .old_count = old_count,
        .new_series = bench_file_find(fresh, name),
        .way = c->way,
        .moments = c->options.moments,
        .cpu = c->options.cpu,
    };
    bool fits = !last || !from.new_series || compare_replications(&from, row);
    judge(row, last, from.new_series);
    free(series);
    return fits;
}

/* ---- all of them ---- */

static bool decide(comparison *c, bool machines)
{
    pki_evidence *evidence = calloc(PKI_MAX(c->count, 1), sizeof *evidence);
    pki_decision *decisions = calloc(PKI_MAX(c->count, 1), sizeof *decisions);
    size_t count = 0;
    for (size_t i = 0; evidence && i < c->count; i++)
        if (c->rows[i].decided)
            evidence[count++] = c->rows[i].evidence;
    /* Whatever one finds, it may be the machine. */
    for (size_t i = 0; evidence && machines && i < count; i++)
        if (evidence[i].method == PKI_BY_MOMENTS)
            evidence[i].runs.allowance = INFINITY;
    bool fits = evidence && decisions &&
                pki_decide(evidence, count, c->options.threshold, c->options.alpha, decisions);
    count = 0;
    for (size_t i = 0; fits && i < c->count; i++) {
        if (c->rows[i].decided) {
            c->rows[i].decision = decisions[count++];
            c->changes[c->rows[i].decision.change]++;
        } else {
            c->undecided++;
        }
        if (c->rows[i].decided && machines)
            snprintf(c->rows[i].why, sizeof c->rows[i].why, "the machines differ");
    }
    free(evidence);
    free(decisions);
    return fits;
}

/* The olds' benchmarks in order, then those that are new. */
static bool fill_all(comparison *c, const bench_file *const *olds, size_t old_count,
                     const bench_file *fresh)
{
    size_t most = fresh->names.count;
    for (size_t i = 0; i < old_count; i++)
        most += olds[i]->names.count;
    c->rows = calloc(PKI_MAX(most, 1), sizeof *c->rows);
    table seen = {0};
    bool fits = c->rows != NULL;
    for (size_t f = 0; f <= old_count && fits; f++) {
        const bench_file *file = f < old_count ? olds[f] : fresh;
        for (uint32_t i = 0; i < file->names.count && fits; i++) {
            const char *name = file->series[i].name;
            if (table_find(&seen, name) == TABLE_NONE)
                fits =
                    table_add(&seen, name) != TABLE_NONE && fill(c, name, olds, old_count, fresh);
        }
    }
    table_finish(&seen);
    return fits;
}

bool compare_files(const bench_file *const *olds, size_t old_count, const bench_file *new_file,
                   const compare_options *options, comparison *out, complaint *why)
{
    *out = (comparison){.old_path = olds[0]->path, .new_path = new_file->path, .options = *options};
    out->way = way_of(olds, old_count, new_file);
    bool machines = machines_differ(out, olds, old_count, new_file) && !options->any_machine;
    check_configurations(out, olds, old_count, new_file);
    if (!fill_all(out, olds, old_count, new_file) || !decide(out, machines))
        complaint_set(why, "out of memory");
    else if (out->undecided == out->count)
        complaint_set(why, "has no benchmark with times that %s has, too", olds[0]->path);
    else
        return true;
    comparison_finish(out);
    return false;
}

void comparison_finish(comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->rows[i].numbers);
    free(c->rows);
    *c = (comparison){0};
}
