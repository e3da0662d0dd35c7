/* lib/comm/plugin/plugin.h - what the files of the NCCL backend share.
 *
 *     abi.h        NCCL's profiler interface, as it lies in memory
 *     entry.c      the tables that it looks up
 *     callbacks.c  what NCCL calls, and which events it is asked for; communicators as it announces
 *                  them; the pool in which events wait for the collector
 *     assemble.c   the collector: NCCL's words as numbers, what is known of an event in the pool,
 *                  communicators, which event belongs to which, when an operation is over, what is
 *                  reported of the network and of kernels
 *     backend.c    start, stop, what it says of itself; how NCCL is made to find us:
 *                  NCCL_PROFILER_PLUGIN, libpkshim.so; operations into trace and figures
 *
 * Callbacks are NCCL's threads', in the midst of a collective. They take no lock, allocate nothing,
 * call no CUDA, and answer success whatever happens.
 */
#pragma once

#include <pk/comm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "comm/plugin/abi.h"
#include "session/backend.h"

#define PKI_NCCL_VARIABLE "NCCL_PROFILER_PLUGIN"

/* ---- where NCCL's events wait for the collector ---- */

/* One pool for all threads, made at the first communicator, never larger. An event's handle is its
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
 * next claim. */

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
    uint64_t operations;              /* of those dropped */
} PKI_ALIGNED pki_nccl_losses;

#define PKI_NCCL_NEAR __attribute__((visibility("hidden")))
extern PKI_NCCL_NEAR pki_nccl_gate pki_nccl_open;
extern PKI_NCCL_NEAR pki_nccl_losses pki_nccl_lost;

static inline uint32_t pki_nccl_place(uint64_t handle)
{
    return (uint32_t)handle & (PKI_NCCL_PLACES - 1);
}

static inline uint64_t pki_nccl_head(uint64_t handle, unsigned state)
{
    return handle << 2 | state;
}

static inline uint16_t *pki_nccl_turn(pki_nccl_pool *pool, uint64_t turn)
{
    return &pool->turns[turn % PKI_NCCL_PLACES];
}

/* For who has a handle, or has met a pool before: others may be looking whether to make one. */
static inline pki_nccl_pool *pki_nccl_the_pool(void)
{
    return pki_load(&pki_nccl_open.pool);
}

static inline pki_nccl_event *pki_nccl_event_of(uint64_t handle)
{
    return &pki_nccl_the_pool()->events[pki_nccl_place(handle)];
}

static inline uint64_t pki_nccl_word_at(uint32_t place)
{
    return pki_load_acquire(&pki_nccl_the_pool()->heads[place]); /* pairs with publish, end */
}

/* ---- what NCCL calls, and the tables of it ---- */

#define PKI_NCCL_START(V)                                                                          \
    int pki_nccl_start_v##V(void *context, void **event, pki_nccl_description_v##V *description);
PKI_NCCL_VERSIONS(PKI_NCCL_START)

pki_nccl_stop pki_nccl_stop_event;
pki_nccl_state pki_nccl_change_v2, pki_nccl_change_v4;
pki_nccl_finalize pki_nccl_finalize_comm;

int pki_nccl_init_v2(void **context, int *mask);
int pki_nccl_init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                     int ranks, int rank, pki_nccl_logger *log);
int pki_nccl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                     int rank, pki_nccl_logger *log);

/* What an event has waited until now, or its end, is added up. */
void pki_nccl_leave_state(pki_nccl_event *event, uint64_t now);

void pki_nccl_callbacks_after_fork(void);

/* X(version, the one whose init it has, the one whose states) */
#define PKI_NCCL_TABLES(X) X(2, 2, 2) X(3, 2, 2) X(4, 4, 4) X(5, 5, 4) X(6, 5, 4)

#define PKI_NCCL_FUNCTIONS(V, INIT, STATE)                                                         \
    {                                                                                              \
        "perfkit", pki_nccl_init_v##INIT, pki_nccl_start_v##V, pki_nccl_stop_event,                \
            pki_nccl_change_v##STATE, pki_nccl_finalize_comm                                       \
    }

/* ---- NCCL's words as numbers ---- */

/* They are literals of NCCL's, so an address has been seen before, and is looked up in a small
 * table; that is forgotten when a communicator is made, since NCCL may be another one by then. */

typedef enum pki_nccl_code_kind { /* kinds */
                                  PKI_NCCL_FUNCTION,
                                  PKI_NCCL_ELEMENT,
                                  PKI_NCCL_ALGORITHM,
                                  PKI_NCCL_PROTOCOL,
                                  PKI_NCCL_CODE_KINDS
} pki_nccl_code_kind;

#define PKI_NCCL_SEEN 512 /* a quarter for each kind */

/* Address << 8 | kind << 5 | code; user addresses have 56 bits at most. */
extern __attribute__((visibility("hidden"))) uint64_t pki_nccl_seen[PKI_NCCL_SEEN];

uint8_t pki_nccl_look_up(pki_nccl_code_kind kind, const char *word);

static inline uint64_t pki_nccl_code_key(pki_nccl_code_kind kind, const char *word)
{
    return (uint64_t)(uintptr_t)word << 3 | kind;
}

static inline uint64_t *pki_nccl_code_seen(uint64_t key)
{
    return &pki_nccl_seen[(key & 3) << 7 | (key * UINT64_C(0x9E3779B97F4A7C15)) >> 57];
}

/* 0 for none, and for what is unknown. */
static inline uint8_t pki_nccl_code(pki_nccl_code_kind kind, const char *word)
{
    uint64_t key = pki_nccl_code_key(kind, word);
    uint64_t last = pki_load(pki_nccl_code_seen(key));
    return PKI_LIKELY(last >> 5 == key) ? last & 31 : pki_nccl_look_up(kind, word);
}

