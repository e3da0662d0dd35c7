/* lib/backend/cuda/context.h - the contexts in which spans are recorded.
 *
 * One entry for each context that has been met, kept for the life of the process: its events are
 * used again by the next session. An entry is left for good when its context is destroyed (another
 * one may get the same handle: ids tell them apart where the driver has them), or when a call has
 * answered that nothing works in it any more. Its events are not destroyed then: there is nothing
 * left to ask for that.
 */
#pragma once

#include "backend/cuda/anchor.h"
#include "backend/cuda/pool.h"

#define PKI_CUDA_GONE UINT32_MAX

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

/* The entry for a context, made if needed; NULL without memory. Any thread. */
pki_cuda_context *pki_cuda_context_for(CUcontext handle);

/* All of them. */
pki_cuda_context *pki_cuda_contexts(void);

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

/* Is the handle still the same context's? Only for one that is there, whoever's. */
bool pki_cuda_context_is_same(const pki_cuda_context *context);

/* Leaves it if it has been destroyed. True if it is still there. */
bool pki_cuda_context_alive(pki_cuda_context *context);

/* By who reads events, under the drain lock: the context is current on this thread until another
 * one is used, or until _use_none. False if it cannot be: then it is left. */
bool pki_cuda_context_use(pki_cuda_context *context);
void pki_cuda_context_use_none(void);

void pki_cuda_contexts_after_fork(void);
