#include "alloc/shards.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "alloc/living.h"
#include "alloc/room.h"

#define STEP 65536u       /* of the first shards; each doubling of their number halves it... */
#define LEAST_STEP 16384u /* ...to this one */
#define FIRST_SHARDS 64u  /* which have STEP */

shard pki_shard_of_others;
static cell far_of_others[PKI_ALLOC_REGIONS - PKI_ALLOC_NEAR];
_Thread_local shard *pki_shard = &pki_shard_of_others;

static shard *first;
static uint32_t made;
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
static shard *reuse(void)
{
    for (shard *s = pki_shards(); s; s = s->next) {
        uint32_t free = 0;
        /* the acquire pairs with the release in release_own */
        if (!pki_load(&s->taken) && __atomic_compare_exchange_n(&s->taken, &free, 1, false,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return s;
    }
    return NULL;
}

static uint64_t step_of(uint32_t before)
{
    uint64_t step = STEP;
    for (uint32_t with_it = FIRST_SHARDS; before >= with_it && step > LEAST_STEP; with_it *= 2)
        step /= 2;
    return step;
}

static shard *make(void)
{
    shard *s = pki_room_map(sizeof *s);
    if (!s)
        return NULL;
    s->taken = 1;
    s->step = step_of(pki_fetch_add(&made, 1));
    s->twice = 2 * s->step;
    add(s);
    return s;
}

/* A key beyond the first 32 makes pthread_setspecific allocate: that call finds us CLAIMING. */
static bool claim(void)
{
    int error = errno;
    stage = CLAIMING;
    shard *s = reuse();
    s = s ? s : make();
    if (s && has_key && pthread_setspecific(at_thread_end, s) == 0) {
        pki_shard = s;
        stage = HAS;
    } else { /* nobody would give it back */
        if (s)
            __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
        stage = NEW;
    }
    errno = error;
    return stage == HAS;
}

static bool get(void)
{
    return stage == HAS || (stage == NEW && pki_load(&has_key) && claim());
}

static void release_own(void *of)
{
    shard *s = of;
    pki_shard = &pki_shard_of_others;
    stage = LEFT;
    pki_living_flush_total(s);
    __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
}

/* ---- where a region is counted ---- */

/* The loser of two who make the same, which can be a handler and whom it has struck, gives its own
 * back. */
static cell *make_far(shard *s, uint32_t part)
{
    cell *cells = pki_room_map(PKI_ALLOC_NEAR * sizeof *cells), *there = NULL;
    if (!cells)
        return NULL;
    /* pairs with the acquire in pki_cell_of */
    if (__atomic_compare_exchange_n(&s->far[part], &there, cells, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE))
        return cells;
    pki_room_unmap(cells, PKI_ALLOC_NEAR * sizeof *cells);
    return there;
}

cell *pki_cell_of(shard *s, uint32_t region)
{
    if (region < PKI_ALLOC_NEAR)
        return &s->cells[region];
    if (s == &pki_shard_of_others)
        return &far_of_others[region - PKI_ALLOC_NEAR];
    cell *cells = pki_load_acquire(&s->far[region / PKI_ALLOC_NEAR - 1]);
    return cells ? &cells[region % PKI_ALLOC_NEAR] : NULL;
}

static void raise_to(uint32_t *seen, uint32_t count)
{
    uint32_t before = pki_load(seen);
    while (before < count && !__atomic_compare_exchange_n(seen, &before, count, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* In the thread's own shard; NULL: there is no room. */
static cell *cell_in(shard *s, uint32_t region)
{
    int error = errno;
    cell *c = pki_cell_of(s, region);
    if (!c && make_far(s, region / PKI_ALLOC_NEAR - 1))
        c = pki_cell_of(s, region);
    if (c) {
        raise_to(&s->near, PKI_MIN(region + 1, PKI_ALLOC_NEAR));
        raise_to(&s->regions, region + 1);
    }
    errno = error;
    return c;
}

static void count_for_others(uint32_t region, int64_t allocated, int64_t freed)
{
    shard *s = &pki_shard_of_others;
    cell *c = pki_cell_of(s, region);
    bool is_new = allocated >= 0;
    pki_fetch_add(is_new ? &c->allocations : &c->frees, 1);
    pki_fetch_add(is_new ? &c->bytes : &c->freed, (uint64_t)(is_new ? allocated : freed));
    pki_fetch_add(&c->unflushed, is_new ? allocated : -freed);
    pki_fetch_add(&s->unflushed, is_new ? allocated : -freed);
    raise_to(&s->regions, region + 1);
    pki_living_flush_total(s);
    pki_living_flush_region(c, region);
}

bool pki_count_allocated_first(uint32_t region, uint64_t bytes)
{
    cell *c = get() ? cell_in(pki_shard, region) : NULL;
    if (c)
        return pki_count_allocated_in(pki_shard, c, bytes);
    count_for_others(region, (int64_t)bytes, 0);
    return false;
}

bool pki_count_freed_first(uint32_t region, uint64_t bytes)
{
    cell *c = get() ? cell_in(pki_shard, region) : NULL;
    if (c)
        return pki_count_freed_in(pki_shard, c, bytes);
    count_for_others(region, -1, (int64_t)bytes);
    return false;
}

/* Threads that are not here have left. */
static void after_fork(void)
{
    for (shard *s = pki_shards(); s; s = s->next)
        if (s != pki_shard)
            pki_store(&s->taken, 0);
    pki_alloc_unlock_peak();
}

__attribute__((constructor)) static void prepare(void)
{
    pki_store(&has_key, pthread_key_create(&at_thread_end, release_own) == 0);
    pthread_atfork(NULL, NULL, after_fork);
}
