#include "bench/compare/compare.h"

#include "base/compiler.h"
#include "memory.h"

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

static void fill(comparison *c, const char *name, const bench_file *const *olds, size_t old_count,
                 const bench_file *fresh)
{
    const bench_series **series = memory_zeroed(old_count, sizeof *series), *last = NULL;
    compare_row *row = &c->rows[c->count++];
    *row = (compare_row){.name = name, .old_time = NAN, .new_time = NAN};
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
    if (last && from.new_series)
        compare_replications(&from, row);
    judge(row, last, from.new_series);
    free(series);
}

/* ---- all of them ---- */

static void decide(comparison *c, bool machines)
{
    pki_evidence *evidence = memory_zeroed(c->count, sizeof *evidence);
    pki_decision *decisions = memory_zeroed(c->count, sizeof *decisions);
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].decided)
            evidence[count++] = c->rows[i].evidence;
    /* Whatever one finds, it may be the machine. */
    for (size_t i = 0; machines && i < count; i++)
        if (evidence[i].method == PKI_BY_MOMENTS)
            evidence[i].runs.allowance = INFINITY;
    memory_needed(pki_decide(evidence, count, c->options.threshold, c->options.alpha, decisions));
    count = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!c->rows[i].decided) {
            c->undecided++;
            continue;
        }
        c->rows[i].decision = decisions[count++];
        c->changes[c->rows[i].decision.change]++;
        if (machines)
            snprintf(c->rows[i].why, sizeof c->rows[i].why, "the machines differ");
    }
    free(evidence);
    free(decisions);
}

/* The olds' benchmarks in order, then those that are new. */
static void fill_all(comparison *c, const bench_file *const *olds, size_t old_count,
                     const bench_file *fresh)
{
    size_t most = fresh->names.count;
    for (size_t i = 0; i < old_count; i++)
        most += olds[i]->names.count;
    c->rows = memory_zeroed(most, sizeof *c->rows);
    table seen = {0};
    for (size_t f = 0; f <= old_count; f++) {
        const bench_file *file = f < old_count ? olds[f] : fresh;
        for (uint32_t i = 0; i < file->names.count; i++) {
            uint32_t known = seen.count;
            if (table_add(&seen, file->series[i].name) == known)
                fill(c, file->series[i].name, olds, old_count, fresh);
        }
    }
    table_finish(&seen);
}

bool compare_files(const bench_file *const *olds, size_t old_count, const bench_file *new_file,
                   const compare_options *options, comparison *out, complaint *why)
{
    *out = (comparison){.old_path = olds[0]->path, .new_path = new_file->path, .options = *options};
    out->way = way_of(olds, old_count, new_file);
    bool machines = machines_differ(out, olds, old_count, new_file) && !options->any_machine;
    check_configurations(out, olds, old_count, new_file);
    fill_all(out, olds, old_count, new_file);
    decide(out, machines);
    if (out->undecided < out->count)
        return true;
    complaint_set(why, "has no benchmark with times that %s has, too", olds[0]->path);
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
