/* lib/backend/cuda/comm/operation.h - what a communicator does between the two events of a pair.
 *
 * The payload (lib/comm/model/communicator.h) lies beside the pair: its thread writes it before it
 * leaves the mark of the begin, the collector reads it behind it. What a group did is more than one
 * word: the pair has the first part, which names the next. Parts come from a list without a lock
 * like the pairs' (cuda/lane.h), and go back with their pair.
 *
 * A pair that a capture recorded has an operation that never was enqueued: a pattern of those that
 * the replays do, which count as they are emitted.
 */
#pragma once

#include <stdbool.h>

#include "comm/model/communicator.h"

typedef struct pki_cuda_operation {
    uint64_t what, extra; /* pki_comm_payload; what 0: none */
    uint64_t count;       /* of elements, as given to each call */
    uint32_t calls;       /* so many alike, the payload is the last one's; 0: a member of the group
                             before it, in the list of members only */
    uint32_t more;        /* index of the next part; 0: none */
} pki_cuda_operation;

/* 0: no memory, or too many. Nobody locks; a first use, and now and then another one, allocates. */
uint32_t pki_cuda_part_allocate(void);
pki_cuda_operation *pki_cuda_part_at(uint32_t index);

/* The next part of a group; NULL: that was all. */
static inline pki_cuda_operation *pki_cuda_operation_next(const pki_cuda_operation *o)
{
    return o->more ? pki_cuda_part_at(o->more) : NULL;
}

/* What is left is nobody's. */
static inline void pki_cuda_operation_hand_over(pki_cuda_operation *from, pki_cuda_operation *to)
{
    *to = *from;
    from->what = 0;
}

/* Each call is one more of its communicator, and gets its number. */
void pki_cuda_operation_enqueue(pki_cuda_operation *o);

/* Were they enqueued? */
static inline bool pki_cuda_operation_is_numbered(const pki_cuda_operation *o)
{
    return (uint32_t)o->extra != 0;
}

/* They will not be timed: they count as complete. */
void pki_cuda_operation_unseen(pki_cuda_operation *o);

/* The stream has come to them. The collector's, as all below. */
void pki_cuda_operation_begun(const pki_cuda_operation *o);

/* They are complete; what is left of them is a pair without an operation. */
void pki_cuda_operation_complete(pki_cuda_operation *o);

/* The same for what was enqueued and will not be heard of; nothing if there is no operation. */
void pki_cuda_operation_abandon(pki_cuda_operation *o);

/* What a replay does by this pattern: enqueued as it is launched, with the numbers that are the
 * oldest ones in flight as it is emitted, and those that are never heard of. */
void pki_cuda_replay_enqueue(const pki_cuda_operation *pattern);
void pki_cuda_replay_abandon(const pki_cuda_operation *pattern);

void pki_cuda_operations_after_fork(void);
