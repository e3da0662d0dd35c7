/* tools/merge/prescan.h - what has to be known of all files before the first event is written:
 * when the wanted steps were, and how far clocks are apart. */
#pragma once

#include "merge/clocks.h"
#include "merge/copy.h"

typedef struct merge_steps {
    bool limited;
    uint64_t first, last; /* numbers */
} merge_steps;

/* False and why; also if no rank has any of the steps. */
bool prescan(merge_sources *s, merge_clocks *c, const merge_steps *steps, merge_window *window,
             const char *beside, complaint *why);
