#include "out/report/json_parts.h"

#include <errno.h>

static const char *const severities[] = {
    [PKI_GOOD] = "good",
    [PKI_NOTE] = "note",
    [PKI_WARN] = "warning",
};

void pki_report_json_dist(pki_json *j, const char *key, const pki_dist *dist)
{
    pki_json_open(j, key, '{');
    pki_json_uint(j, "count", dist->count);
    pki_json_real(j, "sum", dist->sum);
    pki_json_real(j, "min", dist->min);
    pki_json_real(j, "max", dist->max);
    pki_json_real(j, "mean", dist->mean);
    pki_json_real(j, "stddev", dist->stddev);
    pki_json_real(j, "p50", dist->p50);
    pki_json_real(j, "p90", dist->p90);
    pki_json_real(j, "p95", dist->p95);
    pki_json_real(j, "p99", dist->p99);
    pki_json_close(j, '}');
}

static void put_kinds(pki_json *j, const uint64_t *kinds, int count)
{
    pki_json_open(j, "kinds", '{');
    for (int k = 0; k < count; k++)
        pki_json_uint(j, pki_kind_names[k], kinds[k]);
    pki_json_close(j, '}');
}

static void put_kind(pki_json *j, uint32_t kind)
{
    pki_json_text(j, "kind", pki_kind_names[kind < PKI_SHARES ? kind : PK_OTHER]);
}

static void put_run(pki_json *j, const pki_run *run)
{
    pki_json_row(j);
    pki_json_open(j, "run", '{');
    pki_json_text(j, "program", run->program);
    pki_json_text(j, "host", run->host);
    pki_json_text(j, "version", run->version);
    pki_json_uint(j, "pid", run->pid);
    pki_json_int(j, "rank", run->rank);
    pki_json_int(j, "world_size", run->world_size);
    pki_json_uint(j, "start_unix", run->start_unix);
    pki_json_uint(j, "wall", run->wall);
    pki_json_uint(j, "cpu", run->cpu);
    pki_json_text(j, "clock", run->clock);
    pki_json_real(j, "clock_hz", run->clock_hz);
    pki_json_real(j, "clock_step_ns", run->clock_step_ns);
    pki_json_real(j, "clock_uncertainty_ns", run->clock_uncertainty_ns);
    pki_json_real(j, "clock_ppm", run->clock_ppm);
    pki_json_text(j, "trace_path", run->trace_path);
    pki_json_text(j, "source", run->source);
    pki_json_bool(j, "complete", run->complete);
    pki_json_close(j, '}');
}

static void put_verdict(pki_json *j, const pki_verdict *verdict)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", verdict->name);
    pki_json_text(j, "severity", severities[verdict->severity]);
    pki_json_real(j, "value", verdict->value);
    pki_json_real(j, "threshold", verdict->threshold);
    pki_json_text(j, "text", verdict->text);
    pki_json_close(j, '}');
}

static void put_slow_step(pki_json *j, const pki_step_row *step)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "index", step->index);
    pki_json_uint(j, "start", step->start);
    pki_json_uint(j, "duration", step->duration);
    pki_json_uint(j, "items", step->items);
    put_kinds(j, step->kinds, PKI_SHARES);
    pki_json_open(j, "parts", '[');
    for (size_t i = 0; i < step->part_count; i++) {
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", step->parts[i].name);
        put_kind(j, step->parts[i].kind);
        pki_json_uint(j, "self", step->parts[i].self);
        pki_json_real(j, "usual", step->parts[i].usual);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_series_row(pki_json *j, const pki_series_row *row)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "index", row->index);
    pki_json_uint(j, "start", row->start);
    pki_json_uint(j, "steps", row->steps);
    pki_json_uint(j, "duration", row->duration);
    pki_json_uint(j, "longest", row->longest);
    pki_json_uint(j, "items", row->items);
    put_kinds(j, row->kinds, PKI_SHARES);
    pki_json_close(j, '}');
}

