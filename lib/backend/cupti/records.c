/* lib/backend/cupti/records.c - what is in a buffer, what is noted of calls on the program's
 * threads, and the library's names of calls */
#include "backend/cupti/records.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "core/frames.h"
#include "core/names.h"
#include "core/thread.h"
#include "session/activity.h"
#include "session/costs/gpu_memory.h"

/* ---- in which region a call was made that allocates or frees ---- */

/* CUPTI calls back as such a call begins, on its thread, with the correlation that the record of
 * what it allocates will carry. What is open there is noted under that; no external id is pushed,
 * which would need a record of each call of the runtime.
 *
 * The places are 16384, each for the newest correlation that falls into it: a record is read within
 * two flushes, unless calls come by the hundred thousand a second. What was overwritten is known to
 * be unknown.
 *
 * Threads: any, without locks. */

#define PLACES 16384u /* a power of two */

static uint64_t noted[PLACES]; /* correlation, which CUPTI counts from 1, and region */

static void pki_cupti_caller_note(uint32_t correlation, uint32_t region)
{
    pki_store(&noted[correlation % PLACES], (uint64_t)correlation << 32 | region);
}

/* False: not known (any more). */
static bool pki_cupti_caller_of(uint32_t correlation, uint32_t *region)
{
    uint64_t found = pki_load(&noted[correlation % PLACES]);
    bool known = correlation && found >> 32 == correlation;
    *region = known ? (uint32_t)found : 0;
    return known;
}

/* ---- calls that ask whether an event or a stream is done, and do not wait ---- */

/* CUPTI records them as synchronisations, like calls that wait, and the collector asks about events
 * many times a second. Neither the record nor its type tells the two apart, so CUPTI's callback
 * notes which correlations were questions.
 *
 * The places are 8192, each for the newest question whose correlation falls into it: a record is
 * read within a round or two, unless a program asks hundreds of thousands of times a second.
 *
 * Threads: any, without locks. */

#define QUESTIONS 8192u /* a power of two */

static uint32_t questions[QUESTIONS]; /* correlations, which CUPTI counts from 1 */

static void note_question(uint32_t correlation)
{
    pki_store(&questions[correlation % QUESTIONS], correlation);
}

static bool is_question(uint32_t correlation)
{
    return correlation && pki_load(&questions[correlation % QUESTIONS]) == correlation;
}

/* ---- which region a call of CUDA was made in ---- */

_Static_assert(PKI_NAMES_MAX <= 1 << PKI_CUPTI_ID_BITS, "a name's id fits");

/* Odd while callbacks are to be used; grows with each switch, so that a thread knows what it has
 * left on its stack in an earlier time. */
static uint32_t epoch;

static bool noting; /* who allocates */

pki_cupti_launched pki_cupti_launches;

typedef struct mine {
    uint64_t launch;    /* number of the last call, if that was a launch that counts; 0 */
    uint32_t recording; /* pki_cupti_recording as it began */
    uint32_t epoch;
    uint32_t depth;  /* of calls that CUPTI called back for and that have not ended */
    uint32_t pushed; /* ids of ours on this thread's stack: 0 or 1 */
} mine;

static _Thread_local mine self;

/* 0: no region is open here. */
static uint64_t id_of_here(void)
{
    const pki_thread *t = pki_self;
    if (!pki_thread_is_joined(t) || pki_load(&t->ended))
        return 0;
    unsigned depth = pki_depth_in(pki_load(&t->state));
    if (depth == 0)
        return 0;
    const pki_frame *f = &t->frames[depth];
    return (uint64_t)(pki_load(&f->id) & PKI_FRAME_ID) | pki_load(&f->start) << PKI_CUPTI_ID_BITS;
}

static void pop(mine *m)
{
    if (m->pushed)
        pki_cupti.ActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, NULL);
    m->pushed = 0;
}

static void push(mine *m)
{
    uint64_t id = id_of_here();
    if (id && pki_cupti.ActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
                                                          id) == CUPTI_SUCCESS)
        m->pushed = 1;
}

/* The record of a thread's last launch is there once it calls something else, if nothing has been
 * switched off in between. */
