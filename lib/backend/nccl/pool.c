#include "backend/nccl/pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AHEAD (4 * sizeof(pki_nccl_event)) /* in a pool larger than caches are */
#define TRIES 8 /* places taken by events that go on, before one is dropped */

pki_nccl_gate pki_nccl_open;
pki_nccl_ticket pki_nccl_tickets;

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
    for (uint32_t i = 0; i < PKI_NCCL_PLACES; i++)
        pool->heads[i] = pki_nccl_word(i, PKI_NCCL_FREE);
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
    memset(&pki_nccl_tickets, 0, sizeof pki_nccl_tickets);
}

static bool take(uint64_t *head, uint64_t word, uint64_t *handle)
{
    *handle = (word >> 2) + PKI_NCCL_PLACES;
    return __atomic_compare_exchange_n(head, &word, pki_nccl_word(*handle, PKI_NCCL_CLAIMED), false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The turn is a hint that threads may overwrite: who meets at a place sees it there. */
pki_nccl_event *pki_nccl_claim(uint64_t *handle)
{
    pki_nccl_pool *pool = pki_load_acquire(&pki_nccl_open.pool); /* pairs with its making */
    uint64_t next = pki_load(&pki_nccl_tickets.next);
    for (unsigned busy = 0; pool && busy < TRIES; next++) {
        uint32_t place = (uint32_t)next % PKI_NCCL_PLACES;
        uint64_t word = pki_load(&pool->heads[place]);
        busy += (word & 3) != PKI_NCCL_FREE;
        if ((word & 3) != PKI_NCCL_FREE || !take(&pool->heads[place], word, handle))
            continue;
        pki_store(&pki_nccl_tickets.next, next + 1);
        __builtin_prefetch((char *)&pool->events[place] + AHEAD, 1);
        __builtin_prefetch((char *)&pool->events[place] + AHEAD + PKI_LINE, 1);
        return &pool->events[place];
    }
    pki_store(&pki_nccl_tickets.next, next);
    pki_fetch_add(&pki_nccl_tickets.dropped, 1);
    return NULL;
}

bool pki_nccl_end(uint64_t handle, pki_nccl_event *event, uint64_t ticks)
{
    uint64_t open = pki_nccl_word(handle, PKI_NCCL_OPEN);
    uint64_t *head = &pki_nccl_open.pool->heads[pki_nccl_place(handle)];
    pki_store(&event->stop, ticks);
    return __atomic_compare_exchange_n(head, &open, pki_nccl_word(handle, PKI_NCCL_STOPPED), false,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void pki_nccl_free(uint64_t handle)
{
    pki_store_release(&pki_nccl_open.pool->heads[pki_nccl_place(handle)],
                      pki_nccl_word(handle, PKI_NCCL_FREE));
}

void pki_nccl_retire(uint64_t handle)
{
    uint64_t open = pki_nccl_word(handle, PKI_NCCL_OPEN);
    uint64_t *head = &pki_nccl_open.pool->heads[pki_nccl_place(handle)];
    if (!__atomic_compare_exchange_n(head, &open, pki_nccl_word(handle, PKI_NCCL_FREE), false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        pki_nccl_free(handle);
}
