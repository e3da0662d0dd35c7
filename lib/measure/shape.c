#include "measure/shape.h"

#include <stdlib.h>
#include <string.h>

#include "comm/model/communicator.h"
#include "measure/costs/sums.h"
#include "measure/shape_words.h"

/* ---- what communication in a summary consists of ---- */

static const pki_choice operation = {pki_comm_op_name, PK_COMM_OP_GROUP + 1, PK_COMM_OP_OTHER};

static const pki_member comm_members[] = {
    PLAIN(pki_comm_row, library),
    PLAIN(pki_comm_row, name),
    {HEX(pki_comm_row, id)},
    PLAINS(pki_comm_row, rank, size, calls, bytes, time, exposed, on_stream, enqueued, started,
           completed, under_way, in_flight, busy, waited),
};
static const pki_shape comm_shape = {SHAPE(pki_comm_row, comm_members)};

static const pki_member way_members[] = {
    PLAINS(pki_comm_way, algorithm, protocol, calls, channels),
};
static const pki_shape way = {SHAPE(pki_comm_way, way_members)};

static const pki_member collective_members[] = {
    PLAIN_AS("communicator", pki_operation_row, comm),
    {CHOICE("operation", pki_operation_row, op, operation)},
    PLAINS(pki_operation_row, size, bytes, exposed),
    {OBJECT(pki_operation_row, time, pki_dist_shape)},
    {OPTIONAL(pki_operation_row, algbw, pki_dist_shape)},
    {OPTIONAL(pki_operation_row, busbw, pki_dist_shape)},
    {ROWS("algorithms", pki_operation_row, ways, way_count, way), .optional = true},
};
static const pki_shape collective = {SHAPE(pki_operation_row, collective_members)};

static const pki_member comm_region_members[] = {
    PLAIN(pki_comm_region_row, region),
    PLAIN_AS("communicator", pki_comm_region_row, comm),
    {CHOICE("operation", pki_comm_region_row, op, operation)},
    PLAINS(pki_comm_region_row, bytes, exposed),
    {OBJECT(pki_comm_region_row, time, pki_dist_shape)},
};
static const pki_shape comm_region = {SHAPE(pki_comm_region_row, comm_region_members)};

static const pki_member call_members[] = {
    PLAIN(pki_comm_call_row, region),
    PLAIN_AS("communicator", pki_comm_call_row, comm),
    {CHOICE("operation", pki_comm_call_row, op, operation)},
    PLAINS(pki_comm_call_row, bytes, sequence, in_step, step, start, duration, exposed),
};
static const pki_shape comm_call = {SHAPE(pki_comm_call_row, call_members)};

static const pki_member partner_members[] = {
    PLAINS(pki_partner_row, rank, sent, sent_bytes, sent_time, received, received_bytes,
           received_time),
};
static const pki_shape partner = {SHAPE(pki_partner_row, partner_members)};

static const pki_member sequence_members[] = {
    PLAINS(pki_sequence_row, key, start, duration, waited, bytes, op, ranks, partner),
    {.key = "region", .type = PKI_U32, AT(pki_sequence_row, region), .optional = true},
};
static const pki_shape sequence = {SHAPE(pki_sequence_row, sequence_members)};

static const pki_member sequence_region_members[] = {PLAIN(pki_sequence_region, name)};
static const pki_shape sequence_region = {SHAPE(pki_sequence_region, sequence_region_members)};

static const pki_member sequences_members[] = {
    PLAINS(pki_sequences, operations, one_in, origin, clock),
    {ROWS("regions", pki_sequences, regions, region_count, sequence_region), .optional = true},
    {TABLE("rows", pki_sequences, rows, row_count, sequence)},
};
static const pki_shape sequences = {SHAPE(pki_sequences, sequences_members)};

#define COMM_ROWS(name, m, n, of)                                                                  \
    ROWS(name, pki_comm_summary, m, n, of), .line = true, .lines = true

