/* A mock of libcupti: see fake_cupti.h. */
#include "cupti_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- the library ---- */

fake_cupti_table fake;
fake_state fake_inside;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

_Thread_local bool fake_as_one; /* the call is made for one subscriber of several */

/* Of all but the names of errors, which are a table. Those that name nobody are not for several. */
static void told(const char *function)
{
    bool of_process = strncmp(function, "cuptiActivity", 13) == 0 ||
                      strcmp(function, "cuptiSetThreadIdType") == 0;
    if (of_process && strcmp(function, "cuptiActivityFlushAll") != 0 && !fake_as_one &&
        fake_get(fake_inside.several))
        fake_misused("a call for the process beside several subscribers");
    if (fake.on_call)
        fake.on_call(function);
}

/* -- the log -- */

void fake_note(const char *what, long number)
{
    pthread_mutex_lock(&fake_lock);
    size_t n = strlen(fake.log);
    snprintf(fake.log + n, sizeof fake.log - n, number < 0 ? "%s " : "%s:%ld ", what, number);
    pthread_mutex_unlock(&fake_lock);
}

bool fake_noted(const char *what)
{
    pthread_mutex_lock(&fake_lock);
    bool noted = strstr(fake.log, what);
    pthread_mutex_unlock(&fake_lock);
    return noted;
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

/* -- version, names, results -- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
    told(__func__);
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
    told(__func__);
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

/* -- subscribing -- */

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user)
{
    told(__func__);
    fake_note("subscribe", -1);
    CUptiResult refused = fake_get(fake.subscribe);
    if (refused != CUPTI_SUCCESS || fake_inside.callback || fake_get(fake_inside.several))
        return refused ? refused : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    fake_inside.user = user;
    __atomic_store_n(&fake_inside.callback, callback, __ATOMIC_RELEASE);
    *subscriber = (CUpti_SubscriberHandle)(void *)&fake_inside;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                              void *user, CUpti_SubscriberParams *params)
{
    told(__func__);
    bool handled;
    if (params->structSize < CUpti_SubscriberParams_STRUCT_SIZE ||
        params->oldSubscriberSize < CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = fake_subscribe_one(subscriber, callback, user, params, &handled);
    result = handled ? result : cuptiSubscribe(subscriber, callback, user);
    if (result && fake.holder)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", fake.holder);
    return result;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    told(__func__);
    fake_note("unsubscribe", -1);
    if (fake_unsubscribe_other(subscriber))
        return CUPTI_SUCCESS;
    if (!subscriber || !fake_get(fake_inside.callback))
        return CUPTI_ERROR_INVALID_PARAMETER;
    bool theirs = fake_get(fake_inside.theirs);
    if (__atomic_load_n(&fake.enabled, __ATOMIC_RELAXED) && !theirs)
        fake_misused("unsubscribe while kinds are enabled: they go on, for nobody");
    if (fake_get(fake.outstanding) && fake_get(fake.flushes) == fake_inside.flushes_then && !theirs)
        fake_misused("unsubscribe before the last flush: buffers come back to nobody");
    __atomic_store_n(&fake_inside.callback, NULL, __ATOMIC_RELEASE);
    fake_set(fake_inside.several, false);
    for (int domain = 0; domain < 3; domain++)
        for (int id = 0; id < FAKE_IDS; id++)
            fake_set(fake_inside.called[domain][id], false);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    told(__func__);
    if (!subscriber || id >= FAKE_IDS || domain > CUPTI_CB_DOMAIN_RUNTIME_API)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_set(fake_inside.called[domain][id], on != 0);
    return CUPTI_SUCCESS;
}

/* -- switching -- */

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    told(__func__);
    fake_note("threads", type);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value)
{
    told(__func__);
    (void)value;
    fake_note("attribute", attribute);
    return *size == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    told(__func__);
    fake_note("buffers", -1);
    fake_set(fake_inside.requested, requested);
    fake_set(fake_inside.completed, completed);
    fake_set(fake_inside.theirs, false);
    return fake.register_buffers;
}

