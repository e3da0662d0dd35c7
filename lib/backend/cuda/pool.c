#include "backend/cuda/pool.h"

#include <stdlib.h>

#define NO_BATCH UINT32_MAX

static CUresult make_pair(pki_cuda_pair *pair)
{
    CUresult code = pki_cuda.event_create(&pair->begin, CU_EVENT_DEFAULT);
    if (code)
        return code;
    code = pki_cuda.event_create(&pair->end, CU_EVENT_DEFAULT);
    if (code)
        pki_cuda.event_destroy(pair->begin);
    return code;
}

CUresult pki_cuda_pair_renew(pki_cuda_pair *pair, CUcontext ctx)
{
    pki_cuda_pair fresh;
    CUstreamCaptureMode mode = pki_cuda_relax();
    CUresult code = pki_cuda_enter(ctx);
    if (!code) {
        code = make_pair(&fresh);
        if (!code) {
            pki_cuda.event_destroy(pair->begin);
            pki_cuda.event_destroy(pair->end);
            pair->begin = fresh.begin;
            pair->end = fresh.end;
        }
        pki_cuda_leave();
    }
    pki_cuda_restore(mode);
    return code;
}

/* How many could be made, and why not all. */
static uint32_t make_pairs(pki_cuda_pair *pairs, CUcontext ctx, CUresult *code)
{
    uint32_t made = 0;
    CUstreamCaptureMode mode = pki_cuda_relax();
    *code = pki_cuda_enter(ctx);
    if (!*code) {
        while (made < PKI_CUDA_BATCH && !(*code = make_pair(&pairs[made])))
            made++;
        pki_cuda_leave();
    }
    pki_cuda_restore(mode);
    return made;
}

static CUresult fill(pki_cuda_pool *pool, uint32_t batch, CUcontext ctx)
{
    CUresult code;
    pki_cuda_pair *pairs = calloc(PKI_CUDA_BATCH, sizeof *pairs);
    if (!pairs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t made = make_pairs(pairs, ctx, &code);
    pki_store_release(&pool->chunks[batch], pairs); /* pairs with the acquire in _pair_at */
    for (uint32_t i = made; i > 0; i--)
        pki_cuda_pool_release(pool, batch * PKI_CUDA_BATCH + i);
    pki_fetch_add(&pool->pairs, made);
    return made ? CUDA_SUCCESS : code;
}

/* In batches. */
static uint32_t bound_of(const pki_cuda_pool *pool)
{
    uint32_t captured = PKI_MIN(pki_load(&pool->captured), PKI_CUDA_CAPTURED_MOST);
    return PKI_CUDA_BATCHES + (captured + PKI_CUDA_BATCH - 1) / PKI_CUDA_BATCH;
}

/* Its number is the caller's; NO_BATCH: there are as many as may be. */
static uint32_t next_batch(pki_cuda_pool *pool)
{
    uint32_t batch = pki_load(&pool->batches);
    while (batch < bound_of(pool))
        if (__atomic_compare_exchange_n(&pool->batches, &batch, batch + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return batch;
    return NO_BATCH;
}

CUresult pki_cuda_pool_grow(pki_cuda_pool *pool, CUcontext ctx)
{
    uint32_t batch = pki_load(&pool->tired) ? NO_BATCH : next_batch(pool);
    if (batch == NO_BATCH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = fill(pool, batch, ctx);
    if (code)
        pki_store(&pool->tired, 1u);
    return code;
}
