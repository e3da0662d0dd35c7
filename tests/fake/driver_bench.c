/* What a benchmark asks of the driver beside events: memory to flush the L2 cache with. No script:
 * blocks are counted, and the tally is what a test reads. */
#include "driver_state.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { L2_BYTES = 1 << 20 };

struct fake_bench_tally {
    unsigned blocks, fills;
    size_t filled;
};

__attribute__((visibility("default"))) struct fake_bench_tally FAKE_CUDA_BENCH;

#define DRIVER __attribute__((visibility("default"))) CUresult CUDAAPI

DRIVER cuEventSynchronize(CUevent e)
{
    CUresult code;
    while ((code = cuEventQuery(e)) == CUDA_ERROR_NOT_READY)
        sched_yield();
    return code;
}

DRIVER cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    void *block = malloc(bytes);
    *out = (CUdeviceptr)(uintptr_t)block;
    FAKE_CUDA_BENCH.blocks += block != NULL;
    return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER cuMemFree(CUdeviceptr block)
{
    free((void *)(uintptr_t)block);
    FAKE_CUDA_BENCH.blocks--;
    return CUDA_SUCCESS;
}

DRIVER cuMemsetD8Async(CUdeviceptr block, unsigned char value, size_t bytes, CUstream on)
{
    (void)on;
    memset((void *)(uintptr_t)block, value, bytes);
    FAKE_CUDA_BENCH.fills++;
    FAKE_CUDA_BENCH.filled = bytes;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = L2_BYTES;
    return which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    (void)device;
    memset(uuid->bytes, 0x5a, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
