/* lib/comm/nccl/wrap.c - NCCL's functions: communicators by their handles, collectives, messages
 * and groups.
 *
 * libpk_nccl defines functions of NCCL and calls on by their names with a p. It knows perfkit as
 * any program does, through <pk/...>. Arguments, results, errno and CUDA's error state pass through
 * untouched; while perfkit is off a call is two loads and branches and NCCL's own.
 */
#include <pk/nccl.h>
#include <pk/private.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/calls.h"

/* On the definition of a function of NCCL: all else is hidden. */
#define PKI_WRAP_API __attribute__((visibility("default")))

static bool pki_wrap_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&pk_gpu_gate_, __ATOMIC_RELAXED) != 0, 0);
}

/* What the call came to: done, or under way. */
static bool pki_wrap_went_well(pki_wrap_result result)
{
    return result == PKI_WRAP_SUCCESS || result == PKI_WRAP_IN_PROGRESS;
}

/* ---- what is known of a communicator of NCCL, by its handle ---- */

/* The functions that make one say how it is called; of one that was made before anybody listened
 * NCCL is asked. Names and ids are the same on all ranks: an id is the hash that NCCL makes of the
 * unique id and passes to its profilers, so that both speak of the same communicator; for one that
 * was split off, it is made of the other's, how often that was split, and the colour.
 *
 * Threads: any. The look-up takes no lock once a thread has met a communicator. */

#define PKI_WRAP_NAME 64

/* What a communicator will be, once its handle is there. */
typedef struct pki_wrap_identity {
    uint64_t id; /* 0: unknown */
    char name[PKI_WRAP_NAME];
} pki_wrap_identity;

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

/* NULL for no communicator, and what NCCL does not take for one. errno stays. */
static pk_comm *pki_wrap_comm_of(pki_wrap_comm handle)
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

/* The same, if it has been met; NCCL is not asked. */
static pk_comm *pki_wrap_comm_met(pki_wrap_comm handle)
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

/* Name and number of those that are made of a unique id, and of another communicator. */
static pki_wrap_identity pki_wrap_identify(const pki_wrap_id *id, const pki_wrap_config *config)
{
    pki_wrap_identity identity = {0};
    if (id)
        identity.id = hash_bytes(5381, id, sizeof *id);
    snprintf(identity.name, sizeof identity.name, "%s", name_in(config));
    return identity;
}

