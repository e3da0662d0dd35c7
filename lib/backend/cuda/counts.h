/* lib/backend/cuda/counts.h - what pk_get_gpu_counts answers, to callers of any version: also in a
 * build without CUDA's headers, so nothing of these is included here */
#pragma once

#include <pk/gpu.h>

#include <stdint.h>
#include <string.h>

#include "base/log.h"

static inline pk_status pki_cuda_copy_counts(pk_gpu_counts *to, const pk_gpu_counts *all)
{
    if (!to || to->size < 8 || to->size > sizeof *all)
        return pki_fail(PK_EINVAL, "pk_gpu_counts.size has to be sizeof(pk_gpu_counts)");
    uint32_t size = to->size;
    memcpy(to, all, size);
    to->size = size;
    return PK_OK;
}