static const pki_member comms_members[] = {
    PLAINS(pki_comm_summary, unmeasured, dropped_events, dropped_operations),
    {COMM_ROWS("communicators", comms, comm_count, comm_shape)},
    {COMM_ROWS("collectives", collectives, collective_count, collective)},
    {COMM_ROWS("regions", regions, region_count, comm_region)},
    {COMM_ROWS("slowest", slowest, slowest_count, comm_call)},
    {TABLE("partners", pki_comm_summary, partners, partner_count, partner)},
    {OPTIONAL(pki_comm_summary, sequences, sequences)},
};
const pki_shape pki_comm_shape = {SHAPE(pki_comm_summary, comms_members)};

/* ---- what the run cost beside time, in the report file ---- */

static const pki_member io_step_figure_members[] = {
    {OBJECT(pki_io_step_figure, each, pki_dist_shape)},
    PLAINS(pki_io_step_figure, most_step, most_steps),
};
static const pki_shape io_step_figure = {SHAPE(pki_io_step_figure, io_step_figure_members)};

static const pki_member io_steps_members[] = {
    PLAINS(pki_io_steps, steps, readings, alone, device),
    {OBJECT(pki_io_steps, read, io_step_figure)},
    {OBJECT(pki_io_steps, written, io_step_figure)},
    {OBJECT(pki_io_steps, device_read, io_step_figure)},
    {OBJECT(pki_io_steps, device_written, io_step_figure)},
    {OBJECT(pki_io_steps, operations, io_step_figure)},
};
static const pki_shape io_steps = {SHAPE(pki_io_steps, io_steps_members)};

#define IO_SUMS                                                                                    \
    PLAINS(pki_io_summary, asked, why_not, observed, read_chars, write_chars, read_calls,          \
           write_calls, read_device, write_device, best_read, best_write, exposed, hidden,         \
           blocked_known, blocked),                                                                \
        PLAINS(pki_io_summary, saves, save_time, save_bytes)

static const pki_member io_sums_members[] = {IO_SUMS};
const pki_shape pki_io_sums_shape = {SHAPE(pki_io_summary, io_sums_members)};

static const pki_member io_members[] = {
    IO_SUMS,
    {OPTIONAL(pki_io_summary, steps, io_steps)},
};
const pki_shape pki_io_shape = {SHAPE(pki_io_summary, io_members)};

static const pki_member energy_row_members[] = {
    PLAINS(pki_energy_row, counter, step_kind, joules, watts, per_step, per_item, error, refused,
           time, steps, items, period, resets),
};
static const pki_shape energy_row = {SHAPE(pki_energy_row, energy_row_members)};

static const pki_member energy_members[] = {
    PLAINS(pki_energy_summary, asked, why_not),
    {ROWS("rows", pki_energy_summary, rows, row_count, energy_row), .lines = true},
    PLAINS(pki_energy_summary, held_by, held_steps, held_time, free_steps, free_time),
};
const pki_shape pki_energy_shape = {SHAPE(pki_energy_summary, energy_members)};

static const pki_member load_row_members[] = {
    PLAINS(pki_load_row, device, metric, step_kind, intervals, time, mean, least, most),
    {OPTIONAL(pki_load_row, per_step, pki_dist_shape)},
};
static const pki_shape load_row = {SHAPE(pki_load_row, load_row_members)};

static const pki_member load_members[] = {
    PLAINS(pki_load_summary, intervals, mixed, without_room),
    {ROWS("rows", pki_load_summary, rows, row_count, load_row), .lines = true},
};
const pki_shape pki_load_shape = {SHAPE(pki_load_summary, load_members)};

static const pki_member gpu_event_members[] = {
    PLAINS(pki_gpu_event_row, device, what, number, text, count, first, time),
};
static const pki_shape gpu_event = {SHAPE(pki_gpu_event_row, gpu_event_members)};

static const pki_member gpu_events_members[] = {
    PLAINS(pki_gpu_event_summary, count, beyond),
    {ROWS("rows", pki_gpu_event_summary, rows, row_count, gpu_event), .lines = true},
};
const pki_shape pki_gpu_events_shape = {SHAPE(pki_gpu_event_summary, gpu_events_members)};

static const pki_member goodput_members[] = {
    PLAIN(pki_goodput_summary, up),
    {.key = "parts",
     .type = PKI_KEYED,
     AT(pki_goodput_summary, parts),
     .keys = pki_part_names,
     .count = PKI_PARTS},
    PLAINS(pki_goodput_summary, steps, recomputed),
};
const pki_shape pki_goodput_shape = {SHAPE(pki_goodput_summary, goodput_members)};

