/* tools/merge/wish.h - what `pk merge` is asked for. */
#pragma once

#include "command_line.h"
#include "merge/prescan.h"

typedef struct rank_range {
    uint64_t first, last;
} rank_range;

typedef struct merge_wish {
    const char *out;
    operands paths;
    merge_steps steps;
    merge_window window;
    rank_range *ranks; /* NULL: all */
    size_t rank_count, rank_room;
    bool manifest;
} merge_wish;

option_take parse_ranks, parse_steps, parse_from, parse_to;

/* Sources of other ranks go. */
void wish_select_ranks(const merge_wish *w, merge_sources *s);
void wish_free(merge_wish *w);
