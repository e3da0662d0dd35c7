/* A mock of libcupti: see fake_cupti.h. */
#include "fake_cupti.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti_state.h"

fake_cupti_table fake;
fake_state fake_inside;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the log ---- */

void fake_note(const char *what, long number)
{
    pthread_mutex_lock(&fake_lock);
    size_t n = strlen(fake.log);
    snprintf(fake.log + n, sizeof fake.log - n, number < 0 ? "%s " : "%s:%ld ", what, number);
    pthread_mutex_unlock(&fake_lock);
}

void fake_misused(const char *how)
{
    pthread_mutex_lock(&fake_lock);
    if (!fake.misuses++)
        snprintf(fake.misuse, sizeof fake.misuse, "%s", how);
    pthread_mutex_unlock(&fake_lock);
}

uint64_t fake_now(void)
{
    struct timespec t;
    CUpti_TimestampCallbackFunc ours = fake_get(fake_inside.clock);
    if (ours)
        return ours();
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- version, names, results ---- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = fake.version;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INVALID_KIND ? "CUPTI_ERROR_INVALID_KIND" : NULL;
    return *text ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

#define RUNTIME(name) [CUPTI_RUNTIME_TRACE_CBID_##name] = #name
#define DRIVER(name) [CUPTI_DRIVER_TRACE_CBID_##name] = #name

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    static const char *const runtime[] = {RUNTIME(cudaMalloc_v3020),
                                          RUNTIME(cudaFree_v3020),
                                          RUNTIME(cudaMallocArray_v3020),
                                          RUNTIME(cudaFreeArray_v3020),
                                          RUNTIME(cudaMallocManaged_v6000),
                                          RUNTIME(cudaHostAlloc_v3020),
                                          RUNTIME(cudaFreeHost_v3020),
                                          RUNTIME(cudaMallocAsync_v11020),
                                          RUNTIME(cudaFreeAsync_v11020),
                                          RUNTIME(cudaMemPoolCreate_v11020),
                                          RUNTIME(cudaMemPoolTrimTo_v11020),
                                          RUNTIME(cudaMemPoolDestroy_v11020),
                                          RUNTIME(cudaMemcpyAsync_v3020),
                                          RUNTIME(cudaMemsetAsync_v3020),
                                          RUNTIME(cudaLaunchKernel_v7000),
                                          RUNTIME(cudaGetLastError_v3020),
                                          RUNTIME(cudaStreamSynchronize_v3020),
                                          RUNTIME(cudaEventQuery_v3020),
                                          RUNTIME(cudaEventRecord_v3020),
                                          RUNTIME(cudaEventSynchronize_v3020),
                                          RUNTIME(cudaStreamWaitEvent_v3020),
                                          RUNTIME(cudaGraphLaunch_v10000),
                                          RUNTIME(cudaDeviceSynchronize_v3020),
                                          RUNTIME(__cudaLaunchKernel_v13000),
                                          RUNTIME(cudaLaunchKernel_ptsz_v7000),
                                          [440] = NULL};
    static const char *const driver[] = {
        DRIVER(cuLaunchKernel),  DRIVER(cuMemcpyHtoDAsync_v2), DRIVER(cuGraphLaunch),
        DRIVER(cuEventRecord),   DRIVER(cuEventQuery),         DRIVER(cuMemAlloc_v2),
        DRIVER(cuMemFree_v2),    DRIVER(cuMemHostAlloc),       DRIVER(cuMemFreeHost),
        DRIVER(cuMemAllocAsync), DRIVER(cuMemFreeAsync),       DRIVER(cuMemPoolTrimTo)};
    const char *const *names = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime : driver;
    size_t count = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? sizeof runtime / sizeof *runtime
                                                         : sizeof driver / sizeof *driver;
    if (id >= count)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = names[id] ? names[id] : "unnamed";
    return CUPTI_SUCCESS;
}

