#include "comm/plugin/contexts.h"

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"

static pki_nccl_context comms[PKI_NCCL_CONTEXTS];
static uint32_t live;
static uint64_t refused;

/* Never 0, and never the same again before 2^22 others have been there. */
static uint32_t next_context(const pki_nccl_context *c, uint32_t index)
{
    uint32_t n = (c->handle & ~(PKI_NCCL_CONTEXTS - 1u)) + PKI_NCCL_CONTEXTS;
    return (n ? n : PKI_NCCL_CONTEXTS) | index;
}

static bool claim(pki_nccl_context *c)
{
    uint32_t none = PKI_NCCL_CONTEXT_FREE;
    return pki_load(&c->state) == none &&
           __atomic_compare_exchange_n(&c->state, &none, PKI_NCCL_CONTEXT_CLAIMED, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* All but the state, which others look at meanwhile. */
static void clear(pki_nccl_context *c, uint32_t context)
{
    c->handle = context;
    c->described = 0;
    c->rank = -1;
    c->ranks = c->nodes = 0;
    c->id = 0;
    memset(c->name, 0, sizeof c->name);
}

uint32_t pki_nccl_context_open(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++) {
        pki_nccl_context *c = &comms[i];
        if (!claim(c))
            continue;
        uint32_t context = next_context(c, i);
        clear(c, context);
        pki_store_release(&c->state, PKI_NCCL_CONTEXT_LIVE); /* pairs with pki_nccl_context_at */
        pki_fetch_add(&live, 1);
        return context;
    }
    pki_fetch_add(&refused, 1);
    return 0;
}

pki_nccl_context *pki_nccl_context_at(uint32_t index)
{
    uint32_t state = pki_load_acquire(&comms[index].state); /* pairs with open, and with close */
    return state == PKI_NCCL_CONTEXT_LIVE || state == PKI_NCCL_CONTEXT_GONE ? &comms[index] : NULL;
}

static pki_nccl_context *find(uint32_t context)
{
    pki_nccl_context *c = context ? pki_nccl_context_at(pki_nccl_context_index(context)) : NULL;
    return c && c->handle == context && pki_load(&c->state) == PKI_NCCL_CONTEXT_LIVE ? c : NULL;
}

void pki_nccl_context_describe(uint32_t context, const char *name, uint64_t id, int32_t rank,
                               int32_t ranks, int32_t nodes)
{
    pki_nccl_context *c = find(context);
    uint32_t undescribed = 0;
    if (!c || !__atomic_compare_exchange_n(&c->described, &undescribed, 1, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED))
        return;
    size_t n = name ? strnlen(name, sizeof c->name - 1) : 0;
    memcpy(c->name, n ? name : "", n);
    c->id = id;
    c->rank = rank;
    c->ranks = ranks;
    c->nodes = nodes;
    pki_store_release(&c->described, 2); /* pairs with the collector's acquire */
}

void pki_nccl_context_close(uint32_t context)
{
    pki_nccl_context *c = find(context);
    uint32_t open = PKI_NCCL_CONTEXT_LIVE;
    if (c && __atomic_compare_exchange_n(&c->state, &open, PKI_NCCL_CONTEXT_GONE, false,
                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
}

void pki_nccl_context_free(uint32_t index)
{
    pki_store_release(&comms[index].state, PKI_NCCL_CONTEXT_FREE); /* pairs with the next claim */
}

uint32_t pki_nccl_contexts_live(void)
{
    return pki_load(&live);
}

uint64_t pki_nccl_contexts_refused(void)
{
    return pki_load(&refused);
}

/* Their contexts stay used up: the child's NCCL may still hold one. */
void pki_nccl_contexts_after_fork(void)
{
    for (uint32_t i = 0; i < PKI_NCCL_CONTEXTS; i++)
        comms[i].state = PKI_NCCL_CONTEXT_FREE;
    live = 0;
    refused = 0;
}
