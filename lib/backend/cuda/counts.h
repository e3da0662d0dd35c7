/* lib/backend/cuda/counts.h - what pk_get_gpu_counts answers, to callers of any version. */
#pragma once

#include <string.h>

#include <pk/gpu.h>

#include "base/error.h"

/* Of the session so far. Under the drain lock. */
void pki_cuda_sum(pk_gpu_counts *counts);

static inline pk_status pki_cuda_copy_counts(pk_gpu_counts *to, const pk_gpu_counts *all)
{
    if (!to || to->size < 8 || to->size > sizeof *all)
        return pki_fail(PK_EINVAL, "pk_gpu_counts.size has to be sizeof(pk_gpu_counts)");
    uint32_t size = to->size;
    memcpy(to, all, size);
    to->size = size;
    return PK_OK;
}
