#include "core/join.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/frames.h"
#include "core/events.h"
#include "core/mirror.h"

#define POPULATED_AT_JOIN 65536u
#define REJOINS_AT_EXIT                                                                            \
    3 /* thread-exit destructors that still record make a thread join again; not for ever */
#define MANY_WAITING 8 /* blocks that ended threads have left: a reason not to wait for a round */
#define RETRY_REFUSED 1024 /* a thread that found no memory asks again after so many regions */

static _Thread_local unsigned releases;
static _Thread_local unsigned refusals; /* in the session of this serial number */
static _Thread_local uint32_t refused_in;

static pthread_key_t key;
static bool key_made;
static pthread_key_t
    name_key; /* by pk_thread_set_name: it outlives the thread's blocks and sessions */
static bool name_key_made;

static void at_thread_exit(void *block);

bool pki_join_prepare(void)
{
    if (!key_made)
        key_made = pthread_key_create(&key, at_thread_exit) == 0;
    return key_made;
}

void pki_join_after_fork(void)
{
    pki_own = pki_self = &pki_sentinel;
    releases = refusals = 0;
    if (key_made)
        pthread_setspecific(key, NULL);
}

static size_t block_bytes(const pki_registry *r)
{
    return sizeof(pki_thread) + (size_t)r->ring_records * sizeof(pki_record);
}

static pki_thread *make_block(pki_registry *r)
{
    pki_thread *t = pki_arena_claim(r->arena, block_bytes(r));
    if (t) {
        pki_block_init(t, (pki_record *)(t + 1), r->ring_records * (uint32_t)sizeof(pki_record),
                       r->monotonic);
        t->registry = r;
        t->session = r->serial;
    }
    return t;
}

/* Memory takes its time: the lock, under which it is called, is given up meanwhile. */
static pki_thread *new_block(pki_registry *r)
{
    pki_arena_header *h = r->arena->header;
    if (h->block_count >= PKI_BLOCKS_MAX)
        return NULL;
    pki_registry_unlock();
    pki_thread *t = make_block(r);
    pki_registry_lock();
    if (!t || r->over || h->block_count >= PKI_BLOCKS_MAX)
        return NULL;
    t->index = h->block_count;
    h->blocks[h->block_count] = (uint32_t)(pki_arena_offset(r->arena, t) / PKI_PAGE);
    pki_store_release(&h->block_count,
                      h->block_count + 1); /* pairs with the acquire in pki_registry_blocks */
    return t;
}

static pki_thread *pop_free_block(pki_registry *r)
{
    pki_thread *t = r->free;
    if (t)
        r->free = t->next_free;
    return t;
}

static void copy_system_name(pki_thread *t)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (strcmp(t->name, name) != 0) {
        memcpy(t->name, name, sizeof name);
        pki_bump(&t->name_version, 1);
    }
}

static void set_name(pki_thread *t, const char *name)
{
    strncpy(t->name, name, sizeof t->name - 1);
    t->name[sizeof t->name - 1] = 0;
    t->named = 1;
    pki_bump(&t->name_version, 1);
}

/* The one that the thread has given itself, maybe before pk_start; else the system's. */
static void find_name(pki_thread *t)
{
    const char *own = name_key_made ? pthread_getspecific(name_key) : NULL;
    t->named = 0;
    t->name[0] = 0;
    pki_bump(&t->name_version, 1);
    if (own)
        set_name(t, own);
    else
        copy_system_name(t);
}

static void adopt(pki_registry *r, pki_thread *t)
{
    pki_store(&t->tid,
              (uint32_t)syscall(SYS_gettid)); /* session/collector/collect.c may be reading */
    find_name(t);
    t->starved = t->over = t->untimed_open = 0;
    t->steps = t->lost_since_step = 0;
    pki_store(&t->state, (pki_load(&t->state) & ~(uint64_t)UINT32_MAX) | PKI_FRAME_OFFSET(0));
    bool slow = t->monotonic || pki_mirrors_count() || pki_events_on();
    pki_store(&t->limit, slow ? 0 : PKI_FRAME_OFFSET(PKI_DEPTH_MAX));
    pki_store_release(
        &t->life, (uint32_t)PKI_THREAD_LIVE); /* pairs with the acquire in the collector's round */
    r->references++;
    r->arena->header->joined++;
}

/* Gives the calling thread's block back. Its registry may end with it: see pki_registry_drop. */
static pki_registry *detach(pki_thread *t)
{
    pki_registry *r = t->registry;
    pki_own = &pki_sentinel;
    pthread_setspecific(key, NULL);
    if (!pki_load(&t->ended)) {
        if (!t->named)
            copy_system_name(t);
        pki_store(&t->limit, 0u);
        pki_store_release(
            &t->life,
            (uint32_t)PKI_THREAD_LEFT); /* pairs with the acquire in the collector's round */
        r->waiting++;
    }
    return pki_registry_drop(r);
}