/* As another tool does, which asks nobody. What this one has comes back to it from here on. */
CUptiResult fake_register_other(CUpti_BuffersCallbackRequestFunc requested,
                                CUpti_BuffersCallbackCompleteFunc completed)
{
    CUptiResult result = cuptiActivityRegisterCallbacks(requested, completed);
    fake_set(fake_inside.theirs, true);
    return result;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    told(__func__);
    fake_note("clock", -1);
    if (__atomic_load_n(&fake.enabled, __ATOMIC_RELAXED))
        fake_misused("a clock after kinds have been enabled");
    fake.clocks++;
    fake_set(fake_inside.clock, clock);
    return fake.register_clock;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    told(__func__);
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
    told(__func__);
    fake_note("disable", kind);
    if (!fake_get(fake_inside.callback) || fake_get(fake_inside.theirs))
        fake_misused("disable of what another tool may have enabled since");
    __atomic_fetch_and(&fake.enabled, ~((uint64_t)1 << kind), __ATOMIC_RELAXED);
    fake_inside.flushes_then = fake_get(fake.flushes);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t on)
{
    told(__func__);
    fake_set(fake_inside.silent[id], !on);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t on)
{
    told(__func__);
    fake_set(fake_inside.driver_calls[id], on != 0);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t on)
{
    told(__func__);
    fake_note("all_waits", on);
    fake_set(fake_inside.no_unfinished, !on);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void)
{
    told(__func__);
    fake.finalized++;
    return CUPTI_SUCCESS;
}

/* -- external ids: a stack for each thread -- */

