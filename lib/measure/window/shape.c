/* lib/measure/window/shape.c - what a line of windows consists of, in that order. */
#include "measure/shape_words.h"
#include "measure/window/window.h"

/* ---- what can be added up exactly ---- */

static const pki_member bucket_members[] = {
    PLAINS(pki_tally_bucket, key, count),
};
static const pki_shape bucket = {SHAPE(pki_tally_bucket, bucket_members)};

#define MOMENT(name, m) PLAIN_AS(name, pki_tally, moments.m)
static const pki_member tally_members[] = {
    MOMENT("count", count),
    MOMENT("first", first),
    MOMENT("min", min),
    MOMENT("max", max),
    MOMENT("apart_high", apart.high),
    MOMENT("apart_low", apart.low),
    MOMENT("squares_high", squares.high),
    MOMENT("squares_low", squares.low),
    {TABLE("buckets", pki_tally, buckets, used, bucket)},
};
static const pki_shape tally = {SHAPE(pki_tally, tally_members)};

/* ---- steps ---- */

static const pki_member bit_members[] = {
    PLAINS(pki_step_bit, id, self),
};
static const pki_shape bit = {SHAPE(pki_step_bit, bit_members)};

static const pki_member work_members[] = {
    PLAINS(pki_step_work, steps, time, model, hardware),
};
static const pki_shape work = {SHAPE(pki_step_work, work_members)};

#define STEP(name, m) PLAIN_AS(name, pki_whole_step, step.m)
static const pki_member whole_members[] = {
    STEP("index", index),
    STEP("start", start),
    STEP("duration", duration),
    STEP("items", items),
    STEP("broken_down", broken_down),
    {.key = "work",
     .type = PKI_OBJECT,
     AT(pki_whole_step, step.work),
     .shape = &work,
     .optional = true},
    {KINDS(pki_whole_step, PKI_SHARES)},
    {TABLE("parts", pki_whole_step, bits, bit_count, bit)},
};
static const pki_shape whole = {SHAPE(pki_whole_step, whole_members)};

static const pki_member totals_members[] = {
    PLAINS(pki_step_totals, items, broken_down),
    {OPTIONAL(pki_step_totals, work, work)},
    {KINDS(pki_step_totals, PKI_SHARES)},
    {OBJECT(pki_step_totals, durations, tally)},
};
static const pki_shape totals = {SHAPE(pki_step_totals, totals_members)};

static const pki_member self_members[] = {
    PLAIN_AS("region", pki_steps_part_region, id),
    {OBJECT(pki_steps_part_region, self, tally)},
};
static const pki_shape self = {SHAPE(pki_steps_part_region, self_members)};

static const pki_member other_members[] = {
    PLAIN_AS("name", pki_steps_part_kind, kind),
    {OBJECT(pki_steps_part_kind, totals, totals)},
};
static const pki_shape other = {SHAPE(pki_steps_part_kind, other_members)};

static const pki_member part_members[] = {
    {ROWS("first", pki_steps_part, head, head_count, whole), .optional = true},
    {ROWS("slowest", pki_steps_part, slow, slow_count, whole), .optional = true},
    {OBJECT(pki_steps_part, tail, totals)},
    {OBJECT(pki_steps_part, untracked, tally)},
    {OBJECT(pki_steps_part, late_warmup, tally)},
    {ROWS("kinds", pki_steps_part, others, other_count, other), .optional = true},
    {OBJECT(pki_steps_part, between, totals)},
    {ROWS("selves", pki_steps_part, regions, region_count, self), .optional = true},
};
static const pki_shape part = {SHAPE(pki_steps_part, part_members)};

static const pki_member steps_members[] = {
    PLAINS(pki_window_steps, count, of_all_kinds, first, last),
    {OBJECT(pki_window_steps, time, pki_dist_shape)},
    PLAINS(pki_window_steps, items, items_per_second),
    {KINDS(pki_window_steps, PKI_SHARES)},
    PLAIN(pki_window_steps, broken_down),
    {OPTIONAL(pki_window_steps, processor, pki_processor_shape)},
    {OPTIONAL(pki_window_steps, utilisation, pki_utilisation_shape)},
    {OBJECT(pki_window_steps, exact, part)},
};
static const pki_shape steps = {SHAPE(pki_window_steps, steps_members)};

/* ---- all of it ---- */

static const pki_member region_members[] = {
    PLAIN(pki_window_region, name),
    {CHOICE("kind", pki_window_region, kind, pki_kind_choice)},
    {OBJECT(pki_window_region, time, pki_dist_shape)},
    PLAINS(pki_window_region, self, bytes, flops),
    {OPTIONAL(pki_window_region, step_self, pki_dist_shape)},
    {OPTIONAL(pki_window_region, thinned, pki_region_thinned_shape)},
    {OBJECT(pki_window_region, exact, pki_window_sum_shape)},
};
const pki_shape pki_window_region_shape = {SHAPE(pki_window_region, region_members)};

static const pki_member counter_members[] = {
    PLAINS(pki_window_counter, name, unit),
    {OBJECT(pki_window_counter, value, pki_dist_shape)},
    PLAIN(pki_window_counter, last),
    {OBJECT(pki_window_counter, exact, tally)},
};
const pki_shape pki_window_counter_shape = {SHAPE(pki_window_counter, counter_members)};

#define COST(m, of)                                                                                \
    {                                                                                              \
        .key = #m, .type = PKI_OBJECT, AT(pki_window, costs.m), .shape = &(of), .optional = true   \
    }

/* Regions and counters last: they are written piece by piece. */
static const pki_member window_members[] = {
    PLAIN_AS("window", pki_window, index),
    PLAINS(pki_window, start, end, last, warmup_steps),
    {OBJECT(pki_window, run, pki_run_shape)},
    {ROWS("verdicts", pki_window, verdicts, verdict_count, pki_verdict_shape)},
    {OBJECT(pki_window, counts, pki_counts_shape)},
    {OBJECT(pki_window, overhead, pki_overhead_shape)},
    {ROWS("threads", pki_window, threads, thread_count, pki_thread_shape)},
    {OBJECT(pki_window, steps, steps)},
    COST(io, pki_io_sums_shape),
    COST(energy, pki_energy_sums_shape),
    COST(memory, pki_memory_sum_shape),
    COST(gpu_memory, pki_gpu_memory_sums_shape),
    COST(goodput, pki_goodput_shape),
    {ROWS("regions", pki_window, regions, region_count, pki_window_region_shape)},
    {ROWS("counters", pki_window, counters, counter_count, pki_window_counter_shape)},
};
const pki_shape pki_window_shape = {SHAPE(pki_window, window_members)};
