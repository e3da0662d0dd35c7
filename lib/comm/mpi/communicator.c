/* lib/comm/mpi/communicator.c - communicators of MPI, by their handles, and amounts by its types */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/mpi/glue.h"

/* ---- which communicator it is, the same on all its ranks, and who they are ---- */

static pthread_mutex_t identity_lock = PTHREAD_MUTEX_INITIALIZER;
static pki_mpi_identity *taken; /* of those that live; group 0: free */
static size_t room;

/* ---- who is in it ---- */

static uint64_t group_of(MPI_Comm comm);

/* Its ranks in MPI_COMM_WORLD; MPI_UNDEFINED for who is not. */
static int *ranks_of(MPI_Group group, int *count)
{
    MPI_Group world = MPI_GROUP_NULL;
    int n = 0;
    *count = 0;
    if (PMPI_Group_size(group, &n) != MPI_SUCCESS || n < 1 ||
        PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return NULL;
    int *all = malloc(2 * (size_t)n * sizeof *all);
    for (int i = 0; all && i < n; i++)
        all[n + i] = i;
    if (all && PMPI_Group_translate_ranks(group, n, all + n, world, all) == MPI_SUCCESS)
        *count = n;
    PMPI_Group_free(&world);
    if (!*count) {
        free(all);
        return NULL;
    }
    return all;
}

static bool are_of_world(const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0) /* MPI_UNDEFINED is below 0 in all MPIs, and no rank is */
            return false;
    return count > 0;
}

