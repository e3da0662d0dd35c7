/* tools/merge/told.h - what was merged, in words. */
#pragma once

#include "merge/arrows.h"

typedef struct merge_told {
    const char *out;
    const merge_copy *copy;
    arrows arrows;
} merge_told;

void tell_merged(const merge_told *t);

/* Always true. */
bool tell_manifest(const char *out, const merge_sources *s, const merge_clocks *c);
