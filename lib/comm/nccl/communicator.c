#include "comm/nccl/communicator.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256
#define CACHED_BITS 3
#define WAITING 64 /* handles that one group fills in; of others NCCL is asked */

typedef struct known {
    struct known *next;
    pki_wrap_comm handle;
    pki_wrap_identity identity;
    int children;  /* split off so far */
    pk_comm *comm; /* NULL: not yet asked for */
} known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known *buckets[BUCKETS];
static uint64_t generation = 1; /* one more with each that goes or comes: a handle may come back */

static __thread struct {
    uint64_t generation;
    pki_wrap_comm handle;
    pk_comm *comm;
} cache[1 << CACHED_BITS];

static __thread struct {
    unsigned depth, count;
    struct {
        pki_wrap_comm *place;
        pki_wrap_identity identity;
    } * list;
} group;

static uint64_t hash_of(pki_wrap_comm handle)
{
    return (uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15);
}

/* ---- under the lock ---- */

static known **link_to(pki_wrap_comm handle)
{
    known **at = &buckets[hash_of(handle) >> 56];
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static void changed(void)
{
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE); /* pairs with the acquire in comm_of */
}

static known *add(pki_wrap_comm handle, const pki_wrap_identity *identity)
{
    known *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    known **at = link_to(handle);
    *k = (known){.next = *at, .handle = handle, .identity = *identity};
    *at = k;
    return k;
}

static void drop(pki_wrap_comm handle)
{
    known **at = link_to(handle), *k = *at;
    if (!k)
        return;
    *at = k->next;
    pk_comm_destroy(k->comm);
    free(k);
    changed();
}

/* A child has one thread, and the lock may have been another's. */
static void after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
}

/* ---- asking NCCL ---- */

static void query_ranks(known *k)
{
    int ranks = 0, rank = -1;
    pki_wrap_result (*count)(const pki_wrap_comm, int *) = PKI_WRAP_REAL(CommCount);
    pki_wrap_result (*user_rank)(const pki_wrap_comm, int *) = PKI_WRAP_REAL(CommUserRank);
    if (!count || !user_rank || count(k->handle, &ranks) != PKI_WRAP_SUCCESS ||
        user_rank(k->handle, &rank) != PKI_WRAP_SUCCESS)
        return;
    char name[PKI_WRAP_NAME];
    if (k->identity.name[0])
        snprintf(name, sizeof name, "%s", k->identity.name);
    else if (k->identity.id)
        snprintf(name, sizeof name, "nccl %016llx", (unsigned long long)k->identity.id);
    else
        snprintf(name, sizeof name, "communicator of %d", ranks);
    k->comm = pk_comm_create("NCCL", name, k->identity.id, rank, ranks);
}

static pk_comm *look_up(pki_wrap_comm handle)
{
    static const pki_wrap_identity nothing;
    enter();
    known *k = *link_to(handle);
    bool unmet = !k;
    k = k ? k : add(handle, &nothing);
    if (k && !k->comm)
        query_ranks(k); /* one that does not block may not be ready: asked again the next time */
    pk_comm *comm = k ? k->comm : NULL;
    if (k && !comm && unmet)
        drop(handle); /* not one */
    pthread_mutex_unlock(&lock);
    return comm;
}

pk_comm *pki_wrap_comm_of(pki_wrap_comm handle)
{
    unsigned i = (unsigned)(hash_of(handle) >> (64 - CACHED_BITS));
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (__builtin_expect(cache[i].handle == handle && cache[i].generation == now, 1))
        return cache[i].comm;
    int saved = errno;
    pk_comm *comm = handle ? look_up(handle) : NULL;
    if (comm) {
        cache[i].generation = now;
        cache[i].handle = handle;
        cache[i].comm = comm;
    }
    errno = saved;
    return comm;
}

pk_comm *pki_wrap_comm_met(pki_wrap_comm handle)
{
    enter();
    known *k = *link_to(handle);
    pk_comm *comm = k ? k->comm : NULL;
    pthread_mutex_unlock(&lock);
    return comm;
}

/* ---- names and ids ---- */

/* As NCCL hashes a unique id for those that it notifies of a communicator: 33 times what was, XOR a
 * byte with its sign, from 5381 on. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const signed char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = hash * 33 ^ (uint64_t)(int64_t)p[i];
    return hash;
}

static const char *name_in(const pki_wrap_config *config)
{
    bool has = config && config->size >= sizeof *config && config->size < 4096;
    return has && config->comm_name ? config->comm_name : "";
}

pki_wrap_identity pki_wrap_identify(const pki_wrap_id *id, const pki_wrap_config *config)
{
    pki_wrap_identity identity = {0};
    if (id)
        identity.id = hash_bytes(5381, id, sizeof *id);
    snprintf(identity.name, sizeof identity.name, "%s", name_in(config));
    return identity;
}

/* All ranks of the parent call it, those without a colour, too. */
pki_wrap_identity pki_wrap_identify_child(pki_wrap_comm parent, int color,
                                          const pki_wrap_config *config)
{
    static const pki_wrap_identity nothing;
    pki_wrap_identity identity = nothing;
    enter();
    known *k = *link_to(parent);
    k = k || !parent ? k : add(parent, &nothing);
    int number = k ? ++k->children : 0;
    if (k && k->identity.id)
        identity.id =
            hash_bytes(hash_bytes(k->identity.id, &number, sizeof number), &color, sizeof color);
    if (*name_in(config))
        snprintf(identity.name, sizeof identity.name, "%s", name_in(config));
    else if (k && k->identity.name[0])
        snprintf(identity.name, sizeof identity.name, "%.40s/%d.%d", k->identity.name, number,
                 color);
    pthread_mutex_unlock(&lock);
    return identity;
}

/* ---- coming and going ---- */

static void meet(pki_wrap_comm handle, const pki_wrap_identity *identity)
{
    enter();
    drop(handle); /* one that went without a word */
    add(handle, identity);
    changed();
    pthread_mutex_unlock(&lock);
}

static void wait_for(pki_wrap_comm *place, const pki_wrap_identity *identity)
{
    if (!group.list)
        group.list = calloc(WAITING, sizeof *group.list);
    if (!group.list || group.count == WAITING)
        return;
    group.list[group.count].place = place;
    group.list[group.count++].identity = *identity;
}

void pki_wrap_made(pki_wrap_comm *place, const pki_wrap_identity *identity, pki_wrap_result result)
{
    int saved = errno;
    if (pki_wrap_went_well(result) && place) {
        if (group.depth > 0)
            wait_for(place, identity);
        else if (*place)
            meet(*place, identity);
    }
    errno = saved;
}

void pki_wrap_forget(pki_wrap_comm handle)
{
    int saved = errno;
    enter();
    drop(handle);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void pki_wrap_group_start(void)
{
    group.depth++;
}

void pki_wrap_group_end(pki_wrap_result result)
{
    if (group.depth == 0 || --group.depth > 0 || !group.list)
        return;
    int saved = errno;
    for (unsigned i = 0; i < group.count && pki_wrap_went_well(result); i++)
        if (*group.list[i].place)
            meet(*group.list[i].place, &group.list[i].identity);
    free(group.list);
    group.list = NULL;
    group.count = 0;
    errno = saved;
}
