/* tools/rows/add_summary.c - rows of what a report says, or of what was made of a trace instead. */
#include "rows/layout.h"

#include <math.h>

/* Of nothing there is no mean. */
static void blank(pki_dist *d)
{
    if (!d->count)
        d->mean = d->stddev = d->min = d->p50 = d->p90 = d->p95 = d->p99 = d->max = NAN;
}

/* The text goes with the summary, this one with the rows. */
static char *intern(rows *r, const char *text)
{
    uint32_t name = rows_name(r, text);
    return name == ROWS_NONE ? NULL : r->names.texts[name];
}

static void add_region(rows *r, const pki_region_row *from)
{
    pki_region_row *to = rows_append(r, ROWS_REGIONS, 0);
    *to = *from;
    to->name = intern(r, from->name);
    blank(&to->time);
}

static void add_thread(rows *r, const pki_thread_row *from)
{
    pki_thread_row *to = rows_append(r, ROWS_THREADS, 0);
    *to = *from;
    to->name = intern(r, from->name);
    to->tid = from->tid ? from->tid : ROWS_NONE;
}

static void add_gpu(rows *r, const pki_gpu_row *from)
{
    pki_gpu_row *to = rows_append(r, ROWS_DEVICES, 0);
    *to = *from;
    for (size_t i = 0; i < PKI_GPU_FIGURES; i++)
        blank(&to->per_step[i]);
}

static void add_verdict(rows *r, const pki_verdict *from)
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
static void add_series(rows *r, const pki_series_row *from)
{
    step_row *to = rows_append(r, ROWS_STEPS, 0);
    uint64_t steps = from->steps ? from->steps : 1;
    *to = (step_row){.start = from->start,
                     .duration = from->duration / steps,
                     .step = from->index,
                     .items = from->items / steps,
                     .thread = ROWS_NONE,
                     .kind = rows_name(r, "")};
}

static void add_lists(rows *r, const pki_summary *s)
{
    for (size_t i = 0; rows_wanted(r, ROWS_REGIONS) && i < s->region_count; i++)
        add_region(r, &s->regions[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_THREADS) && i < s->thread_count; i++)
        add_thread(r, &s->threads[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_DEVICES) && i < s->gpu_count; i++)
        add_gpu(r, &s->gpus[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_VERDICTS) && i < s->verdict_count; i++)
        add_verdict(r, &s->verdicts[i]);
}

/* The first usual steps of the file that is being added. */
static void mark_warmup(rows *r, uint64_t warmup)
{
    size_t end = r->parts[ROWS_STEPS][0].count;
    uint32_t usual = rows_name(r, "");
    for (size_t i = rows_first(r, ROWS_STEPS, r->files.count - 1); i < end && warmup; i++) {
        step_row *step = rows_at(&r->parts[ROWS_STEPS][0], sizeof(step_row), i);
        step->warmup = step->kind == usual;
        warmup -= step->warmup;
    }
}

void rows_add_summary(rows *r, const pki_summary *s, bool steps_too)
{
    for (size_t i = 0; steps_too && i < s->steps.series_count; i++)
        add_series(r, &s->steps.series[i]);
    mark_warmup(r, s->steps.warmup);
    add_lists(r, s);
}
