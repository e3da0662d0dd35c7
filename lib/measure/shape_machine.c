/* lib/measure/shape_machine.c - a run beside what its machine can do. */
#include "measure/shape_words.h"

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