/* ---- of a window: as it can be added up ---- */

static const pki_member energy_sum_members[] = {
    PLAINS(pki_energy_sum, counter, step_kind, microjoules, time, steps, items, stretches, watched,
           readings, resets, lowest, highest),
};
static const pki_shape energy_sum = {SHAPE(pki_energy_sum, energy_sum_members)};

static const pki_member energy_sums_members[] = {
    PLAINS(pki_energy_sums, asked, why_not, held_by, held_steps, held_time, free_steps, free_time),
    {ROWS("rows", pki_energy_sums, rows, row_count, energy_sum)},
};
const pki_shape pki_energy_sums_shape = {SHAPE(pki_energy_sums, energy_sums_members)};

/* A figure and its error. */
#define MEAN(name, i)                                                                              \
    PLAIN_AS(name, pki_events_row, value[i]), PLAIN_AS(name "_error", pki_events_row, error[i])
#define QUOTIENT(name, i)                                                                          \
    PLAIN_AS(name, pki_events_row, ratio[i]),                                                      \
        PLAIN_AS(name "_error", pki_events_row, ratio_error[i])

static const pki_member events_row_members[] = {
    PLAINS(pki_events_row, region, calls, sampled, missed, time),
    MEAN("instructions", PKI_EVENT_INSTRUCTIONS),
    MEAN("cycles", PKI_EVENT_CYCLES),
    MEAN("cache_misses", PKI_EVENT_CACHE_MISSES),
    MEAN("branch_misses", PKI_EVENT_BRANCH_MISSES),
    QUOTIENT("ipc", PKI_EVENT_IPC),
    QUOTIENT("cache_misses_per_1000", PKI_EVENT_CACHE),
    QUOTIENT("branch_misses_per_1000", PKI_EVENT_BRANCH),
    MEAN("processor_time", PKI_EVENT_PROCESSOR),
    MEAN("page_faults", PKI_EVENT_FAULTS),
    MEAN("context_switches", PKI_EVENT_SWITCHES),
    MEAN("migrations", PKI_EVENT_MIGRATIONS),
    MEAN("slots", PKI_EVENT_SLOTS),
    QUOTIENT("retiring", PKI_EVENT_RETIRING),
    QUOTIENT("bad_speculation", PKI_EVENT_BAD_SPECULATION),
    QUOTIENT("frontend_bound", PKI_EVENT_FRONTEND_BOUND),
    QUOTIENT("backend_bound", PKI_EVENT_BACKEND_BOUND),
};
static const pki_shape events_row = {SHAPE(pki_events_row, events_row_members)};

static const pki_member events_members[] = {
    PLAINS(pki_events_summary, asked, why_not_hardware, why_not_software, why_not_topdown, threads,
           threads_without, why_threads, threads_lost, calls_beyond, bound, spent),
    {ROWS("rows", pki_events_summary, rows, row_count, events_row), .lines = true},
};
const pki_shape pki_events_shape = {SHAPE(pki_events_summary, events_members)};

/* ---- what is said of a distribution, in the report file ---- */

static const pki_member dist_members[] = {
    PLAINS(pki_dist, count, sum, min, max, mean, stddev, p50, p90, p95, p99),
};
const pki_shape pki_dist_shape = {SHAPE(pki_dist, dist_members)};

/* ---- a run beside what its machine can do ---- */

static const pki_member roofline_row_members[] = {
    PLAINS(pki_roofline_row, region, share, threads, all_processors, intensity, bytes_per_second,
           flops_per_second, of_double, of_single, memory_bound_double, memory_bound_single),
};
static const pki_shape roofline_row = {SHAPE(pki_roofline_row, roofline_row_members)};

static const pki_member roofline_members[] = {
    PLAINS(pki_roofline, measured, host, cpu, processors, bandwidth_one, bandwidth_all, double_one,
           double_all, single_one, single_all),
    {ROWS("regions", pki_roofline, rows, row_count, roofline_row), .lines = true},
};
const pki_shape pki_roofline_shape = {SHAPE(pki_roofline, roofline_members)};

