/* tools/beside/causes.h - what made a step slow: its difference, shared out among causes; within
 * the room */
#pragma once

#include "beside/beside.h"

#define BESIDE_USUAL_MOST 32

/* A path of the stepping thread was blocked in the step for so long, and what it waited for was
 * seen: the look of that name. */
typedef struct wait_seen {
    char *path;
    uint32_t name;
    uint64_t amount; /* ns */
} wait_seen;

typedef struct waits {
    size_t count, room;
    wait_seen *all;
} waits;

/* The causes of out, once its paths are there. */
void causes_fill(const slices *in, const step_seen *step, const waits *waited, pki_beside *out);
