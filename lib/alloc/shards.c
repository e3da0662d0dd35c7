#include "alloc/shards.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "alloc/living.h"

_Thread_local shard *pki_shard;
shard pki_shard_of_others;

static shard *first;
static pthread_key_t at_thread_end;
static bool has_key;
static _Thread_local enum { NEW, CLAIMING, HAS, LEFT } stage;

shard *pki_shards(void)
{
    return __atomic_load_n(&first, __ATOMIC_ACQUIRE); /* pairs with the release in add */
}

static void add(shard *s)
{
    shard *before = pki_load(&first);
    do
        s->next = before;
    while (
        !__atomic_compare_exchange_n(&first, &before, s, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* One that a thread has left; it goes on counting where that one stopped. */
static shard *take_left(void)
{
    for (shard *s = pki_shards(); s; s = s->next) {
        uint32_t free = 0;
        /* the acquire pairs with the release in leave */
        if (!pki_load(&s->taken) && __atomic_compare_exchange_n(&s->taken, &free, 1, false,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return s;
    }
    return NULL;
}

static shard *make(void)
{
    shard *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->taken = 1;
    add(s);
    return s;
}

/* A key beyond the first 32 makes pthread_setspecific allocate: that call finds us CLAIMING. */
static shard *claim(void)
{
    int error = errno;
    stage = CLAIMING;
    shard *s = take_left();
    s = s ? s : make();
    if (s && has_key && pthread_setspecific(at_thread_end, s) == 0) {
        pki_shard = s;
        stage = HAS;
    } else if (s) { /* nobody would give it back */
        __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
        stage = NEW;
        s = NULL;
    } else {
        stage = NEW;
    }
    errno = error;
    return s;
}

static shard *get(void)
{
    return stage == NEW && pki_load(&has_key) ? claim() : NULL;
}

static void leave(void *of)
{
    shard *s = of;
    pki_shard = NULL;
    stage = LEFT;
    pki_tell_total(s);
    __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
}

static void add_to(uint64_t *word, uint64_t n)
{
    pki_fetch_add(word, n);
}

static void count_for_others(uint32_t region, int64_t allocated, int64_t freed)
{
    shard *s = &pki_shard_of_others;
    cell *c = &s->cells[region];
    uint32_t seen = pki_load(&s->regions);
    add_to(allocated >= 0 ? &c->allocations : &c->frees, 1);
    add_to(allocated >= 0 ? &c->bytes : &c->freed, (uint64_t)(allocated >= 0 ? allocated : freed));
    pki_fetch_add(&c->untold, allocated >= 0 ? allocated : -freed);
    pki_fetch_add(&s->untold, allocated >= 0 ? allocated : -freed);
    while (seen <= region && !__atomic_compare_exchange_n(&s->regions, &seen, region + 1, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    pki_tell_total(s);
    pki_tell_region(c, region);
}

bool pki_count_allocated_first(uint32_t region, uint64_t bytes)
{
    shard *s = get();
    if (s)
        return pki_count_allocated_in(s, region, bytes);
    count_for_others(region, (int64_t)bytes, 0);
    return false;
}

bool pki_count_freed_first(uint32_t region, uint64_t bytes)
{
    shard *s = get();
    if (s)
        return pki_count_freed_in(s, region, bytes);
    count_for_others(region, -1, (int64_t)bytes);
    return false;
}

/* Threads that are not here have left. */
static void after_fork(void)
{
    for (shard *s = pki_shards(); s; s = s->next)
        if (s != pki_shard)
            pki_store(&s->taken, 0);
    pki_alloc_keep_anew();
}

__attribute__((constructor)) static void prepare(void)
{
    pki_store(&has_key, pthread_key_create(&at_thread_end, leave) == 0);
    pthread_atfork(NULL, NULL, after_fork);
}