static const pki_member utilisation_members[] = {
    PLAINS(pki_utilisation, steps, time, model, hardware, peak, mfu, hfu, precision, source),
};
const pki_shape pki_utilisation_shape = {SHAPE(pki_utilisation, utilisation_members)};

static const pki_member cpu_side_members[] = {
    PLAINS(pki_cpu_side, looks, forced, own, busy, busy_most, threads, allowed, allowed_busy),
    PLAINS(pki_cpu_side, quota, quota_periods, quota_throttled, quota_throttled_time),
    PLAINS(pki_cpu_side, clock_mean, clock_most, heat_events),
    PLAINS(pki_cpu_side, nodes, near_bytes, far_bytes, largest_node, own_nodes),
};
const pki_shape pki_cpu_side_shape = {SHAPE(pki_cpu_side, cpu_side_members)};

/* ---- a run's memory, in the report file ---- */

static const pki_member growth_members[] = {
    PLAINS(pki_growth, steps, per_step, z),
};
static const pki_shape growth = {SHAPE(pki_growth, growth_members)};

static const pki_member memory_region_members[] = {
    PLAINS(pki_memory_region, name, allocations, bytes, frees, freed, live, peak, at_peak, steady),
    {OPTIONAL(pki_memory_region, growth, growth)},
};
static const pki_shape memory_region = {SHAPE(pki_memory_region, memory_region_members)};

/* Also a counter's. */
static const pki_member point_members[] = {
    PLAINS(pki_counter_point, start, samples, min, mean, max),
};
const pki_shape pki_counter_point_shape = {SHAPE(pki_counter_point, point_members)};

static const pki_member memory_members[] = {
    PLAINS(pki_memory_summary, looks, resident, most_resident, most_private, minor_faults,
           major_faults, steady_minor, steady_major),
    {TABLE("series", pki_memory_summary, series, series_count, pki_counter_point_shape)},
    {OBJECT(pki_memory_summary, step_resident, pki_dist_shape)},
    {OBJECT(pki_memory_summary, step_minor, pki_dist_shape)},
    {OBJECT(pki_memory_summary, step_major, pki_dist_shape)},
    {OPTIONAL(pki_memory_summary, growth, growth)},
    PLAINS(pki_memory_summary, limit, used, limit_of, allocator, uncounted, live, peak, within,
           sampled, steady_steps),
    {ROWS("regions", pki_memory_summary, regions, region_count, memory_region), .lines = true},
};
const pki_shape pki_memory_shape = {SHAPE(pki_memory_summary, memory_members)};

static const pki_member sum_members[] = {
    PLAINS(pki_memory_sum, looks, resident, most_resident, most_private, minor_faults,
           major_faults),
};
const pki_shape pki_memory_sum_shape = {SHAPE(pki_memory_sum, sum_members)};

static const pki_member gpu_kind_members[] = {
    PLAINS(pki_gpu_memory_kind, kind, allocations, bytes, frees, freed, live, peak, at_peak),
};
static const pki_shape gpu_kind = {SHAPE(pki_gpu_memory_kind, gpu_kind_members)};

static const pki_member gpu_pool_members[] = {
    PLAINS(pki_gpu_pool_row, pool, gone, reserved, used, most_reserved, used_then, unused),
};
static const pki_shape gpu_pool = {SHAPE(pki_gpu_pool_row, gpu_pool_members)};

static const pki_member gpu_place_members[] = {
    PLAINS(pki_gpu_memory_place, place, total, allocations, bytes, frees, freed, live, peak,
           peak_ns, held, most_held, in_use, pool_reserved, pool_used, most_reserved, used_then,
           unused, steady),
    {OPTIONAL(pki_gpu_memory_place, growth, growth)},
    {ROWS("kinds", pki_gpu_memory_place, kinds, kind_count, gpu_kind)},
    {ROWS("regions", pki_gpu_memory_place, regions, region_count, memory_region)},
    {ROWS("pools", pki_gpu_memory_place, pools, pool_count, gpu_pool), .optional = true},
};
static const pki_shape gpu_place = {SHAPE(pki_gpu_memory_place, gpu_place_members)};

