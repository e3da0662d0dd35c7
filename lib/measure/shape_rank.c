/* lib/measure/shape_rank.c - of a summary what a job of many ranks is made of: the file of a rank.
 */
#include "measure/shape_words.h"

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

/* What the rank cost beside time, as far as ranks add it up. */
static const pki_member rank_steps_members[] = {
    {OPTIONAL(pki_step_summary, processor, pki_processor_shape)},
    {OPTIONAL(pki_step_summary, utilisation, pki_utilisation_shape)},
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
