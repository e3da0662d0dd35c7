/* What a benchmark asks of the driver beside events and waits: memory to flush the L2 cache with, a
 * word that both sides see. Blocks are counted, and the tally is what a test reads. */
#include "driver_state.h"

#include <stdlib.h>
#include <string.h>

enum { L2_BYTES = 1 << 20, BYTES_PER_NS = 1000 };

struct fake_bench_tally {
    unsigned blocks, fills;
    size_t filled;
    unsigned words; /* blocks of host memory */
};

__attribute__((visibility("default"))) struct fake_bench_tally FAKE_CUDA_BENCH;

#define DRIVER __attribute__((visibility("default"))) CUresult CUDAAPI

void (*fake_on_memory)(uint64_t address, size_t bytes, bool frees, bool pinned);

static void *told(void *block, size_t bytes, bool frees, bool pinned)
{
    if (fake_on_memory && block)
        fake_on_memory((uint64_t)(uintptr_t)block, bytes, frees, pinned);
    return block;
}

static CUresult has_current(void)
{
    return fake_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!fake_settle())
        return CUDA_ERROR_UNKNOWN;
    void *block = told(malloc(bytes), bytes, false, false);
    *out = (CUdeviceptr)(uintptr_t)block;
    FAKE_CUDA_BENCH.blocks += block != NULL;
    return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER cuMemFree(CUdeviceptr block)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    free(told((void *)(uintptr_t)block, 0, true, false));
    FAKE_CUDA_BENCH.blocks--;
    return CUDA_SUCCESS;
}

DRIVER cuMemsetD8Async(CUdeviceptr block, unsigned char value, size_t bytes, CUstream on)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes) { /* nobody reads it, and a benchmark fills 2 MiB for each of its samples */
        ((unsigned char *)(uintptr_t)block)[0] = value;
        ((unsigned char *)(uintptr_t)block)[bytes - 1] = value;
    }
    FAKE_CUDA_BENCH.fills++;
    FAKE_CUDA_BENCH.filled = bytes;
    if (fake.time)
        fake_run(fake_stream(on), bytes / BYTES_PER_NS);
    return CUDA_SUCCESS;
}

uint64_t fake_walk_ns(void)
{
    static unsigned fills;
    bool flushed = fills != FAKE_CUDA_BENCH.fills;
    fills = FAKE_CUDA_BENCH.fills;
    return flushed ? 8000 : 4000;
}

/* ---- host memory that the device sees: under another address, as it may be ---- */

enum { MAPPED = 4 };
static const uintptr_t ELSEWHERE = (uintptr_t)1 << 60;
static struct {
    uint32_t *block;
    bool mapped;
} words[MAPPED];

const uint32_t *fake_host_word(CUdeviceptr address)
{
    for (int i = 0; i < MAPPED; i++)
        if (words[i].block && address == (CUdeviceptr)((uintptr_t)words[i].block + ELSEWHERE))
            return words[i].block;
    return NULL;
}

static int find_word(const void *block)
{
    int i = 0;
    while (i < MAPPED && words[i].block != block)
        i++;
    return i;
}

DRIVER cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    int i = find_word(NULL);
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (i == MAPPED || !(*out = calloc(1, bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    words[i].block = told(*out, bytes, false, true);
    words[i].mapped = flags & CU_MEMHOSTALLOC_DEVICEMAP;
    FAKE_CUDA_BENCH.words++;
    return CUDA_SUCCESS;
}

DRIVER cuMemHostGetDevicePointer(CUdeviceptr *out, void *block, unsigned flags)
{
    int i = find_word(block);
    if (i == MAPPED || !words[i].mapped || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)((uintptr_t)block + ELSEWHERE);
    return has_current();
}

DRIVER cuMemFreeHost(void *block)
{
    int i = find_word(block);
    if (!block || i == MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    words[i].block = NULL;
    free(told(block, 0, true, true));
    FAKE_CUDA_BENCH.words--;
    return has_current();
}

/* ---- the device ---- */

DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    switch ((int)which) {
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = L2_BYTES;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
        *value = !fake.no_waits;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

DRIVER cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    (void)device;
    memset(uuid->bytes, 0x5a, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
