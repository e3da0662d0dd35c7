/* A program that calls CUDA, and its device, as CUPTI would tell of them. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti_state.h"

#define PENDING 4096
#define NAPS_MOST 20000 /* of a millisecond */

typedef union any_record {
    CUpti_Activity any;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityGraphTrace2 graph;
    CUpti_ActivityAPI call;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivitySynchronization2 wait;
    CUpti_ActivityCudaEvent2 event;
    uint8_t longest[512];
} any_record;

static struct {
    any_record record;
    fake_room room; /* where it was launched */
} pending[PENDING];
static size_t pending_count;
static uint32_t correlations;

static bool is_on(CUpti_ActivityKind kind)
{
    return __atomic_load_n(&fake.enabled, __ATOMIC_RELAXED) >> kind & 1;
}

bool fake_is_on(CUpti_ActivityKind kind)
{
    return is_on(kind);
}

uint32_t fake_correlate(void)
{
    return __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
}

/* A device whose queue is full makes whoever launches wait. */
static void await_room(void)
{
    const struct timespec nap = {0, 1000000};
    for (unsigned i = 0; pending_count == PENDING; i++) {
        if (i == NAPS_MOST)
            abort(); /* nobody is there to finish anything */
        pthread_mutex_unlock(&fake_lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&fake_lock);
    }
}

static void enqueue(const any_record *r, fake_room room)
{
    pthread_mutex_lock(&fake_lock);
    await_room();
    pending[pending_count].record = *r;
    pending[pending_count++].room = room;
    pthread_mutex_unlock(&fake_lock);
}

static void put_on_device(const any_record *r)
{
    enqueue(r, fake_reserve(r));
}

void fake_put_on_device(const void *record, size_t size)
{
    any_record r;
    memset(&r, 0, sizeof r);
    memcpy(&r, record, size);
    put_on_device(&r);
}

void fake_forget_device(void)
{
    pending_count = 0;
}

/* The oldest ones, so many of them. */
void fake_finish_some(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        any_record r;
        pthread_mutex_lock(&fake_lock);
        if (pending_count == 0)
            count = 0;
        fake_room room = pending[0].room;
        r = pending[0].record;
        pending_count -= count > 0;
        memmove(pending, pending + 1, pending_count * sizeof *pending);
        pthread_mutex_unlock(&fake_lock);
        if (count)
            fake_fill(room, &r);
    }
}

void fake_finish(void)
{
    for (;;) {
        pthread_mutex_lock(&fake_lock);
        size_t all = pending_count;
        pthread_mutex_unlock(&fake_lock);
        if (!all)
            return;
        fake_finish_some(all);
    }
}

static void call_back(const fake_call *c, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                      CUpti_ApiCallbackSite site, uint32_t correlation)
{
    CUpti_CallbackData data = {.callbackSite = site, .correlationId = correlation};
    (void)c;
    CUpti_CallbackFunc callback = __atomic_load_n(&fake_inside.callback, __ATOMIC_ACQUIRE);
    if (callback && fake_get(fake_inside.called[domain][id]))
        callback(fake_inside.user, domain, id, &data);
}

/* A context is of one device. */
static uint32_t context_of(const fake_call *c)
{
    return c->context ? c->context : 1 + c->device_id;
}

static uint64_t start_of(const fake_call *c, uint64_t wanted)
{
    uint64_t now = c->at ? fake_now() : 0, start = wanted > now ? wanted : now;
    if (c->started)
        *c->started = start;
    return start;
}