static void put_steps(pki_json *j, const pki_step_summary *steps)
{
    pki_json_row(j);
    pki_json_open(j, "steps", '{');
    pki_json_uint(j, "count", steps->count);
    pki_json_uint(j, "warmup", steps->warmup);
    pki_json_bool(j, "warmup_given", steps->warmup_given);
    pki_report_json_dist(j, "all", &steps->all);
    pki_report_json_dist(j, "steady", &steps->steady);
    pki_report_json_dist(j, "warm", &steps->warm);
    pki_json_uint(j, "items", steps->items);
    pki_json_real(j, "items_per_second", steps->items_per_second);
    put_kinds(j, steps->kinds, PKI_SHARES);
    pki_json_uint(j, "broken_down", steps->broken_down);
    pki_json_real(j, "first_third", steps->first_third);
    pki_json_real(j, "last_third", steps->last_third);
    pki_json_real(j, "drift", steps->drift);
    pki_json_open(j, "slowest", '[');
    for (size_t i = 0; i < steps->slowest_count; i++)
        put_slow_step(j, &steps->slowest[i]);
    pki_json_close(j, ']');
    pki_json_open(j, "series", '[');
    for (size_t i = 0; i < steps->series_count; i++)
        put_series_row(j, &steps->series[i]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_region(pki_json *j, const pki_region_row *region)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", region->name);
    put_kind(j, region->kind);
    pki_report_json_dist(j, "time", &region->time);
    pki_json_uint(j, "self", region->self);
    pki_json_uint(j, "bytes", region->bytes);
    pki_json_uint(j, "flops", region->flops);
    pki_json_real(j, "step_share", region->step_share);
    pki_report_json_dist(j, "step_self", &region->step_self);
    if (region->gpu.count)
        pki_report_json_dist(j, "gpu", &region->gpu);
    if (region->kernels.count)
        pki_report_json_dist(j, "kernels", &region->kernels);
    pki_json_close(j, '}');
}

static void put_regions(pki_json *j, const pki_region_row *regions, size_t count)
{
    pki_json_open(j, "regions", '[');
    for (size_t i = 0; i < count; i++)
        put_region(j, &regions[i]);
    pki_json_close(j, ']');
}

static void put_thread(pki_json *j, const pki_thread_row *thread)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", thread->name);
    pki_json_uint(j, "tid", thread->tid);
    pki_json_bool(j, "ended", thread->ended);
    pki_json_uint(j, "recorded", thread->recorded);
    pki_json_uint(j, "dropped", thread->dropped);
    put_kinds(j, thread->kinds, PKI_KINDS);
    put_regions(j, thread->regions, thread->region_count);
    pki_json_close(j, '}');
}

static void put_counter(pki_json *j, const pki_counter_row *counter)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", counter->name);
    pki_json_text(j, "unit", counter->unit);
    pki_report_json_dist(j, "value", &counter->value);
    pki_json_real(j, "last", counter->last);
    pki_json_close(j, '}');
}

static void put_backend(pki_json *j, const pki_backend_row *backend)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", backend->name);
    pki_json_bool(j, "live", backend->live);
    pki_json_text(j, "version", backend->version);
    pki_json_text(j, "reason", backend->reason);
    pki_json_close(j, '}');
}

/* ---- devices ---- */

static void put_copies(pki_json *j, const pki_gpu_copies *copies)
{
    pki_json_open(j, "copies", '{');
    for (int i = 0; i < PKI_DIRECTIONS; i++) {
        pki_json_open(j, pki_direction_names[i], '{');
        pki_json_uint(j, "count", copies[i].count);
        pki_json_uint(j, "time", copies[i].time);
        pki_json_uint(j, "bytes", copies[i].bytes);
        pki_json_close(j, '}');
    }
    pki_json_close(j, '}');
}

static void put_gpu(pki_json *j, const pki_gpu_row *gpu)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "device", gpu->device);
    pki_json_bool(j, "measured", gpu->measured);
    pki_json_uint(j, "streams", gpu->streams);
    pki_json_uint(j, "spans", gpu->spans);
    pki_json_uint(j, "kernels", gpu->kernels);
    pki_json_uint(j, "short_kernels", gpu->short_kernels);
    pki_json_uint(j, "kernel_time", gpu->kernel_time);
    pki_json_uint(j, "memsets", gpu->memsets);
    put_copies(j, gpu->copies);
    pki_json_open(j, "per_step", '{');
    for (int i = 0; i < PKI_GPU_FIGURES; i++)
        if (gpu->per_step[i].count)
            pki_report_json_dist(j, pki_gpu_figures[i], &gpu->per_step[i]);
    pki_json_close(j, '}');
    pki_json_close(j, '}');
}