const char *pki_nccl_text(pki_nccl_code_kind kind, uint8_t code);

/* ---- NCCL's communicators, as its profiler interface describes them ---- */

/* A context is an index and a number that does not come again, like an event's handle. Version 4
 * and later have name, id, rank and size as a communicator is made; of older ones the first
 * collective says what there is. */

#define PKI_NCCL_CONTEXTS 1024
#define PKI_NCCL_NAME 64

enum {
    PKI_NCCL_CONTEXT_FREE,
    PKI_NCCL_CONTEXT_CLAIMED,
    PKI_NCCL_CONTEXT_LIVE,
    PKI_NCCL_CONTEXT_GONE
};

typedef struct pki_nccl_context {
    uint32_t state, handle; /* state: released when what stands below has been written */
    uint32_t described;     /* 0: nobody knows its name; 1: being written; 2: known */
    int32_t rank, ranks, nodes;
    uint64_t id;
    char name[PKI_NCCL_NAME];
} pki_nccl_context;

typedef struct pki_nccl_contexts {
    uint32_t live;    /* opened, and not closed */
    uint64_t refused; /* there were too many */
} pki_nccl_contexts;

extern pki_nccl_contexts pki_nccl_comms;

/* By its index; NULL if it is free. Whether a context is still that one's: compare. */
pki_nccl_context *pki_nccl_context_at(uint32_t index);

static inline uint32_t pki_nccl_context_index(uint32_t context)
{
    return context & (PKI_NCCL_CONTEXTS - 1);
}

/* ---- which events NCCL is asked for ---- */

extern int pki_nccl_mask; /* while a session wants any */
void pki_nccl_ask(bool on);

/* ---- what the collector knows of the event in a place ---- */

/* Of what is over it keeps what a later child may ask, until the place is somebody else's. */

typedef struct pki_nccl_node {
    uint64_t handle; /* 0: none was ever there */
    uint64_t parent;
    uint32_t type, context, region;
    uint8_t op, element, flags;
    bool met;    /* begun here */
    bool over;   /* emitted; what comes now is late */
    bool queued; /* has a sequence number of its communicator, in payload */
    bool taken;  /* of a call: a task has taken that, and its start, over */
    bool started;
    uint64_t count, start, stop; /* ticks; stop 0: still open */
    int32_t peer;
    uint32_t open;                  /* children that are, in this round */
    uint64_t call;                  /* of a task: its call's handle, if that was met; 0 */
    uint64_t call_start, call_stop; /* of its first task: ticks, else 0 */
    pki_comm_payload payload;
    uint64_t sequence;
    /* Of a task: kernels by channel. Ticks, and the GPU's ns. */
    uint32_t kernels, proxies;
    uint64_t kernel_start, kernel_end, gpu_first, gpu_last, proxy_end;
    /* Of a task and a proxy's operation, from its steps. */
    uint64_t steps, bytes, net_events, waits[PKI_NCCL_WAITS];
} pki_nccl_node;

typedef struct pki_nccl_item { /* an event of this round */
    uint64_t handle;
    bool stopped;
} pki_nccl_item;

/* All that is in the pool, oldest first. NULL: nothing, or no memory. */
const pki_nccl_item *pki_nccl_list_events(uint32_t *count);

/* ---- the collector's rounds ---- */

void pki_nccl_assemble_start(void);
void pki_nccl_assemble_round(bool last);
void pki_nccl_assemble_after_fork(void);

/* ---- operations and details, into trace and figures ---- */

typedef enum pki_nccl_timed {
    PKI_NCCL_BY_HOST,
    PKI_NCCL_BY_PROXY,
    PKI_NCCL_BY_KERNEL
} pki_nccl_timed;

/* An operation, as far as it is known. Times in ns since the session started. */
typedef struct pki_nccl_operation {
    const struct pki_nccl_node *node; /* of the task, or of the call if there was no task */
    pki_operation what;
    uint8_t call; /* function of the API's call; 0: not said */
    uint64_t start, end, exposed;
    pki_nccl_timed timed;
    bool unfinished;
} pki_nccl_operation;

#define PKI_NCCL_LANES 8
#define PKI_NCCL_CHANNELS 64

enum { PKI_NCCL_RECEIVES, PKI_NCCL_SENDING, PKI_NCCL_KERNELS, PKI_NCCL_DIRECTIONS };

typedef struct pki_nccl_lane { /* a track */
    uint32_t track;
    uint64_t end; /* of the last one on it */
} pki_nccl_lane;

/* What the collector remembers of a communicator. */
typedef struct pki_nccl_communicator {
    uint32_t context;
    pk_comm *comm;
    bool destroyed;        /* comm is: it may be another context's by now */
    bool proxies, kernels; /* has had one */
    pki_nccl_lane lanes[PKI_NCCL_LANES];
    pki_nccl_lane channels[PKI_NCCL_DIRECTIONS][PKI_NCCL_CHANNELS];
} pki_nccl_communicator;

/* Into trace and figures. The one place that decides who counts, if a wrapper library does, too. */
void pki_nccl_emit_operation(pki_nccl_communicator *t, pki_nccl_operation *o);

/* Into the trace. */
void pki_nccl_emit_proxy(pki_nccl_communicator *t, const pki_nccl_event *e, uint64_t bytes);

void pki_nccl_emit_kernel(pki_nccl_communicator *t, const pki_nccl_event *e);

void pki_nccl_emit_call(const pki_nccl_event *e);

/* Operations emitted since the session's start. */
uint64_t pki_nccl_operations(void);