/* There is room for its record before it starts. */
static void launch_one(const fake_call *c, uint32_t correlation, uint64_t wanted)
{
    any_record r;
    memset(&r, 0, sizeof r);
    r.any.kind = c->device;
    bool on = is_on(c->device);
    fake_room room = on ? fake_reserve(&r) : (fake_room){.buffer = -1};
    uint64_t start = start_of(c, wanted), end = start + (c->ns ? c->ns : 1000);
    switch (c->device) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        r.kernel.name = c->kernel ? c->kernel : "kernel";
        r.kernel.start = start;
        r.kernel.end = end;
        r.kernel.deviceId = c->device_id;
        r.kernel.contextId = context_of(c);
        r.kernel.streamId = c->stream ? c->stream : 7;
        r.kernel.correlationId = correlation;
        r.kernel.gridX = 4, r.kernel.gridY = 5, r.kernel.gridZ = 6;
        r.kernel.blockX = 128, r.kernel.blockY = 1, r.kernel.blockZ = 1;
        r.kernel.clusterX = 2, r.kernel.clusterY = 1, r.kernel.clusterZ = 1;
        r.kernel.registersPerThread = 32;
        r.kernel.staticSharedMemory = 1000, r.kernel.dynamicSharedMemory = 24;
        r.kernel.graphId = (uint32_t)c->graph;
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        r.copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
        r.copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
        r.copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        r.copy.bytes = c->bytes;
        r.copy.start = start, r.copy.end = end;
        r.copy.deviceId = c->device_id, r.copy.contextId = context_of(c);
        r.copy.streamId = c->stream ? c->stream : 7;
        r.copy.correlationId = correlation;
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        r.set.bytes = c->bytes;
        r.set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        r.set.start = start, r.set.end = end;
        r.set.deviceId = c->device_id, r.set.contextId = context_of(c);
        r.set.streamId = c->stream ? c->stream : 7;
        r.set.correlationId = correlation;
        break;
    default:
        r.graph.correlationId = correlation;
        r.graph.start = start, r.graph.end = end;
        r.graph.deviceId = c->device_id, r.graph.contextId = context_of(c);
        r.graph.graphId = (uint32_t)c->graph;
        r.graph.streamId = c->stream ? c->stream : 7;
    }
    if (on || fake_other_wants(c->device))
        enqueue(&r, room);
}

static void tell_region(uint32_t correlation)
{
    any_record r;
    if (fake_depth == 0 || !is_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
        return;
    memset(&r, 0, sizeof r);
    r.external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
    r.external.externalId = fake_stack[fake_depth - 1];
    r.external.correlationId = correlation;
    if (fake.external_last)
        put_on_device(&r);
    else
        fake_write(&r);
}

static void tell_call(CUpti_ActivityKind kind, uint32_t id, uint32_t correlation, uint64_t start,
                      uint64_t end, uint32_t result)
{
    any_record r;
    bool on = kind == CUPTI_ACTIVITY_KIND_RUNTIME
                  ? is_on(kind) && !fake_get(fake_inside.silent[id])
                  : fake_get(fake_inside.driver_calls[id]) || is_on(kind);
    if (!on)
        return;
    memset(&r, 0, sizeof r);
    r.call.kind = kind;
    r.call.cbid = id;
    r.call.start = start;
    r.call.end = end;
    r.call.threadId = (uint32_t)syscall(SYS_gettid);
    r.call.processId = (uint32_t)getpid();
    r.call.correlationId = correlation;
    r.call.returnValue = result;
    fake_write(&r);
}

/* Each recording of an event has a number of its own, which waits for it have, too. */
static uint64_t recordings[256];

static void tell_event(const fake_call *c, uint32_t correlation)
{
    static uint64_t number;
    any_record r;
    if (!c->records)
        return;
    recordings[c->records % 256] = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
    if (!is_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT))
        return;
    memset(&r, 0, sizeof r);
    r.event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    r.event.correlationId = correlation;
    r.event.contextId = context_of(c);
    r.event.streamId = c->stream ? c->stream : 7;
    r.event.eventId = c->records;
    r.event.deviceId = c->device_id;
    r.event.cudaEventSyncId = recordings[c->records % 256];
    put_on_device(&r); /* in another buffer than the call, as kernels */
}

