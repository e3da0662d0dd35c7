/* fake/device_cupti.c - see fake/device.h. */
#include "device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cupti.h"

static fake_cupti_table *cupti;

bool fake_has_fault(const char *name)
{
    const char *fault = getenv("FAKE_DEVICE_FAULT");
    return fault && strcmp(fault, name) == 0;
}

static void finish(uint32_t flag)
{
    (void)flag;
    cupti->finish();
}

void fake_tell_begin(void)
{
    const char *path = getenv("PK_CUPTI_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "fake_cupti") : NULL;
    fake_cupti_table *(*table)(void);
    if (!symbol)
        return;
    memcpy(&table, &symbol, sizeof table);
    cupti = table();
    cupti->on_flush = finish;
}

void fake_tell_kernel(const char *name, uint64_t from_now, uint64_t ns)
{
    static unsigned told;
    const uint64_t off = fake_has_fault("clock") ? 5000000000 : 0;
    ns = fake_has_fault("longer") ? ns + 3000 : fake_has_fault("shorter") ? ns / 10 : ns;
    from_now = fake_has_fault("beside") ? from_now / 2 : from_now;
    const fake_call call = {
        .domain = CUPTI_CB_DOMAIN_DRIVER_API,
        .id = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
        .device = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        .kernel = name,
        .ns = ns,
        .delay = from_now + off,
    };
    if (cupti && !(fake_has_fault("kernels") && ++told % 10 == 0))
        cupti->play(&call);
}

void fake_tell_wait(fake_wait kind, CUresult answer)
{
    static const struct {
        CUpti_CallbackId id;
        CUpti_ActivitySynchronizationType type;
    } calls[] = {
        [FAKE_WAIT_STREAM] = {CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
                              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE},
        [FAKE_WAIT_CONTEXT] = {CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                               CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE},
        [FAKE_WAIT_QUERY] = {CUPTI_DRIVER_TRACE_CBID_cuEventQuery,
                             CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE},
    };
    const fake_call call = {
        .domain = CUPTI_CB_DOMAIN_DRIVER_API,
        .id = calls[kind].id,
        .wait = calls[kind].type,
        .result = (uint32_t)answer,
    };
    if (cupti)
        cupti->play(&call);
}

#define POOL 0x1000 /* no block lies there */

static void tell(CUpti_CallbackId id, const fake_memory *m)
{
    static unsigned told;
    const fake_call call = {.domain = CUPTI_CB_DOMAIN_DRIVER_API, .id = id, .memory = m};
    if (cupti && !(fake_has_fault("allocations") && ++told % 10 == 0))
        cupti->play(&call);
}

void fake_tell_memory(uint64_t address, size_t bytes, bool frees, bool pinned)
{
    tell(pinned  ? frees ? CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost
                         : CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc
         : frees ? CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2
                 : CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
         &(const fake_memory){.what = frees ? FAKE_FREE : FAKE_ALLOCATE,
                              .kind = pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
                                             : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                              .address = address,
                              .bytes = bytes});
}

void fake_tell_pool(uint64_t address, size_t bytes, bool frees)
{
    tell(frees ? CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync : CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
         &(const fake_memory){.what = frees ? FAKE_FREE : FAKE_ALLOCATE,
                              .address = address,
                              .bytes = bytes,
                              .pool = POOL});
}

void fake_tell_trim(size_t keeps)
{
    tell(CUPTI_DRIVER_TRACE_CBID_cuMemPoolTrimTo,
         &(const fake_memory){.what = FAKE_POOL_TRIM, .bytes = keeps, .pool = POOL});
}
