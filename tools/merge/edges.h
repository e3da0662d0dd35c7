/* tools/merge/edges.h - the bounds between every two clocks that had to do with each other. */
#pragma once

#include "merge/bounds.h"
#include "merge/clocks.h"

/* The time of clock `a` is that of clock `b` plus the offset, which is bounded over b's time. */
typedef struct edge {
    uint32_t a, b;
    int64_t about; /* what the bounds are relative to */
    bounds found;
} edge;

typedef struct edges {
    edge **all;
    size_t count, room;
    uint32_t *table; /* place + 1, by a and b */
} edges;

/* From all operations, whose files have been read. False and why. */
bool edges_find(edges *e, const merge_clocks *c, const merge_sources *s, operations *o,
                complaint *why);
void edges_free(edges *e);
