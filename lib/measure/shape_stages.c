/* lib/measure/shape_stages.c - what the stages of a summary consist of. */
#include "measure/shape_words.h"

static const char *kind_name(uint32_t kind)
{
    return pki_kind_names[kind];
}

static const pki_choice kinds = {kind_name, PKI_SHARES, PK_OTHER};

static const pki_member stage_members[] = {
    PLAIN(pki_stage_row, name),
    {CHOICE("kind", pki_stage_row, kind, kinds)},
};
static const pki_shape stage = {SHAPE(pki_stage_row, stage_members)};

static const pki_member loop_members[] = {
    PLAIN(pki_loop_row, name),
    {NUMBERS("blocks", pki_loop_row, numbers, number_count)},
    {NUMBERS("no_processor", pki_loop_row, no_processor, no_processor_count)},
    {NUMBERS("seats", pki_loop_row, seats, seat_count)},
};
static const pki_shape loop = {SHAPE(pki_loop_row, loop_members)};

static const pki_member stages_members[] = {
    PLAINS(pki_stage_summary, width, warmup),
    {ROWS("names", pki_stage_summary, stages, stage_count, stage)},
    {ROWS("loops", pki_stage_summary, loops, loop_count, loop), .lines = true},
};
const pki_shape pki_stages_shape = {SHAPE(pki_stage_summary, stages_members)};