static void count_call(mine *m, bool launches_now)
{
    uint32_t now = pki_load_acquire(&pki_cupti_recording); /* pairs with the release in record */
    uint64_t known = pki_load(&pki_cupti_launches.recorded);
    while (now && now == m->recording && known < m->launch &&
           !__atomic_compare_exchange_n(&pki_cupti_launches.recorded, &known, m->launch, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    m->recording = now;
    m->launch = now && launches_now ? pki_fetch_add(&pki_cupti_launches.begun, (uint64_t)1) + 1 : 0;
}

/* A call of the runtime makes calls of the driver: only the outermost counts. An end whose
 * beginning was not told of is not ours. */
void CUPTIAPI pki_cupti_called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void *data)
{
    const CUpti_CallbackData *call = data;
    uint32_t now = pki_load(&epoch);
    mine *m = &self;
    unsigned traits = pki_cupti_call_of(domain, id)->traits;
    (void)user;
    if (traits & PKI_CUPTI_ALLOCATES) {
        if (call->callbackSite == CUPTI_API_ENTER && pki_load(&noting))
            pki_cupti_caller_note(call->correlationId, pki_innermost_region());
        return;
    }
    if (!(now & 1) && !m->pushed)
        return;
    if (traits & PKI_CUPTI_ASKS) {
        note_question(call->correlationId);
        return;
    }
    if (m->epoch != now) {
        pop(m);
        *m = (mine){.epoch = now};
    }
    if (!(now & 1))
        return;
    if (call->callbackSite == CUPTI_API_ENTER && m->depth++ == 0) {
        count_call(m, traits & PKI_CUPTI_LAUNCHES);
        push(m);
    } else if (call->callbackSite != CUPTI_API_ENTER && m->depth > 0 && --m->depth == 0) {
        pop(m);
    }
}

static unsigned enable(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                       unsigned wanted, bool on)
{
    unsigned refused = 0;
    for (uint32_t id = 1; id < pki_cupti_calls_count(domain); id++)
        if (pki_cupti_call_of(domain, id)->traits & wanted)
            refused += pki_cupti.EnableCallback(on, subscriber, domain, id) != CUPTI_SUCCESS;
    return refused;
}

/* The runtime's questions are put by the driver's. */
static unsigned enable_all(CUpti_SubscriberHandle subscriber, bool on)
{
    unsigned wanted = PKI_CUPTI_LAUNCHES | PKI_CUPTI_WAITS;
    return enable(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, wanted, on) +
           enable(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, wanted | PKI_CUPTI_ASKS, on);
}

unsigned pki_cupti_attribute(CUpti_SubscriberHandle subscriber, bool on)
{
    if (on && !(pki_load(&epoch) & 1))
        pki_fetch_add(&epoch, 1u);
    return enable_all(subscriber, on);
}

unsigned pki_cupti_attribute_memory(CUpti_SubscriberHandle subscriber, bool on)
{
    pki_store(&noting, on);
    return enable(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, PKI_CUPTI_ALLOCATES, on) +
           enable(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, PKI_CUPTI_ALLOCATES, on);
}

void pki_cupti_attribute_off(void)
{
    uint32_t now = pki_load(&epoch); /* two may do this, where one has been left behind */
    if (now & 1)
        __atomic_compare_exchange_n(&epoch, &now, now + 1, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

/* ---- how much of a device's memory pools is in use, as a counter ---- */

#define POOLS_MOST 64

static struct pool {
    uint32_t device;
    uint64_t address, bytes;
} pools[POOLS_MOST];
static size_t pools_count;

/* A counter's name has to stay: so many devices have one. */
static pk_counter counters[] = {
    PK_COUNTER("GPU 0 pools", "bytes"), PK_COUNTER("GPU 1 pools", "bytes"),
    PK_COUNTER("GPU 2 pools", "bytes"), PK_COUNTER("GPU 3 pools", "bytes"),
    PK_COUNTER("GPU 4 pools", "bytes"), PK_COUNTER("GPU 5 pools", "bytes"),
    PK_COUNTER("GPU 6 pools", "bytes"), PK_COUNTER("GPU 7 pools", "bytes")};

static struct pool *find(const pki_cupti_record *r)
{
    for (size_t i = 0; i < pools_count; i++)
        if (pools[i].device == r->device && pools[i].address == r->id)
            return &pools[i];
    if (pools_count == POOLS_MOST)
        return NULL;
    pools[pools_count] = (struct pool){r->device, r->id, 0};
    return &pools[pools_count++];
}

void pki_cupti_pool_sample(const pki_cupti_record *r)
{
    uint64_t sum = 0;
    struct pool *p = find(r);
    if (!p || r->device >= PKI_COUNT_OF(counters))
        return;
    p->bytes = r->bytes;
    for (size_t i = 0; i < pools_count; i++)
        sum += pools[i].device == r->device ? pools[i].bytes : 0;
    pki_activity_counter_at(&counters[r->device], (double)sum, r->start);
}

/* ---- memory ---- */

#define HELD_MOST (1u << 20)

typedef struct held {
    pki_gpu_operation operation; /* address 0: of a pool alone */
    uint64_t arrived;            /* its number: those of one moment stay as they came */
    uint64_t pool, size, used;   /* pool 0: none with a record */
    bool gone;
} held;

static held *all;
static size_t count, room;
static uint64_t arrivals, lost; /* lost: records that are in no account */

/* ---- records ---- */

static bool kind_of(const CUpti_ActivityMemory4 *m, pki_gpu_kind *kind)
{
    switch (m->memoryKind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
        *kind =
            m->memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL ||
                    m->memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED
                ? PKI_GPU_POOL
                : PKI_GPU_DEVICE;
        return true;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
        *kind = PKI_GPU_PINNED;
        return true;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
        *kind = PKI_GPU_ARRAY;
        return true;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
        *kind = PKI_GPU_MANAGED;
        return true;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
        *kind = PKI_GPU_STATIC;
        return true;
    default:
        return false; /* pageable memory is the host's own; what is unknown is no device's */
    }
}

/* Of a pool that is the process's own; another one's record has its owner instead of its size. */
static void read_config(const CUpti_ActivityMemory4 *m, held *h)
{
    if (m->memoryPoolConfig.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL)
        return;
    h->pool = m->memoryPoolConfig.address;
    h->size = m->memoryPoolConfig.pool.size;
    h->used = m->memoryPoolConfig.utilizedSize;
}

static bool hold_memory(const CUpti_Activity *record, held *h)
{
    const CUpti_ActivityMemory4 *m = (const void *)record;
    pki_gpu_operation *o = &h->operation;
    bool frees = m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    if (!kind_of(m, &o->kind) ||
        (!frees && m->memoryOperationType != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION))
        return false;
    o->frees = frees;
    o->address = m->address;
    o->bytes = m->bytes;
    o->device = m->deviceId;
    o->ns = m->timestamp;
    o->known_region = pki_cupti_caller_of(m->correlationId, &o->region);
    read_config(m, h);
    return true;
}

static bool hold_pool(const CUpti_Activity *record, held *h)
{
    const CUpti_ActivityMemoryPool3 *p = (const void *)record;
    if (p->memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL)
        return false;
    h->operation.device = p->deviceId;
    h->operation.ns = p->timestamp;
    h->pool = p->address;
    h->size = p->size;
    h->used = p->utilizedSize;
    h->gone = p->memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
    return true;
}

/* Its place in time: as of all records (below). */
static bool set_time(held *h, const pki_cupti_span *span, pki_cupti_counts *counts)
{
    uint64_t t = h->operation.ns;
    if (t == 0 || t >> 63) {
        counts->bad_time++;
        return false;
    }
    h->operation.ns = pki_activity_ns(t);
    if (pki_cupti_is_placed(h->operation.ns, h->operation.ns, span))
        return true;
    counts->other_clock++;
    return false;
}

/* A record of another kind, or of what nobody can place, is left alone. */
static void hold(const CUpti_Activity *record, const pki_cupti_span *span, pki_cupti_counts *counts)
{
    held h = {.arrived = arrivals++};
    bool has = record->kind == CUPTI_ACTIVITY_KIND_MEMORY2
                   ? hold_memory(record, &h)
                   : record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL && hold_pool(record, &h);
    if (!has)
        return;
    if (!set_time(&h, span, counts)) {
        lost++;
    } else if (count < HELD_MOST && pki_array_fit(&all, &room, count + 1, sizeof *all)) {
        all[count++] = h;
    } else {
        lost++;
        counts->lost++;
    }
}

/* ---- in order ---- */

static int compare(const void *a, const void *b)
{
    const held *x = a, *y = b;
    if (x->operation.ns != y->operation.ns)
        return x->operation.ns < y->operation.ns ? -1 : 1;
    return x->arrived < y->arrived ? -1 : 1;
}

static void emit(const held *h)
{
    const pki_gpu_operation *o = &h->operation;
    const pki_cupti_record sample = {
        .device = o->device, .id = h->pool, .bytes = h->gone ? 0 : h->used, .start = o->ns};
    if (h->pool) { /* first: what it has reserved holds what is allocated of it */
        pki_gpu_memory_pool(o->device, h->pool, h->size, h->used, h->gone, o->ns);
        pki_cupti_pool_sample(&sample);
    }
    if (o->address)
        pki_gpu_memory_do(o);
}

void pki_cupti_memory_emit(uint64_t complete, uint64_t dropped)
{
    size_t ready = 0;
    if (count)
        qsort(all, count, sizeof *all, compare);
    while (ready < count && all[ready].operation.ns < complete)
        emit(&all[ready++]);
    if (ready)
        memmove(all, all + ready, (count - ready) * sizeof *all);
    count -= ready;
    pki_gpu_memory_complete(dropped, lost);
}

void pki_cupti_memory_forget(bool whole)
{
    if (whole)
        free(all);
    all = NULL;
    count = room = pools_count = 0;
    arrivals = lost = 0;
    pki_store(&noting, false);
}

/* ---- CUPTI's records in words of our own ---- */

/* The first version whose records have the field. Append-only, as the records are. */
static const uint32_t since[PKI_CUPTI_FIELDS] = {
    [PKI_CUPTI_HAS_CLUSTER] = PKI_CUPTI_11_8,
    [PKI_CUPTI_HAS_OVERHEAD_CORRELATION] = PKI_CUPTI_12_2,
    [PKI_CUPTI_HAS_OVERHEAD_DATA] = PKI_CUPTI_13_0,
};

bool pki_cupti_has(uint32_t version, pki_cupti_field field)
{
    return version >= since[field];
}

static bool has(pki_cupti_field field)
{
    return pki_cupti_has(pki_cupti_version(), field);
}

/* Some drivers give none, or one before the other, or with the highest bit set. */
static bool read_times(pki_cupti_record *r, uint64_t start, uint64_t end)
{
    if (start == 0 || end == 0 || end < start || start >> 63 || end >> 63)
        return false;
    r->start = pki_activity_ns(start);
    r->end = pki_activity_ns(end);
    return true;
}

static uint32_t device_of(uint32_t id)
{
    return id >= (uint32_t)INT_MAX ? PKI_NO_DEVICE : id;
}

/* What everything has that runs on a device, under the same names. */
#define READ_WHERE(r, from)                                                                        \
    ((r)->correlation = (from)->correlationId, (r)->device = (from)->deviceId,                     \
     (r)->context = (from)->contextId, (r)->stream = (from)->streamId)
#define READ_NODE(r, from) ((r)->id = (from)->graphId, (r)->node = (from)->graphNodeId)

static bool read_kernel(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityKernel10 *k = record;
    r->what = PKI_CUPTI_KERNEL;
    READ_WHERE(r, k);
    r->name = k->name;
    READ_NODE(r, k);
    memcpy(r->grid, &k->gridX, sizeof r->grid);
    memcpy(r->block, &k->blockX, sizeof r->block);
    if (has(PKI_CUPTI_HAS_CLUSTER))
        memcpy(r->cluster, &k->clusterX, sizeof r->cluster);
    r->registers = k->registersPerThread;
    r->shared_bytes = (uint32_t)k->staticSharedMemory + (uint32_t)k->dynamicSharedMemory;
    return read_times(r, k->start, k->end);
}

static bool read_copy(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityMemcpy6 *c = record;
    r->what = PKI_CUPTI_COPY;
    READ_WHERE(r, c);
    r->detail = c->copyKind;
    r->from = c->srcKind;
    r->to = c->dstKind;
    r->bytes = c->bytes;
    READ_NODE(r, c);
    r->from_device = r->to_device = PKI_NO_DEVICE;
    return read_times(r, c->start, c->end);
}

static bool read_copy_between(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityMemcpyPtoP4 *c = record;
    r->what = PKI_CUPTI_COPY;
    READ_WHERE(r, c);
    r->detail = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    r->from = c->srcKind;
    r->to = c->dstKind;
    r->bytes = c->bytes;
    READ_NODE(r, c);
    r->from_device = device_of(c->srcDeviceId);
    r->to_device = device_of(c->dstDeviceId);
    return read_times(r, c->start, c->end);
}

static bool read_set(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityMemset4 *m = record;
    r->what = PKI_CUPTI_SET;
    READ_WHERE(r, m);
    r->to = (uint8_t)m->memoryKind;
    r->bytes = m->bytes;
    READ_NODE(r, m);
    return read_times(r, m->start, m->end);
}

static bool read_graph(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityGraphTrace2 *g = record;
    r->what = PKI_CUPTI_GRAPH;
    r->correlation = g->correlationId;
    r->device = device_of(g->deviceId);
    r->context = g->contextId >= (uint32_t)INT_MAX ? 0 : g->contextId;
    r->stream = g->streamId;
    r->id = g->graphId;
    return read_times(r, g->start, g->end);
}

static bool read_call(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityAPI *a = record;
    r->what = a->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? PKI_CUPTI_RUNTIME : PKI_CUPTI_DRIVER;
    r->correlation = a->correlationId;
    r->device = PKI_NO_DEVICE;
    r->detail = a->cbid;
    r->thread = a->threadId;
    r->result = a->returnValue;
    return read_times(r, a->start, a->end);
}

static bool read_sync(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivitySynchronization2 *s = record;
    r->what = PKI_CUPTI_SYNC;
    r->correlation = s->correlationId;
    r->device = PKI_NO_DEVICE;
    r->context = s->contextId;
    r->stream = s->streamId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? 0 : s->streamId;
    r->id = s->cudaEventId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? 0 : s->cudaEventId;
    r->detail = s->type;
    return read_times(r, s->start, s->end);
}

static bool read_overhead(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityOverhead3 *o = record;
    r->what = PKI_CUPTI_OVERHEAD;
    r->device = PKI_NO_DEVICE;
    r->detail = o->overheadKind;
    if (o->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD)
        r->thread = o->objectId.pt.threadId;
    if (has(PKI_CUPTI_HAS_OVERHEAD_CORRELATION))
        r->correlation = o->correlationId;
    if (has(PKI_CUPTI_HAS_OVERHEAD_DATA) &&
        r->detail == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL)
        free(o->overheadData); /* the client's to free, says the header */
    return read_times(r, o->start, o->end);
}

static bool read_external(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityExternalCorrelation *e = record;
    r->what = PKI_CUPTI_EXTERNAL;
    r->correlation = e->correlationId;
    r->id = e->externalId;
    return e->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2; /* others are others' */
}

/* The first members, which are those of the older form. Its time is its call's. */
static bool read_event(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityCudaEvent2 *e = record;
    r->what = PKI_CUPTI_EVENT;
    r->correlation = e->correlationId;
    r->context = e->contextId;
    r->stream = e->streamId;
    r->id = e->eventId;
    return true;
}

/* What allocations of a pool leave in use. Those beside a pool say nothing about the whole. */
static bool read_memory(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityMemory4 *m = record;
    r->what = PKI_CUPTI_POOL;
    r->device = m->deviceId;
    r->id = m->memoryPoolConfig.address;
    r->bytes = m->memoryPoolConfig.utilizedSize;
    return m->memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL &&
           read_times(r, m->timestamp, m->timestamp);
}

static bool read_pool(const void *record, pki_cupti_record *r)
{
    const CUpti_ActivityMemoryPool3 *p = record;
    r->what = PKI_CUPTI_POOL;
    r->device = p->deviceId;
    r->id = p->address;
    r->bytes = p->memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED
                   ? 0
                   : p->utilizedSize;
    return p->memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL &&
           read_times(r, p->timestamp, p->timestamp);
}

typedef bool reader(const void *record, pki_cupti_record *r);

static reader *reader_of(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return read_kernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return read_copy;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return read_copy_between;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return read_set;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return read_graph;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return read_call;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return read_sync;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return read_overhead;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return read_external;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return read_event;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return read_memory;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        return read_pool;
    default:
        return NULL;
    }
}

static bool is_query(const pki_cupti_record *r)
{
    return r->what == PKI_CUPTI_SYNC && is_question(r->correlation);
}

/* True of what has no times to be wrong, and of questions, which are no waits. */
static bool may_be_passed_over(const pki_cupti_record *r)
{
    return r->what == PKI_CUPTI_EXTERNAL || r->what == PKI_CUPTI_POOL || is_query(r);
}

static void read_one(const CUpti_Activity *record, const pki_cupti_span *span,
                     pki_cupti_counts *counts, pki_cupti_take *take, void *user)
{
    pki_cupti_record r;
    reader *read = reader_of(record->kind);
    counts->records++;
    if (!read) {
        counts->unknown++;
        return;
    }
    memset(&r, 0, sizeof r);
    r.arrived = span->now;
    if (!read(record, &r) || is_query(&r))
        counts->bad_time += !may_be_passed_over(&r);
    else if (r.end && !pki_cupti_is_placed(r.start, r.end, span))
        counts->other_clock++;
    else
        take(user, &r);
}

static bool is_of_memory(const CUpti_Activity *record)
{
    return record->kind == CUPTI_ACTIVITY_KIND_MEMORY2 ||
           record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL;
}

void pki_cupti_read(const pki_cupti_buffer *b, const pki_cupti_span *span, pki_cupti_counts *counts,
                    pki_cupti_take *take, void *user, bool memory)
{
    for (size_t i = 0; i < PKI_COUNT_OF(b->begins); i++)
        for (uint64_t bits = b->begins[i]; bits; bits &= bits - 1) {
            size_t at = 8 * (64 * i + (size_t)__builtin_ctzll(bits));
            const CUpti_Activity *record = (const void *)(b->data + at);
            if (!memory || !is_of_memory(record)) {
                read_one(record, span, counts, take, user);
                continue;
            }
            counts->records++;
            hold(record, span, counts);
        }
    counts->broken += b->broken;
}

/* ---- names as PyTorch's tools know them ---- */

/* ---- calls ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t without_version(const char *name, size_t n)
{
    size_t i = n;
    while (i > 0 && is_digit(name[i - 1]))
        i--;
    return i >= 2 && i < n && name[i - 1] == 'v' && name[i - 2] == '_' ? i - 2 : n;
}

static size_t without_ending(const char *name, size_t n, const char *ending)
{
    size_t e = strlen(ending);
    return n > e && memcmp(name + n - e, ending, e) == 0 ? n - e : n;
}

void pki_cupti_plain_name(const char *name, char *plain, size_t size)
{
    while (*name == '_')
        name++;
    size_t n = without_version(name, strlen(name));
    n = without_ending(name, n, "_ptsz");
    n = without_ending(name, n, "_ptds");
    n = without_version(name, n); /* cuMemcpyHtoD_v2_ptds */
    snprintf(plain, size, "%.*s", (int)PKI_MIN(n, size - 1), name);
}

/* ---- which calls of the CUDA runtime and driver matter, and their names ---- */

#define IDS_MOST 16384u /* beyond any table of callback ids */
#define GAP 64u         /* so many unknown ids in a row are the end */

typedef struct table {
    pki_cupti_call *calls;
    uint32_t count;
} table;

static table runtime, driver;

typedef struct trait {
    const char *beginning;
    unsigned traits;
} trait;

/* Without the cuda or cu in front. */
static const trait traits[] = {
    {"LaunchHostFunc", 0},
    {"Launch", PKI_CUPTI_LAUNCHES},
    {"GraphLaunch", PKI_CUPTI_LAUNCHES},
    {"Memcpy", PKI_CUPTI_LAUNCHES},
    {"MemPrefetch", PKI_CUPTI_LAUNCHES},
    {"Memset", PKI_CUPTI_LAUNCHES},
    {"DeviceSynchronize", PKI_CUPTI_WAITS},
    {"CtxSynchronize", PKI_CUPTI_WAITS},
    {"StreamSynchronize", PKI_CUPTI_WAITS},
    {"StreamWaitEvent", PKI_CUPTI_WAITS},
    {"EventSynchronize", PKI_CUPTI_WAITS},
    {"EventQuery", PKI_CUPTI_ASKS},
    {"StreamQuery", PKI_CUPTI_ASKS},
    {"EventRecord", PKI_CUPTI_RECORDS},
    {"Malloc", PKI_CUPTI_ALLOCATES},
    {"Free", PKI_CUPTI_ALLOCATES},
    {"HostAlloc", PKI_CUPTI_ALLOCATES},
    {"HostRegister", PKI_CUPTI_ALLOCATES},
    {"HostUnregister", PKI_CUPTI_ALLOCATES},
    {"MemAlloc", PKI_CUPTI_ALLOCATES},
    {"MemFree", PKI_CUPTI_ALLOCATES},
    {"MemHost", PKI_CUPTI_ALLOCATES},
    {"MemCreate", PKI_CUPTI_ALLOCATES},
    {"MemRelease", PKI_CUPTI_ALLOCATES},
    {"MemMap", PKI_CUPTI_ALLOCATES},
    {"MemUnmap", PKI_CUPTI_ALLOCATES},
    {"MemPoolTrim", PKI_CUPTI_ALLOCATES},
    {"ArrayCreate", PKI_CUPTI_ALLOCATES},
    {"Array3DCreate", PKI_CUPTI_ALLOCATES},
    {"ArrayDestroy", PKI_CUPTI_ALLOCATES},
    {"MipmappedArray", PKI_CUPTI_ALLOCATES},
    {"GetDevice", PKI_CUPTI_QUIET},
    {"SetDevice", PKI_CUPTI_QUIET},
    {"GetLastError", PKI_CUPTI_QUIET},
    {"PeekAtLastError", PKI_CUPTI_QUIET},
    {"PushCallConfiguration", PKI_CUPTI_QUIET},
    {"PopCallConfiguration", PKI_CUPTI_QUIET},
    {"DeviceGetAttribute", PKI_CUPTI_QUIET},
    {"StreamIsCapturing", PKI_CUPTI_QUIET},
    {"StreamGetCaptureInfo", PKI_CUPTI_QUIET},
    {"ThreadExchangeStreamCaptureMode", PKI_CUPTI_QUIET},
};

unsigned pki_cupti_traits(CUpti_CallbackDomain domain, const char *name)
{
    const char *front = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cuda" : "cu";
    if (strncmp(name, front, strlen(front)) != 0)
        return 0;
    name += strlen(front);
    for (size_t i = 0; i < PKI_COUNT_OF(traits); i++) {
        size_t n = strlen(traits[i].beginning);
        bool whole = traits[i].traits == PKI_CUPTI_QUIET;
        if (strncmp(name, traits[i].beginning, n) == 0 && (!whole || !name[n]))
            return traits[i].traits;
    }
    return 0;
}

static bool learn(CUpti_CallbackDomain domain, table *t)
{
    size_t places = 0;
    for (uint32_t id = 1; id < IDS_MOST && id < t->count + GAP; id++) {
        char plain[128];
        const char *name = NULL;
        if (!pki_array_fit(&t->calls, &places, id + (size_t)1, sizeof *t->calls))
            return false;
        if (pki_cupti.GetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name)
            continue;
        pki_cupti_plain_name(name, plain, sizeof plain);
        t->calls[id] = (pki_cupti_call){strdup(plain), pki_cupti_traits(domain, plain)};
        t->count = id + 1;
    }
    return true;
}

bool pki_cupti_calls_learn(void)
{
    return (runtime.count || learn(CUPTI_CB_DOMAIN_RUNTIME_API, &runtime)) &&
           (driver.count || learn(CUPTI_CB_DOMAIN_DRIVER_API, &driver));
}

static const table *table_of(CUpti_CallbackDomain domain)
{
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? &runtime : &driver;
}

uint32_t pki_cupti_calls_count(CUpti_CallbackDomain domain)
{
    return table_of(domain)->count;
}

const pki_cupti_call *pki_cupti_call_of(CUpti_CallbackDomain domain, uint32_t id)
{
    static char runtime_name[] = "cuda (unknown call)", driver_name[] = "cu (unknown call)";
    static const pki_cupti_call nobody[] = {{runtime_name, 0}, {driver_name, 0}};
    const table *t = table_of(domain);
    if (id < t->count && t->calls[id].name)
        return &t->calls[id];
    return &nobody[domain != CUPTI_CB_DOMAIN_RUNTIME_API];
}
