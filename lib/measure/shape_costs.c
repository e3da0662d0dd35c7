/* lib/measure/shape_costs.c - what the run cost beside time, in the report file. */
#include "measure/costs/sums.h"
#include "measure/shape_words.h"

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
