/* lib/measure/shape_memory.c - a run's memory, in the report file. */
#include "measure/shape_words.h"

static const pki_member growth_members[] = {
    PLAINS(pki_growth, steps, per_step, z),
};
static const pki_shape growth = {SHAPE(pki_growth, growth_members)};

static const pki_member region_members[] = {
    PLAINS(pki_memory_region, name, allocations, bytes, frees, freed, live, peak, at_peak, steady),
    {OPTIONAL(pki_memory_region, growth, growth)},
};
static const pki_shape region = {SHAPE(pki_memory_region, region_members)};

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
           steady_steps),
    {ROWS("regions", pki_memory_summary, regions, region_count, region), .lines = true},
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
    {ROWS("regions", pki_gpu_memory_place, regions, region_count, region)},
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