static void put_kernel(pki_json *j, const pki_kernel_row *kernel)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", kernel->name);
    pki_json_text(j, "region", kernel->region);
    pki_json_real(j, "region_share", kernel->region_share);
    pki_report_json_dist(j, "time", &kernel->time);
    pki_json_close(j, '}');
}

static void put_activities(pki_json *j, const pki_activity_summary *a)
{
    pki_json_row(j);
    pki_json_open(j, "activities", '{');
    pki_json_uint(j, "count", a->count);
    pki_json_uint(j, "unwritten", a->unwritten);
    pki_json_uint(j, "late", a->late);
    pki_json_uint(j, "unmeasured", a->unmeasured);
    pki_json_uint(j, "overhead_count", a->overhead_count);
    pki_json_uint(j, "overhead", a->overhead);
    pki_json_close(j, '}');
}

static void put_counts(pki_json *j, const pk_counts *counts)
{
    pki_json_row(j);
    pki_json_open(j, "counts", '{');
    pki_json_uint(j, "threads", counts->threads);
    pki_json_uint(j, "begun", counts->begun);
    pki_json_uint(j, "recorded", counts->recorded);
    pki_json_uint(j, "written", counts->written);
    pki_json_uint(j, "dropped", counts->dropped);
    pki_json_uint(j, "unbalanced", counts->unbalanced);
    pki_json_uint(j, "too_deep", counts->too_deep);
    pki_json_uint(j, "stray_ends", counts->stray_ends);
    pki_json_uint(j, "points", counts->points);
    pki_json_uint(j, "points_dropped", counts->points_dropped);
    pki_json_uint(j, "unwritten", counts->unwritten);
    pki_json_uint(j, "regions", counts->regions);
    pki_json_uint(j, "steps", counts->steps);
    pki_json_uint(j, "memory_bytes", counts->memory_bytes);
    pki_json_uint(j, "trace_bytes", counts->trace_bytes);
    pki_json_close(j, '}');
}

static void put_overhead(pki_json *j, const pki_overhead *overhead)
{
    pki_json_row(j);
    pki_json_open(j, "overhead", '{');
    pki_json_real(j, "region_ns", overhead->region_ns);
    pki_json_real(j, "total", overhead->total);
    pki_json_real(j, "share", overhead->share);
    pki_json_real(j, "collector", overhead->collector);
    pki_json_close(j, '}');
}

static void put_summary(pki_json *j, const pki_summary *s)
{
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "format", PKI_REPORT_FORMAT);
    pki_json_uint(j, "schema", PKI_REPORT_SCHEMA);
    put_run(j, &s->run);
    PKI_REPORT_ROWS(j, "verdicts", s->verdicts, s->verdict_count, put_verdict);
    put_steps(j, &s->steps);
    PKI_REPORT_ROWS(j, "gpus", s->gpus, s->gpu_count, put_gpu);
    PKI_REPORT_ROWS(j, "kernels", s->kernels, s->kernel_count, put_kernel);
    pki_report_json_comm(j, &s->comm);
    PKI_REPORT_ROWS(j, "regions", s->regions, s->region_count, put_region);
    PKI_REPORT_ROWS(j, "threads", s->threads, s->thread_count, put_thread);
    PKI_REPORT_ROWS(j, "counters", s->counters, s->counter_count, put_counter);
    put_counts(j, &s->counts);
    put_activities(j, &s->activities);
    put_overhead(j, &s->overhead);
    PKI_REPORT_ROWS(j, "backends", s->backends, s->backend_count, put_backend);
    pki_json_close(j, '}');
}

static int write_json(const pki_summary *summary, FILE *file, bool rows)
{
    pki_plain plain;
    if (!pki_plain_enter(&plain))
        return -ENOMEM;
    pki_json json = {.file = file, .rows = rows};
    errno = 0;
    put_summary(&json, summary);
    if (rows)
        fputc('\n', file);
    bool written = fflush(file) == 0 && !ferror(file);
    int error = errno ? errno : EIO;
    pki_plain_leave(&plain);
    return written ? 0 : -error;
}

int pki_report_json(const pki_summary *summary, FILE *file)
{
    return write_json(summary, file, true);
}

int pki_report_json_line(const pki_summary *summary, FILE *file)
{
    return write_json(summary, file, false);
}
