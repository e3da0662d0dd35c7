/* tools/merge/copy.h - the events of one trace after the other, into the merged one. */
#pragma once

#include "job/clocks/clocks.h"
#include "merge/collect.h"
#include "merge/pids.h"
#include "recover/recover.h"

typedef struct merge_window {
    bool limited;
    uint64_t from, to; /* ns of the axis */
} merge_window;

typedef struct merge_copy {
    const merge_sources *sources;
    const pki_clocks *clocks;
    merge_window window;
    pids pids;
    collector *collector; /* NULL: nobody wants to know what ranks did together */
    rewrite *out;
    complaint *why;
    uint64_t events, left_out, without_time;
    size_t damaged; /* files */
    /* Ids of arrows whose beginning lies in the window; those of its source alone. */
    uint64_t *begun; /* 0: free */
    size_t begun_count, begun_room;
} merge_copy;

bool copy_source(merge_copy *c, merge_source *s);
void copy_end(merge_copy *c);

/* One more event, without what stands before it. */
bool copy_put(merge_copy *c, const char *text, size_t n);

/* Ids of events from this one on are nobody's. */
uint64_t copy_free_ids(const merge_sources *s);
