#include "core/registry.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/quiesce.h"
#include "core/join.h"
#include "core/slots.h"

#define PATIENCE 100000 /* yields that pk_stop grants a thread that was interrupted inside a recording call */

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

static pki_registry *make(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->arena = arena;
    r->ring_records = ring_records;
    r->monotonic = monotonic;
    r->references = 1;
    r->step_start = pki_ticks(monotonic);
    r->retired = pki_block_create(r, 0);
    if (!r->retired) {
        free(r);
        return NULL;
    }
    pki_store(&r->retired->state, (uint32_t)PKI_THREAD_RETIRED);
    return r;
}

pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    if (!pki_join_prepare())
        return NULL;
    pki_quiesce_prepare();
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

/* Whoever began before the fence either shows as inside or sees that it is over. */
static void wait_until_outside(pki_thread *t)
{
    for (int i = 0; i < PATIENCE && pki_load_acquire(&t->inside); i++) /* pairs with the release in pki_leave */
        sched_yield();
}

void pki_registry_close(pki_registry *r)
{
    pki_registry_lock();
    pki_store(&pk_gate_, 0u);
    r->over = true;
    uint32_t blocks = pki_registry_blocks(r);
    for (uint32_t i = 0; i < blocks; i++)
        pki_store(&pki_registry_block(r, i)->limit, (pki_frame *)NULL);
    pki_registry_unlock(); /* a thread inside may need it to get out */
    pki_quiesce_fence();
    for (uint32_t i = 0; i < blocks; i++)
        wait_until_outside(pki_registry_block(r, i));
}

uint32_t pki_registry_blocks(const pki_registry *r)
{
    return pki_load_acquire(&r->arena->header->block_count); /* pairs with the release in pki_block_create */
}

pki_thread *pki_registry_block(const pki_registry *r, uint32_t i)
{
    return pki_arena_at(r->arena, (uint64_t)r->arena->header->blocks[i] * PKI_PAGE);
}

static void move(uint64_t *to, uint64_t *from)
{
    *to += *from;
    *from = 0;
}

static void merge_slot(pki_arena *arena, pki_thread *to, const pki_slot *from)
{
    const pki_name *n = pki_name_at(from->id);
    bool values = n && n->kind == PKI_KIND_COUNTER;
    bool fresh = !pki_thread_slot(to, from->id);
    pki_slot *slot = pki_slots_add(arena, to, from->id, values ? sizeof(pki_values) : sizeof *slot);
    if (!slot)
        return;
    if (values && fresh)
        pki_values_clear((pki_values *)slot, from->id);
    if (values)
        pki_values_merge(arena, to, (pki_values *)slot, (const pki_values *)from);
    else
        pki_slots_merge(arena, to, slot, from);
}

static const pki_slot *next_slot(const pki_slot *slot)
{
    return slot->next ? pki_follow(slot, slot->next) : NULL;
}

void pki_registry_recycle(pki_registry *r, pki_thread *t)
{
    pki_thread *sum = r->retired;
    for (const pki_slot *s = t->first_slot; s; s = next_slot(s))
        merge_slot(r->arena, sum, s);
    move(&sum->begun, &t->begun);
    move(&sum->dropped, &t->dropped);
    move(&sum->unbalanced, &t->unbalanced);
    move(&sum->too_deep, &t->too_deep);
    move(&sum->stray_ends, &t->stray_ends);
    move(&sum->points, &t->points);
    move(&sum->points_dropped, &t->points_dropped);
    move(&sum->recorded, &t->recorded);
    pki_slots_reset(r->arena, t);
    if (r->stepper == t)
        r->stepper = sum; /* nobody: whoever goes on has no mark at the last step */
    pki_store_release(&t->state, (uint32_t)PKI_THREAD_FREE);
}

/* The call that is not folded in yet. Its own thread may be folding it at this moment: then the head moves on
 * and we leave it out. */
static bool add_pending(const pki_thread *t, uint32_t id, pk_stats *stats)
{
    uint64_t head = pki_load_acquire(&t->head); /* pairs with the release in pki_close_frame */
    const pki_slot *slot = pki_load_acquire(&t->pending); /* pairs with the release in pki_defer */
    uint64_t ticks = pki_load(&t->pending_ticks);
    if (!slot || slot->id != id || pki_load_acquire(&t->head) != head)
        return false;
    pki_stats_add_value(stats, ticks);
    return true;
}

bool pki_thread_stats(const pki_thread *t, uint32_t id, pk_stats *stats)
{
    const pki_slot *slot = pki_thread_slot(t, id);
    if (!slot)
        return false;
    uint64_t before = stats->count;
    pki_stats_add_slot(stats, slot);
    add_pending(t, id, stats);
    return stats->count > before || pki_load(&slot->self) || pki_load(&slot->bytes) || pki_load(&slot->flops);
}

void pki_registry_counts(const pki_registry *r, pk_counts *c)
{
    uint64_t none = pki_load(&refused);
    c->begun += none;
    c->dropped += none;
    c->points_dropped += pki_load(&r->steps_missed);
    c->threads = (uint32_t)r->joined;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++) {
        const pki_thread *t = pki_registry_block(r, i);
        c->recorded += pki_load(&t->recorded);
        c->begun += pki_load(&t->begun);
        c->dropped += pki_load(&t->dropped);
        c->unbalanced += pki_load(&t->unbalanced);
        c->too_deep += pki_load(&t->too_deep);
        c->stray_ends += pki_load(&t->stray_ends);
        c->points += pki_load(&t->points);
        c->points_dropped += pki_load(&t->points_dropped);
    }
    c->steps = pki_load(&r->step_index);
    c->memory_bytes = pki_load(&r->arena->header->used);
}

static pk_status merged_stats(uint32_t id, pk_stats *stats)
{
    pki_stats_begin(stats);
    pki_registry_lock();
    const pki_registry *r = now;
    bool any = false;
    for (uint32_t i = 0; r && i < pki_registry_blocks(r); i++)
        any |= pki_thread_stats(pki_registry_block(r, i), id, stats);
    pki_stats_finish(stats, r ? pki_clock_unit_ns(&r->arena->header->clock) : 1);
    pki_registry_unlock();
    return !r ? PK_EOFF : any ? PK_OK : PK_ENOENT;
}

pk_status pk_region_stats(const pk_region *region, pk_stats *stats)
{
    /* By name, not by id: this pk_region may not have been used itself, and must not be written to. */
    return merged_stats(pki_load(&region->id) ? pki_load(&region->id) : pki_region_id_of(region), stats);
}

pk_status pk_step_stats(pk_stats *stats)
{
    return merged_stats(PKI_NAME_STEP, stats);
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
