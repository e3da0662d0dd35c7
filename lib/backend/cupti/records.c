#include "backend/cupti/records.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/queries.h"
#include "session/activity.h"

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
    return r->what == PKI_CUPTI_SYNC && pki_cupti_is_query(r->correlation);
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
                    pki_cupti_take *take, void *user, pki_cupti_allocated *allocated)
{
    CUpti_Activity *record = NULL;
    CUptiResult result = CUPTI_SUCCESS;
    uint8_t *data = (uint8_t *)(uintptr_t)b->data;
    while (b->valid && result == CUPTI_SUCCESS) {
        result = pki_cupti.ActivityGetNextRecord(data, b->valid, &record);
        if (result != CUPTI_SUCCESS)
            break;
        if (!allocated || !is_of_memory(record)) {
            read_one(record, span, counts, take, user);
            continue;
        }
        counts->records++;
        allocated(record, span, counts);
    }
    counts->broken += result != CUPTI_SUCCESS && result != CUPTI_ERROR_MAX_LIMIT_REACHED;
}
