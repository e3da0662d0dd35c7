/* tools/live/top.h - `pk top`: what processes do, look after look */
#pragma once

#include <stdio.h>

#include "live/behind.h"

/* ---- `pk top`: what processes do, look after look ---- */

#define TOP_KINDS (PK_WAIT + 1)

/* Since the look before, or, at the first one, since the beginning. */
typedef struct top_calls {
    uint32_t id; /* in its process */
    const live_name *name;
    uint64_t calls, self, sum; /* self and sum: ns */
} top_calls;

typedef struct top_process {
    view view;
    bool lost;                  /* its arena can no longer be read: the figures are the last ones */
    bool known;                 /* there was a look before */
    uint64_t steps, now_ns, ns; /* before; and how much time has passed since */
    uint64_t kinds[TOP_KINDS];
    uint64_t *buckets; /* of the steps */
    struct top_seen {
        uint64_t calls, self, sum;
    } * seen; /* by id */
    size_t seen_room;
    uint64_t *completed; /* by communicator */
    size_t completed_room;
    target_state state;

    double steps_per_second;
    uint64_t steps_made;
    double p50, p90, p99,
        p50_before;           /* ns; of the steps since the look before, else of all; 0: none */
    double shares[TOP_KINDS]; /* of the thread that makes the steps, of its self time */
    top_calls *calls;         /* what has been called since, and the same of streams */
    size_t call_count, call_room;
    top_calls *streams;
    size_t stream_count, stream_room;
    double *comm_rates; /* operations completed per second, by communicator */
    size_t comm_room;
    bool changed; /* the state, since the look before */
} top_process;

typedef enum top_order { TOP_BY_SELF, TOP_BY_CALLS, TOP_BY_NAME, TOP_ORDERS } top_order;

typedef struct top {
    top_process *all;
    size_t count;
    top_order order;
    unsigned views;
} top;
