#include "bench/device_gate.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/dl.h"

#include <string.h>

/* Their second form needs driver 11.7 and nothing else; the first one, only where it is switched
 * on: CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 says whether. */
static const pki_dl_function functions[] = {
    {"cuStreamWaitValue32_v2", offsetof(pki_bench_gate, wait), true},
    {"cuStreamWaitValue32", offsetof(pki_bench_gate, old_wait), true},
    {"cuMemHostAlloc", offsetof(pki_bench_gate, allocate), true},
    {"cuMemHostGetDevicePointer_v2", offsetof(pki_bench_gate, address), true},
    {"cuMemFreeHost", offsetof(pki_bench_gate, release), true},
};

typedef CUresult(CUDAAPI *ask_attribute)(int *value, CUdevice_attribute which, CUdevice device);

static bool may_wait(pki_bench_gate *g, void *library, CUdevice device)
{
    static const pki_dl_function ask[] = {{"cuDeviceGetAttribute", 0, false}};
    struct {
        ask_attribute attribute;
    } table;
    char reason[64];
    int old_form = 0;
    if (!pki_dl_bind(library, functions, PKI_COUNT_OF(functions), g, reason, sizeof reason) ||
        !pki_dl_bind(library, ask, 1, &table, reason, sizeof reason) || !g->allocate ||
        !g->address || !g->release)
        return false;
    if (g->wait)
        return true;
    table.attribute(&old_form, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, device);
    g->wait = old_form ? g->old_wait : NULL;
    return g->wait != NULL;
}

static bool make_word(pki_bench_gate *g)
{
    void *block = NULL;
    if (g->allocate(&block, sizeof *g->word, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS)
        return false;
    g->word = block;
    pki_store(g->word, 0);
    return g->address(&g->place, block, 0) == CUDA_SUCCESS;
}

/* A wait for what is already there is how a device that cannot wait says so. */
const char *pki_bench_gate_make(pki_bench_gate *g, void *library, CUdevice device, CUstream stream)
{
    memset(g, 0, sizeof *g);
    const char *why_not = NULL;
    if (!may_wait(g, library, device))
        why_not = "the driver has no wait for memory in streams";
    else if (!make_word(g))
        why_not = "no host memory that the device sees";
    else if (g->wait(stream, g->place, 0, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        why_not = "the device has no wait for memory in streams";
    if (why_not)
        pki_bench_gate_destroy(g);
    return why_not;
}

void pki_bench_gate_destroy(pki_bench_gate *g)
{
    if (g->word)
        g->release(g->word);
    g->word = NULL;
}

CUresult pki_bench_gate_shut(pki_bench_gate *g, CUstream stream)
{
    uint32_t next = g->shut + 1;
    CUresult code = g->wait(stream, g->place, next, CU_STREAM_WAIT_VALUE_GEQ);
    if (code == CUDA_SUCCESS)
        pki_store_release(&g->shut, next); /* the watchdog's thread reads it */
    return code;
}

void pki_bench_gate_open(pki_bench_gate *g)
{
    pki_store_release(g->word, pki_load_acquire(&g->shut));
}