/* All ranks of the parent call it, those without a colour, too. */
static pki_wrap_identity pki_wrap_identify_child(pki_wrap_comm parent, int color,
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

/* The handle is there; or will be at the end of the thread's group, in its place. */
static void pki_wrap_made(pki_wrap_comm *place, const pki_wrap_identity *identity,
                          pki_wrap_result result)
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

/* The communicator goes: another one may get its handle. */
static void pki_wrap_forget(pki_wrap_comm handle)
{
    int saved = errno;
    enter();
    drop(handle);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* The thread's groups, by how deep they nest; at the end of the outermost one NCCL has filled in
 * the handles. */
static void pki_wrap_group_start(void)
{
    group.depth++;
}

static void pki_wrap_group_end(pki_wrap_result result)
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

/* ---- making and ending communicators ---- */

/* Each call is a region, since it may take seconds, and says what the communicator is.
 *
 * PK_NCCL_START=1 makes the first of them start perfkit, with PK_TRACE_PATH and its like, for
 * programs that know nothing of perfkit; it stops as they exit. Without it nothing is started. */

static void start(void)
{
    const char *wanted = secure_getenv("PK_NCCL_START");
    if (wanted && strcmp(wanted, "1") == 0)
        pk_start_asked_("PK_NCCL_START", pk_options());
}

static void start_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    pthread_once(&once, start);
    errno = saved;
}

/* The call as a region; what it answers. */
#define IN_REGION(NAME, ARGS)                                                                      \
    (__extension__({                                                                               \
        static pk_region region = PK_REGION_OF(PK_COMM, "nccl" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        pki_wrap_result result_ = pki_wrap_real.NAME ARGS;                                         \
        pk_region_end(&region);                                                                    \
        result_;                                                                                   \
    }))

#define NEED(NAME)                                                                                 \
    do                                                                                             \
        if (!PKI_WRAP_REAL(NAME))                                                                  \
            return PKI_WRAP_INVALID_USAGE;                                                         \
    while (0)

#define DEFINE(NAME, PARAMS)                                                                       \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS;                                                \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS

DEFINE(CommInitRank, (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank))
{
    NEED(CommInitRank);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitRank, (newcomm, ranks, id, rank));
    pki_wrap_identity identity = pki_wrap_identify(&id, NULL);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommInitRankConfig,
       (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank, pki_wrap_config_arg *config))
{
    NEED(CommInitRankConfig);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitRankConfig, (newcomm, ranks, id, rank, config));
    pki_wrap_identity identity = pki_wrap_identify(&id, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* The first of the ids is the one that NCCL knows the communicator by. */
DEFINE(CommInitRankScalable, (pki_wrap_comm * newcomm, int ranks, int rank, int count,
                              pki_wrap_id *ids, pki_wrap_config_arg *config))
{
    NEED(CommInitRankScalable);
    start_once();
    pki_wrap_result result =
        IN_REGION(CommInitRankScalable, (newcomm, ranks, rank, count, ids, config));
    pki_wrap_identity identity = pki_wrap_identify(count > 0 ? ids : NULL, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* All ranks are here, and their unique id is NCCL's secret. */
DEFINE(CommInitAll, (pki_wrap_comm * newcomms, int devices, const int *list))
{
    NEED(CommInitAll);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitAll, (newcomms, devices, list));
    pki_wrap_identity identity = pki_wrap_identify(NULL, NULL);
    for (int i = 0; newcomms && i < devices; i++)
        pki_wrap_made(&newcomms[i], &identity, result);
    return result;
}

DEFINE(CommSplit, (pki_wrap_comm comm, int color, int key, pki_wrap_comm *newcomm,
                   pki_wrap_config_arg *config))
{
    NEED(CommSplit);
    start_once();
    pki_wrap_identity identity = pki_wrap_identify_child(comm, color, config);
    pki_wrap_result result = IN_REGION(CommSplit, (comm, color, key, newcomm, config));
    if (color != PKI_WRAP_NO_COLOR)
        pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommShrink, (pki_wrap_comm comm, int *excluded, int count, pki_wrap_comm *newcomm,
                    pki_wrap_config_arg *config, int flags))
{
    NEED(CommShrink);
    start_once();
    pki_wrap_identity identity = pki_wrap_identify_child(comm, count, config);
    pki_wrap_result result = IN_REGION(CommShrink, (comm, excluded, count, newcomm, config, flags));
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommFinalize, (pki_wrap_comm comm))
{
    NEED(CommFinalize);
    return IN_REGION(CommFinalize, (comm));
}

/* It is forgotten first: as soon as NCCL is done another one may have its handle. */
DEFINE(CommDestroy, (pki_wrap_comm comm))
{
    NEED(CommDestroy);
    pki_wrap_forget(comm);
    return IN_REGION(CommDestroy, (comm));
}

DEFINE(CommAbort, (pki_wrap_comm comm))
{
    NEED(CommAbort);
    pk_nccl_abort(pki_wrap_comm_met(comm));
    pki_wrap_forget(comm);
    return IN_REGION(CommAbort, (comm));
}

/* In-flight operations are stopped, and the communicator stays until it is destroyed. */
DEFINE(CommRevoke, (pki_wrap_comm comm, int flags))
{
    NEED(CommRevoke);
    pk_nccl_abort(pki_wrap_comm_met(comm));
    return IN_REGION(CommRevoke, (comm, flags));
}

/* Those who were in it know the other communicator, and those who join the unique id, which only
 * one of the others has: nothing that all ranks know makes a number, so it has none. */
DEFINE(CommGrow, (pki_wrap_comm comm, int ranks, const pki_wrap_id *id, int rank,
                  pki_wrap_comm *newcomm, pki_wrap_config_arg *config))
{
    NEED(CommGrow);
    start_once();
    pki_wrap_result result = IN_REGION(CommGrow, (comm, ranks, id, rank, newcomm, config));
    pki_wrap_identity identity = pki_wrap_identify(NULL, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* The first success after an operation that was in progress: it has come into its stream. */
DEFINE(CommGetAsyncError, (pki_wrap_comm comm, pki_wrap_result *state))
{
    NEED(CommGetAsyncError);
    pki_wrap_result result = pki_wrap_real.CommGetAsyncError(comm, state);
    if (result == PKI_WRAP_SUCCESS && state && *state != PKI_WRAP_IN_PROGRESS && pki_wrap_is_on())
        pk_nccl_async(pki_wrap_comm_met(comm), *state);
    return result;
}

/* ---- collectives and messages: each between two events on its stream ---- */

/* NCCL may call itself by its public names: ncclBcast is made of ncclBroadcast. */
static __thread bool inside;

static pk_comm_type type_of(pki_wrap_type type)
{
    static const uint8_t types[] = {
        PK_COMM_TYPE_INT8,     PK_COMM_TYPE_BYTE,        PK_COMM_TYPE_INT32,
        PK_COMM_TYPE_UINT32,   PK_COMM_TYPE_INT64,       PK_COMM_TYPE_UINT64,
        PK_COMM_TYPE_FLOAT16,  PK_COMM_TYPE_FLOAT32,     PK_COMM_TYPE_FLOAT64,
        PK_COMM_TYPE_BFLOAT16, PK_COMM_TYPE_FLOAT8_E4M3, PK_COMM_TYPE_FLOAT8_E5M2};
    return type >= 0 && (size_t)type < sizeof types ? (pk_comm_type)types[type] : PK_COMM_TYPE_BYTE;
}

#define OPERATION(NAME, PARAMS, ARGS, OP, PEER, TYPE, COUNT)                                       \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS;                                                \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS                                                 \
    {                                                                                              \
        pki_wrap_result(*call) PARAMS = PKI_WRAP_REAL(NAME);                                       \
        if (__builtin_expect(!call, 0))                                                            \
            return PKI_WRAP_INVALID_USAGE;                                                         \
        if (!pki_wrap_is_on() || inside)                                                           \
            return call ARGS;                                                                      \
        pk_comm *on = pki_wrap_comm_of(comm);                                                      \
        inside = true;                                                                             \
        pk_nccl_begin(on, OP, TYPE, COUNT, PEER, stream);                                          \
        pki_wrap_result result = call ARGS;                                                        \
        pk_nccl_end(on, stream, result);                                                           \
        inside = false;                                                                            \
        return result;                                                                             \
    }

#define COLLECTIVE(NAME, PARAMS, ARGS, OP, PEER)                                                   \
    OPERATION(NAME, PARAMS, ARGS, OP, PEER, type_of(type), count)

PKI_WRAP_COLLECTIVES(COLLECTIVE)
PKI_WRAP_LATER_COLLECTIVES(COLLECTIVE)
PKI_WRAP_ONE_SIDED(OPERATION)

/* ---- groups: timed as one, and filling in handles ---- */

PKI_WRAP_API pki_wrap_result ncclGroupStart(void);
PKI_WRAP_API pki_wrap_result ncclGroupEnd(void);
PKI_WRAP_API pki_wrap_result ncclGroupSimulateEnd(pki_wrap_sim *info);

/* Counted while perfkit is off, too, so that one that starts in the middle knows. */
PKI_WRAP_API pki_wrap_result ncclGroupStart(void)
{
    pki_wrap_result (*call)(void) = PKI_WRAP_REAL(GroupStart);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pki_wrap_result result = call();
    if (result == PKI_WRAP_SUCCESS) {
        pki_wrap_group_start();
        pk_nccl_group_start();
    }
    return result;
}

PKI_WRAP_API pki_wrap_result ncclGroupEnd(void)
{
    pki_wrap_result (*call)(void) = PKI_WRAP_REAL(GroupEnd);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pk_nccl_group_launch();
    pki_wrap_result result = call();
    pk_nccl_group_end(result);
    pki_wrap_group_end(result);
    return result;
}

/* Ends the group without doing any of it: nothing is timed. */
PKI_WRAP_API pki_wrap_result ncclGroupSimulateEnd(pki_wrap_sim *info)
{
    pki_wrap_result (*call)(pki_wrap_sim *) = PKI_WRAP_REAL(GroupSimulateEnd);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pki_wrap_result result = call(info);
    pk_nccl_group_end(result);
    pki_wrap_group_end(PKI_WRAP_INVALID_USAGE);
    return result;
}