/* ---- subscribing ---- */

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user)
{
    fake_note("subscribe", -1);
    if (fake.subscribe != CUPTI_SUCCESS || fake_inside.callback)
        return fake.subscribe ? fake.subscribe : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    fake_inside.user = user;
    __atomic_store_n(&fake_inside.callback, callback, __ATOMIC_RELEASE);
    *subscriber = (CUpti_SubscriberHandle)(void *)&fake_inside;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                              void *user, CUpti_SubscriberParams *params)
{
    if (params->structSize != CUpti_SubscriberParams_STRUCT_SIZE ||
        params->oldSubscriberSize < CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = cuptiSubscribe(subscriber, callback, user);
    if (result && fake.holder)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", fake.holder);
    return result;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    fake_note("unsubscribe", -1);
    if (!subscriber || !fake_get(fake_inside.callback))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (__atomic_load_n(&fake.enabled, __ATOMIC_RELAXED))
        fake_misused("unsubscribe while kinds are enabled: they go on, for nobody");
    if (fake_get(fake.outstanding) && fake_get(fake.flushes) == fake_inside.flushes_then)
        fake_misused("unsubscribe before the last flush: buffers come back to nobody");
    __atomic_store_n(&fake_inside.callback, NULL, __ATOMIC_RELEASE);
    for (int domain = 0; domain < 3; domain++)
        for (int id = 0; id < FAKE_IDS; id++)
            fake_set(fake_inside.called[domain][id], false);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    if (!subscriber || id >= FAKE_IDS || domain > CUPTI_CB_DOMAIN_RUNTIME_API)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_set(fake_inside.called[domain][id], on != 0);
    return CUPTI_SUCCESS;
}

/* ---- switching ---- */

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    fake_note("threads", type);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value)
{
    (void)value;
    fake_note("attribute", attribute);
    return *size == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    fake_note("buffers", -1);
    fake_set(fake_inside.requested, requested);
    fake_set(fake_inside.completed, completed);
    return fake.register_buffers;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    fake_note("clock", -1);
    if (__atomic_load_n(&fake.enabled, __ATOMIC_RELAXED))
        fake_misused("a clock after kinds have been enabled");
    fake.clocks++;
    fake_set(fake_inside.clock, clock);
    return fake.register_clock;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    fake_note("enable", kind);
    if (!fake_get(fake_inside.requested))
        fake_misused("enable before cuptiActivityRegisterCallbacks");
    if (!fake_get(fake_inside.callback))
        fake_misused("enable without the subscription that is the lock");
    if (__atomic_load_n(&fake.enabled, __ATOMIC_RELAXED) >> kind & 1)
        fake_misused("a kind is enabled twice");
    if (fake.kinds[kind])
        return fake.kinds[kind];
    if ((kind == CUPTI_ACTIVITY_KIND_MEMORY2 || kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL) &&
        fake.version < 14) /* since CUDA 11.2 */
        return CUPTI_ERROR_INVALID_KIND;
    __atomic_fetch_or(&fake.enabled, (uint64_t)1 << kind, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    fake_note("disable", kind);
    if (!fake_get(fake_inside.callback))
        fake_misused("disable of what another tool may have enabled since");
    __atomic_fetch_and(&fake.enabled, ~((uint64_t)1 << kind), __ATOMIC_RELAXED);
    fake_inside.flushes_then = fake_get(fake.flushes);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t on)
{
    fake_set(fake_inside.silent[id], !on);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t on)
{
    fake_set(fake_inside.driver_calls[id], on != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t on)
{
    fake_note("all_waits", on);
    fake_set(fake_inside.no_unfinished, !on);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void)
{
    fake.finalized++;
    return CUPTI_SUCCESS;
}

/* ---- external ids: a stack for each thread ---- */

_Thread_local uint64_t fake_stack[FAKE_STACK];
_Thread_local unsigned fake_depth;

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 || fake_depth == FAKE_STACK)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_stack[fake_depth++] = id;
    __atomic_fetch_add(&fake.pushes, 1, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    (void)kind;
    if (fake_depth == 0)
        return CUPTI_ERROR_QUEUE_EMPTY;
    fake_depth--;
    if (last)
        *last = fake_stack[fake_depth];
    __atomic_fetch_add(&fake.pops, 1, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

/* ---- the driver ---- */

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return (CUresult)fake.driver;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = fake.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal + 100;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Double \"%d\"", device - 100);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)80 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = 1000 + (int)which;
    return which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}
