/* lib/backend/cuda/lane.h - streams of threads, contexts, and the events that time spans on them */
#pragma once

#include "backend/cuda/api.h"
#include "backend/cuda/clock.h"
#include "backend/cuda/comm/operation.h"
#include "base/compiler.h"
#include "base/memory.h"

/* ---- a context's pairs of events, handed out and given back without a lock ---- */

/* Pairs are known by index. A pair's memory is never given back. */

#define PKI_CUDA_BATCH 64u
#define PKI_CUDA_BATCHES 256u /* of spans that come and go */
#define PKI_CUDA_CAPTURED_MOST (PKI_CUDA_BATCH * PKI_CUDA_BATCHES)

typedef struct pki_cuda_pair {
    CUevent begin, end;
    uint32_t next;    /* while free */
    uint32_t refused; /* 1: the operation was never done; written before the cancel's mark */
    pki_cuda_operation operation; /* that lies between the two; written before the begin's mark */
} pki_cuda_pair;

typedef struct pki_cuda_pool {
    pki_free_list free PKI_ALIGNED;
    uint32_t batches; /* given numbers, some of them perhaps without memory */
    uint32_t pairs;
    uint32_t tired;    /* the last growth failed; cleared by the collector */
    uint32_t captured; /* pairs that graphs hold: beside the bound of all others, with their own */
    pki_cuda_pair *chunks[2 * PKI_CUDA_BATCHES];
} pki_cuda_pool;

static inline pki_cuda_pair *pki_cuda_pair_at(pki_cuda_pool *pool, uint32_t index)
{
    /* Pairs with the release in pki_cuda_pool_grow. */
    pki_cuda_pair *chunk = pki_load_acquire(&pool->chunks[(index - 1) / PKI_CUDA_BATCH]);
    return &chunk[(index - 1) % PKI_CUDA_BATCH];
}

static inline uint32_t *pki_cuda_pair_link(void *pool, uint32_t index)
{
    return &pki_cuda_pair_at(pool, index)->next;
}

/* 0: none is free. Nothing is grown. */
static inline uint32_t pki_cuda_pool_acquire(pki_cuda_pool *pool)
{
    return pki_free_list_pop(&pool->free, pki_cuda_pair_link, pool);
}

static inline void pki_cuda_pool_release(pki_cuda_pool *pool, uint32_t index)
{
    pki_free_list_push(&pool->free, pki_cuda_pair_link, pool, index);
}

/* A graph wants to keep one more; false: graphs have as many as they may. */
static inline bool pki_cuda_pool_pin(pki_cuda_pool *pool)
{
    bool fits = pki_fetch_add(&pool->captured, 1u) < PKI_CUDA_CAPTURED_MOST;
    if (!fits)
        pki_fetch_add(&pool->captured, UINT32_MAX);
    return fits;
}

static inline void pki_cuda_pool_unpin(pki_cuda_pool *pool)
{
    pki_fetch_add(&pool->captured, UINT32_MAX);
}

/* The same for one that may have an operation, of which nothing will be heard any more. */
static inline void pki_cuda_pair_release(pki_cuda_pool *pool, uint32_t index)
{
    pki_cuda_operation_abandon(&pki_cuda_pair_at(pool, index)->operation);
    pki_cuda_pool_release(pool, index);
}

/* Gives a pair of the caller's events that were never recorded, or leaves it as it is. A graph's
 * have to be: the stamps of an earlier span would be taken for a replay before there was any.
 * Called by any thread, in any capture mode. */
CUresult pki_cuda_pair_renew(pki_cuda_pair *pair, CUcontext ctx);

/* Makes one more batch in the context: PKI_CUDA_BATCHES, and what graphs hold comes on top. What
 * went wrong, or CUDA_SUCCESS; _OUT_OF_MEMORY also where the bound is reached. Called by any
 * thread, in any capture mode. */
CUresult pki_cuda_pool_grow(pki_cuda_pool *pool, CUcontext ctx);

/* ---- the contexts in which spans are recorded ---- */

/* One entry for each context that has been met, kept for the life of the process: its events are
 * used again by the next session. An entry is left for good when its context is destroyed (another
 * one may get the same handle: ids tell them apart where the driver has them), or when a call has
 * answered that nothing works in it any more. Its events are not destroyed then: there is nothing
 * left to ask for that. */

typedef struct pki_cuda_context {
    struct pki_cuda_context *next; /* grows at the head only */
    CUcontext handle;
    unsigned long long id; /* 0: unknown */
    uint32_t number;       /* 1, 2, ... */
    uint32_t device;
    uint32_t dead;    /* the error after which it was left; PKI_CUDA_GONE: destroyed; 0 */
    uint32_t session; /* the last one in which a span was begun in it */
    uint64_t waiting; /* pairs that the last round found in use; the collector's */
    pki_cuda_anchors anchors;
    pki_cuda_pool pool;
} pki_cuda_context;