/* Which members mean something, says the header by type. */
static void fill_wait(const fake_call *c, CUpti_ActivitySynchronization2 *w)
{
    bool of_stream = c->wait == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE ||
                     c->wait == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    bool of_event =
        c->waits_for && (c->wait == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE ||
                         c->wait == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
    w->streamId =
        of_stream && c->stream ? c->stream : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    w->cudaEventId = of_event ? c->waits_for : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    w->cudaEventSyncId =
        of_event ? recordings[c->waits_for % 256] : (uint64_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
}

static void tell_wait(const fake_call *c, uint32_t correlation, uint64_t start, uint64_t end)
{
    any_record r;
    bool unfinished = c->result == CUDA_ERROR_NOT_READY;
    if (!c->wait || !is_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) ||
        (unfinished && fake_get(fake_inside.no_unfinished)))
        return;
    memset(&r, 0, sizeof r);
    r.wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    r.wait.type = c->wait;
    r.wait.start = start;
    r.wait.end = end;
    r.wait.correlationId = correlation;
    r.wait.contextId = context_of(c);
    fill_wait(c, &r.wait);
    r.wait.returnValue = c->result;
    fake_write(&r);
}

uint32_t fake_play(const fake_call *c)
{
    bool driver = c->domain == CUPTI_CB_DOMAIN_DRIVER_API;
    uint32_t correlation = fake_correlate();
    uint64_t start = fake_now();
    call_back(c, c->domain, c->id, CUPTI_API_ENTER, correlation);
    tell_region(correlation);
    uint64_t inner = fake_now();
    uint32_t of_driver = c->memory && c->memory->by_driver ? fake_correlate() : correlation;
    if (c->inner)
        call_back(c, CUPTI_CB_DOMAIN_DRIVER_API, c->inner, CUPTI_API_ENTER, of_driver);
    uint64_t wait_start = fake_now(), wait_end = fake_now();
    if (c->memory && c->result == 0)
        fake_tell_memory(c, of_driver);
    if (c->inner) {
        call_back(c, CUPTI_CB_DOMAIN_DRIVER_API, c->inner, CUPTI_API_EXIT, of_driver);
        tell_call(CUPTI_ACTIVITY_KIND_DRIVER, c->inner, of_driver, inner, fake_now(), c->result);
    }
    tell_event(c, correlation);
    tell_wait(c, correlation, wait_start, wait_end);
    if (c->device && c->at)
        launch_one(c, correlation, c->at);
    uint64_t end = fake_now() + 10;
    call_back(c, c->domain, c->id, CUPTI_API_EXIT, correlation);
    tell_call(driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME, c->id, correlation,
              start, end, c->result);
    for (unsigned i = 0; c->device && !c->at && i < (c->kernels ? c->kernels : 1); i++)
        launch_one(c, correlation, end + (c->delay ? c->delay : 1000) + 2000 * i);
    return correlation;
}

/* ---- the table ---- */

/* Of another tool, whenever it likes. */
static CUptiResult another_clock(CUpti_TimestampCallbackFunc clock)
{
    fake.clocks++;
    fake_set(fake_inside.clock, clock);
    return CUPTI_SUCCESS;
}

static void reset(void)
{
    const CUpti_TimestampCallbackFunc clock = fake_inside.clock; /* it is for the process */
    unsigned clocks = fake.clocks;
    fake_give_back();
    fake_several_reset();
    memset(&fake, 0, sizeof fake);
    memset(&fake_inside, 0, sizeof fake_inside);
    fake_forget_device();
    fake_forget_memory();
    fake_inside.clock = clock;
    fake.clocks = clocks;
    fake.version = CUPTI_API_VERSION;
    fake.devices = 2;
    fake.smallest = SIZE_MAX;
    fake.lengths[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel10);
    fake.lengths[CUPTI_ACTIVITY_KIND_MEMCPY] = sizeof(CUpti_ActivityMemcpy6);
    fake.lengths[CUPTI_ACTIVITY_KIND_MEMCPY2] = sizeof(CUpti_ActivityMemcpyPtoP4);
    fake.lengths[CUPTI_ACTIVITY_KIND_MEMSET] = sizeof(CUpti_ActivityMemset4);
    fake.lengths[CUPTI_ACTIVITY_KIND_RUNTIME] = sizeof(CUpti_ActivityAPI);
    fake.lengths[CUPTI_ACTIVITY_KIND_DRIVER] = sizeof(CUpti_ActivityAPI);
    fake.lengths[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = sizeof(CUpti_ActivitySynchronization2);
    fake.lengths[CUPTI_ACTIVITY_KIND_CUDA_EVENT] = sizeof(CUpti_ActivityCudaEvent2);
    fake.lengths[CUPTI_ACTIVITY_KIND_OVERHEAD] = sizeof(CUpti_ActivityOverhead3);
    fake.lengths[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] =
        sizeof(CUpti_ActivityExternalCorrelation);
    fake.lengths[CUPTI_ACTIVITY_KIND_MEMORY2] = sizeof(CUpti_ActivityMemory4);
    fake.lengths[CUPTI_ACTIVITY_KIND_MEMORY_POOL] = sizeof(CUpti_ActivityMemoryPool3);
    fake.lengths[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = sizeof(CUpti_ActivityGraphTrace2);
    fake.noted = fake_noted;
    fake.play = fake_play;
    fake.finish = fake_finish;
    fake.finish_some = fake_finish_some;
    fake.register_other = fake_register_other;
    fake.write = fake_write;
    fake.complete = fake_complete;
    fake.correlate = fake_correlate;
    fake.clock = fake_now;
    fake.set_clock = another_clock;
    fake.all_waits = cuptiActivityEnableAllSyncRecords;
    fake.next = cuptiActivityGetNextRecord;
    fake.reset = reset;
}

fake_cupti_table *fake_cupti(void);
fake_cupti_table *fake_cupti(void)
{
    static bool once;
    if (!once)
        reset();
    once = true;
    return &fake;
}