_Thread_local uint64_t fake_stack[FAKE_STACK];
_Thread_local unsigned fake_depth;

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    told(__func__);
    if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 || fake_depth == FAKE_STACK)
        return CUPTI_ERROR_INVALID_PARAMETER;
    fake_stack[fake_depth++] = id;
    __atomic_fetch_add(&fake.pushes, 1, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last)
{
    told(__func__);
    (void)kind;
    if (fake_depth == 0)
        return CUPTI_ERROR_QUEUE_EMPTY;
    fake_depth--;
    if (last)
        *last = fake_stack[fake_depth];
    __atomic_fetch_add(&fake.pops, 1, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

/* -- the driver -- */

CUresult cuInit(unsigned flags)
{
    told(__func__);
    (void)flags;
    return (CUresult)fake.driver;
}

CUresult cuDeviceGetCount(int *count)
{
    told(__func__);
    *count = fake.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    told(__func__);
    *device = ordinal + 100;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    told(__func__);
    snprintf(name, (size_t)size, "Double \"%d\"", device - 100);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    told(__func__);
    (void)device;
    *bytes = (size_t)80 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    told(__func__);
    (void)device;
    *value = 1000 + (int)which;
    return which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}

/* ---- the double's buffers ---- */

/* One for each thread that records are written into, and those that are full and hold a record of
 * what still runs: "doesn't return buffers which have one or more incomplete records". */

#define BUFFERS 1024

typedef struct place {
    long tid; /* 0: full */
    unsigned turn;
    uint8_t *data; /* NULL: a free place */
    size_t size, used, incomplete;
} place;

static place places[BUFFERS];
/* Not held while anybody is called. */
static pthread_mutex_t cupti_buffers_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t length_of(const CUpti_Activity *record)
{
    size_t n = record->kind < FAKE_KINDS ? fake.lengths[record->kind] : 0;
    return (n + 7) & ~(size_t)7;
}

/* Whoever is registered now gets it, whoever's it is. */
static void hand_back(place p)
{
    if (!p.data)
        return;
    __atomic_fetch_sub(&fake.outstanding, 1, __ATOMIC_RELAXED);
    fake_get(fake_inside.completed)(NULL, 0, p.data, p.size, p.used);
}

/* Under the lock: its contents, and the place is free. */
static place emptied(place *p)
{
    place taken = *p;
    p->data = NULL;
    p->turn++;
    return taken;
}

static place *place_of(long tid)
{
    for (int i = 0; i < BUFFERS; i++)
        if (places[i].data && places[i].tid == tid)
            return &places[i];
    return NULL;
}

static void request(place *p)
{
    size_t most = 99;
    fake_get(fake_inside.requested)(&p->data, &p->size, &most);
    pthread_mutex_lock(&fake_lock);
    fake.nulls += p->data == NULL;
    fake.misaligned += (uintptr_t)p->data % 64 != 0 || most != 0;
    fake.buffers++;
    __atomic_fetch_add(&fake.outstanding, p->data != NULL, __ATOMIC_RELAXED);
    fake.smallest = p->size < fake.smallest ? p->size : fake.smallest;
    pthread_mutex_unlock(&fake_lock);
}

/* This thread's buffer with room for so much. NULL: there is none. With the lock. */
static place *make_room(long tid, size_t n)
{
    place *p = place_of(tid), full = {.data = NULL}, fresh = {.tid = tid};
    if (p && p->size - p->used >= n)
        return p;
    if (p && p->incomplete)
        p->tid = 0;
    else if (p)
        full = emptied(p);
    pthread_mutex_unlock(&cupti_buffers_lock);
    hand_back(full);
    request(&fresh);
    pthread_mutex_lock(&cupti_buffers_lock);
    for (int i = 0; i < BUFFERS && fresh.data; i++)
        if (!places[i].data) {
            fresh.turn = places[i].turn;
            places[i] = fresh;
            return fresh.size >= n ? &places[i] : NULL;
        }
    return NULL;
}

static fake_room put_record(const void *record, bool complete)
{
    size_t n = length_of(record);
    fake_room room = {.buffer = -1};
    pthread_mutex_lock(&cupti_buffers_lock);
    place *p = make_room(syscall(SYS_gettid), n);
    if (p) {
        room = (fake_room){(int)(p - places), p->turn, p->used};
        memcpy(p->data + p->used, record, complete ? n : sizeof(CUpti_ActivityKind));
        p->used += n;
        p->incomplete += !complete;
    }
    pthread_mutex_unlock(&cupti_buffers_lock);
    if (!p) {
        pthread_mutex_lock(&fake_lock);
        fake.dropped++;
        pthread_mutex_unlock(&fake_lock);
    }
    return room;
}

void fake_write(const void *record)
{
    put_record(record, true);
    fake_tell_other(record, length_of(record));
}

fake_room fake_reserve(const void *record)
{
    return put_record(record, false);
}

void fake_fill(fake_room room, const void *record)
{
    place full = {.data = NULL}, *p = room.buffer < 0 ? NULL : &places[room.buffer];
    pthread_mutex_lock(&cupti_buffers_lock);
    if (p && p->data && p->turn == room.turn) {
        memcpy(p->data + room.at, record, length_of(record));
        if (--p->incomplete == 0 && !p->tid)
            full = emptied(p);
    }
    pthread_mutex_unlock(&cupti_buffers_lock);
    hand_back(full);
    fake_tell_other(record, length_of(record));
}

static void give_back(bool forced)
{
    for (int i = 0; i < BUFFERS; i++) {
        place p = {.data = NULL};
        pthread_mutex_lock(&cupti_buffers_lock);
        if (places[i].data && (forced || !places[i].incomplete))
            p = emptied(&places[i]);
        pthread_mutex_unlock(&cupti_buffers_lock);
        hand_back(p);
    }
}

/* All there is, whatever is in it. */
void fake_give_back(void)
{
    if (fake_get(fake_inside.completed))
        give_back(true);
}

void fake_complete(void)
{
    give_back(false);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    told(__func__);
    fake_note("flush", (long)flag);
    pthread_mutex_lock(&fake_lock);
    __atomic_fetch_add(&fake.flushes, 1, __ATOMIC_RELAXED);
    fake.forced += flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
    pthread_mutex_unlock(&fake_lock);
    if (fake.on_flush)
        fake.on_flush(flag);
    give_back(flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    told(__func__);
    (void)context, (void)stream;
    pthread_mutex_lock(&fake_lock);
    *dropped = fake.dropped;
    fake.dropped = 0;
    pthread_mutex_unlock(&fake_lock);
    return CUPTI_SUCCESS;
}

/* Goes by the kinds' lengths alone, as the library does. */
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    told(__func__);
    size_t at = *record ? (size_t)((uint8_t *)*record - buffer) + length_of(*record) : 0;
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_Activity *next = (CUpti_Activity *)(void *)(buffer + at);
    if (valid - at < sizeof next->kind || length_of(next) == 0 || valid - at < length_of(next))
        return CUPTI_ERROR_INVALID_KIND;
    *record = next;
    return CUPTI_SUCCESS;
}

/* ---- memory ---- */

/* What is allocated, and pools, as CUPTI would tell of them: a record for each allocation and each
 * free (MEMORY2), and for what becomes of pools (MEMORY_POOL). Members that the header says are
 * not valid hold nonsense. */

enum { BLOCKS = 4096, POOLS = 32 };
#define NONSENSE UINT64_C(0xBADBADBADBADBAD0)

typedef struct block {
    uint64_t address, bytes, pool; /* address 0: free */
    CUpti_ActivityMemoryKind kind;
    uint32_t device;
} block;

typedef struct pool {
    uint64_t address, size, used; /* address 0: free */
    uint32_t device;
} pool;

static block blocks[BLOCKS];
static pool pools[POOLS];

void fake_forget_memory(void)
{
    memset(blocks, 0, sizeof blocks);
    memset(pools, 0, sizeof pools);
}

/* Address 0: a free place. */
static block *block_at(uint64_t address)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].address == address)
            return &blocks[i];
    return NULL;
}

