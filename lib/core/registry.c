#include "core/registry.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/join.h"

uint32_t pk_gate_;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_registry *now;
static uint64_t refused; /* regions begun without a block in this session */

void pki_registry_lock(void)
{
    pthread_mutex_lock(&lock);
}

void pki_registry_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

pki_registry *pki_registry_now(void)
{
    return now;
}

void pki_registry_refuse(void)
{
    pki_fetch_add(&refused, 1);
}

/* Names that earlier sessions have used will be used again without passing through here. */
static bool mirror_all_names(pki_arena *arena)
{
    for (uint32_t id = PKI_NAME_TOO_MANY; id < pki_name_count(); id++)
        if (!pki_arena_mirror_name(arena, id))
            return false;
    return true;
}

void pki_registry_mirror(uint32_t id)
{
    pki_registry_lock();
    if (now && !now->over)
        pki_arena_mirror_name(now->arena,
                              id); /* without room: "(unknown)" after a kill, and only then */
    pki_registry_unlock();
}

static pki_registry *make(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *r = mirror_all_names(arena) ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->arena = arena;
    r->ring_records = ring_records;
    r->monotonic = monotonic;
    r->references = 1;
    r->step_start = pki_ticks(monotonic);
    return r;
}

pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    if (!pki_join_prepare())
        return NULL;
    pki_registry_lock();
    pki_registry *r = make(arena, ring_records, monotonic);
    if (r) {
        if (now)
            pki_registry_drop(now);
        now = r;
        pki_store(&refused, (uint64_t)0);
        pki_store_release(&pk_gate_, 1u);
    }
    pki_registry_unlock();
    return r;
}

void pki_registry_drop(pki_registry *r)
{
    if (--r->references > 0)
        return;
    pki_arena_destroy(r->arena);
    free(r);
}

void pki_registry_close(pki_registry *r)
{
    pki_registry_lock();
    pki_store(&pk_gate_, 0u);
    r->over = true;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++) {
        pki_thread *t = pki_registry_block(r, i);
        pki_store(&t->ended, 1u);
        pki_store(&t->limit, 0u);
    }
    pki_registry_unlock();
}

uint32_t pki_registry_blocks(const pki_registry *r)
{
    return pki_load_acquire(
        &r->arena->header->block_count); /* pairs with the release in new_block */
}

pki_thread *pki_registry_block(const pki_registry *r, uint32_t i)
{
    return pki_arena_at(r->arena, (uint64_t)r->arena->header->blocks[i] * PKI_PAGE);
}

uint64_t pki_thread_produced(const pki_thread *t)
{
    uint64_t bytes = pki_load(&t->laps) + (pki_load(&t->state) >> 32);
    return bytes / sizeof(pki_record) - pki_load(&t->others);
}

unsigned pki_thread_depth(const pki_thread *t)
{
    uint32_t top = (uint32_t)pki_load_acquire(&t->state); /* pairs with the release of state */
    unsigned depth = (top - PKI_FRAME_OFFSET(0)) / (unsigned)sizeof(pki_frame);
    return PKI_MIN(depth, PKI_DEPTH_MAX);
}

void pki_thread_counts(const pki_thread *t, pk_counts *c)
{
    uint64_t dropped = pki_load(&t->dropped);
    c->recorded += pki_load(&t->recorded);
    c->begun += pki_thread_produced(t) + dropped + pki_thread_depth(t);
    c->dropped += dropped;
    c->unbalanced += pki_load(&t->unbalanced);
    c->too_deep += pki_load(&t->too_deep);
    c->stray_ends += pki_load(&t->stray_ends);
    c->points += pki_load(&t->points);
    c->points_dropped += pki_load(&t->points_dropped);
}

void pki_registry_counts(const pki_registry *r, pk_counts *c)
{
    *c = r->arena->header->ended;
    uint64_t none = pki_load(&refused);
    c->begun += none;
    c->dropped += none;
    c->points_dropped += pki_load(&r->steps_missed);
    c->threads = (uint32_t)r->joined;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        pki_thread_counts(pki_registry_block(r, i), c);
    c->steps = pki_load(&r->step_index);
    c->memory_bytes = pki_load(&r->arena->header->used);
}

/* The ring goes on where it is, so that what the collector knows of it stays true. */
static void forget_counters(pki_thread *t)
{
    t->others = (t->laps + (pki_load(&t->state) >> 32)) / sizeof(pki_record);
    t->recorded = t->dropped = t->unbalanced = t->too_deep = t->stray_ends = t->points =
        t->points_dropped = 0;
}

void pki_registry_recycle(pki_registry *r, pki_thread *t)
{
    pki_thread_counts(t, &r->arena->header->ended);
    forget_counters(t);
    pki_table_reset(r->arena, &t->lost);
    pki_slot_clear(&t->last_resort, PKI_NAME_TOO_MANY);
    pki_thread *gone = t; /* another thread may be making a step meanwhile: its word stands */
    __atomic_compare_exchange_n(&r->stepper, &gone, NULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    pki_store_release(&t->life, (uint32_t)PKI_THREAD_FREE);
}

void pki_registry_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pk_gate_ = 0;
    if (now) /* the parent's memory, shared: out of reach from here on */
        pki_arena_destroy(now->arena);
    free(now);
    now = NULL;
    pki_join_after_fork();
}