static uint64_t mixed(uint64_t h, uint64_t more)
{
    h = (h ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

/* 0: not known. */
static uint64_t hash_of(MPI_Group group)
{
    int count;
    int *ranks = ranks_of(group, &count);
    uint64_t h = are_of_world(ranks, count) ? mixed(1, (uint64_t)count) : 0;
    for (int i = 0; h && i < count; i++)
        h = mixed(h, (uint64_t)ranks[i] + 1);
    free(ranks);
    return h;
}

static uint64_t hash_of_comm(MPI_Comm comm, int (*ask)(MPI_Comm, MPI_Group *))
{
    MPI_Group group = MPI_GROUP_NULL;
    if (ask(comm, &group) != MPI_SUCCESS)
        return 0;
    uint64_t h = hash_of(group);
    PMPI_Group_free(&group);
    return h;
}

/* Both sides of an inter-communicator say the same. */
static uint64_t both(uint64_t one, uint64_t other)
{
    if (!one || !other)
        return 0;
    return one < other ? mixed(one, other) : mixed(other, one);
}

static uint64_t group_of(MPI_Comm comm)
{
    int inter = 0;
    uint64_t h = hash_of_comm(comm, PMPI_Comm_group);
    PMPI_Comm_test_inter(comm, &inter);
    return inter ? both(h, hash_of_comm(comm, PMPI_Comm_remote_group)) : h;
}

/* ---- which of them it is ---- */

static bool is_used(uint64_t group, uint32_t number)
{
    for (size_t i = 0; i < room; i++)
        if (taken[i].group == group && taken[i].number == number)
            return true;
    return false;
}

static pki_mpi_identity *free_slot(void)
{
    for (size_t i = 0; i < room; i++)
        if (!taken[i].group)
            return &taken[i];
    size_t first = room, more = 2 * room + 16;
    pki_mpi_identity *all = realloc(taken, more * sizeof *all);
    if (!all)
        return NULL;
    taken = all;
    for (room = first; room < more; room++)
        taken[room] = (pki_mpi_identity){0, 0};
    return &taken[first];
}

/* Of a communicator that has none yet: from now on its number is taken. */
static pki_mpi_identity pki_mpi_identify(MPI_Comm comm)
{
    pki_mpi_identity it = {group_of(comm), 0};
    if (!it.group || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
        return it;
    pthread_mutex_lock(&identity_lock);
    for (it.number = 1; is_used(it.group, it.number);)
        it.number++;
    pki_mpi_identity *place = free_slot();
    if (place)
        *place = it;
    else
        it.group = 0;
    pthread_mutex_unlock(&identity_lock);
    return it;
}

/* It is freed: its number is the next one's. */
static void pki_mpi_identity_release(const pki_mpi_identity *identity)
{
    pthread_mutex_lock(&identity_lock);
    for (size_t i = 0; identity->group && i < room; i++)
        if (taken[i].group == identity->group && taken[i].number == identity->number)
            taken[i] = (pki_mpi_identity){0, 0};
    pthread_mutex_unlock(&identity_lock);
}

/* For pk_comm_create; 0: unknown. */
static uint64_t pki_mpi_identity_id(const pki_mpi_identity *identity)
{
    uint64_t id = mixed(identity->group, identity->number);
    return identity->group ? id + !id : 0;
}

/* Who the peers of its messages are, as ranks of MPI_COMM_WORLD: *count of them, of the remote
 * group if it is an inter-communicator. To be freed; NULL: unknown. */
static int *pki_mpi_peers(MPI_Comm comm, int *count)
{
    MPI_Group group = MPI_GROUP_NULL;
    int inter = 0;
    *count = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if ((inter ? PMPI_Comm_remote_group : PMPI_Comm_group)(comm, &group) != MPI_SUCCESS)
        return NULL;
    int *ranks = ranks_of(group, count);
    PMPI_Group_free(&group);
    if (are_of_world(ranks, *count))
        return ranks;
    free(ranks);
    *count = 0;
    return NULL;
}

/* ---- what perfkit knows of a communicator of MPI's ---- */

#define CACHED_BITS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* making one */
static int keyval = MPI_KEYVAL_INVALID;
static uint64_t generation = 1; /* one more with each that goes: its handle may come back */

static __thread struct {
    uint64_t generation;
    MPI_Comm comm;
    const pki_mpi_comm *known;
} cache[1 << CACHED_BITS];

/* ---- making and losing one ---- */

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    pki_mpi_comm *c = value;
    (void)comm, (void)key, (void)extra;
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE); /* pairs with the acquire in comm_of */
    pk_comm_destroy(c->collective);
    pk_comm_destroy(c->messages);
    pki_mpi_identity_release(&c->identity);
    free(c);
    return MPI_SUCCESS;
}

static void name_of(MPI_Comm comm, int size, char name[MPI_MAX_OBJECT_NAME])
{
    int n = 0;
    name[0] = 0;
    if (PMPI_Comm_get_name(comm, name, &n) != MPI_SUCCESS || !name[0])
        snprintf(name, MPI_MAX_OBJECT_NAME, "communicator of %d", size);
}

static void set_peers(const pki_mpi_comm *c, MPI_Comm comm)
{
    int count;
    int *peers = pki_mpi_peers(comm, &count);
    pk_comm_set_peers(c->collective, peers, count);
    pk_comm_set_peers(c->messages, peers, count);
    free(peers);
}

/* At the first use. */
static void fill(pki_mpi_comm *c, MPI_Comm comm)
{
    char name[MPI_MAX_OBJECT_NAME], of_messages[MPI_MAX_OBJECT_NAME + 16];
    int inter = 0, remote = 0;
    PMPI_Comm_rank(comm, &c->rank);
    PMPI_Comm_size(comm, &c->size);
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_size(comm, &remote);
    c->is_inter = inter;
    c->others = inter ? remote : c->size;
    name_of(comm, c->size + remote, name);
    snprintf(of_messages, sizeof of_messages, "%.44s messages", name);
    uint64_t id = pki_mpi_identity_id(&c->identity);
    c->collective = pk_comm_create("MPI", name, id, c->rank, c->size + remote);
    c->messages = pk_comm_create("MPI", of_messages, id, c->rank, c->size + remote);
    set_peers(c, comm);
}

/* The attribute, or NULL; MPI_ERR_COMM is the program's, and comes from its own call. */
static pki_mpi_comm *attribute_of(MPI_Comm comm)
{
    pki_mpi_comm *c = NULL;
    int found = 0;
    if (keyval == MPI_KEYVAL_INVALID ||
        PMPI_Comm_get_attr(comm, keyval, &c, &found) != MPI_SUCCESS || !found)
        return NULL;
    return c;
}

static pki_mpi_comm *make(MPI_Comm comm)
{
    if (keyval == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
        return NULL;
    pki_mpi_comm *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->identity = pki_mpi_identify(comm);
    if (PMPI_Comm_set_attr(comm, keyval, c) != MPI_SUCCESS) {
        pki_mpi_identity_release(&c->identity);
        free(c);
        return NULL;
    }
    return c;
}

static pki_mpi_comm *find(MPI_Comm comm, bool to_use)
{
    if (comm == MPI_COMM_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    pki_mpi_comm *c = attribute_of(comm);
    c = c ? c : make(comm);
    if (c && to_use && !c->collective)
        fill(c, comm);
    pthread_mutex_unlock(&lock);
    return c;
}

/* A communicator has been made: now is when all its ranks number it alike. */
static void pki_mpi_comm_made(int status, const MPI_Comm *made)
{
    if (pki_mpi_is_on() && status == MPI_SUCCESS)
        find(*made, false);
}

/* ---- looking one up ---- */

/* A handle is a pointer in one MPI and a small number in the other. */
static unsigned slot_of(MPI_Comm comm)
{
    return (unsigned)((uint64_t)(uintptr_t)comm * UINT64_C(0x9E3779B97F4A7C15) >>
                      (64 - CACHED_BITS));
}

/* The generation is that of before the look-up. */
static __attribute__((noinline)) const pki_mpi_comm *look_up(MPI_Comm comm, unsigned i,
                                                             uint64_t now)
{
    const pki_mpi_comm *c = find(comm, true);
    if (c) {
        cache[i].generation = now;
        cache[i].comm = comm;
        cache[i].known = c;
    }
    return c;
}

/* Of libpk_attach, where `pk run` has preloaded it: which communicator is the call on that it has
 * just heard? */
extern int pk_attach_asks_ __attribute__((weak));
extern void pk_attach_comm_(const char *name, int size) __attribute__((weak));

const pki_mpi_comm *pki_mpi_comm_of(MPI_Comm comm)
{
    unsigned i = slot_of(comm);
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    bool known = __builtin_expect(cache[i].comm == comm && cache[i].generation == now, 1);
    const pki_mpi_comm *c = known ? cache[i].known : look_up(comm, i, now);
    if (__builtin_expect(&pk_attach_asks_ && pk_attach_asks_, 0) && c && pk_attach_comm_)
        pk_attach_comm_(pk_comm_name_(c->collective), c->others);
    return c;
}

/* Likewise: how many operations all ranks have begun together. */
extern uint32_t pk_attach_met_ __attribute__((weak));

static void all_meet(MPI_Comm comm)
{
    if (&pk_attach_met_ && comm == MPI_COMM_WORLD)
        __atomic_add_fetch(&pk_attach_met_, 1, __ATOMIC_RELAXED);
}

/* ---- making and freeing communicators ---- */

/* Work that all their ranks do together. What they are called is found out when they are first
 * used, above. */

static const pki_mpi_comm *begin(pk_region *region, MPI_Comm comm)
{
    const pki_mpi_comm *at = pki_mpi_is_on() ? pki_mpi_comm_of(comm) : NULL;
    all_meet(comm);
    pk_region_begin(region);
    if (at)
        pk_comm_call(region, at->collective, PK_COMM_OP_OTHER, PK_COMM_TYPE_BYTE, 0, -1);
    return at;
}

/* BEGIN: the region, and what it is an operation on; THEN: with the status known. */
#define ON(NAME, PARAMS, ARGS, BEGIN, THEN)                                                        \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        BEGIN;                                                                                     \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        THEN;                                                                                      \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

#define MAKES(NAME, PARAMS, ARGS, COMM)                                                            \
    ON(NAME, PARAMS, ARGS, begin(&region, COMM), pki_mpi_comm_made(status, made))
#define FREES(NAME) ON(NAME, (MPI_Comm * comm), (comm), begin(&region, *comm), (void)0)

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), comm)
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made), comm)
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), comm)
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made),
      comm)
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
      (comm, type, key, info, made), comm)
