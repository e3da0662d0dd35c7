/* tools/merge/arrows.h - from who was waited for to who waited: messages and collectives of ranks,
 * as arrows in the merged trace. */
#pragma once

#include "merge/copy.h"

#define ARROWS_MOST 64 /* of one collective: to those that waited longest */

typedef struct arrows {
    merge_copy *to;
    uint64_t next_id;
    uint64_t messages, collectives; /* that were found on all their ranks */
    uint64_t drawn;
    uint64_t backwards, worst_ns; /* an end that comes before what it has to follow */
    uint64_t alone;               /* messages without the other side; collectives of one rank */
    uint64_t ambiguous;           /* of communicators that have the same name */
    bool failed;
} arrows;

/* False, and why. */
bool arrows_put(arrows *a, pki_joints *o, complaint *why);
