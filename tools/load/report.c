/* tools/load/report.c - the report file of docs/report-format.md as a summary. */
#include "load/load.h"

#include "load/parts.h"
#include "out/report/report.h"

#include <stdlib.h>
#include <string.h>

void load_dist(json_reader *j, json_t *row, const char *key, pki_dist *dist)
{
    json_t *from = json_read_object(j, row, key);
    json_read_uint(j, from, "count", &dist->count);
    json_read_real(j, from, "sum", &dist->sum);
    json_read_real(j, from, "min", &dist->min);
    json_read_real(j, from, "max", &dist->max);
    json_read_real(j, from, "mean", &dist->mean);
    json_read_real(j, from, "stddev", &dist->stddev);
    json_read_real(j, from, "p50", &dist->p50);
    json_read_real(j, from, "p90", &dist->p90);
    json_read_real(j, from, "p95", &dist->p95);
    json_read_real(j, from, "p99", &dist->p99);
}

static void read_kinds(json_reader *j, json_t *row, uint64_t *kinds, uint32_t count)
{
    json_t *from = json_read_object(j, row, "kinds");
    for (uint32_t k = 0; k < count; k++)
        json_read_uint(j, from, pki_kind_names[k], &kinds[k]);
}

/* A kind that a later version may know and this one does not is PK_OTHER. */
static void read_kind(json_reader *j, json_t *row, uint32_t *kind)
{
    char *name = NULL;
    json_read_text(j, row, "kind", &name);
    uint32_t found = name ? pki_kind_named(name) : PKI_SHARES;
    *kind = found < PKI_SHARES ? found : PK_OTHER;
    free(name);
}

static void read_run(json_reader *j, json_t *from, pki_run *run)
{
    json_read_text(j, from, "program", &run->program);
    json_read_text(j, from, "host", &run->host);
    json_read_text(j, from, "version", &run->version);
    json_read_u32(j, from, "pid", &run->pid);
    json_read_i32(j, from, "rank", &run->rank);
    json_read_i32(j, from, "world_size", &run->world_size);
    json_read_uint(j, from, "start_unix", &run->start_unix);
    json_read_uint(j, from, "wall", &run->wall);
    json_read_uint(j, from, "cpu", &run->cpu);
    json_read_text(j, from, "clock", &run->clock);
    json_read_real(j, from, "clock_hz", &run->clock_hz);
    json_read_real(j, from, "clock_step_ns", &run->clock_step_ns);
    json_read_real(j, from, "clock_uncertainty_ns", &run->clock_uncertainty_ns);
    json_read_real(j, from, "clock_ppm", &run->clock_ppm);
    json_read_text(j, from, "trace_path", &run->trace_path);
    json_read_text(j, from, "source", &run->source);
    json_read_bool(j, from, "complete", &run->complete);
}

static void read_verdict(json_reader *j, json_t *from, void *row)
{
    pki_verdict *verdict = row;
    char *severity = NULL;
    json_read_text(j, from, "name", &verdict->name);
    json_read_text(j, from, "severity", &severity);
    json_read_real(j, from, "value", &verdict->value);
    json_read_real(j, from, "threshold", &verdict->threshold);
    json_read_text(j, from, "text", &verdict->text);
    verdict->severity = PKI_NOTE;
    if (severity && strcmp(severity, "warning") == 0)
        verdict->severity = PKI_WARN;
    else if (severity && strcmp(severity, "good") == 0)
        verdict->severity = PKI_GOOD;
    free(severity);
}

static void read_part(json_reader *j, json_t *from, void *row)
{
    pki_step_part *part = row;
    json_read_text(j, from, "name", &part->name);
    read_kind(j, from, &part->kind);
    json_read_uint(j, from, "self", &part->self);
    json_read_real(j, from, "usual", &part->usual);
}

static void read_slow_step(json_reader *j, json_t *from, void *row)
{
    pki_step_row *step = row;
    json_read_uint(j, from, "index", &step->index);
    json_read_uint(j, from, "start", &step->start);
    json_read_uint(j, from, "duration", &step->duration);
    json_read_uint(j, from, "items", &step->items);
    read_kinds(j, from, step->kinds, PKI_SHARES);
    json_read_rows(j, from, "parts", sizeof *step->parts, read_part, &step->parts,
                   &step->part_count);
}

static void read_series(json_reader *j, json_t *from, void *row)
{
    pki_series_row *entry = row;
    json_read_uint(j, from, "index", &entry->index);
    json_read_uint(j, from, "start", &entry->start);
    json_read_uint(j, from, "steps", &entry->steps);
    json_read_uint(j, from, "duration", &entry->duration);
    json_read_uint(j, from, "longest", &entry->longest);
    json_read_uint(j, from, "items", &entry->items);
    read_kinds(j, from, entry->kinds, PKI_SHARES);
}

