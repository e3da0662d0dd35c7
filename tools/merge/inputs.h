/* tools/merge/inputs.h - which files are merged, and what is known of them beforehand */
#pragma once

#include "command.h"
#include "job/clocks/clocks.h"
#include "merge/copy.h"

/* ---- what has to be known of all files before the first event is written ---- */

/* When the wanted steps were, and how far clocks are apart. */

typedef struct merge_steps {
    bool limited;
    uint64_t first, last; /* numbers */
} merge_steps;

/* False and why; also if no rank has any of the steps. */
bool prescan(merge_sources *s, pki_clocks *c, const merge_steps *steps, merge_window *window,
             const char *beside, complaint *why);

/* ---- what `pk merge` is asked for ---- */

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