static pool *pool_at(uint64_t address)
{
    for (int i = 0; i < POOLS; i++)
        if (pools[i].address == address)
            return &pools[i];
    return NULL;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + FAKE_POOL_PIECE - 1) / FAKE_POOL_PIECE * FAKE_POOL_PIECE;
}

/* The device's own pool is there without having been made; its first use makes it here. */
static pool *pool_of(const fake_call *c)
{
    pool *p = c->memory->pool && !c->memory->imported ? pool_at(c->memory->pool) : NULL;
    if (p || !c->memory->pool || c->memory->imported)
        return p;
    p = pool_at(0);
    if (p)
        *p = (pool){.address = c->memory->pool, .device = c->device_id};
    return p;
}

/* -- records -- */

static void cupti_memory_put(const void *record, size_t size, const fake_memory *m)
{
    CUpti_Activity any;
    memcpy(&any, record, sizeof any);
    if (!fake_is_on(any.kind))
        return;
    if (m->dropped) {
        pthread_mutex_lock(&fake_lock);
        fake.dropped++;
        pthread_mutex_unlock(&fake_lock);
    } else if (m->late) {
        fake_put_on_device(record, size);
    } else {
        fake_write(record);
    }
}

static void fill_config(CUpti_ActivityMemory4 *r, const fake_memory *m, const pool *p)
{
    r->memoryPoolConfig.address = r->memoryPoolConfig.releaseThreshold = NONSENSE;
    r->memoryPoolConfig.pool.size = r->memoryPoolConfig.utilizedSize = NONSENSE;
    r->memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID;
    if (m->imported) {
        r->memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED;
        r->memoryPoolConfig.address = m->pool;
        r->memoryPoolConfig.pool.processId = 4711;
    } else if (p) {
        r->memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
        r->memoryPoolConfig.address = p->address;
        r->memoryPoolConfig.releaseThreshold = UINT64_MAX;
        r->memoryPoolConfig.pool.size = p->size;
        r->memoryPoolConfig.utilizedSize = p->used;
    }
}

