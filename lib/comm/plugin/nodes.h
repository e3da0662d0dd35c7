/* lib/comm/plugin/nodes.h - what the collector knows of the event in a place: of what is over it
 * keeps what a later child may ask, until the place is somebody else's. */
#pragma once

#include "comm/plugin/plugin.h"

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

/* ---- plugin/nodes.c ---- */

/* All that is in the pool, oldest first. NULL: nothing, or no memory. */
const pki_nccl_item *pki_nccl_list_events(uint32_t *count);

/* Its node, if that is (still) this handle's; NULL otherwise. */
pki_nccl_node *pki_nccl_node_of(uint64_t handle);

/* The same, whether or not it has been met: a child may be seen before its parent in a round. */
pki_nccl_node *pki_nccl_node_make(uint64_t handle);

pki_nccl_event *pki_nccl_event_of(uint64_t handle);

/* Was the event of this handle open, or about to be stopped, at this tick? False: nobody knows of
 * it any more. */
bool pki_nccl_was_open(uint64_t handle, uint64_t ticks);
void pki_nccl_nodes_start(void); /* forgets what the last session knew */
void pki_nccl_nodes_after_fork(void);

/* ---- plugin/assemble.c ---- */

#define PKI_NCCL_TASKS (PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_CE_COLL)

/* ---- plugin/contexts.c ---- */

/* The communicator of an event; NULL: it is nobody's any more. */
pki_nccl_communicator *pki_nccl_communicator_of(uint32_t context);
void pki_nccl_communicator_use(uint32_t context); /* it has events in this round */

/* Which are gone, before the pool is gathered: all that one had is in the pool by then. One that
 * goes later may have had events since that this round does not know; it goes in the next one. */
void pki_nccl_communicators_check(void);
bool pki_nccl_communicator_is_gone(uint32_t context);
void pki_nccl_communicators_clean(void); /* those that are gone and have none */
void pki_nccl_communicators_start(void); /* tracks are those of the session that begins */
bool pki_nccl_communicator_spans_nodes(uint32_t context);
void pki_nccl_communicators_after_fork(void);