/* All of them: stored with a release, for who reads them to acquire. */
extern pki_cuda_context *pki_cuda_contexts;

/* Leaves it if the error is one that stays. True if it is left, then or before. */
bool pki_cuda_context_failed(pki_cuda_context *context, CUresult code);

/* A pair of its pool, which grows if need be; 0: none. Any thread, in any capture mode. */
static inline uint32_t pki_cuda_pair_acquire(pki_cuda_context *c)
{
    uint32_t pair = pki_cuda_pool_acquire(&c->pool);
    if (PKI_UNLIKELY(!pair) && !pki_cuda_context_failed(c, pki_cuda_pool_grow(&c->pool, c->handle)))
        pair = pki_cuda_pool_acquire(&c->pool);
    return pair;
}

/* Leaves it if it has been destroyed. True if it is still there. */
bool pki_cuda_context_alive(pki_cuda_context *context);

/* By who reads events, one at a time: the context is current on this thread until another one is
 * used, or none (NULL). False if it cannot be: then it is left. */
bool pki_cuda_context_use(pki_cuda_context *context);

/* ---- one thread's spans on one stream, in the order of that stream ---- */

/* A lane is a ring of marks: a begin, an end, or the giving up of what was begun. The thread writes
 * them, the collector takes them when the device has passed their events; since a stream is passed
 * in order, only the oldest one is ever asked about. Begins and ends in the order of the stream
 * make spans nest by themselves.
 *
 * A graph's replays have lanes of the same kind, written by whoever launches the graph: the
 * launches of one exec follow each other (lib/backend/cuda/replay.h).
 *
 * `head` is the owner's: its release publishes the marks before it, and pairs with the collector's
 * acquire. `tail` is the collector's: its release gives room back, and pairs with the owner's
 * acquire. A lane belongs to the session whose number it carries. The collector leaves others
 * alone; their owner, at its first span in the new session, gives back what they hold. */

#define PKI_CUDA_DEPTH 64u
#define PKI_CUDA_MARKS 8192u /* a power of two; 64 KiB */

typedef enum pki_cuda_mark_type {
    PKI_CUDA_BEGIN,
    PKI_CUDA_END,
    PKI_CUDA_CANCEL, /* the innermost begin has no end */
    PKI_CUDA_MARK_TYPES
} pki_cuda_mark_type;

#define PKI_CUDA_PAIR_BITS 24

typedef struct pki_cuda_mark {
    uint32_t pair; /* index, and the type above PKI_CUDA_PAIR_BITS */
    uint32_t region;
} pki_cuda_mark;

/* What became of a span that is open on its thread. */
typedef enum pki_cuda_how {
    PKI_CUDA_RECORDED,
    PKI_CUDA_CAPTURED,
    PKI_CUDA_PENDING, /* recorded; what lies in it has not come into the stream yet */
    PKI_CUDA_COUNTED  /* dropped or skipped: its end is nothing but expected */
} pki_cuda_how;

typedef struct pki_cuda_open {
    uint32_t region, pair;
    pki_cuda_how how;
    uint32_t ordinal; /* PKI_CUDA_CAPTURED: among the spans of its graph */
    uint64_t capture; /* the same: the capture's id */
} pki_cuda_open;

/* The same, as the collector reads them. */
typedef struct pki_cuda_read {
    uint32_t region;
    double device; /* when it began there; NaN: not known */
    double doubt;  /* of start, ns */
    uint64_t start;
} pki_cuda_read;

typedef struct pki_cuda_counters { /* each with one writer: the owner */
    uint64_t begun, dropped, skipped, captured, unbalanced, stray_ends, refused, kept_out;
} pki_cuda_counters;

typedef enum pki_cuda_life {
    PKI_CUDA_FREE,
    PKI_CUDA_TAKEN, /* not yet filled in */
    PKI_CUDA_OWNED,
    PKI_CUDA_LEFT /* to be read, then free */
} pki_cuda_life;

typedef struct pki_cuda_lane {
    /* the owner's */
    CUstream stream;
    CUcontext current; /* of a default stream: the context that was current; else NULL */
    pki_cuda_context *context;
    struct pki_cuda_lane *in_thread; /* the next of this thread's, of the same bucket */
    uint64_t head;
    uint32_t session;
    uint32_t depth, over; /* open; and beyond PKI_CUDA_DEPTH */
    uint32_t calls;       /* since the stream was last looked at */
    pki_cuda_counters counters;
    pki_cuda_open open[PKI_CUDA_DEPTH];

    /* the collector's */
    uint64_t tail PKI_ALIGNED;
    uint64_t last; /* ns: nothing on this lane begins or ends before */
    uint64_t
        unready_ns; /* when the mark at tail was last seen not reached; 0: it was not asked about */
    double doubt;   /* of where the span lies that is handed over */
    uint64_t recorded, lost, replayed, sampled, operations;
    uint32_t reading; /* begun, not yet ended */
    uint32_t track, track_session;
    pki_cuda_read read[PKI_CUDA_DEPTH + 1];

    struct pki_cuda_lane *next; /* of all; grows at the head only */
    uint32_t life;              /* a pki_cuda_life */
    uint32_t number;            /* 1, 2, ...: the track */
    uint32_t tid;
    uint64_t stream_id;
    uint32_t graph, branch; /* of a graph's replays: its number, and of its streams which; or 0 */
    struct pki_cuda_exec *exec; /* whose replays these are; NULL: the pairs are the pool's */
    pki_cuda_mark marks[PKI_CUDA_MARKS];
} pki_cuda_lane;