static void tell_block(const fake_call *c, const block *b, const pool *p, uint32_t correlation)
{
    CUpti_ActivityMemory4 r;
    const fake_memory *m = c->memory;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    r.memoryOperationType = m->what == FAKE_FREE ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                                 : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    r.memoryKind = b->kind;
    r.correlationId = correlation;
    r.address = b->address;
    r.bytes = b->bytes;
    r.timestamp = fake_now();
    r.PC = NONSENSE;
    r.processId = (uint32_t)getpid();
    r.deviceId = m->what == FAKE_FREE ? c->device_id : b->device;
    r.contextId = c->context ? c->context : 1 + c->device_id;
    r.isAsync = m->pool != 0;
    r.streamId = r.isAsync ? (c->stream ? c->stream : 7) : CUPTI_INVALID_STREAM_ID;
    fill_config(&r, m, p);
    cupti_memory_put(&r, sizeof r, m);
}

static void tell_pool(const fake_call *c, const pool *p, uint32_t correlation)
{
    static const CUpti_ActivityMemoryPoolOperationType types[] = {
        [FAKE_POOL_CREATE] = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED,
        [FAKE_POOL_TRIM] = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED,
        [FAKE_POOL_DESTROY] = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED};
    CUpti_ActivityMemoryPool3 r;
    memset(&r, 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
    r.memoryPoolOperationType = types[c->memory->what];
    r.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    r.correlationId = correlation;
    r.processId = (uint32_t)getpid();
    r.deviceId = p->device;
    r.minBytesToKeep = c->memory->what == FAKE_POOL_TRIM ? c->memory->bytes : NONSENSE;
    r.address = p->address;
    r.size = p->size;
    r.releaseThreshold = UINT64_MAX;
    r.timestamp = fake_now();
    r.utilizedSize = p->used;
    cupti_memory_put(&r, sizeof r, c->memory);
}

/* -- what happens -- */

static void allocate(const fake_call *c, uint32_t correlation)
{
    const fake_memory *m = c->memory;
    block *b = block_at(0);
    pool *p = pool_of(c);
    if (!m->address || block_at(m->address) || !b) {
        fake_misused("the script allocates what is allocated");
        return;
    }
    *b = (block){m->address, m->bytes, m->pool,
                 m->kind ? m->kind : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, c->device_id};
    if (p) {
        p->used += m->bytes;
        p->size = p->size < rounded(p->used) ? rounded(p->used) : p->size;
    }
    tell_block(c, b, p, correlation);
}

/* Another device's thread may free it: the record has its own device. */
static void release(const fake_call *c, uint32_t correlation)
{
    const fake_memory *m = c->memory;
    block *b = block_at(m->address);
    block before = {m->address, m->bytes, 0, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, c->device_id};
    if (!b != m->unknown) {
        fake_misused("the script frees what is not allocated");
        return;
    }
    pool *p = b && b->pool ? pool_at(b->pool) : NULL;
    if (p)
        p->used -= b->bytes;
    tell_block(c, b ? b : &before, p, correlation);
    if (b)
        b->address = 0;
}

static void change_pool(const fake_call *c, uint32_t correlation)
{
    const fake_memory *m = c->memory;
    pool *p = pool_of(c);
    if (!p)
        return;
    uint64_t least = rounded(p->used);
    if (m->what == FAKE_POOL_TRIM && p->size > m->bytes)
        p->size = least > m->bytes ? least : rounded(m->bytes);
    if (m->what == FAKE_POOL_DESTROY && p->used)
        fake_misused("the script destroys a pool in use");
    tell_pool(c, p, correlation);
    if (m->what == FAKE_POOL_DESTROY)
        p->address = 0;
}

void fake_tell_memory(const fake_call *c, uint32_t correlation)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (c->memory->what == FAKE_ALLOCATE)
        allocate(c, correlation);
    else if (c->memory->what == FAKE_FREE)
        release(c, correlation);
    else
        change_pool(c, correlation);
    pthread_mutex_unlock(&lock);
}
