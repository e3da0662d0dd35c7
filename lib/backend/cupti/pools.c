#include "backend/cupti/pools.h"

#include "session/activity.h"

#define POOLS_MOST 64

static struct pool {
    uint32_t device;
    uint64_t address, bytes;
} pools[POOLS_MOST];
static size_t count;

/* A counter's name has to stay: so many devices have one. */
static pk_counter counters[] = {
    PK_COUNTER("GPU 0 pools", "bytes"), PK_COUNTER("GPU 1 pools", "bytes"),
    PK_COUNTER("GPU 2 pools", "bytes"), PK_COUNTER("GPU 3 pools", "bytes"),
    PK_COUNTER("GPU 4 pools", "bytes"), PK_COUNTER("GPU 5 pools", "bytes"),
    PK_COUNTER("GPU 6 pools", "bytes"), PK_COUNTER("GPU 7 pools", "bytes")};

void pki_cupti_pools_forget(void)
{
    count = 0;
}

static struct pool *find(const pki_cupti_record *r)
{
    for (size_t i = 0; i < count; i++)
        if (pools[i].device == r->device && pools[i].address == r->id)
            return &pools[i];
    if (count == POOLS_MOST)
        return NULL;
    pools[count] = (struct pool){r->device, r->id, 0};
    return &pools[count++];
}

void pki_cupti_pool_sample(const pki_cupti_record *r)
{
    uint64_t sum = 0;
    struct pool *p = find(r);
    if (!p || r->device >= PKI_COUNT_OF(counters))
        return;
    p->bytes = r->bytes;
    for (size_t i = 0; i < count; i++)
        sum += pools[i].device == r->device ? pools[i].bytes : 0;
    pki_activity_counter_at(&counters[r->device], (double)sum, r->start);
}
