#include "measure/shape.h"

#include "core/comms.h"

/* ---- how a member is said: its type is the compiler's ---- */

#define TYPE(T, m)                                                                                 \
    _Generic(((T *)0)->m,                                                                          \
        char *: PKI_TEXT,                                                                          \
        uint64_t: PKI_UINT,                                                                        \
        uint32_t: PKI_U32,                                                                         \
        int32_t: PKI_I32,                                                                          \
        double: PKI_REAL,                                                                          \
        bool: PKI_BOOL)

#define AT(T, m) .offset = offsetof(T, m)
#define PLAIN_AS(name, T, m) {.key = name, .type = TYPE(T, m), AT(T, m)}
#define PLAIN(T, m) PLAIN_AS(#m, T, m)
#define HEX(T, m) {.key = #m, .type = PKI_HEX, AT(T, m)}
#define CHOICE(name, T, m, words) {.key = name, .type = PKI_CHOICE, AT(T, m), .choice = &(words)}
#define OBJECT(T, m, of) {.key = #m, .type = PKI_OBJECT, AT(T, m), .shape = &(of)}
#define TOP_OBJECT(T, m, of) {.key = #m, .type = PKI_OBJECT, AT(T, m), .shape = &(of), .line = true}
#define OPTIONAL(T, m, of)                                                                         \
    {.key = #m, .type = PKI_OBJECT, AT(T, m), .shape = &(of), .optional = true}
#define KINDS(T, n)                                                                                \
    {.key = "kinds", .type = PKI_KEYED, AT(T, kinds), .keys = pki_kind_names, .count = (n)}
#define ROWS(name, T, m, n, of)                                                                    \
    .key = name, .type = PKI_ROWS, AT(T, m), .count = offsetof(T, n), .shape = &(of)
#define TABLE(name, T, m, n, of)                                                                   \
    {.key = name, .type = PKI_TABLE, AT(T, m), .count = offsetof(T, n), .shape = &(of)}
#define HISTOGRAM(T) TABLE("histogram", T, histogram.buckets, histogram.count, bucket)
#define SHAPE(T, list) {sizeof(T), sizeof(list) / sizeof *(list), list}

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

static const pki_choice kind = {kind_name, PKI_SHARES, PK_OTHER};
static const pki_choice severity = {severity_name, PKI_WARN + 1, PKI_NOTE};
static const pki_choice operation = {pki_comm_op_name, PK_COMM_GROUP + 1, PK_COMM_OTHER};

/* ---- what everything is made of ---- */

static const pki_member dist_members[] = {
    PLAIN(pki_dist, count), PLAIN(pki_dist, sum),    PLAIN(pki_dist, min), PLAIN(pki_dist, max),
    PLAIN(pki_dist, mean),  PLAIN(pki_dist, stddev), PLAIN(pki_dist, p50), PLAIN(pki_dist, p90),
    PLAIN(pki_dist, p95),   PLAIN(pki_dist, p99),
};
static const pki_shape dist = SHAPE(pki_dist, dist_members);

static const pki_member bucket_members[] = {
    PLAIN(pki_histogram_bucket, from),
    PLAIN(pki_histogram_bucket, to),
    PLAIN(pki_histogram_bucket, count),
};
static const pki_shape bucket = SHAPE(pki_histogram_bucket, bucket_members);

static const pki_member run_members[] = {
    PLAIN(pki_run, program),
    PLAIN(pki_run, host),
    PLAIN(pki_run, version),
    PLAIN(pki_run, pid),
    PLAIN(pki_run, rank),
    PLAIN(pki_run, world_size),
    PLAIN(pki_run, start_unix),
    PLAIN(pki_run, wall),
    PLAIN(pki_run, cpu),
    PLAIN(pki_run, clock),
    PLAIN(pki_run, clock_hz),
    PLAIN(pki_run, clock_step_ns),
    PLAIN(pki_run, clock_uncertainty_ns),
    PLAIN(pki_run, clock_ppm),
    PLAIN(pki_run, trace_path),
    PLAIN(pki_run, source),
    PLAIN(pki_run, complete),
};
static const pki_shape run = SHAPE(pki_run, run_members);

static const pki_member verdict_members[] = {
    PLAIN(pki_verdict, name),
    CHOICE("severity", pki_verdict, severity, severity),
    PLAIN(pki_verdict, value),
    PLAIN(pki_verdict, threshold),
    PLAIN(pki_verdict, text),
};
const pki_shape pki_verdict_shape = SHAPE(pki_verdict, verdict_members);

/* ---- steps ---- */

static const pki_member part_members[] = {
    PLAIN(pki_step_part, name),
    CHOICE("kind", pki_step_part, kind, kind),
    PLAIN(pki_step_part, self),
    PLAIN(pki_step_part, usual),
};
static const pki_shape part = SHAPE(pki_step_part, part_members);

static const pki_member slow_members[] = {
    PLAIN(pki_step_row, index),
    PLAIN(pki_step_row, start),
    PLAIN(pki_step_row, duration),
    PLAIN(pki_step_row, items),
    KINDS(pki_step_row, PKI_SHARES),
    {ROWS("parts", pki_step_row, parts, part_count, part)},
};
static const pki_shape slow_step = SHAPE(pki_step_row, slow_members);

static const pki_member series_members[] = {
    PLAIN(pki_series_row, index),   PLAIN(pki_series_row, start), PLAIN(pki_series_row, steps),
    PLAIN(pki_series_row, duration), PLAIN(pki_series_row, longest), PLAIN(pki_series_row, items),
    KINDS(pki_series_row, PKI_SHARES),
    PLAIN(pki_series_row, shortest), PLAIN(pki_series_row, median),
};
static const pki_shape series = SHAPE(pki_series_row, series_members);

static const pki_member processor_members[] = {
    PLAIN(pki_processor, observed),
    PLAIN(pki_processor, running),
    PLAIN(pki_processor, ready),
};
static const pki_shape processor = SHAPE(pki_processor, processor_members);

static const pki_member steps_members[] = {
    PLAIN(pki_step_summary, count),
    PLAIN(pki_step_summary, warmup),
    PLAIN(pki_step_summary, warmup_given),
    OBJECT(pki_step_summary, all, dist),
    OBJECT(pki_step_summary, steady, dist),
    OBJECT(pki_step_summary, warm, dist),
    PLAIN(pki_step_summary, items),
    PLAIN(pki_step_summary, items_per_second),
    KINDS(pki_step_summary, PKI_SHARES),
    PLAIN(pki_step_summary, broken_down),
    PLAIN(pki_step_summary, first_third),
    PLAIN(pki_step_summary, last_third),
    PLAIN(pki_step_summary, drift),
    OPTIONAL(pki_step_summary, processor, processor),
    {ROWS("slowest", pki_step_summary, slowest, slowest_count, slow_step), .lines = true},
    {ROWS("series", pki_step_summary, series, series_count, series), .lines = true},
    HISTOGRAM(pki_step_summary),
};
const pki_shape pki_steps_shape = SHAPE(pki_step_summary, steps_members);

/* ---- regions, threads, counters, backends ---- */

static const pki_member region_members[] = {
    PLAIN(pki_region_row, name),
    CHOICE("kind", pki_region_row, kind, kind),
    OBJECT(pki_region_row, time, dist),
    PLAIN(pki_region_row, self),
    PLAIN(pki_region_row, bytes),
    PLAIN(pki_region_row, flops),
    PLAIN(pki_region_row, step_share),
    OBJECT(pki_region_row, step_self, dist),
    OPTIONAL(pki_region_row, gpu, dist),
    OPTIONAL(pki_region_row, kernels, dist),
    HISTOGRAM(pki_region_row),
};
static const pki_shape region = SHAPE(pki_region_row, region_members);

static const pki_member thread_members[] = {
    PLAIN(pki_thread_row, name),
    PLAIN(pki_thread_row, tid),
    PLAIN(pki_thread_row, ended),
    PLAIN(pki_thread_row, recorded),
    PLAIN(pki_thread_row, dropped),
    KINDS(pki_thread_row, PKI_KINDS),
    {ROWS("regions", pki_thread_row, regions, region_count, region), .lines = true},
};
static const pki_shape thread = SHAPE(pki_thread_row, thread_members);

static const pki_member point_members[] = {
    PLAIN(pki_counter_point, start), PLAIN(pki_counter_point, samples),
    PLAIN(pki_counter_point, min),   PLAIN(pki_counter_point, mean), PLAIN(pki_counter_point, max),
};
static const pki_shape point = SHAPE(pki_counter_point, point_members);

static const pki_member counter_members[] = {
    PLAIN(pki_counter_row, name),
    PLAIN(pki_counter_row, unit),
    OBJECT(pki_counter_row, value, dist),
    PLAIN(pki_counter_row, last),
    TABLE("series", pki_counter_row, points, point_count, point),
};
static const pki_shape counter = SHAPE(pki_counter_row, counter_members);

static const pki_member backend_members[] = {
    PLAIN(pki_backend_row, name),
    PLAIN(pki_backend_row, live),
    PLAIN(pki_backend_row, version),
    PLAIN(pki_backend_row, reason),
};
static const pki_shape backend = SHAPE(pki_backend_row, backend_members);

/* ---- devices ---- */

static const pki_member copies_members[] = {
    PLAIN(pki_gpu_copies, count),
    PLAIN(pki_gpu_copies, time),
    PLAIN(pki_gpu_copies, bytes),
};
static const pki_shape copies = SHAPE(pki_gpu_copies, copies_members);

static const pki_member gpu_series_members[] = {
    PLAIN(pki_gpu_series_row, index),       PLAIN(pki_gpu_series_row, steps),
    PLAIN(pki_gpu_series_row, step),        PLAIN(pki_gpu_series_row, busy),
    PLAIN(pki_gpu_series_row, gaps),        PLAIN(pki_gpu_series_row, longest_gap),
    PLAIN(pki_gpu_series_row, copy_alone),  PLAIN(pki_gpu_series_row, sync_gaps),
    PLAIN(pki_gpu_series_row, launch_gaps), PLAIN(pki_gpu_series_row, kernels),
    PLAIN(pki_gpu_series_row, comm_hidden), PLAIN(pki_gpu_series_row, comm_exposed),
};
static const pki_shape gpu_series = SHAPE(pki_gpu_series_row, gpu_series_members);

static const pki_member gpu_members[] = {
    PLAIN(pki_gpu_row, device),
    PLAIN(pki_gpu_row, measured),
    PLAIN(pki_gpu_row, streams),
    PLAIN(pki_gpu_row, spans),
    PLAIN(pki_gpu_row, collectives),
    PLAIN(pki_gpu_row, kernels),
    PLAIN(pki_gpu_row, short_kernels),
    PLAIN(pki_gpu_row, kernel_time),
    PLAIN(pki_gpu_row, memsets),
    {.key = "copies", .type = PKI_KEYED, AT(pki_gpu_row, copies), .shape = &copies,
     .keys = pki_direction_names, .count = PKI_DIRECTIONS},
    {.key = "per_step", .type = PKI_KEYED, AT(pki_gpu_row, per_step), .shape = &dist,
     .keys = pki_gpu_figures, .count = PKI_GPU_FIGURES, .optional = true},
    {ROWS("series", pki_gpu_row, series, series_count, gpu_series), .lines = true},
};
const pki_shape pki_gpu_shape = SHAPE(pki_gpu_row, gpu_members);

static const pki_member kernel_members[] = {
    PLAIN(pki_kernel_row, name),
    PLAIN(pki_kernel_row, region),
    PLAIN(pki_kernel_row, region_share),
    OBJECT(pki_kernel_row, time, dist),
};
const pki_shape pki_kernel_shape = SHAPE(pki_kernel_row, kernel_members);

static const pki_member activities_members[] = {
    PLAIN(pki_activity_summary, count),
    PLAIN(pki_activity_summary, unwritten),
    PLAIN(pki_activity_summary, late),
    PLAIN(pki_activity_summary, unmeasured),
    PLAIN(pki_activity_summary, overhead_count),
    PLAIN(pki_activity_summary, overhead),
};
static const pki_shape activities = SHAPE(pki_activity_summary, activities_members);

/* ---- communicators ---- */

static const pki_member comm_members[] = {
    PLAIN(pki_comm_row, library),
    PLAIN(pki_comm_row, name),
    HEX(pki_comm_row, id),
    PLAIN(pki_comm_row, rank),
    PLAIN(pki_comm_row, size),
    PLAIN(pki_comm_row, calls),
    PLAIN(pki_comm_row, bytes),
    PLAIN(pki_comm_row, time),
    PLAIN(pki_comm_row, exposed),
    PLAIN(pki_comm_row, on_stream),
    PLAIN(pki_comm_row, enqueued),
    PLAIN(pki_comm_row, started),
    PLAIN(pki_comm_row, completed),
    PLAIN(pki_comm_row, under_way),
    PLAIN(pki_comm_row, in_flight),
    PLAIN(pki_comm_row, busy),
    PLAIN(pki_comm_row, waited),
};
static const pki_shape comm = SHAPE(pki_comm_row, comm_members);

static const pki_member way_members[] = {
    PLAIN(pki_comm_way, algorithm),
    PLAIN(pki_comm_way, protocol),
    PLAIN(pki_comm_way, calls),
    PLAIN(pki_comm_way, channels),
};
static const pki_shape way = SHAPE(pki_comm_way, way_members);

static const pki_member collective_members[] = {
    PLAIN_AS("communicator", pki_collective_row, comm),
    CHOICE("operation", pki_collective_row, op, operation),
    PLAIN(pki_collective_row, size),
    PLAIN(pki_collective_row, bytes),
    PLAIN(pki_collective_row, exposed),
    OBJECT(pki_collective_row, time, dist),
    OPTIONAL(pki_collective_row, algbw, dist),
    OPTIONAL(pki_collective_row, busbw, dist),
    {ROWS("algorithms", pki_collective_row, ways, way_count, way), .optional = true},
};
static const pki_shape collective = SHAPE(pki_collective_row, collective_members);

static const pki_member comm_region_members[] = {
    PLAIN(pki_comm_region_row, region),
    PLAIN_AS("communicator", pki_comm_region_row, comm),
    CHOICE("operation", pki_comm_region_row, op, operation),
    PLAIN(pki_comm_region_row, bytes),
    PLAIN(pki_comm_region_row, exposed),
    OBJECT(pki_comm_region_row, time, dist),
};
static const pki_shape comm_region = SHAPE(pki_comm_region_row, comm_region_members);

static const pki_member call_members[] = {
    PLAIN(pki_comm_call_row, region),
    PLAIN_AS("communicator", pki_comm_call_row, comm),
    CHOICE("operation", pki_comm_call_row, op, operation),
    PLAIN(pki_comm_call_row, bytes),
    PLAIN(pki_comm_call_row, sequence),
    PLAIN(pki_comm_call_row, in_step),
    PLAIN(pki_comm_call_row, step),
    PLAIN(pki_comm_call_row, start),
    PLAIN(pki_comm_call_row, duration),
    PLAIN(pki_comm_call_row, exposed),
};
static const pki_shape comm_call = SHAPE(pki_comm_call_row, call_members);

#define COMM_ROWS(name, m, n, of)                                                                  \
    {ROWS(name, pki_comm_summary, m, n, of), .line = true, .lines = true}

static const pki_member comms_members[] = {
    PLAIN(pki_comm_summary, unmeasured),
    COMM_ROWS("communicators", comms, comm_count, comm),
    COMM_ROWS("collectives", collectives, collective_count, collective),
    COMM_ROWS("regions", regions, region_count, comm_region),
    COMM_ROWS("slowest", slowest, slowest_count, comm_call),
};
const pki_shape pki_comm_shape = SHAPE(pki_comm_summary, comms_members);

/* ---- all of it ---- */

static const pki_member counts_members[] = {
    PLAIN(pk_counts, threads),
    PLAIN(pk_counts, begun),
    PLAIN(pk_counts, recorded),
    PLAIN(pk_counts, written),
    PLAIN(pk_counts, dropped),
    PLAIN(pk_counts, unbalanced),
    PLAIN(pk_counts, too_deep),
    PLAIN(pk_counts, stray_ends),
    PLAIN(pk_counts, points),
    PLAIN(pk_counts, points_dropped),
    PLAIN(pk_counts, unwritten),
    PLAIN(pk_counts, regions),
    PLAIN(pk_counts, steps),
    PLAIN(pk_counts, memory_bytes),
    PLAIN(pk_counts, trace_bytes),
    PLAIN(pk_counts, other_starts),
    PLAIN(pk_counts, not_finite),
};
static const pki_shape counts = SHAPE(pk_counts, counts_members);

static const pki_member overhead_members[] = {
    PLAIN(pki_overhead, region_ns),
    PLAIN(pki_overhead, total),
    PLAIN(pki_overhead, share),
    PLAIN(pki_overhead, collector),
    PLAIN(pki_overhead, recording),
    PLAIN(pki_overhead, callers),
    PLAIN(pki_overhead, backends),
};
static const pki_shape overhead = SHAPE(pki_overhead, overhead_members);

#define TOP_ROWS(m, n, of)                                                                         \
    {ROWS(#m, pki_summary, m, n, of), .line = true, .lines = true}

static const pki_member summary_members[] = {
    TOP_OBJECT(pki_summary, run, run),
    TOP_ROWS(verdicts, verdict_count, pki_verdict_shape),
    TOP_OBJECT(pki_summary, steps, pki_steps_shape),
    TOP_ROWS(gpus, gpu_count, pki_gpu_shape),
    TOP_ROWS(kernels, kernel_count, pki_kernel_shape),
    TOP_OBJECT(pki_summary, comm, pki_comm_shape),
    TOP_ROWS(regions, region_count, region),
    TOP_ROWS(threads, thread_count, thread),
    TOP_ROWS(counters, counter_count, counter),
    TOP_OBJECT(pki_summary, counts, counts),
    TOP_OBJECT(pki_summary, activities, activities),
    TOP_OBJECT(pki_summary, overhead, overhead),
    TOP_ROWS(backends, backend_count, backend),
};
const pki_shape pki_summary_shape = SHAPE(pki_summary, summary_members);