static const pki_member gpu_memory_members[] = {
    PLAINS(pki_gpu_memory_summary, asked, why_not, operations, unknown_frees, unknown_freed,
           missed_frees, untied, dropped, lost, steady_steps, pools_beyond),
    {ROWS("places", pki_gpu_memory_summary, places, place_count, gpu_place), .lines = true},
};
const pki_shape pki_gpu_memory_shape = {SHAPE(pki_gpu_memory_summary, gpu_memory_members)};

static const pki_member gpu_sum_members[] = {
    PLAINS(pki_gpu_memory_sum, place, allocations, bytes, frees, freed, live, held, pool_reserved,
           pool_used, peak, peak_ns, most_held, most_reserved, used_then),
};
static const pki_shape gpu_sum = {SHAPE(pki_gpu_memory_sum, gpu_sum_members)};

static const pki_member gpu_sums_members[] = {
    PLAINS(pki_gpu_memory_sums, asked, why_not, operations, dropped, lost),
    {ROWS("places", pki_gpu_memory_sums, places, place_count, gpu_sum)},
};
const pki_shape pki_gpu_memory_sums_shape = {SHAPE(pki_gpu_memory_sums, gpu_sums_members)};

/* ---- what the stages of a summary consist of ---- */

static const char *kind_name(uint32_t kind)
{
    return pki_kind_names[kind];
}

const pki_choice pki_kind_choice = {kind_name, PKI_SHARES, PK_OTHER};

static const pki_member stage_members[] = {
    PLAIN(pki_stage_row, name),
    {CHOICE("kind", pki_stage_row, kind, pki_kind_choice)},
};
static const pki_shape stage = {SHAPE(pki_stage_row, stage_members)};

static const pki_member loop_members[] = {
    PLAIN(pki_loop_row, name),
    {NUMBERS("blocks", pki_loop_row, numbers, number_count)},
    {NUMBERS("no_processor", pki_loop_row, no_processor, no_processor_count)},
    {NUMBERS("seats", pki_loop_row, seats, seat_count)},
    {NUMBERS("starts", pki_loop_row, starts, start_count)},
};
static const pki_shape loop = {SHAPE(pki_loop_row, loop_members)};

static const pki_member stages_members[] = {
    PLAINS(pki_stage_summary, width, warmup),
    {ROWS("names", pki_stage_summary, stages, stage_count, stage)},
    {ROWS("loops", pki_stage_summary, loops, loop_count, loop), .lines = true},
};
const pki_shape pki_stages_shape = {SHAPE(pki_stage_summary, stages_members)};

/* ---- what overhead_max has done, in the report file ---- */