static void release_block(pki_thread *t)
{
    releases++;
    pki_bump(&t->unbalanced, t->untimed_open);
    if (!pki_load(&t->ended))
        pki_close_above(t, t->frames, pki_ticks(t->monotonic)); /* may take the lock itself */
    pki_sampler_release();
    pki_registry_lock();
    pki_registry *r = t->registry, *over = detach(t);
    void (*drain)(void) = r->waiting >= MANY_WAITING ? r->drain : NULL;
    pki_registry_unlock();
    pki_registry_destroy(over);
    if (drain)
        drain(); /* threads that follow each other fast would each take new memory */
}

static void at_thread_exit(void *block)
{
    int saved = errno;
    if (!pki_enter()) /* pthread_exit in a handler, amid something of ours: it stays as it is */
        return;
    if (pki_registry_is_responsive())
        release_block(block);
    pki_leave();
    errno = saved;
}

static pki_thread *join(pki_registry *r)
{
    pki_thread *t = pop_free_block(r);
    if (!t)
        t = new_block(r);
    if (!t)
        return NULL;
    if (pthread_setspecific(key, t) != 0) {
        t->next_free = r->free;
        r->free = t;
        return NULL;
    }
    adopt(r, t);
    pki_own = t;
    refusals = 0;
    return t;
}

/* The first page faults are taken here and not by the regions that follow. */
static void warm(pki_thread *t)
{
    uint64_t wanted = PKI_MIN(t->ring_bytes, POPULATED_AT_JOIN);
    pki_mem_populate(t, sizeof *t + wanted);
    pki_store(&t->populated, PKI_MAX(pki_load(&t->populated), wanted));
}

/* What the thread was in, and what it is to be in, may both end meanwhile. */
static pki_thread *join_now(void)
{
    pki_registry *over[2] = {NULL, NULL};
    pki_thread *t = NULL;
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    bool open = r && !r->over;
    if (open) {
        r->references++;
        over[0] = pki_own != &pki_sentinel ? detach(pki_own) : NULL;
        t = join(r);
        over[1] = pki_registry_drop(r);
    }
    pki_registry_unlock();
    pki_registry_destroy(over[0]);
    pki_registry_destroy(over[1]);
    if (t)
        warm(t);
    refusals += open && !t;
    return t;
}

/* Has this thread just been told that there is no memory? */
static bool is_refused(void)
{
    uint32_t serial = pki_registry_serial();
    if (refused_in != serial) {
        refused_in = serial;
        refusals = 0;
    }
    return refusals % RETRY_REFUSED != 0;
}

pki_thread *pki_thread_join(void)
{
    pki_thread *t = pki_own;
    if (t != &pki_sentinel && !pki_load(&t->ended))
        return t;
    if (releases >= REJOINS_AT_EXIT)
        return NULL;
    if (t == &pki_sentinel && is_refused()) {
        refusals++;
        return NULL;
    }
    int saved = errno;
    t = join_now();
    errno = saved;
    return t;
}

/* For the sessions to come: a thread may name itself before pk_start. Without memory it has the
 * system's name there. */
static void keep_name(const char *name)
{
    char *copy = strndup(name, PKI_THREAD_NAME - 1);
    if (!copy)
        return;
    pki_registry_lock();
    if (!name_key_made)
        name_key_made = pthread_key_create(&name_key, free) == 0;
    bool made = name_key_made;
    pki_registry_unlock();
    char *before = made ? pthread_getspecific(name_key) : NULL;
    free(made && pthread_setspecific(name_key, copy) == 0 ? before : copy);
}

/* Gives the name to what the calling thread records in now. */
static void name_block(const char *name)
{
    pki_thread *t = pki_thread_join();
    if (!t)
        return;
    pki_registry_lock();
    set_name(t, name);
    pki_registry_unlock();
}

void pk_thread_set_name(const char *name)
{
    if (!name || !pki_enter())
        return;
    int saved = errno;
    keep_name(name);
    if (pki_load(&pk_gate_))
        name_block(name);
    errno = saved;
    pki_leave();
}

bool pki_thread_name_of(uint32_t tid, const char *name)
{
    bool found = false;
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    for (uint32_t i = 0; r && !r->over && i < pki_registry_blocks(r) && !found; i++) {
        pki_thread *t = pki_registry_block(r, i);
        found = t->tid == tid && pki_load(&t->life) == PKI_THREAD_LIVE;
        if (found)
            set_name(t, name);
    }
    pki_registry_unlock();
    return found;
}
