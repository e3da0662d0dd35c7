/* tools/bench/compare/replications.c - from samples to replications: see compare.h. */
#include "bench/compare/compare.h"

#include "base/compiler.h"
#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void compare_replications(const compare_source *from, compare_row *row)
{
    if (from->way == COMPARE_MOMENTS_APART)
        replicate_moments(from, row);
    else
        replicate_pairs(from, row);
}