#define RANGE(m)                                                                                   \
    PLAIN_AS(#m "_low", pki_region_thinned, m[0]), PLAIN_AS(#m "_high", pki_region_thinned, m[1])
static const pki_member region_thinned_members[] = {
    PLAINS(pki_region_thinned, calls, untimed, untraced, error, sum_error, call_error),
    RANGE(p50),
    RANGE(p90),
    RANGE(p95),
    RANGE(p99),
};
const pki_shape pki_region_thinned_shape = {SHAPE(pki_region_thinned, region_thinned_members)};

static const pki_member thinned_members[] = {
    PLAINS(pki_thinned, regions, untimed, untraced, overhead_max, beyond),
};
const pki_shape pki_thinned_shape = {SHAPE(pki_thinned, thinned_members)};

/* ---- of a summary what a job of many ranks is made of: the file of a rank ---- */

static const pki_member rank_region_members[] = {
    PLAIN(pki_region_row, name),
    {CHOICE("kind", pki_region_row, kind, pki_kind_choice)},
    PLAIN(pki_region_row, self),
    {OPTIONAL(pki_region_row, exact, pki_window_sum_shape)},
};
static const pki_shape rank_region = {SHAPE(pki_region_row, rank_region_members)};

static const pki_member rank_gpu_members[] = {
    PLAINS(pki_gpu_row, device, measured, streams),
    {.key = "per_step",
     .type = PKI_KEYED,
     AT(pki_gpu_row, per_step),
     .shape = &pki_dist_shape,
     .keys = pki_gpu_figures,
     .count = PKI_GPU_FIGURES,
     .optional = true},
};
static const pki_shape rank_gpu = {SHAPE(pki_gpu_row, rank_gpu_members)};

static const pki_member step_off_members[] = {PLAINS(pki_step_off, told, ready, off)};
static const pki_shape step_off = {SHAPE(pki_step_off, step_off_members)};

static const pki_member rank_slow_members[] = {
    PLAINS(pki_step_row, index, duration),
    {KINDS(pki_step_row, PKI_SHARES)},
    {OPTIONAL(pki_step_row, processor, step_off)},
};
static const pki_shape rank_slow = {SHAPE(pki_step_row, rank_slow_members)};

/* What the rank cost beside time, as far as ranks add it up; its slowest steps. */
static const pki_member rank_steps_members[] = {
    {OPTIONAL(pki_step_summary, processor, pki_processor_shape)},
    {OPTIONAL(pki_step_summary, utilisation, pki_utilisation_shape)},
    {ROWS("slowest", pki_step_summary, slowest, slowest_count, rank_slow), .line = true,
     .optional = true},
};
static const pki_shape rank_steps = {SHAPE(pki_step_summary, rank_steps_members)};

static const pki_member rank_memory_members[] = {
    PLAINS(pki_memory_summary, looks, resident, most_resident),
};
static const pki_shape rank_memory = {SHAPE(pki_memory_summary, rank_memory_members)};

static const pki_member rank_place_members[] = {
    PLAINS(pki_gpu_memory_place, place, live, peak, most_held, most_reserved, used_then),
};
static const pki_shape rank_place = {SHAPE(pki_gpu_memory_place, rank_place_members)};

static const pki_member rank_gpu_memory_members[] = {
    PLAINS(pki_gpu_memory_summary, asked, why_not),
    {ROWS("places", pki_gpu_memory_summary, places, place_count, rank_place)},
};
static const pki_shape rank_gpu_memory = {SHAPE(pki_gpu_memory_summary, rank_gpu_memory_members)};

static const pki_member rank_members[] = {
    {TOP_OBJECT(pki_summary, run, pki_run_shape)},
    {TOP_OBJECT(pki_summary, stages, pki_stages_shape), .optional = true},
    {TOP_OBJECT(pki_summary, comm, pki_comm_shape)},
    {ROWS("gpus", pki_summary, gpus, gpu_count, rank_gpu), .line = true, .optional = true},
    {TOP_OBJECT(pki_summary, steps, rank_steps)},
    {TOP_OBJECT(pki_summary, io, pki_io_sums_shape), .optional = true},
    {TOP_OBJECT(pki_summary, energy, pki_energy_shape), .optional = true},
    {TOP_OBJECT(pki_summary, memory, rank_memory), .optional = true},
    {TOP_OBJECT(pki_summary, gpu_memory, rank_gpu_memory), .optional = true},
    {TOP_OBJECT(pki_summary, events, pki_events_shape), .optional = true},
    {ROWS("regions", pki_summary, regions, region_count, rank_region), .line = true, .lines = true},
};
const pki_shape pki_rank_shape = {SHAPE(pki_summary, rank_members)};

/* ---- what a pki_summary consists of, member by member, in one table ---- */

/* ---- words ---- */

static const char *severity_name(uint32_t severity)
{
    static const char *const names[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    return names[severity];
}

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
    {OPTIONAL(pki_step_row, processor, step_off)},
    {ROWS("parts", pki_step_row, parts, part_count, part)},
};
static const pki_shape slow_step = {SHAPE(pki_step_row, slow_members)};

static const pki_member series_members[] = {
    PLAINS(pki_series_row, index, start, steps, duration, longest, items),
    {KINDS(pki_series_row, PKI_SHARES)},
    PLAINS(pki_series_row, shortest, median),
};
static const pki_shape series_shape = {SHAPE(pki_series_row, series_members)};

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
static const pki_shape step_kind_shape = {SHAPE(pki_step_kind_row, step_kind_members)};

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
    {ROWS("series", pki_step_summary, series, series_count, series_shape), .lines = true},
    {HISTOGRAM(pki_step_summary)},
    {ROWS("step_kinds", pki_step_summary, step_kinds, step_kind_count, step_kind_shape),
     .lines = true, .optional = true},
    {OPTIONAL(pki_step_summary, between, between)},
};
const pki_shape pki_steps_shape = {SHAPE(pki_step_summary, steps_members)};