/* The number of the running session. */
extern uint32_t pki_cuda_session;

/* A lane that is nobody's, or a new one, for this stream of this context; NULL without memory.
 * Takes a lock: the first time that a thread meets a stream. Its stream_id is for the caller to
 * set: only who has the stream from the program knows that it is there. */
pki_cuda_lane *pki_cuda_lane_acquire(pki_cuda_context *context, CUstream stream);

/* All of them, as the contexts above. */
extern pki_cuda_lane *pki_cuda_lanes;

/* At the first call in a session: gives back what the one before has left, and counts from 0. */
void pki_cuda_lane_enter(pki_cuda_lane *lane);

/* Is there room for a begin now, and for the ends of all that is open then? */
static inline bool pki_cuda_lane_has_room(const pki_cuda_lane *lane, uint32_t open)
{
    uint64_t tail = pki_load_acquire(&lane->tail); /* pairs with the release in cuda/cuda.c */
    return lane->head - tail + open + 2 <= PKI_CUDA_MARKS;
}

static inline bool pki_cuda_lane_is_current(const pki_cuda_lane *lane)
{
    /* Pairs with the release in pki_cuda_lane_enter. */
    return pki_load_acquire(&lane->session) == pki_load(&pki_cuda_session);
}

static inline void pki_cuda_lane_mark(pki_cuda_lane *lane, pki_cuda_mark_type type, uint32_t pair,
                                      uint32_t region)
{
    pki_cuda_mark *m = &lane->marks[lane->head % PKI_CUDA_MARKS];
    m->pair = pair | (uint32_t)type << PKI_CUDA_PAIR_BITS;
    m->region = region;
    pki_store_release(&lane->head, lane->head + 1); /* pairs with the acquire in cuda/cuda.c */
}

static inline uint32_t pki_cuda_mark_pair(pki_cuda_mark m)
{
    return m.pair & ((1u << PKI_CUDA_PAIR_BITS) - 1);
}

static inline pki_cuda_mark_type pki_cuda_mark_type_of(pki_cuda_mark m)
{
    return (pki_cuda_mark_type)(m.pair >> PKI_CUDA_PAIR_BITS);
}

/* The lane of the calling thread for the stream, with its session's counters; NULL if there can be
 * none, which has been counted as a dropped or skipped begin if `begins`. */
pki_cuda_lane *pki_cuda_lane_of(CUstream stream, bool begins);

/* Begins that found no lane. */
extern uint64_t pki_cuda_refused_begun, pki_cuda_refused_dropped;

/* Is it still this thread's lane for its stream? */
bool pki_cuda_lane_is_own(const pki_cuda_lane *lane, CUstream stream);

static inline CUstream pki_cuda_stream_of(void *stream)
{
    return stream ? stream : CU_STREAM_LEGACY;
}

/* cuda/span.c: is there a GPU? Finds out at the first call, if need be. */
bool pki_cuda_is_ready(void);

/* A span that is a communicator's operation, and goes by the communicator's name; op->what is 0
 * then. Its end; or what is done when the call failed, or may be done later. By the lane's owner.
 */
void pki_cuda_operation_begin(pki_cuda_lane *lane, uint32_t name, pki_cuda_operation *op);
void pki_cuda_operation_end(pki_cuda_lane *lane, uint32_t name);
void pki_cuda_operation_refused(pki_cuda_lane *lane, uint32_t name, bool by_error);

/* The call was made and its work comes later: true if its end can be recorded then, by _settle,
 * which does nothing if it is not open any more. */
bool pki_cuda_operation_wait(pki_cuda_lane *lane, uint32_t name);
void pki_cuda_operation_settle(pki_cuda_lane *lane, uint32_t name, bool arrived, bool by_error);

/* For the trace: "stream 7 (what)", "graph 2, captured on stream 7 (what)"; and what has been found
 * out of when, in whole microseconds. The collector's. */
void pki_cuda_lane_name(const pki_cuda_lane *lane, const char *what, char *text, size_t size);
int64_t pki_cuda_lane_doubt_ns(const pki_cuda_lane *lane);

/* What else a thread gives back as it ends; set by a thread that has lanes, before it has anything
 * to give back. NULL: nothing. */
extern void (*pki_cuda_at_thread_end)(void);

bool pki_cuda_threads_prepare(void);
void pki_cuda_lanes_after_fork(void);
