/* lib/backend/cuda/pool.h - a context's pairs of events, handed out and given back without a lock.
 *
 * Pairs are known by index. The free ones are linked by index; the list's head carries a tag that
 * counts how often a pair has been taken, so that a pair that went and came back meanwhile is not
 * taken for one that never moved. A pair's memory is never given back, so looking at the link of
 * one that somebody else has just taken reads nothing foreign.
 */
#ifndef PKI_BACKEND_CUDA_POOL_H
#define PKI_BACKEND_CUDA_POOL_H

#include "backend/cuda/api.h"
#include "backend/cuda/comm/operation.h"
#include "base/atomic.h"
#include "base/compiler.h"

#define PKI_CUDA_BATCH 64u
#define PKI_CUDA_BATCHES 256u

typedef struct pki_cuda_pair {
    CUevent begin, end;
    uint32_t next; /* while free */
    uint32_t refused; /* 1: the operation was never done; written before the cancel's mark */
    pki_cuda_operation operation; /* that lies between the two; written before the begin's mark */
} pki_cuda_pair;

typedef struct pki_cuda_pool {
    uint64_t free PKI_ALIGNED; /* tag << 32 | index of the first; 0: none */
    uint32_t batches;          /* given numbers, some of them perhaps without memory */
    uint32_t pairs;
    uint32_t tired; /* the last growth failed; cleared by the collector */
    pki_cuda_pair *chunks[PKI_CUDA_BATCHES];
} pki_cuda_pool;

static inline pki_cuda_pair *pki_cuda_pair_at(pki_cuda_pool *pool, uint32_t index)
{
    /* Pairs with the release in pki_cuda_pool_grow. */
    pki_cuda_pair *chunk = pki_load_acquire(&pool->chunks[(index - 1) / PKI_CUDA_BATCH]);
    return &chunk[(index - 1) % PKI_CUDA_BATCH];
}

/* 0: none is free. Nothing is grown. */
static inline uint32_t pki_cuda_pool_take(pki_cuda_pool *pool)
{
    uint64_t head = pki_load_acquire(&pool->free); /* pairs with the release in _give */
    while ((uint32_t)head) {
        uint64_t next = pki_load(&pki_cuda_pair_at(pool, (uint32_t)head)->next);
        uint64_t after = ((head >> 32) + 1) << 32 | next;
        if (__atomic_compare_exchange_n(&pool->free, &head, after, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE))
            return (uint32_t)head;
    }
    return 0;
}

static inline void pki_cuda_pool_give(pki_cuda_pool *pool, uint32_t index)
{
    pki_cuda_pair *pair = pki_cuda_pair_at(pool, index);
    uint64_t head = pki_load(&pool->free);
    do
        pki_store(&pair->next, (uint32_t)head);
    while (!__atomic_compare_exchange_n(&pool->free, &head, (head >> 32) << 32 | index, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* The same for one that may have an operation, of which nothing will be heard any more. */
static inline void pki_cuda_pair_give(pki_cuda_pool *pool, uint32_t index)
{
    pki_cuda_operation_lost(&pki_cuda_pair_at(pool, index)->operation);
    pki_cuda_pool_give(pool, index);
}

/* Makes one more batch in the context. What went wrong, or CUDA_SUCCESS; _OUT_OF_MEMORY also where
 * the bound is reached. Called by any thread, in any capture mode. */
CUresult pki_cuda_pool_grow(pki_cuda_pool *pool, CUcontext ctx);

#endif
