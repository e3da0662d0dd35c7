#include "compare/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "memory.h"

/* What the files say about one benchmark, as row's times, runs and
 * evidence. */
typedef struct compare_source {
    const bench_series *const *olds; /* NULL where an old file lacks it */
    size_t old_count;
    const bench_series *new_series; /* NULL likewise */
    compare_way way;
    double moments;
    bool cpu;
} compare_source;

static void compare_replications(const compare_source *from, compare_row *row);

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

static bool is_wanted(const comparison *c, const char *name)
{
    return !c->options.filter || regexec(c->options.filter, name, 0, NULL, 0) == 0;
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
            if (is_wanted(c, file->series[i].name) &&
                table_add(&seen, file->series[i].name) == known)
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

/* ---- a process run ---- */

typedef struct run_figures {
    double log;   /* of its time */
    double error; /* standard error of that, as far as the samples of one process run can say */
} run_figures;

/* Half of the sign test's 95 % interval of the median is some 1.96 standard errors. */
static double error_of(const double *samples, const double *sorted, size_t n)
{
    double dependence = pki_samples_dependence(samples, n, pki_samples_median(sorted, n));
    pki_interval i = pki_samples_sign_interval(sorted, n, dependence, 0.95);
    return i.low > 0 ? log(i.high / i.low) / (2 * 1.96) : 0;
}

static run_figures figures_of(const bench_run *run, const compare_source *from)
{
    const double *samples = from->cpu ? run->cpu_samples : run->samples;
    double *sorted = memory_zeroed(run->count, sizeof *sorted);
    if (run->count)
        memcpy(sorted, samples, run->count * sizeof *sorted);
    pki_samples_sort(sorted, run->count);
    /* The lower quartile: what a neighbour on the machine does hits the upper ones. */
    double quantile = from->way == COMPARE_PAIRS ? 0.25 : 0.5;
    double time = pki_samples_quantile(sorted, run->count, quantile);
    run_figures out = {time > 0 ? log(time) : NAN, error_of(samples, sorted, run->count)};
    free(sorted);
    return out;
}

/* ---- a file: all its process runs ---- */

typedef struct file_figures {
    double log, error;
    size_t runs;
} file_figures;

static file_figures summarize(const bench_series *series, const compare_source *from)
{
    double *logs = memory_zeroed(series->run_count, sizeof *logs);
    run_figures f = {NAN, 0};
    file_figures out = {.log = NAN};
    for (size_t i = 0; i < series->run_count; i++) {
        f = figures_of(&series->runs[i], from);
        if (!isnan(f.log))
            logs[out.runs++] = f.log;
    }
    out.error = f.error;
    if (out.runs)
        out.log = pki_samples_mean(logs, out.runs);
    if (out.runs > 1)
        out.error = pki_samples_stddev(logs, out.runs) / sqrt((double)out.runs);
    free(logs);
    return out;
}

/* ---- pairs ---- */

static const bench_run *partner(const bench_series *series, const bench_run *of)
{
    for (size_t i = 0; i < series->run_count; i++)
        if (series->runs[i].pair == of->pair)
            return &series->runs[i];
    return NULL;
}

static double sample(const compare_source *from, const bench_run *run, size_t i)
{
    return from->cpu ? run->cpu_samples[i] : run->samples[i];
}

/* Both builds in one process run: batches come in rounds of old new new old, or new old old new,
 * each of which is a ratio that a drift of the machine leaves alone; their median is one that
 * bursts leave alone, too. NAN if there are no rounds. */
static double ratio_of_rounds(const compare_source *from, const bench_run *old,
                              const bench_run *fresh)
{
    size_t rounds = PKI_MIN(old->count, fresh->count) / 2, count = 0;
    double *logs = memory_zeroed(rounds, sizeof *logs);
    for (size_t i = 0; i < rounds; i++) {
        double olds = sample(from, old, 2 * i) + sample(from, old, 2 * i + 1);
        double news = sample(from, fresh, 2 * i) + sample(from, fresh, 2 * i + 1);
        if (olds > 0 && news > 0)
            logs[count++] = log(news / olds);
    }
    double ratio = count ? pki_samples_select_median(logs, count) : NAN;
    free(logs);
    return ratio;
}

/* room is for so many differences and, behind them, their Walsh averages. */
static void pair_up(const compare_source *from, compare_row *row, double *room)
{
    const bench_series *old = from->olds[0], *new_series = from->new_series;
    double old_sum = 0, new_sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < old->run_count; i++) {
        const bench_run *one = &old->runs[i];
        const bench_run *other = one->pair ? partner(new_series, one) : NULL;
        if (!other)
            continue;
        run_figures a = figures_of(one, from), b = figures_of(other, from);
        double difference =
            from->way == COMPARE_ONE_PROCESS ? ratio_of_rounds(from, one, other) : b.log - a.log;
        if (isnan(a.log) || isnan(b.log) || isnan(difference))
            continue;
        old_sum += a.log;
        new_sum += b.log;
        room[count++] = difference;
    }
    row->old_runs = row->new_runs = count;
    row->old_time = count ? exp(old_sum / (double)count) : NAN;
    row->new_time = count ? exp(new_sum / (double)count) : NAN;
    pki_walsh_averages(room, count, room + count);
    row->evidence = (pki_evidence){
        .method = PKI_BY_WILCOXON, .count = count, .values = room, .walsh = room + count};
}

static void replicate_pairs(const compare_source *from, compare_row *row)
{
    size_t most = from->olds[0]->run_count;
    row->numbers = memory_zeroed(most + pki_walsh_count(most), sizeof *row->numbers);
    pair_up(from, row, row->numbers);
}

/* ---- runs at different moments ---- */

static void replicate_moments(const compare_source *from, compare_row *row)
{
    file_figures last = {0}, fresh = summarize(from->new_series, from);
    size_t count = 0;
    row->numbers = memory_zeroed(from->old_count, sizeof *row->numbers);
    for (size_t i = 0; i < from->old_count; i++) {
        file_figures one = {.log = NAN};
        if (from->olds[i])
            one = summarize(from->olds[i], from);
        if (isnan(one.log))
            continue;
        row->numbers[count++] = one.log;
        row->old_runs += one.runs;
        last = one;
    }
    row->new_runs = fresh.runs;
    row->old_time = count ? exp(pki_samples_mean(row->numbers, count)) : NAN;
    row->new_time = exp(fresh.log);
    row->evidence = (pki_evidence){.method = PKI_BY_MOMENTS, .count = count};
    row->evidence.runs = pki_run_difference_of(row->numbers, count, &fresh.log, fresh.runs ? 1 : 0,
                                               last.error, fresh.error, log1p(from->moments));
}

static void compare_replications(const compare_source *from, compare_row *row)
{
    if (from->way == COMPARE_MOMENTS_APART)
        replicate_moments(from, row);
    else
        replicate_pairs(from, row);
}
