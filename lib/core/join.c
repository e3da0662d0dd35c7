/* lib/core/join.c - how a thread gets its block, and gives it back. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/join.h"
#include "core/slots.h"

#define UPPER_GUARD (PKI_DEPTH_MAX + 1) /* its index among the frames */
#define POPULATED_AT_JOIN 65536u
#define REJOINS_AT_EXIT 3  /* thread-exit destructors that still record make a thread join again; not for ever */
#define RETRY_REFUSED 1024 /* a thread that found no memory asks again after so many regions */

/* Full and empty: every fast path's test fails here. Only `inside` is ever written. */
static pki_thread sentinel = {
    .top = &sentinel.frames[UPPER_GUARD],
    .frames = {[0] = {.what = PKI_NOBODY}, [UPPER_GUARD] = {.what = PKI_NOBODY}},
};

_Thread_local pki_thread *pki_self = &sentinel;

static _Thread_local unsigned leaves;
static _Thread_local unsigned refusals;

static pthread_key_t key;
static bool key_made;

static void leave_at_exit(void *block);

bool pki_join_prepare(void)
{
    if (!key_made)
        key_made = pthread_key_create(&key, leave_at_exit) == 0;
    return key_made;
}

void pki_join_after_fork(void)
{
    pki_self = &sentinel;
    leaves = refusals = 0;
    if (key_made)
        pthread_setspecific(key, NULL);
}

static size_t block_bytes(uint32_t ring_records)
{
    return sizeof(pki_thread) + (size_t)ring_records * sizeof(pki_record);
}

static bool add_standard_slots(pki_registry *r, pki_thread *t)
{
    return pki_slots_add(r->arena, t, PKI_NAME_TOO_MANY, sizeof(pki_slot)) &&
           pki_slots_add(r->arena, t, PKI_NAME_STEP, sizeof(pki_slot));
}

pki_thread *pki_block_create(pki_registry *r, uint32_t ring_records)
{
    pki_arena_header *h = r->arena->header;
    if (h->block_count == PKI_BLOCKS_MAX)
        return NULL;
    pki_thread *t = pki_arena_claim(r->arena, block_bytes(ring_records));
    if (!t)
        return NULL;
    t->ring = (pki_record *)(t + 1);
    t->mask = ring_records ? ring_records - 1 : 0;
    t->room = ring_records;
    t->monotonic = r->monotonic;
    t->registry = r;
    t->index = h->block_count;
    t->frames[0].what = t->frames[UPPER_GUARD].what = PKI_NOBODY;
    t->frames[0].start = t->frames[UPPER_GUARD].start = UINT64_MAX;
    t->top = t->frames;
    if (!add_standard_slots(r, t))
        return NULL; /* the arena is full: what was claimed last does not matter any more */
    h->blocks[h->block_count] = (uint32_t)(pki_arena_offset(r->arena, t) / PKI_PAGE);
    pki_store_release(&h->block_count, h->block_count + 1);
    return t;
}

/* A block that an ended thread has left. */
static pki_thread *free_block(pki_registry *r)
{
    for (uint32_t i = pki_registry_blocks(r); i-- > 0;) {
        pki_thread *t = pki_registry_block(r, i);
        if (pki_load(&t->state) == PKI_THREAD_FREE && (t->slots || add_standard_slots(r, t)))
            return t;
    }
    return NULL;
}

static void take_system_name(pki_thread *t)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (strcmp(t->name, name) == 0)
        return;
    memcpy(t->name, name, sizeof name);
    t->name_version++;
}

static void adopt(pki_registry *r, pki_thread *t)
{
    t->tid = (uint32_t)syscall(SYS_gettid);
    t->named = 0;
    t->name[0] = 0;
    t->name_version++;
    take_system_name(t);
    t->starved = 0;
    t->over = 0;
    t->top = t->frames;
    pki_store(&t->limit, &t->frames[PKI_DEPTH_MAX]);
    pki_store_release(&t->state, (uint32_t)PKI_THREAD_LIVE);
    r->references++;
    r->joined++;
}

