/* lib/backend/nccl/gather.c - what is in the pool, and the nodes of it. */
#include <stdlib.h>
#include <string.h>

#include "backend/nccl/node.h"

typedef struct memory {
    pki_nccl_node nodes[PKI_NCCL_PLACES];
    pki_nccl_item items[PKI_NCCL_PLACES];
} memory;

static memory *kept; /* for the process's life, from the first round with a pool on */
static uint32_t last_count;

static bool has_memory(void)
{
    if (!kept)
        kept = calloc(1, sizeof *kept);
    return kept != NULL;
}

pki_nccl_event *pki_nccl_event_of(uint64_t handle)
{
    return &pki_nccl_open.pool->events[pki_nccl_place(handle)];
}

pki_nccl_node *pki_nccl_node_of(uint64_t handle)
{
    pki_nccl_node *n = &kept->nodes[pki_nccl_place(handle)];
    return handle >= PKI_NCCL_PLACES && n->handle == handle ? n : NULL;
}

static pki_nccl_node *make(uint64_t handle)
{
    pki_nccl_node *n = &kept->nodes[pki_nccl_place(handle)];
    const pki_nccl_event *e = pki_nccl_event_of(handle);
    *n = (pki_nccl_node){.handle = handle,
                         .type = e->type,
                         .context = e->context,
                         .region = e->region,
                         .op = e->op,
                         .element = e->element,
                         .flags = e->flags,
                         .count = e->count,
                         .start = e->start,
                         .peer = e->peer};
    return n;
}

pki_nccl_node *pki_nccl_meet(uint64_t handle)
{
    pki_nccl_node *n = pki_nccl_node_of(handle);
    if (n || handle < PKI_NCCL_PLACES)
        return n;
    uint64_t word = pki_load_acquire(&pki_nccl_open.pool->heads[pki_nccl_place(handle)]);
    bool there = word >> 2 == handle && (word & 3) >= PKI_NCCL_OPEN; /* pairs with publish, end */
    return there ? make(handle) : NULL;
}

static void add(uint32_t place, uint32_t *count)
{
    uint64_t word = pki_load_acquire(&pki_nccl_open.pool->heads[place]); /* publish's, end's */
    if ((word & 3) < PKI_NCCL_OPEN)
        return;
    kept->items[(*count)++] = (pki_nccl_item){word >> 2, (word & 3) == PKI_NCCL_STOPPED};
}

/* From the place that is the next one's turn, which is the oldest: a round. */
const pki_nccl_item *pki_nccl_gather(uint32_t *count)
{
    *count = 0;
    if (!pki_load_acquire(&pki_nccl_open.pool) || !has_memory()) /* pairs with its making */
        return NULL;
    if (last_count == 0 && pki_nccl_comms_live() == 0)
        return NULL;
    uint64_t next = pki_load(&pki_nccl_tickets.next);
    for (uint32_t i = 0; i < PKI_NCCL_PLACES; i++)
        add((uint32_t)(next + i) % PKI_NCCL_PLACES, count);
    last_count = *count;
    return kept->items;
}

void pki_nccl_gather_start(void)
{
    if (kept)
        memset(kept->nodes, 0, sizeof kept->nodes);
}

void pki_nccl_gather_after_fork(void)
{
    kept = NULL;
    last_count = 0;
}
