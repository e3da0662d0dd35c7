#include "backend/cupti/memory.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cupti/callers.h"
#include "backend/cupti/control.h"
#include "backend/cupti/pools.h"
#include "base/array.h"
#include "session/activity.h"
#include "session/costs/gpu_memory.h"

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

static bool read_memory(const CUpti_Activity *record, held *h)
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

static bool read_pool(const CUpti_Activity *record, held *h)
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

/* Its place in time: as of all records (records.c). */
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

void pki_cupti_memory_add(const CUpti_Activity *record, const pki_cupti_span *span,
                          pki_cupti_counts *counts)
{
    held h = {.arrived = arrivals++};
    bool has = record->kind == CUPTI_ACTIVITY_KIND_MEMORY2
                   ? read_memory(record, &h)
                   : record->kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL && read_pool(record, &h);
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

void pki_cupti_memory_emit(uint64_t complete)
{
    size_t ready = 0;
    if (count)
        qsort(all, count, sizeof *all, compare);
    while (ready < count && all[ready].operation.ns < complete)
        emit(&all[ready++]);
    if (ready)
        memmove(all, all + ready, (count - ready) * sizeof *all);
    count -= ready;
    pki_gpu_memory_complete(pki_cupti_dropped(), lost);
}

void pki_cupti_memory_forget(void)
{
    free(all);
    pki_cupti_memory_after_fork();
}

void pki_cupti_memory_after_fork(void)
{
    all = NULL;
    count = room = 0;
    arrivals = lost = 0;
}