/* Gives the calling thread's block back; its registry may end with it. Under the lock. */
static void part(pki_thread *t)
{
    pki_registry *r = t->registry;
    pki_self = &sentinel;
    pthread_setspecific(key, NULL);
    if (r != pki_registry_now() || r->over) {
        pki_registry_drop(r);
        return;
    }
    uint64_t now = pki_ticks(t->monotonic);
    pki_close_above(t, t->frames, now);
    pki_fold(t);
    if (!t->named)
        take_system_name(t);
    pki_store(&t->limit, (pki_frame *)NULL);
    pki_store_release(&t->state, (uint32_t)PKI_THREAD_LEFT); /* pairs with the acquire in the collector's round */
    pki_registry_drop(r);
}

static void leave_at_exit(void *block)
{
    int saved = errno;
    leaves++;
    pki_registry_lock();
    part(block);
    pki_registry_unlock();
    errno = saved;
}

static pki_thread *join(pki_registry *r)
{
    pki_thread *t = free_block(r);
    if (!t)
        t = pki_block_create(r, r->ring_records);
    if (!t || pthread_setspecific(key, t) != 0)
        return NULL;
    adopt(r, t);
    pki_self = t;
    refusals = 0;
    return t;
}

/* Under the lock. */
static pki_thread *joined(pki_registry *r)
{
    pki_thread *t = pki_self;
    if (t != &sentinel && t->registry == r)
        return t;
    if (t != &sentinel)
        part(t);
    return join(r);
}

/* The size of what a slot of that name holds. */
static size_t slot_bytes(uint32_t id)
{
    const pki_name *n = pki_name_at(id);
    return n && n->kind == PKI_KIND_COUNTER ? sizeof(pki_values) : sizeof(pki_slot);
}

static void add_slot(pki_registry *r, pki_thread *t, uint32_t id)
{
    pki_slot *slot = pki_slots_add(r->arena, t, id, slot_bytes(id));
    if (!slot)
        t->starved = 1;
    else if (slot_bytes(id) == sizeof(pki_values))
        pki_values_clear((pki_values *)slot, id);
}

/* The first page faults are taken here and not by the regions that follow. */
static void warm(const pki_thread *t)
{
    size_t ring = (size_t)(t->mask + 1) * sizeof(pki_record);
    pki_mem_populate((void *)(uintptr_t)t, sizeof *t + PKI_MIN(ring, POPULATED_AT_JOIN));
}

static pki_thread *join_with_slot(uint32_t id)
{
    const pki_thread *before = pki_self;
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    pki_thread *t = r && !r->over ? joined(r) : NULL; /* the session's reference keeps r until it is over */
    if (t && !pki_thread_slot(t, id))
        add_slot(r, t, id);
    bool refused = r && !r->over && !t;
    pki_registry_unlock();
    if (refused) {
        pki_registry_refuse();
        refusals++;
    } else if (t && t != before) {
        warm(t);
    }
    return t;
}

pki_thread *pki_thread_with_slot(uint32_t id)
{
    pki_thread *t = pki_self;
    if (t != &sentinel && pki_load(&t->limit) && (pki_thread_slot(t, id) || t->starved))
        return t;
    if (leaves >= REJOINS_AT_EXIT)
        return NULL;
    if (refusals % RETRY_REFUSED != 0 && t == &sentinel) {
        refusals++;
        pki_registry_refuse();
        return NULL;
    }
    int saved = errno;
    t = join_with_slot(id);
    errno = saved;
    return t;
}

bool pki_thread_is_joined(const pki_thread *t)
{
    return t != &sentinel;
}

void pk_thread_name(const char *name)
{
    if (!name || !pk_gate_)
        return;
    pki_thread *t = pki_thread_with_slot(PKI_NAME_TOO_MANY);
    if (!t)
        return;
    pki_registry_lock();
    strncpy(t->name, name, sizeof t->name - 1);
    t->name[sizeof t->name - 1] = 0;
    t->named = 1;
    t->name_version++;
    pki_registry_unlock();
}
