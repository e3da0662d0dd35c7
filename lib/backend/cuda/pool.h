/* lib/backend/cuda/pool.h - a context's pairs of events, handed out and given back without a lock.
 *
 * Pairs are known by index. A pair's memory is never given back.
 */
#pragma once

#include "backend/cuda/api.h"
#include "backend/cuda/comm/operation.h"
#include "base/compiler.h"
#include "base/free_list.h"

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