static void read_steps(json_reader *j, json_t *from, pki_step_summary *steps)
{
    json_read_uint(j, from, "count", &steps->count);
    json_read_uint(j, from, "warmup", &steps->warmup);
    json_read_bool(j, from, "warmup_given", &steps->warmup_given);
    load_dist(j, from, "all", &steps->all);
    load_dist(j, from, "steady", &steps->steady);
    load_dist(j, from, "warm", &steps->warm);
    json_read_uint(j, from, "items", &steps->items);
    json_read_real(j, from, "items_per_second", &steps->items_per_second);
    read_kinds(j, from, steps->kinds, PKI_SHARES);
    json_read_uint(j, from, "broken_down", &steps->broken_down);
    json_read_real(j, from, "first_third", &steps->first_third);
    json_read_real(j, from, "last_third", &steps->last_third);
    json_read_real(j, from, "drift", &steps->drift);
    json_read_rows(j, from, "slowest", sizeof *steps->slowest, read_slow_step, &steps->slowest,
                   &steps->slowest_count);
    json_read_rows(j, from, "series", sizeof *steps->series, read_series, &steps->series,
                   &steps->series_count);
}

static void read_region(json_reader *j, json_t *from, void *row)
{
    pki_region_row *region = row;
    json_read_text(j, from, "name", &region->name);
    read_kind(j, from, &region->kind);
    load_dist(j, from, "time", &region->time);
    json_read_uint(j, from, "self", &region->self);
    json_read_uint(j, from, "bytes", &region->bytes);
    json_read_uint(j, from, "flops", &region->flops);
    json_read_real(j, from, "step_share", &region->step_share);
    load_dist(j, from, "step_self", &region->step_self);
    load_dist(j, from, "gpu", &region->gpu);
    load_dist(j, from, "kernels", &region->kernels);
}

static void read_copies(json_reader *j, json_t *from, pki_gpu_copies *copies)
{
    for (int i = 0; i < PKI_DIRECTIONS; i++) {
        json_t *direction = json_read_object(j, from, pki_direction_names[i]);
        json_read_uint(j, direction, "count", &copies[i].count);
        json_read_uint(j, direction, "time", &copies[i].time);
        json_read_uint(j, direction, "bytes", &copies[i].bytes);
    }
}

static void read_gpu(json_reader *j, json_t *from, void *row)
{
    pki_gpu_row *gpu = row;
    json_read_u32(j, from, "device", &gpu->device);
    json_read_bool(j, from, "measured", &gpu->measured);
    json_read_uint(j, from, "streams", &gpu->streams);
    json_read_uint(j, from, "spans", &gpu->spans);
    json_read_uint(j, from, "kernels", &gpu->kernels);
    json_read_uint(j, from, "short_kernels", &gpu->short_kernels);
    json_read_uint(j, from, "kernel_time", &gpu->kernel_time);
    json_read_uint(j, from, "memsets", &gpu->memsets);
    read_copies(j, json_read_object(j, from, "copies"), gpu->copies);
    json_t *steps = json_read_object(j, from, "per_step");
    for (int i = 0; i < PKI_GPU_FIGURES; i++)
        load_dist(j, steps, pki_gpu_figures[i], &gpu->per_step[i]);
}

static void read_kernel(json_reader *j, json_t *from, void *row)
{
    pki_kernel_row *kernel = row;
    json_read_text(j, from, "name", &kernel->name);
    json_read_text(j, from, "region", &kernel->region);
    json_read_real(j, from, "region_share", &kernel->region_share);
    load_dist(j, from, "time", &kernel->time);
}

static void read_activities(json_reader *j, json_t *from, pki_activity_summary *a)
{
    json_read_uint(j, from, "count", &a->count);
    json_read_uint(j, from, "unwritten", &a->unwritten);
    json_read_uint(j, from, "late", &a->late);
    json_read_uint(j, from, "unmeasured", &a->unmeasured);
    json_read_uint(j, from, "overhead_count", &a->overhead_count);
    json_read_uint(j, from, "overhead", &a->overhead);
}

static void read_thread(json_reader *j, json_t *from, void *row)
{
    pki_thread_row *thread = row;
    json_read_text(j, from, "name", &thread->name);
    json_read_u32(j, from, "tid", &thread->tid);
    json_read_bool(j, from, "ended", &thread->ended);
    json_read_uint(j, from, "recorded", &thread->recorded);
    json_read_uint(j, from, "dropped", &thread->dropped);
    read_kinds(j, from, thread->kinds, PKI_KINDS);
    json_read_rows(j, from, "regions", sizeof *thread->regions, read_region, &thread->regions,
                   &thread->region_count);
}

