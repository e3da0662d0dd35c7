/* lib/comm/plugin/plugin.h - what the files of the NCCL backend share.
 *
 *     backend.c        the backend: start, stop, what it says of itself, and how NCCL is made to
 *                      find us: NCCL_PROFILER_PLUGIN, libpkshim.so
 *     abi.h            NCCL's profiler interface, as it lies in memory
 *     callbacks.c      what NCCL calls
 *     entry.c          the tables that it looks up
 *     pool.c           where events wait for the collector
 *     contexts.c       communicators, as NCCL announces them and as the collector knows them;
 *                      NCCL's words as numbers; which events NCCL is asked for
 *     nodes.c          the collector: what is in the pool, and what is known of it
 *     assemble.c       which event belongs to which, when an operation is over, and what is
 *                      reported of the network and of kernels
 *     emit.c           an operation, or a detail, into trace and figures, on their tracks
 *
 * Callbacks are NCCL's threads', in the midst of a collective. They take no lock, allocate nothing,
 * call no CUDA, and answer success whatever happens.
 */
#pragma once

#include "comm/plugin/contexts.h"
#include "comm/plugin/pool.h"
#include "comm/model/communicator.h"
#include "session/backend.h"

#define PKI_NCCL_VARIABLE "NCCL_PROFILER_PLUGIN"

/* ---- plugin/contexts.c ---- */

/* What the environment asks for (PK_NCCL_KERNEL_CH, PK_NCCL_PROXY_STEPS). */
void pki_nccl_mask_choose(void);
bool pki_nccl_mask_kernels(void);

/* NCCL reads its mask there, as long as a communicator lives. */
void pki_nccl_mask_at(int *mask);
void pki_nccl_mask_turn(bool on);
void pki_nccl_mask_after_fork(void);

/* ---- plugin/assemble.c ---- */

void pki_nccl_assemble_start(void);
void pki_nccl_assemble_collect(void);
void pki_nccl_assemble_stop(void);
void pki_nccl_assemble_after_fork(void);

/* ---- plugin/emit.c ---- */

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
void pki_nccl_emit_operation(pki_nccl_communicator *communicator, pki_nccl_operation *operation);

/* Into the trace. */
void pki_nccl_emit_proxy(pki_nccl_communicator *communicator, const pki_nccl_event *event,
                         uint64_t bytes);
void pki_nccl_emit_kernel(pki_nccl_communicator *communicator, const pki_nccl_event *event);
void pki_nccl_emit_call(const pki_nccl_event *event);

/* Operations emitted since the session's start. */
uint64_t pki_nccl_operations(void);
void pki_nccl_emit_start(void);

/* ---- plugin/emit.c ---- */

/* A track where nothing is from *start on. *start is moved if all have something there. 0: there
 * are too many. */
void pki_nccl_tracks_start(void);
