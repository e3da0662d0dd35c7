/* fake/device_memory.c - the mock's memory pool: blocks of the host's memory, and how much of the
 * device the pool holds, by pieces, until it is trimmed. */
#include <stdlib.h>

#include "device.h"
#include "driver_state.h"

#define DRIVER __attribute__((visibility("default"))) CUresult CUDAAPI

enum { PIECE = 2097152, BLOCKS = 64 }; /* as fake_cupti.h has it */

static struct {
    uint64_t address, bytes;
} blocks[BLOCKS];
static uint64_t reserved, used;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static int find(uint64_t address)
{
    int i = 0;
    while (i < BLOCKS && blocks[i].address != address)
        i++;
    return i;
}

DRIVER cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    (void)device;
    *out = (CUmemoryPool)(void *)&reserved;
    return CUDA_SUCCESS;
}

DRIVER cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream on)
{
    void *block = malloc(bytes);
    int i = find(0);
    (void)on;
    if (!block || i == BLOCKS) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUdeviceptr)(uintptr_t)block;
    blocks[i].address = *out;
    blocks[i].bytes = bytes;
    used += bytes;
    reserved = rounded(used) > reserved ? rounded(used) : reserved;
    fake_tell_pool(*out, bytes, false);
    return CUDA_SUCCESS;
}

DRIVER cuMemFreeAsync(CUdeviceptr address, CUstream on)
{
    int i = find(address);
    (void)on;
    if (!address || i == BLOCKS)
        return CUDA_ERROR_INVALID_VALUE;
    used -= blocks[i].bytes;
    blocks[i].address = 0;
    fake_tell_pool(address, 0, true);
    free((void *)(uintptr_t)address);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolTrimTo(CUmemoryPool pool, size_t keeps)
{
    (void)pool;
    uint64_t least = rounded(used) > rounded(keeps) ? rounded(used) : rounded(keeps);
    reserved = reserved < least ? reserved : least;
    fake_tell_trim(keeps);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    (void)pool;
    if (which != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && which != CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? reserved : used;
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    (void)pool, (void)value;
    return which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
