#include "backend/cupti/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/control.h"
#include "backend/cupti/records.h"
#include "base/atomic.h"
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

#define QUESTIONS 8192u /* a power of two */

static uint32_t questions[QUESTIONS]; /* correlations, which CUPTI counts from 1 */

static void pki_cupti_query_note(uint32_t correlation)
{
    pki_store(&questions[correlation % QUESTIONS], correlation);
}

bool pki_cupti_is_query(uint32_t correlation)
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
        pki_cupti_query_note(call->correlationId);
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
