#include "bench/result.h"

#include "bench/stats/sample_stats.h"

#include <stdlib.h>
#include <string.h>

static void take_samples(pk_bench_result *r, pki_bench_case *c)
{
    r->samples = c->time;
    r->cpu_samples = c->cpu;
    r->at = c->at;
    c->time = c->cpu = c->at = NULL;
    c->count = c->room = 0;
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
    *r = c->result;
    r->threads = c->options.threads;
    r->iterations = c->iterations;
    if (!pki_bench_case_is_fine(c))
        return true;
    if (c->count == 0)
        return false; /* there was not even room for the first one */
    double *scratch = malloc(c->count * sizeof *scratch);
    if (!scratch ||
        !pki_samples_describe(r, c->time, c->count, c->options.confidence, c->options.seed)) {
        free(scratch);
        return false;
    }
    memcpy(scratch, c->cpu, c->count * sizeof *scratch);
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