MAKES(Cart_create,
      (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made),
      (comm, n, dims, periods, reorder, made), comm)
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made), comm)
MAKES(Graph_create,
      (MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, n, index, edges, reorder, made), comm)
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), comm)
MAKES(Intercomm_create,
      (MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *made),
      (comm, leader, peers, remote_leader, tag, made), comm)
FREES(Comm_free)
FREES(Comm_disconnect)

/* Of a group of the communicator's ranks only: no operation of the communicator. */
ON(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
   (comm, group, tag, made), pk_region_begin(&region), pki_mpi_comm_made(status, made))

/* ---- so many elements of a type of MPI's ---- */

/* The more frequent ones first: they are looked for one by one. */
static const struct {
    MPI_Datatype type;
    pk_comm_type is;
} known[] = {
    {MPI_DOUBLE, PK_COMM_TYPE_FLOAT64},
    {MPI_FLOAT, PK_COMM_TYPE_FLOAT32},
    {MPI_INT, PK_COMM_TYPE_INT32},
    {MPI_BYTE, PK_COMM_TYPE_BYTE},
    {MPI_CHAR, PK_COMM_TYPE_INT8},
    {MPI_INT64_T, PK_COMM_TYPE_INT64},
    {MPI_UINT64_T, PK_COMM_TYPE_UINT64},
    {MPI_INT32_T, PK_COMM_TYPE_INT32},
    {MPI_UINT32_T, PK_COMM_TYPE_UINT32},
    {MPI_UNSIGNED, PK_COMM_TYPE_UINT32},
    {MPI_LONG_LONG, PK_COMM_TYPE_INT64},
    {MPI_UNSIGNED_LONG_LONG, PK_COMM_TYPE_UINT64},
    {MPI_SIGNED_CHAR, PK_COMM_TYPE_INT8},
    {MPI_INT8_T, PK_COMM_TYPE_INT8},
    {MPI_SHORT, PK_COMM_TYPE_INT16},
    {MPI_INT16_T, PK_COMM_TYPE_INT16},
    {MPI_LONG, sizeof(long) == 8 ? PK_COMM_TYPE_INT64 : PK_COMM_TYPE_INT32},
    {MPI_UNSIGNED_LONG, sizeof(long) == 8 ? PK_COMM_TYPE_UINT64 : PK_COMM_TYPE_UINT32},
};