static const pki_member found_members[] = {
    PLAINS(pki_found_steps, turns, time, before, alike, by, step),
};
static const pki_shape found_steps = {SHAPE(pki_found_steps, found_members)};

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
static const pki_shape region_shape = {SHAPE(pki_region_row, region_members)};

static const pki_member thread_members[] = {
    PLAINS(pki_thread_row, name, tid, ended, recorded, dropped),
    {KINDS(pki_thread_row, PKI_KINDS)},
    {ROWS("regions", pki_thread_row, regions, region_count, region_shape), .lines = true},
};
const pki_shape pki_thread_shape = {SHAPE(pki_thread_row, thread_members)};

static const pki_member counter_members[] = {
    PLAINS(pki_counter_row, name, unit),
    {OBJECT(pki_counter_row, value, pki_dist_shape)},
    PLAIN(pki_counter_row, last),
    {TABLE("series", pki_counter_row, points, point_count, pki_counter_point_shape)},
};
static const pki_shape counter_shape = {SHAPE(pki_counter_row, counter_members)};

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
           kernel_time, graphs, graph_time, memsets),
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
    PLAINS(pki_path_row, calls, usual_calls, self, usual, blocked, usual_blocked),
};
static const pki_shape path = {SHAPE(pki_path_row, path_members)};

static const pki_member io_beside_members[] = {
    PLAINS(pki_io_beside, name, value, steps, usual, telling),
};
static const pki_shape io_beside = {SHAPE(pki_io_beside, io_beside_members)};

static const pki_member cause_members[] = {
    PLAINS(pki_cause, cause, ns, outside, waits, region, function, caller, call, object, by,
           by_region, now, usual, sampled, sampled_usual, samples, usual_samples),
};
static const pki_shape cause = {SHAPE(pki_cause, cause_members)};

static const pki_member slow_cause_members[] = {PLAINS(pki_slow_cause, cause, steps, ns, by)};
static const pki_shape slow_cause = {SHAPE(pki_slow_cause, slow_cause_members)};

static const pki_member slow_steps_members[] = {
    PLAINS(pki_slow_steps, count, longer),
    {ROWS("causes", pki_slow_steps, causes, cause_count, slow_cause), .lines = true},
};
static const pki_shape slow_steps = {SHAPE(pki_slow_steps, slow_steps_members)};

static const pki_member unplaced_members[] = {PLAINS(pki_unplaced, ready, usual)};
static const pki_shape unplaced = {SHAPE(pki_unplaced, unplaced_members)};

static const pki_member beside_members[] = {
    PLAINS(pki_beside, took, step, usual, usual_step, usual_count, same_kind, unexplained, untold),
    {OPTIONAL(pki_beside, unplaced, unplaced)},
    {ROWS("causes", pki_beside, causes, cause_count, cause), .lines = true},
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
           beginning_gone, full, records_lost, refused, kernels_late),
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

static const pki_member outside_row_members[] = {
    PLAINS(pki_outside_row, function, caller, place, build, caller_place, caller_build, samples,
           ns),
};
static const pki_shape outside_row = {SHAPE(pki_outside_row, outside_row_members)};