static void read_counter(json_reader *j, json_t *from, void *row)
{
    pki_counter_row *counter = row;
    json_read_text(j, from, "name", &counter->name);
    json_read_text(j, from, "unit", &counter->unit);
    load_dist(j, from, "value", &counter->value);
    json_read_real(j, from, "last", &counter->last);
}

static void read_backend(json_reader *j, json_t *from, void *row)
{
    pki_backend_row *backend = row;
    json_read_text(j, from, "name", &backend->name);
    json_read_bool(j, from, "live", &backend->live);
    json_read_text(j, from, "version", &backend->version);
    json_read_text(j, from, "reason", &backend->reason);
}

static void read_counts(json_reader *j, json_t *from, pk_counts *counts)
{
    counts->size = sizeof *counts;
    json_read_u32(j, from, "threads", &counts->threads);
    json_read_uint(j, from, "begun", &counts->begun);
    json_read_uint(j, from, "recorded", &counts->recorded);
    json_read_uint(j, from, "written", &counts->written);
    json_read_uint(j, from, "dropped", &counts->dropped);
    json_read_uint(j, from, "unbalanced", &counts->unbalanced);
    json_read_uint(j, from, "too_deep", &counts->too_deep);
    json_read_uint(j, from, "stray_ends", &counts->stray_ends);
    json_read_uint(j, from, "points", &counts->points);
    json_read_uint(j, from, "points_dropped", &counts->points_dropped);
    json_read_uint(j, from, "unwritten", &counts->unwritten);
    json_read_uint(j, from, "regions", &counts->regions);
    json_read_uint(j, from, "steps", &counts->steps);
    json_read_uint(j, from, "memory_bytes", &counts->memory_bytes);
    json_read_uint(j, from, "trace_bytes", &counts->trace_bytes);
}

static void read_overhead(json_reader *j, json_t *from, pki_overhead *overhead)
{
    json_read_real(j, from, "region_ns", &overhead->region_ns);
    json_read_real(j, from, "total", &overhead->total);
    json_read_real(j, from, "share", &overhead->share);
    json_read_real(j, from, "collector", &overhead->collector);
}

static bool check_schema(json_reader *j, json_t *report)
{
    uint64_t schema = 0;
    json_read_uint(j, report, "schema", &schema);
    if (j->failed)
        return false;
    if (schema == 0)
        return complaint_set(j->why, "is a report without its \"schema\" number");
    if (schema > PKI_REPORT_SCHEMA)
        return complaint_set(
            j->why, "is a report of schema %llu, and this pk reads up to %d: a newer pk can",
            (unsigned long long)schema, PKI_REPORT_SCHEMA);
    return true;
}

bool load_report(json_t *report, pki_summary *out, complaint *why)
{
    json_reader j = {.why = why};
    pki_summary_init(out);
    if (!check_schema(&j, report))
        return false;
    read_run(&j, json_read_object(&j, report, "run"), &out->run);
    json_read_rows(&j, report, "verdicts", sizeof *out->verdicts, read_verdict, &out->verdicts,
                   &out->verdict_count);
    read_steps(&j, json_read_object(&j, report, "steps"), &out->steps);
    json_read_rows(&j, report, "gpus", sizeof *out->gpus, read_gpu, &out->gpus, &out->gpu_count);
    json_read_rows(&j, report, "kernels", sizeof *out->kernels, read_kernel, &out->kernels,
                   &out->kernel_count);
    load_comm(&j, json_read_object(&j, report, "comm"), &out->comm);
    json_read_rows(&j, report, "regions", sizeof *out->regions, read_region, &out->regions,
                   &out->region_count);
    json_read_rows(&j, report, "threads", sizeof *out->threads, read_thread, &out->threads,
                   &out->thread_count);
    json_read_rows(&j, report, "counters", sizeof *out->counters, read_counter, &out->counters,
                   &out->counter_count);
    read_counts(&j, json_read_object(&j, report, "counts"), &out->counts);
    read_activities(&j, json_read_object(&j, report, "activities"), &out->activities);
    read_overhead(&j, json_read_object(&j, report, "overhead"), &out->overhead);
    json_read_rows(&j, report, "backends", sizeof *out->backends, read_backend, &out->backends,
                   &out->backend_count);
    if (!j.failed)
        return true;
    pki_summary_finish(out);
    return false;
}