/* Bytes of one element; 0 for MPI_DATATYPE_NULL. */
static uint64_t type_bytes(MPI_Datatype type)
{
    int bytes = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes < 0)
        return 0;
    return (uint64_t)bytes;
}

static uint64_t not_negative(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

pki_mpi_amount pki_mpi_amount_of(int64_t count, MPI_Datatype type)
{
    if (count <= 0)
        return (pki_mpi_amount){PK_COMM_TYPE_BYTE, 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return (pki_mpi_amount){known[i].is, (uint64_t)count};
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, (uint64_t)count * type_bytes(type)};
}

uint64_t pki_mpi_bytes_got(const MPI_Status *status)
{
    MPI_Count bytes = 0;
    return PMPI_Get_elements_x(status, MPI_BYTE, &bytes) == MPI_SUCCESS ? not_negative(bytes) : 0;
}

/* Part of a derived type may have come; then bytes are all there is to say. */
pki_mpi_amount pki_mpi_amount_got(const MPI_Status *status, MPI_Datatype type)
{
    uint64_t bytes = pki_mpi_bytes_got(status), one = bytes ? type_bytes(type) : 0;
    if (one && bytes % one == 0)
        return pki_mpi_amount_of((int64_t)(bytes / one), type);
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, bytes};
}

static pki_mpi_amount share(uint64_t bytes, int n)
{
    uint64_t ranks = n > 0 ? (uint64_t)n : 1;
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, (bytes + ranks - 1) / ranks};
}

static pki_mpi_amount pki_mpi_share_of(const int counts[], MPI_Datatype type, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += not_negative(counts[i]);
    return share(sum ? sum * type_bytes(type) : 0, n);
}

/* What one of n others gets on the average, in bytes, rounded up. */
static pki_mpi_amount pki_mpi_share_of_each(const int counts[], const MPI_Datatype types[], int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i] > 0 ? not_negative(counts[i]) * type_bytes(types[i]) : 0;
    return share(sum, n);
}

/* ---- words of the table ---- */

/* what each moves, by the rules of pk/comm.h (the one place that knows), and the two functions that
 * it is. */