static const pki_member outside_members[] = {
    PLAINS(pki_outside, sampled, outside),
    {ROWS("functions", pki_outside, rows, count, outside_row), .lines = true},
};
static const pki_shape outside = {SHAPE(pki_outside, outside_members)};

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
    {TOP_OBJECT(pki_summary, found_steps, found_steps), .optional = true},
    {TOP_OBJECT(pki_summary, slow_steps, slow_steps), .optional = true},
    {TOP_OBJECT(pki_summary, stages, pki_stages_shape), .optional = true},
    {TOP_OBJECT(pki_summary, whole_run, whole_run), .optional = true},
    {TOP_OBJECT(pki_summary, outside, outside), .optional = true},
    {TOP_OBJECT(pki_summary, cpu_side, pki_cpu_side_shape), .optional = true},
    {TOP_OBJECT(pki_summary, roofline, pki_roofline_shape), .optional = true},
    {TOP_OBJECT(pki_summary, io, pki_io_shape), .optional = true},
    {TOP_OBJECT(pki_summary, energy, pki_energy_shape), .optional = true},
    {TOP_OBJECT(pki_summary, goodput, pki_goodput_shape), .optional = true},
    {TOP_OBJECT(pki_summary, events, pki_events_shape), .optional = true},
    {TOP_ROWS(gpus, gpu_count, pki_gpu_shape)},
    {TOP_ROWS(kernels, kernel_count, pki_kernel_shape)},
    {TOP_OBJECT(pki_summary, gpu_load, pki_load_shape), .optional = true},
    {TOP_OBJECT(pki_summary, gpu_events, pki_gpu_events_shape), .optional = true},
    {TOP_OBJECT(pki_summary, comm, pki_comm_shape)},
    {TOP_ROWS(regions, region_count, region_shape)},
    {TOP_ROWS(tree, tree_count, tree), .optional = true},
    {TOP_OBJECT(pki_summary, spans, spans), .optional = true},
    {TOP_OBJECT(pki_summary, requests, requests), .optional = true},
    {TOP_OBJECT(pki_summary, memory, pki_memory_shape), .optional = true},
    {TOP_OBJECT(pki_summary, gpu_memory, pki_gpu_memory_shape), .optional = true},
    {TOP_ROWS(threads, thread_count, pki_thread_shape)},
    {TOP_ROWS(counters, counter_count, counter_shape)},
    {TOP_OBJECT(pki_summary, counts, pki_counts_shape)},
    {TOP_OBJECT(pki_summary, activities, activities)},
    {TOP_OBJECT(pki_summary, overhead, pki_overhead_shape)},
    {TOP_OBJECT(pki_summary, thinned, pki_thinned_shape), .optional = true},
    {TOP_ROWS(backends, backend_count, backend)},
};
const pki_shape pki_summary_shape = {SHAPE(pki_summary, summary_members)};

/* ---- what a pki_summary points to, given back ---- */

static void finish_member(const pki_member *member, char *object)
{
    void *at = object + member->offset, *block;
    size_t count;
    switch (member->type) {
    case PKI_TEXT:
    case PKI_NUMBERS:
    case PKI_TABLE:
        memcpy(&block, at, sizeof block);
        free(block);
        break;
    case PKI_OBJECT:
        pki_shape_finish(member->shape, at);
        break;
    case PKI_ROWS:
        memcpy(&block, at, sizeof block);
        memcpy(&count, object + member->count, sizeof count);
        pki_shape_finish_rows(member->shape, block, count);
        break;
    default:
        break;
    }
}

void pki_shape_finish(const pki_shape *shape, void *object)
{
    for (size_t i = 0; i < shape->count; i++)
        finish_member(&shape->members[i], object);
}

void pki_shape_finish_rows(const pki_shape *shape, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_shape_finish(shape, (char *)rows + i * shape->size);
    free(rows);
}

void pki_step_summary_finish(pki_step_summary *steps)
{
    pki_shape_finish(&pki_steps_shape, steps);
    *steps = (pki_step_summary){0};
}

void pki_stage_summary_finish(pki_stage_summary *stages)
{
    pki_shape_finish(&pki_stages_shape, stages);
    *stages = (pki_stage_summary){0};
}

void pki_gpu_finish(pki_summary *summary)
{
    pki_shape_finish_rows(&pki_kernel_shape, summary->kernels, summary->kernel_count);
    pki_shape_finish_rows(&pki_gpu_shape, summary->gpus, summary->gpu_count);
    summary->kernels = NULL;
    summary->gpus = NULL;
    summary->gpu_count = summary->kernel_count = 0;
}

void pki_comm_finish(pki_summary *summary)
{
    pki_shape_finish(&pki_comm_shape, &summary->comm);
    summary->comm = (pki_comm_summary){0};
}

void pki_summary_clear_verdicts(pki_summary *summary)
{
    pki_shape_finish_rows(&pki_verdict_shape, summary->verdicts, summary->verdict_count);
    summary->verdicts = NULL;
    summary->verdict_count = 0;
}

void pki_summary_finish(pki_summary *summary)
{
    pki_shape_finish(&pki_summary_shape, summary);
    pki_summary_init(summary);
}
