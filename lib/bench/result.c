#include "bench/result.h"

#include "base/compiler.h"
#include "bench/stats/sample_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void take_samples(pk_bench_result *r, pki_bench_case *c)
{
    r->count = c->count;
    r->samples = c->time;
    r->cpu_samples = c->cpu;
    r->at = c->at;
    c->time = c->cpu = c->at = NULL;
    c->count = c->room = 0;
}

static void take_stats(pk_bench_result *r, const pki_sample_stats *s)
{
    r->min = s->min;
    r->max = s->max;
    r->mean = s->mean;
    r->median = s->median;
    r->p90 = s->p90;
    r->p95 = s->p95;
    r->p99 = s->p99;
    r->stddev = s->stddev;
    r->mad = s->mad;
    r->cv = s->cv;
    r->low = s->median_interval.low;
    r->high = s->median_interval.high;
    r->confidence = s->confidence;
    r->autocorrelation = s->autocorrelation;
    r->block = (uint32_t)s->block;
    r->low_severe = s->outliers.low_severe;
    r->low_mild = s->outliers.low_mild;
    r->high_mild = s->outliers.high_mild;
    r->high_severe = s->outliers.high_severe;
    r->verdict = (uint32_t)s->quality.verdict;
    snprintf(r->verdict_text, sizeof r->verdict_text, "%s", s->quality.text);
}

static void take_circumstances(pk_bench_result *r, const pki_bench_case *c)
{
    r->stopped = (uint32_t)c->stopped;
    r->threads = c->options.threads;
    r->iterations = c->iterations;
    r->warmup_iterations = c->warmup_iterations;
    r->warmup_time = c->warmup_time;
    r->warmup_steady = c->warmup_steady;
    r->instructions = c->hardware[PKI_BENCH_INSTRUCTIONS];
    r->cycles = c->hardware[PKI_BENCH_CYCLES];
    r->cache_misses = c->hardware[PKI_BENCH_CACHE_MISSES];
    r->branch_misses = c->hardware[PKI_BENCH_BRANCH_MISSES];
    r->allocations = c->allocations;
    r->allocated_bytes = c->allocated_bytes;
    r->outcome = (uint32_t)c->outcome;
    snprintf(r->note, sizeof r->note, "%s", c->note);
    snprintf(r->reason, sizeof r->reason, "%s", c->reason);
}

/* What was measured, less what is reported: of the median, not of any one sample. */
static double overhead_of(const pki_bench_case *c, double median, double *scratch)
{
    for (size_t i = 0; i < c->count; i++)
        scratch[i] = c->time[i] + c->overhead[i];
    return pki_samples_select_median(scratch, c->count) - median;
}

static double rate(const pk_bench_result *r, uint64_t work)
{
    return r->median > 0 ? (double)work * r->threads / (r->median * 1e-9) : 0;
}

bool pki_bench_result_fill(pk_bench_result *r, pki_bench_case *c)
{
    pki_sample_stats stats;
    bool measured = pki_bench_case_is_fine(c);
    if (measured && c->count == 0)
        return false; /* there was not even room for the first one */
    if (!pki_sample_stats_fill(&stats, c->time, measured ? c->count : 0, c->options.confidence,
                               c->options.seed))
        return false;
    take_circumstances(r, c);
    if (!measured)
        return true;
    double *scratch = malloc(c->count * sizeof *scratch);
    if (!scratch)
        return false;
    memcpy(scratch, c->cpu, c->count * sizeof *scratch);
    take_stats(r, &stats);
    r->cpu = pki_samples_select_median(scratch, c->count);
    r->overhead = overhead_of(c, r->median, scratch);
    free(scratch);
    r->bytes_per_second = rate(r, c->bytes);
    r->flops_per_second = rate(r, c->flops);
    r->items_per_second = rate(r, c->items);
    take_samples(r, c);
    return true;
}

void pk_bench_result_release(pk_bench_result *result)
{
    if (!result)
        return;
    free(result->samples);
    free(result->cpu_samples);
    free(result->at);
    result->samples = result->cpu_samples = result->at = NULL;
    result->count = 0;
}
