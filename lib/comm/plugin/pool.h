/* lib/comm/plugin/pool.h - where NCCL's events wait for the collector.
 *
 * One pool for all threads, made at the first communicator, never larger. An event's handle is its
 * place and how often that has been given away: 1 + a number that does not come again. So a handle
 * that NCCL keeps too long (a graph's replay), or that is another process's, or nothing at all, is
 * a number that does not fit, and is never followed.
 *
 * A place goes free -> open (by who starts an event) -> stopped (by who stops it) -> free (by the
 * collector). What the event says is written before `open`, and when it ended before `stopped`;
 * both are releases that the collector's acquire of the word pairs with.
 *
 * Free places wait in a queue, so one that is given back is found whatever its neighbours are in,
 * and an event is dropped only if there is none. Threads take from it by moving `taken` by one,
 * which gives each the place of that turn for itself; the collector alone puts places into it, in
 * turns that go on where the last one was. Its release of `given` pairs with the acquire of the
 * next claim.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

#define PKI_NCCL_PLACE_BITS 14
#define PKI_NCCL_PLACES (1u << PKI_NCCL_PLACE_BITS)

enum { PKI_NCCL_FREE, PKI_NCCL_OPEN, PKI_NCCL_STOPPED }; /* free: or being written */

#define PKI_NCCL_CAPTURED 1u /* flags of an event */
#define PKI_NCCL_SENDS 2u
#define PKI_NCCL_FOREIGN 4u /* its parent is another process's */

enum { PKI_NCCL_FOR_GPU, PKI_NCCL_FOR_PEER, PKI_NCCL_FOR_NET, PKI_NCCL_WAITS };

/* What NCCL said, in numbers. Ticks are the session's. */
typedef struct pki_nccl_event {
    uint64_t start, stop;
    uint64_t parent, group; /* handles */
    uint64_t count;         /* elements; of a proxy's operation: steps */
    uint64_t sequence;      /* NCCL's own */
    uint64_t timer;         /* of the GPU, ns; stop_timer too; 0: unknown */
    uint32_t type;          /* one of plugin/abi.h's bits */
    uint32_t context;
    uint32_t region, thread; /* name id of what was open there; the system's id */
    int32_t peer;            /* or root */
    uint8_t op, element, algorithm, protocol, channels, flags; /* channels: or its number */
    uint8_t spare[2];
    /* What recordEventState changes while it is open. */
    uint64_t stop_timer, moved;            /* moved: bytes, by a proxy's step */
    uint32_t state, waits[PKI_NCCL_WAITS]; /* waits: ticks, by what for */
    uint64_t state_since;
} PKI_ALIGNED pki_nccl_event;

_Static_assert(sizeof(pki_nccl_event) == 2 * PKI_LINE, "two lines");

typedef struct pki_nccl_pool {
    uint64_t given PKI_ALIGNED; /* turns that have a place; never more than all places ahead */
    uint64_t taken PKI_ALIGNED; /* turns that have been taken; never moves back */
    uint16_t turns[PKI_NCCL_PLACES] PKI_ALIGNED; /* whose place: by turn, a round */
    uint64_t heads[PKI_NCCL_PLACES];             /* handle << 2 | state */
    pki_nccl_event events[PKI_NCCL_PLACES];
    char ahead[8 * sizeof(pki_nccl_event)]; /* nothing: fetched in advance */
} pki_nccl_pool;

/* All that the callbacks share, in one line that is only read, and one that is written. */
typedef struct pki_nccl_gate {
    pki_nccl_pool *pool; /* NULL: no communicator yet */
    uint32_t recording, monotonic;
    int32_t pid; /* the process's that made the pool */
} PKI_ALIGNED pki_nccl_gate;

typedef struct pki_nccl_losses {
    uint64_t dropped, unknown, stale; /* no place; of an unknown type; stopped, but not open */
} PKI_ALIGNED pki_nccl_losses;

#define PKI_NCCL_NEAR __attribute__((visibility("hidden")))
extern PKI_NCCL_NEAR pki_nccl_gate pki_nccl_open;
extern PKI_NCCL_NEAR pki_nccl_losses pki_nccl_lost;

/* Makes the pool if there is none. False without memory. */
bool pki_nccl_pool_make(void);
void pki_nccl_pool_after_fork(void);

/* A place, claimed, and its handle. NULL: the pool is full, which is counted. */
pki_nccl_event *pki_nccl_claim(uint64_t *handle);

static inline uint32_t pki_nccl_place(uint64_t handle)
{
    return (uint32_t)handle & (PKI_NCCL_PLACES - 1);
}

static inline uint64_t pki_nccl_head(uint64_t handle, unsigned state)
{
    return handle << 2 | state;
}

/* For who has a handle, or has met a pool before: others may be looking whether to make one. */
static inline pki_nccl_pool *pki_nccl_the_pool(void)
{
    return pki_load(&pki_nccl_open.pool);
}

static inline void pki_nccl_publish(uint64_t handle)
{
    pki_store_release(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
                      pki_nccl_head(handle, PKI_NCCL_OPEN));
}

/* Is the event of this handle open? NULL: it is not, or never was. */
static inline pki_nccl_event *pki_nccl_find(uint64_t handle)
{
    pki_nccl_pool *pool = pki_load_acquire(&pki_nccl_open.pool); /* pairs with its making */
    uint32_t place = pki_nccl_place(handle);
    bool open = pool && pki_load(&pool->heads[place]) == pki_nccl_head(handle, PKI_NCCL_OPEN);
    return open ? &pool->events[place] : NULL;
}

/* It has ended at this tick. False: somebody else has ended it. */
bool pki_nccl_end(uint64_t handle, pki_nccl_event *event, uint64_t ticks);

/* ---- the collector's ---- */

/* Has this turn been taken, and which place is it? Whoever asks has seen all turns before it, and
 * not given back this one's: so it still stands where it stood. */
bool pki_nccl_is_claimed(uint64_t turn, uint32_t *place);

/* The place may be given away. */
void pki_nccl_free(uint64_t handle);

/* The same for one that may still be stopped. */
void pki_nccl_retire(uint64_t handle);
