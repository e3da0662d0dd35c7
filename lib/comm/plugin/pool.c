#include "comm/plugin/pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AHEAD 4 /* turns, in a pool larger than caches are */

pki_nccl_gate pki_nccl_open;
pki_nccl_losses pki_nccl_lost;

_Static_assert(PKI_NCCL_PLACES <= UINT16_MAX + 1, "a place is 16 bits");

/* Its pages are taken here, not in a callback. */
bool pki_nccl_pool_make(void)
{
    if (pki_load_acquire(&pki_nccl_open.pool)) /* pairs with the release below */
        return true;
    pki_nccl_pool *pool = NULL, *none = NULL;
    pki_store(&pki_nccl_open.pid, (int32_t)getpid());
    if (posix_memalign((void **)&pool, PKI_LINE, sizeof *pool) != 0)
        return false;
    memset(pool, 0, sizeof *pool);
    for (uint32_t i = 0; i < PKI_NCCL_PLACES; i++) {
        pool->heads[i] = pki_nccl_head(i, PKI_NCCL_FREE);
        pool->turns[i] = (uint16_t)i;
    }
    pool->given = PKI_NCCL_PLACES;
    if (!__atomic_compare_exchange_n(&pki_nccl_open.pool, &none, pool, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        free(pool);
    return true;
}

/* The child's NCCL, if it has one, starts anew; what the parent had open stays the parent's. */
void pki_nccl_pool_after_fork(void)
{
    pki_nccl_open.recording = 0;
    pki_nccl_open.pool = NULL;
    memset(&pki_nccl_lost, 0, sizeof pki_nccl_lost);
}

static uint16_t *turn_of(pki_nccl_pool *pool, uint64_t turn)
{
    return &pool->turns[turn % PKI_NCCL_PLACES];
}

static pki_nccl_event *event_of(pki_nccl_pool *pool, uint64_t turn)
{
    return &pool->events[pki_load(turn_of(pool, turn))];
}

/* Who loses a turn to another thread looks again. */
pki_nccl_event *pki_nccl_claim(uint64_t *handle)
{
    pki_nccl_pool *pool = pki_load_acquire(&pki_nccl_open.pool); /* pairs with its making */
    uint64_t turn = pool ? pki_load(&pool->taken) : 0;
    while (pool && turn != pki_load_acquire(&pool->given)) { /* pairs with release's release */
        uint32_t place = pki_load(turn_of(pool, turn));
        if (!__atomic_compare_exchange_n(&pool->taken, &turn, turn + 1, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        *handle = (pki_load(&pool->heads[place]) >> 2) + PKI_NCCL_PLACES;
        __builtin_prefetch(event_of(pool, turn + AHEAD), 1);
        __builtin_prefetch((char *)event_of(pool, turn + AHEAD) + PKI_LINE, 1);
        return &pool->events[place];
    }
    pki_fetch_add(&pki_nccl_lost.dropped, 1);
    return NULL;
}

bool pki_nccl_end(uint64_t handle, pki_nccl_event *event, uint64_t ticks)
{
    uint64_t open = pki_nccl_head(handle, PKI_NCCL_OPEN);
    uint64_t *head = &pki_nccl_the_pool()->heads[pki_nccl_place(handle)];
    pki_store(&event->stop, ticks);
    return __atomic_compare_exchange_n(head, &open, pki_nccl_head(handle, PKI_NCCL_STOPPED), false,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* A turn's slot is written anew when as many places have come back as there were turns until then.
 */
bool pki_nccl_is_claimed(uint64_t turn, uint32_t *place)
{
    pki_nccl_pool *pool = pki_nccl_the_pool();
    *place = *turn_of(pool, turn);
    return turn != pki_load(&pool->taken);
}

static void release(uint64_t handle)
{
    pki_nccl_pool *pool = pki_nccl_the_pool();
    uint64_t given = pki_load(&pool->given);
    pki_store(turn_of(pool, given), (uint16_t)pki_nccl_place(handle));
    pki_store_release(&pool->given, given + 1); /* pairs with the next claim's acquire */
}

void pki_nccl_free(uint64_t handle)
{
    pki_store(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
              pki_nccl_head(handle, PKI_NCCL_FREE));
    release(handle);
}

/* Who is about to stop it meets a word that is not an open event's. */
void pki_nccl_retire(uint64_t handle)
{
    __atomic_exchange_n(&pki_nccl_the_pool()->heads[pki_nccl_place(handle)],
                        pki_nccl_head(handle, PKI_NCCL_FREE), __ATOMIC_ACQUIRE);
    release(handle);
}
