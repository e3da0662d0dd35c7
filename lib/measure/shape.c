#include "measure/shape_words.h"

/* ---- words ---- */

static const char *kind_name(uint32_t kind)
{
    return pki_kind_names[kind];
}

static const char *severity_name(uint32_t severity)
{
    static const char *const names[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    return names[severity];
}

const pki_choice pki_kind_choice = {kind_name, PKI_SHARES, PK_OTHER};
static const pki_choice severity = {severity_name, PKI_WARN + 1, PKI_NOTE};

/* ---- what everything is made of ---- */

static const pki_member bucket_members[] = {
    PLAINS(pki_histogram_bucket, from, to, count),
};
static const pki_shape bucket = {SHAPE(pki_histogram_bucket, bucket_members)};

#define HISTOGRAM(T) TABLE("histogram", T, histogram.buckets, histogram.count, bucket)

static const pki_member run_members[] = {
    PLAINS(pki_run, program, host, version, pid, rank, world_size, start_unix, wall, cpu, clock,
           clock_hz, clock_step_ns, clock_uncertainty_ns, clock_ppm, trace_path, source, complete),
    PLAINS(pki_run, local_rank, local_size, clock_reason),
};
const pki_shape pki_run_shape = {SHAPE(pki_run, run_members)};

static const pki_member verdict_members[] = {
    PLAIN(pki_verdict, name),
    {CHOICE("severity", pki_verdict, severity, severity)},
    PLAINS(pki_verdict, value, threshold, text),
};
const pki_shape pki_verdict_shape = {SHAPE(pki_verdict, verdict_members)};

/* ---- steps ---- */

static const pki_member part_members[] = {
    PLAIN(pki_step_part, name),
    {CHOICE("kind", pki_step_part, kind, pki_kind_choice)},
    PLAINS(pki_step_part, self, usual),
};
static const pki_shape part = {SHAPE(pki_step_part, part_members)};

static const pki_member slow_members[] = {
    PLAINS(pki_step_row, index, start, duration, items),
    {KINDS(pki_step_row, PKI_SHARES)},
    {ROWS("parts", pki_step_row, parts, part_count, part)},
};
static const pki_shape slow_step = {SHAPE(pki_step_row, slow_members)};

static const pki_member series_members[] = {
    PLAINS(pki_series_row, index, start, steps, duration, longest, items),
    {KINDS(pki_series_row, PKI_SHARES)},
    PLAINS(pki_series_row, shortest, median),
};
static const pki_shape series = {SHAPE(pki_series_row, series_members)};

static const pki_member processor_members[] = {
    PLAINS(pki_processor, observed, running, ready),
};
const pki_shape pki_processor_shape = {SHAPE(pki_processor, processor_members)};

static const pki_member step_kind_members[] = {
    PLAIN(pki_step_kind_row, name),
    {OBJECT(pki_step_kind_row, time, pki_dist_shape)},
    PLAINS(pki_step_kind_row, items, broken_down),
    {KINDS(pki_step_kind_row, PKI_SHARES)},
};
static const pki_shape step_kind = {SHAPE(pki_step_kind_row, step_kind_members)};

static const pki_member between_members[] = {
    {OBJECT(pki_step_kind_row, time, pki_dist_shape)},
    PLAIN(pki_step_kind_row, broken_down),
    {KINDS(pki_step_kind_row, PKI_SHARES)},
};
static const pki_shape between = {SHAPE(pki_step_kind_row, between_members)};

static const pki_member steps_members[] = {
    PLAINS(pki_step_summary, count, warmup, warmup_given),
    {OBJECT(pki_step_summary, all, pki_dist_shape)},
    {OBJECT(pki_step_summary, steady, pki_dist_shape)},
    {OBJECT(pki_step_summary, warm, pki_dist_shape)},
    PLAINS(pki_step_summary, items, items_per_second),
    {KINDS(pki_step_summary, PKI_SHARES)},
    PLAINS(pki_step_summary, broken_down, first_third, last_third, drift),
    {OPTIONAL(pki_step_summary, processor, pki_processor_shape)},
    {OPTIONAL(pki_step_summary, utilisation, pki_utilisation_shape)},
    {ROWS("slowest", pki_step_summary, slowest, slowest_count, slow_step), .lines = true},
    {ROWS("series", pki_step_summary, series, series_count, series), .lines = true},
    {HISTOGRAM(pki_step_summary)},
    {ROWS("step_kinds", pki_step_summary, step_kinds, step_kind_count, step_kind), .lines = true,
     .optional = true},
    {OPTIONAL(pki_step_summary, between, between)},
};
const pki_shape pki_steps_shape = {SHAPE(pki_step_summary, steps_members)};

/* ---- regions, threads, counters, backends ---- */

static const pki_member span_members[] = {
    PLAINS(pki_span_row, events, begun, ended, unfinished, marks),
};
static const pki_shape span = {SHAPE(pki_span_row, span_members)};

static const pki_member region_members[] = {
    PLAIN(pki_region_row, name),
    {CHOICE("kind", pki_region_row, kind, pki_kind_choice)},
    {OBJECT(pki_region_row, time, pki_dist_shape)},
    PLAINS(pki_region_row, self, bytes, flops, step_share),
    {OBJECT(pki_region_row, step_self, pki_dist_shape)},
    {OPTIONAL(pki_region_row, gpu, pki_dist_shape)},
    {OPTIONAL(pki_region_row, kernels, pki_dist_shape)},
    {OPTIONAL(pki_region_row, span, span)},
    {OPTIONAL(pki_region_row, thinned, pki_region_thinned_shape)},
    {HISTOGRAM(pki_region_row)},
    {OPTIONAL(pki_region_row, exact, pki_window_sum_shape)},
};
static const pki_shape region = {SHAPE(pki_region_row, region_members)};

static const pki_member thread_members[] = {
    PLAINS(pki_thread_row, name, tid, ended, recorded, dropped),
    {KINDS(pki_thread_row, PKI_KINDS)},
    {ROWS("regions", pki_thread_row, regions, region_count, region), .lines = true},
};
const pki_shape pki_thread_shape = {SHAPE(pki_thread_row, thread_members)};

static const pki_member counter_members[] = {
    PLAINS(pki_counter_row, name, unit),
    {OBJECT(pki_counter_row, value, pki_dist_shape)},
    PLAIN(pki_counter_row, last),
    {TABLE("series", pki_counter_row, points, point_count, pki_counter_point_shape)},
};
static const pki_shape counter = {SHAPE(pki_counter_row, counter_members)};

static const pki_member backend_members[] = {
    PLAINS(pki_backend_row, name, live, version, reason),
};
static const pki_shape backend = {SHAPE(pki_backend_row, backend_members)};

/* ---- devices ---- */

static const pki_member copies_members[] = {
    PLAINS(pki_gpu_copies, count, time, bytes),
};
static const pki_shape copies = {SHAPE(pki_gpu_copies, copies_members)};

static const pki_member gpu_series_members[] = {
    PLAINS(pki_gpu_series_row, index, steps, step, busy, gaps, longest_gap, copy_alone, sync_gaps,
           launch_gaps, kernels, comm_hidden, comm_exposed),
};
static const pki_shape gpu_series = {SHAPE(pki_gpu_series_row, gpu_series_members)};

static const pki_member gpu_members[] = {
    PLAINS(pki_gpu_row, device, measured, streams, spans, collectives, kernels, short_kernels,
           kernel_time, memsets),
    {.key = "copies",
     .type = PKI_KEYED,
     AT(pki_gpu_row, copies),
     .shape = &copies,
     .keys = pki_direction_names,
     .count = PKI_DIRECTIONS},
    {.key = "per_step",
     .type = PKI_KEYED,
     AT(pki_gpu_row, per_step),
     .shape = &pki_dist_shape,
     .keys = pki_gpu_figures,
     .count = PKI_GPU_FIGURES,
     .optional = true},
    {ROWS("series", pki_gpu_row, series, series_count, gpu_series), .lines = true},
};
const pki_shape pki_gpu_shape = {SHAPE(pki_gpu_row, gpu_members)};

static const pki_member kernel_members[] = {
    PLAINS(pki_kernel_row, name, region, region_share),
    {OBJECT(pki_kernel_row, time, pki_dist_shape)},
};
const pki_shape pki_kernel_shape = {SHAPE(pki_kernel_row, kernel_members)};

static const pki_member activities_members[] = {
    PLAINS(pki_activity_summary, count, unwritten, late, unmeasured, overhead_count, overhead),
};
static const pki_shape activities = {SHAPE(pki_activity_summary, activities_members)};

/* ---- paths: what is made of events alone ---- */

static const pki_member tree_members[] = {
    PLAINS(pki_tree_row, name, depth),
    {CHOICE("kind", pki_tree_row, kind, pki_kind_choice)},
    PLAINS(pki_tree_row, calls, time, self),
};
static const pki_shape tree = {SHAPE(pki_tree_row, tree_members)};

static const pki_member path_members[] = {
    PLAINS(pki_path_row, where, path),
    {CHOICE("kind", pki_path_row, kind, pki_kind_choice)},
    PLAINS(pki_path_row, calls, self, usual),
};
static const pki_shape path = {SHAPE(pki_path_row, path_members)};

static const pki_member io_beside_members[] = {
    PLAINS(pki_io_beside, name, value, steps, usual, telling),
};
static const pki_shape io_beside = {SHAPE(pki_io_beside, io_beside_members)};

static const pki_member beside_members[] = {
    PLAINS(pki_beside, took, step, usual, usual_step, usual_count, same_kind),
    {ROWS("io", pki_beside, io, io_count, io_beside), .optional = true},
    {ROWS("paths", pki_beside, paths, path_count, path), .lines = true},
};
static const pki_shape beside = {SHAPE(pki_beside, beside_members)};

static const pki_member captured_step_members[] = {
    PLAINS(pki_captured_step, index, start, duration, items, kind, captured, kernels),
};
static const pki_shape captured_step = {SHAPE(pki_captured_step, captured_step_members)};

static const pki_member capture_members[] = {
    PLAINS(pki_capture, captured, reason, text, first, last, slow_step, slow, median, cut,
           beginning_gone, full, records_lost, refused),
    {ROWS("steps", pki_capture, steps, step_count, captured_step), .lines = true},
};
static const pki_shape capture = {SHAPE(pki_capture, capture_members)};

static const pki_member environment_members[] = {
    PLAINS(pki_environment, memory, processors, cpu, architecture, kernel, gpu, driver, command,
           compiler, program_compiler, build_id, commit, branch),
};
const pki_shape pki_environment_shape = {SHAPE(pki_environment, environment_members)};

/* ---- all of it ---- */

static const pki_member spans_members[] = {
    PLAINS(pki_span_summary, events, begun, ended, unfinished, marks, dropped, ended_twice,
           of_earlier),
};
static const pki_shape spans = {SHAPE(pki_span_summary, spans_members)};

static const char *outcome_name(uint32_t outcome)
{
    static const char *const names[] = {"finished", "cancelled", "failed"};
    return names[outcome];
}
static const pki_choice outcome = {outcome_name, PK_REQUEST_FAILED + 1, PK_REQUEST_FAILED};

static const pki_member request_parts_members[] = {
    PLAINS(pki_request_parts, count, total, queued, preempted, prefill, crowded, decode, behind),
};
static const pki_shape request_parts = {SHAPE(pki_request_parts, request_parts_members)};

static const pki_member slow_request_members[] = {
    PLAINS(pki_slow_request, serial, start, ttft, tokens, preemptions, first_step, steps),
    {CHOICE("outcome", pki_slow_request, outcome, outcome)},
    {OBJECT(pki_slow_request, parts, request_parts)},
};
static const pki_shape slow_request = {SHAPE(pki_slow_request, slow_request_members)};

static const pki_member requests_members[] = {
    PLAINS(pki_request_summary, count, finished, cancelled, failed, good, tokens, preemptions,
           dropped, ttft_limit, tpot_limit, goodput, slow_from),
    {OBJECT(pki_request_summary, all, request_parts)},
    {OBJECT(pki_request_summary, slow, request_parts)},
    {ROWS("slowest", pki_request_summary, slowest, slowest_count, slow_request), .lines = true},
};
static const pki_shape requests = {SHAPE(pki_request_summary, requests_members)};

static const pki_member whole_run_members[] = {
    PLAINS(pki_whole_run, time, thread, busiest),
    {KINDS(pki_whole_run, PKI_SHARES)},
};
static const pki_shape whole_run = {SHAPE(pki_whole_run, whole_run_members)};

static const pki_member counts_members[] = {
    PLAINS(pk_counts, threads, begun, recorded, written, dropped, unbalanced, too_deep, stray_ends,
           points, points_dropped, unwritten, regions, steps, memory_bytes, trace_bytes,
           other_starts, not_finite),
    PLAINS(pk_counts, untimed, untraced),
};
const pki_shape pki_counts_shape = {SHAPE(pk_counts, counts_members)};

static const pki_member overhead_members[] = {
    PLAINS(pki_overhead, region_ns, total, share, collector, recording, callers, captures, readings,
           backends, counted_ns),
};
const pki_shape pki_overhead_shape = {SHAPE(pki_overhead, overhead_members)};

#define TOP_ROWS(m, n, of) ROWS(#m, pki_summary, m, n, of), .line = true, .lines = true

static const pki_member summary_members[] = {
    {TOP_OBJECT(pki_summary, run, pki_run_shape)},
    {TOP_OBJECT(pki_summary, environment, pki_environment_shape), .optional = true},
    {TOP_OBJECT(pki_summary, capture, capture), .optional = true},
    {TOP_OBJECT(pki_summary, beside, beside), .optional = true},
    {TOP_ROWS(verdicts, verdict_count, pki_verdict_shape)},
    {TOP_OBJECT(pki_summary, steps, pki_steps_shape)},
    {TOP_OBJECT(pki_summary, stages, pki_stages_shape), .optional = true},
    {TOP_OBJECT(pki_summary, whole_run, whole_run), .optional = true},
    {TOP_OBJECT(pki_summary, cpu_side, pki_cpu_side_shape), .optional = true},
    {TOP_OBJECT(pki_summary, roofline, pki_roofline_shape), .optional = true},
    {TOP_OBJECT(pki_summary, io, pki_io_shape), .optional = true},
    {TOP_OBJECT(pki_summary, energy, pki_energy_shape), .optional = true},
    {TOP_OBJECT(pki_summary, goodput, pki_goodput_shape), .optional = true},
    {TOP_OBJECT(pki_summary, events, pki_events_shape), .optional = true},
    {TOP_ROWS(gpus, gpu_count, pki_gpu_shape)},
    {TOP_ROWS(kernels, kernel_count, pki_kernel_shape)},
    {TOP_OBJECT(pki_summary, comm, pki_comm_shape)},
    {TOP_ROWS(regions, region_count, region)},
    {TOP_ROWS(tree, tree_count, tree), .optional = true},
    {TOP_OBJECT(pki_summary, spans, spans), .optional = true},
    {TOP_OBJECT(pki_summary, requests, requests), .optional = true},
    {TOP_OBJECT(pki_summary, memory, pki_memory_shape), .optional = true},
    {TOP_OBJECT(pki_summary, gpu_memory, pki_gpu_memory_shape), .optional = true},
    {TOP_ROWS(threads, thread_count, pki_thread_shape)},
    {TOP_ROWS(counters, counter_count, counter)},
    {TOP_OBJECT(pki_summary, counts, pki_counts_shape)},
    {TOP_OBJECT(pki_summary, activities, activities)},
    {TOP_OBJECT(pki_summary, overhead, pki_overhead_shape)},
    {TOP_OBJECT(pki_summary, thinned, pki_thinned_shape), .optional = true},
    {TOP_ROWS(backends, backend_count, backend)},
};
const pki_shape pki_summary_shape = {SHAPE(pki_summary, summary_members)};