/* MPI's own numbers are below 0: MPI_ROOT, MPI_PROC_NULL. */
static int32_t peer_of(int root)
{
    return root < 0 ? -1 : root;
}

#define OF(count, type) pki_mpi_amount_of(count, type)

/* What a rank gives; where its part lies in the receive buffer already, what it gets from itself.
 */
#define GIVES(count, type, or_count, or_type)                                                      \
    (sendbuf == MPI_IN_PLACE ? OF(or_count, or_type) : OF(count, type))
#define GETS(count, type, or_count, or_type)                                                       \
    (recvbuf == MPI_IN_PLACE ? OF(or_count, or_type) : OF(count, type))

/* In an inter-communicator one process is MPI_ROOT and its neighbours are MPI_PROC_NULL; then most
 * of their arguments mean nothing. */
#define ROOTED(otherwise, of_root)                                                                 \
    (root == MPI_PROC_NULL ? (pki_mpi_amount){PK_COMM_TYPE_BYTE, 0}                                \
     : root == MPI_ROOT    ? (of_root)                                                             \
                           : (otherwise))

/* My own among counts that go by rank. At a root of an inter-communicator they are of others. */
#define MINE(counts) (at->is_inter ? 0 : (counts)[at->rank])

#define SEND1 const void *sendbuf, int sendcount, MPI_Datatype sendtype
#define RECV1 void *recvbuf, int recvcount, MPI_Datatype recvtype
#define SENDV                                                                                      \
    const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype
#define RECVV void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype
#define SENDW                                                                                      \
    const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[]
#define RECVW                                                                                      \
    void *recvbuf, const int recvcounts[], const int displs[], const MPI_Datatype recvtypes[]
#define REDUCED const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op

/* ---- the table ---- */

/* X(name, name of the twin that returns at once, parameters, arguments, operation, root, amount)
 *
 * The expressions may use the parameters, and `at`, which is what is known of the communicator. */
