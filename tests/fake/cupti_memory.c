/* What is allocated, and pools, as CUPTI would tell of them: a record for each allocation and each
 * free (MEMORY2), and for what becomes of pools (MEMORY_POOL). Members that the header says are not
 * valid hold nonsense. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_state.h"

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

/* ---- records ---- */

static void put(const void *record, size_t size, const fake_memory *m)
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
    put(&r, sizeof r, m);
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
    put(&r, sizeof r, c->memory);
}

/* ---- what happens ---- */

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
