/* tools/rows/add_summary.c - rows of what a report says, or of what was made of a trace instead. */
#include "rows/layout.h"

#include <math.h>

static double or_nan(const pki_dist *d, double value)
{
    return d->count ? value : NAN;
}

static uint64_t whole(double value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static void take_region(rows *r, const pki_region_row *from)
{
    region_row *to = rows_append(r, ROWS_REGIONS, 0);
    const pki_dist *d = &from->time;
    to->name = rows_name(r, from->name);
    to->kind = (uint8_t)from->kind;
    to->step_share = from->step_share;
    to->mean = or_nan(d, d->mean);
    to->stddev = or_nan(d, d->stddev);
    to->min = or_nan(d, d->min);
    to->p50 = or_nan(d, d->p50);
    to->p90 = or_nan(d, d->p90);
    to->p95 = or_nan(d, d->p95);
    to->p99 = or_nan(d, d->p99);
    to->max = or_nan(d, d->max);
    to->calls = d->count;
    to->total = whole(d->sum);
    to->self = from->self;
    to->bytes = from->bytes;
    to->flops = from->flops;
    to->spans = from->gpu.count;
    to->span_time = whole(from->gpu.sum);
    to->kernels = from->kernels.count;
    to->kernel_time = whole(from->kernels.sum);
}

static void take_thread(rows *r, const pki_thread_row *from)
{
    thread_row *to = rows_append(r, ROWS_THREADS, 0);
    to->name = rows_name(r, from->name);
    to->tid = from->tid ? from->tid : ROWS_NONE;
    to->recorded = from->recorded;
    to->dropped = from->dropped;
    for (size_t k = 0; k < PKI_KINDS; k++)
        to->kinds[k] = from->kinds[k];
}

static double per_step(const pki_gpu_row *from, int figure)
{
    const pki_dist *d = &from->per_step[figure];
    return or_nan(d, d->mean);
}

static void take_gpu(rows *r, const pki_gpu_row *from)
{
    gpu_row *to = rows_append(r, ROWS_DEVICES, 0);
    *to = (gpu_row){.device = from->device,
                    .measured = from->measured,
                    .streams = from->streams,
                    .kernels = from->kernels,
                    .kernel_time = from->kernel_time,
                    .short_kernels = from->short_kernels,
                    .h2d = from->copies[PKI_H2D].bytes,
                    .d2h = from->copies[PKI_D2H].bytes,
                    .d2d = from->copies[PKI_D2D].bytes,
                    .p2p = from->copies[PKI_P2P].bytes,
                    .step = per_step(from, PKI_GPU_STEP),
                    .busy = per_step(from, PKI_GPU_BUSY),
                    .idle = per_step(from, PKI_GPU_IDLE),
                    .launch_gaps = per_step(from, PKI_GPU_LAUNCH_GAPS),
                    .sync_gaps = per_step(from, PKI_GPU_SYNC_GAPS),
                    .memory = per_step(from, PKI_GPU_MEMORY)};
}

static void take_verdict(rows *r, const pki_verdict *from)
{
    static const char *const severities[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    verdict_row *to = rows_append(r, ROWS_VERDICTS, 0);
    to->value = from->value;
    to->threshold = from->threshold;
    to->name = rows_name(r, from->name);
    to->text = rows_name(r, from->text);
    to->severity = rows_name(r, severities[from->severity]);
}

/* An entry of the series may stand for several steps: then it is their mean. */
static void take_series(rows *r, const pki_series_row *from)
{
    step_row *to = rows_append(r, ROWS_STEPS, 0);
    uint64_t steps = from->steps ? from->steps : 1;
    *to = (step_row){.start = from->start,
                     .duration = from->duration / steps,
                     .step = from->index,
                     .items = from->items / steps,
                     .thread = ROWS_NONE};
}

static void take_lists(rows *r, const pki_summary *s)
{
    for (size_t i = 0; rows_wanted(r, ROWS_REGIONS) && i < s->region_count; i++)
        take_region(r, &s->regions[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_THREADS) && i < s->thread_count; i++)
        take_thread(r, &s->threads[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_DEVICES) && i < s->gpu_count; i++)
        take_gpu(r, &s->gpus[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_VERDICTS) && i < s->verdict_count; i++)
        take_verdict(r, &s->verdicts[i]);
}

/* The first steps of the file that is being added. */
static void mark_warmup(rows *r, uint64_t warmup)
{
    size_t first = rows_first(r, ROWS_STEPS, r->files.count - 1);
    size_t end = r->parts[ROWS_STEPS][0].count;
    for (size_t i = first; i < end && i - first < warmup; i++)
        ((step_row *)rows_at(&r->parts[ROWS_STEPS][0], sizeof(step_row), i))->warmup = 1;
}

void rows_take_summary(rows *r, const pki_summary *s, bool steps_too)
{
    for (size_t i = 0; steps_too && i < s->steps.series_count; i++)
        take_series(r, &s->steps.series[i]);
    mark_warmup(r, s->steps.warmup);
    take_lists(r, s);
}