#define COLLECTIVES(X)                                                                             \
    X(Barrier, Ibarrier, (MPI_Comm comm), (comm), PK_COMM_OP_BARRIER, -1, OF(0, MPI_BYTE))         \
    X(Bcast, Ibcast, (void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm),           \
      (buf, count, type, root, comm), PK_COMM_OP_BROADCAST, root,                                  \
      ROOTED(OF(count, type), OF(count, type)))                                                    \
    X(Reduce, Ireduce, (REDUCED, int root, MPI_Comm comm),                                         \
      (sendbuf, recvbuf, count, type, op, root, comm), PK_COMM_OP_REDUCE, root,                    \
      ROOTED(OF(count, type), OF(count, type)))                                                    \
    X(Allreduce, Iallreduce, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),  \
      PK_COMM_OP_ALL_REDUCE, -1, OF(count, type))                                                  \
    X(Scan, Iscan, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),            \
      PK_COMM_OP_OTHER, -1, OF(count, type))                                                       \
    X(Exscan, Iexscan, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),        \
      PK_COMM_OP_OTHER, -1, OF(count, type))                                                       \
    X(Reduce_scatter, Ireduce_scatter,                                                             \
      (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype type, MPI_Op op,   \
       MPI_Comm comm),                                                                             \
      (sendbuf, recvbuf, recvcounts, type, op, comm), PK_COMM_OP_REDUCE_SCATTER, -1,               \
      OF(recvcounts[at->rank], type))                                                              \
    X(Reduce_scatter_block, Ireduce_scatter_block,                                                 \
      (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype type, MPI_Op op,            \
       MPI_Comm comm),                                                                             \
      (sendbuf, recvbuf, recvcount, type, op, comm), PK_COMM_OP_REDUCE_SCATTER, -1,                \
      OF(recvcount, type))                                                                         \
    X(Allgather, Iallgather, (SEND1, RECV1, MPI_Comm comm),                                        \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), PK_COMM_OP_ALL_GATHER,   \
      -1, GIVES(sendcount, sendtype, recvcount, recvtype))                                         \
    X(Allgatherv, Iallgatherv, (SEND1, RECVV, MPI_Comm comm),                                      \
      (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),                 \
      PK_COMM_OP_ALL_GATHER, -1, GIVES(sendcount, sendtype, MINE(recvcounts), recvtype))           \
    X(Gather, Igather, (SEND1, RECV1, int root, MPI_Comm comm),                                    \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm), PK_COMM_OP_GATHER, \
      root, ROOTED(GIVES(sendcount, sendtype, recvcount, recvtype), OF(recvcount, recvtype)))      \
    X(Gatherv, Igatherv, (SEND1, RECVV, int root, MPI_Comm comm),                                  \
      (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),           \
      PK_COMM_OP_GATHER, root,                                                                     \
      ROOTED(GIVES(sendcount, sendtype, MINE(recvcounts), recvtype),                               \
             pki_mpi_share_of(recvcounts, recvtype, at->others)))                                  \
    X(Scatter, Iscatter, (SEND1, RECV1, int root, MPI_Comm comm),                                  \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),                    \
      PK_COMM_OP_SCATTER, root,                                                                    \
      ROOTED(GETS(recvcount, recvtype, sendcount, sendtype), OF(sendcount, sendtype)))             \
    X(Scatterv, Iscatterv, (SENDV, RECV1, int root, MPI_Comm comm),                                \
      (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm),          \
      PK_COMM_OP_SCATTER, root,                                                                    \
      ROOTED(GETS(recvcount, recvtype, MINE(sendcounts), sendtype),                                \
             pki_mpi_share_of(sendcounts, sendtype, at->others)))                                  \
    X(Alltoall, Ialltoall, (SEND1, RECV1, MPI_Comm comm),                                          \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), PK_COMM_OP_ALL_TO_ALL,   \
      -1, GIVES(sendcount, sendtype, recvcount, recvtype))                                         \
    X(Alltoallv, Ialltoallv, (SENDV, RECVV, MPI_Comm comm),                                        \
      (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, displs, recvtype, comm),       \
      PK_COMM_OP_ALL_TO_ALL, -1,                                                                   \
      sendbuf == MPI_IN_PLACE ? pki_mpi_share_of(recvcounts, recvtype, at->others)                 \
                              : pki_mpi_share_of(sendcounts, sendtype, at->others))                \
    X(Alltoallw, Ialltoallw, (SENDW, RECVW, MPI_Comm comm),                                        \
      (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, displs, recvtypes, comm),     \
      PK_COMM_OP_ALL_TO_ALL, -1,                                                                   \
      sendbuf == MPI_IN_PLACE ? pki_mpi_share_of_each(recvcounts, recvtypes, at->others)           \
                              : pki_mpi_share_of_each(sendcounts, sendtypes, at->others))

/* ---- that return when they are done: each call is a region which is that operation ---- */

/* Does nobody leave it before all have come? With nothing to move an MPI need not wait; and all
 * ranks have to say the same of the same call. */
#define ALL_WAIT(OP, COUNT)                                                                        \
    ((OP) == PK_COMM_OP_BARRIER || ((OP) == PK_COMM_OP_ALL_REDUCE && (COUNT) > 0))

#define BLOCKING(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                      \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME ARGS;                                                               \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_amount amount = at ? AMOUNT : OF(0, MPI_BYTE);                                     \
        if (ALL_WAIT(OP, amount.count))                                                            \
            pki_mpi_clocks_meet(comm);                                                             \
        all_meet(comm);                                                                            \
        pk_region_begin(&region);                                                                  \
        if (at)                                                                                    \
            pk_comm_call(&region, at->collective, OP, amount.type, amount.count, peer_of(ROOT));   \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

COLLECTIVES(BLOCKING)

/* ---- that go on when the call has returned: a request, complete when MPI says so ---- */

/* The operation starts outside the call's own region: it belongs to the program's around it. */
#define AT_ONCE(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                       \
    PKI_MPI_CALL(INAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #INAME);                            \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                       \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_operation operation = {0};                                                         \
        all_meet(comm);                                                                            \
        if (at)                                                                                    \
            operation = (pki_mpi_operation){at->collective, OP, AMOUNT, peer_of(ROOT), -1};        \
        pk_comm_request started = pki_mpi_start(&operation);                                       \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                     \
        pki_mpi_end_wait();                                                                        \
        pki_mpi_follow(status, request, &operation, &started);                                     \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

COLLECTIVES(AT_ONCE)
