/* lib/comm/plugin/nodes.c - what is in the pool, and the nodes of it. */
#include <stdlib.h>
#include <string.h>

#include "comm/plugin/nodes.h"

typedef struct memory {
    pki_nccl_node nodes[PKI_NCCL_PLACES];
    pki_nccl_item items[PKI_NCCL_PLACES];
    uint64_t out[PKI_NCCL_PLACES]; /* handles that have been given away, oldest first */
    uint32_t out_count;
    uint64_t turn; /* the first that has not been looked at */
} memory;

static memory *kept; /* for the process's life, from the first round with a pool on */

static bool has_memory(void)
{
    if (!kept)
        kept = calloc(1, sizeof *kept);
    return kept != NULL;
}

pki_nccl_event *pki_nccl_event_of(uint64_t handle)
{
    return &pki_nccl_the_pool()->events[pki_nccl_place(handle)];
}

pki_nccl_node *pki_nccl_node_of(uint64_t handle)
{
    pki_nccl_node *n = &kept->nodes[pki_nccl_place(handle)];
    return handle >= PKI_NCCL_PLACES && n->handle == handle ? n : NULL;
}

static uint64_t word_at(uint32_t place)
{
    return pki_load_acquire(&pki_nccl_the_pool()->heads[place]); /* pairs with publish, end */
}

static pki_nccl_node *make(uint64_t handle)
{
    pki_nccl_node *n = &kept->nodes[pki_nccl_place(handle)];
    const pki_nccl_event *e = pki_nccl_event_of(handle);
    *n = (pki_nccl_node){.handle = handle,
                         .parent = e->parent,
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

pki_nccl_node *pki_nccl_node_make(uint64_t handle)
{
    pki_nccl_node *n = pki_nccl_node_of(handle);
    if (n || handle < PKI_NCCL_PLACES)
        return n;
    uint64_t word = word_at(pki_nccl_place(handle));
    return word >> 2 == handle && (word & 3) != PKI_NCCL_FREE ? make(handle) : NULL;
}

/* A node that has no end may have one since the pool was looked through. */
bool pki_nccl_was_open(uint64_t handle, uint64_t ticks)
{
    const pki_nccl_node *n = pki_nccl_node_make(handle);
    if (!n)
        return false;
    if (n->stop)
        return n->stop >= ticks;
    bool open = word_at(pki_nccl_place(handle)) == pki_nccl_head(handle, PKI_NCCL_OPEN);
    return open || pki_load(&pki_nccl_event_of(handle)->stop) >= ticks;
}

/* False: it has been freed since the last round. */
static bool add_if_live(uint64_t handle, uint32_t *count)
{
    uint64_t word = word_at(pki_nccl_place(handle));
    bool there = word >> 2 == handle && (word & 3) != PKI_NCCL_FREE;
    if (there)
        kept->items[(*count)++] = (pki_nccl_item){handle, (word & 3) == PKI_NCCL_STOPPED};
    return there || word >> 2 < handle;
}

static void see_old(uint32_t *count)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < kept->out_count; i++)
        if (add_if_live(kept->out[i], count))
            kept->out[still++] = kept->out[i];
    kept->out_count = still;
}

/* Of one that is not published yet the place still says what the event before it was. */
static void see_new(uint32_t *count)
{
    uint32_t place;
    for (; pki_nccl_is_claimed(kept->turn, &place); kept->turn++) {
        uint64_t word = word_at(place);
        uint64_t unpublished = (word & 3) == PKI_NCCL_FREE ? PKI_NCCL_PLACES : 0;
        uint64_t handle = (word >> 2) + unpublished;
        kept->out[kept->out_count++] = handle;
        add_if_live(handle, count);
    }
}

const pki_nccl_item *pki_nccl_list_events(uint32_t *count)
{
    *count = 0;
    if (!pki_load_acquire(&pki_nccl_open.pool) || !has_memory()) /* pairs with its making */
        return NULL;
    see_old(count);
    see_new(count);
    return kept->items;
}

void pki_nccl_nodes_start(void)
{
    if (kept)
        memset(kept->nodes, 0, sizeof kept->nodes);
}

void pki_nccl_nodes_after_fork(void)
{
    kept = NULL;
}
