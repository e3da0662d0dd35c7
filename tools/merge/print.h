/* tools/merge/print.h - what was merged, in words. */
#pragma once

#include "merge/arrows.h"

typedef struct merge_outcome {
    const char *out;
    const merge_copy *copy;
    arrows arrows;
} merge_outcome;

void print_merged(const merge_outcome *t);

/* Always true. */
bool print_manifest(const char *out, const merge_sources *s, const pki_clocks *c);
