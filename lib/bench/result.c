#include "bench/result.h"

#include "base/compiler.h"
#include "bench/stats/sample_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void move_samples(pk_bench_result *r, pki_bench_case *c)
{
    r->samples = c->time;
    r->cpu_samples = c->cpu;
    r->at = c->at;
    r->marks = c->marks;
    c->time = c->cpu = c->at = NULL;
    c->marks = NULL;
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

/* ---- a device's ---- */

/* Not queued, launches and device go on side by side, so an iteration takes what the slower of them
 * does; the two readings differ by the marks. */
#define SAME 0.9

static uint32_t bound_of(const pk_bench_result *r, const pki_bench_case *c)
{
    if (c->queue.waits)
        return PK_BENCH_BOUND_UNKNOWN;
    return r->launch > (r->queued ? 1 : SAME) * r->median ? PK_BENCH_BOUND_LAUNCH
                                                          : PK_BENCH_BOUND_DEVICE;
}

/* A sample that is only some steps of the marks' clock long is not known better than that. */
static void note_resolution(pk_bench_result *r, pki_bench_case *c)
{
    double sample = r->median * (double)r->iterations, step = c->device->resolution;
    char text[96];
    if (!(sample * c->options.precision < step))
        return;
    snprintf(text, sizeof text, "a sample is %.1f us, and known to %.1f us (the events' steps)",
             sample / 1e3, step / 1e3);
    pki_bench_case_note(c, text);
    memcpy(r->note, c->result.note, sizeof r->note);
}

static void describe_device(pk_bench_result *r, pki_bench_case *c, double *scratch)
{
    memcpy(scratch, c->launch, c->count * sizeof *scratch);
    r->launch = pki_samples_select_median(scratch, c->count);
    r->queued = c->queue.on;
    r->bound = bound_of(r, c);
    note_resolution(r, c);
}

/* ---- all of it ---- */

bool pki_bench_result_fill(pk_bench_result *r, pki_bench_case *c)
{
    *r = c->result;
    r->size = sizeof *r;
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
    if (c->launch)
        describe_device(r, c, scratch);
    free(scratch);
    r->bytes_per_second = rate(r, c->bytes);
    r->flops_per_second = rate(r, c->flops);
    r->items_per_second = rate(r, c->items);
    move_samples(r, c);
    return true;
}

void pki_bench_result_copy_out(pk_bench_result *given, pk_bench_result *whole)
{
    uint32_t size = given->size;
    memset((char *)given + sizeof size, 0, size - sizeof size);
    if (size < sizeof *whole) {
        free(whole->marks);
        whole->marks = NULL;
    }
    whole->size = size;
    memcpy(given, whole, PKI_MIN((size_t)size, sizeof *whole));
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
    if (result->size < sizeof *result)
        return;
    free(result->marks);
    result->marks = NULL;
}
