#include "comm/mpi/identity.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_mpi_identity *taken; /* of those that live; group 0: free */
static size_t room;

/* ---- who is in it ---- */

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

static uint64_t hash_of_comm(MPI_Comm comm, int (*group_of)(MPI_Comm, MPI_Group *))
{
    MPI_Group group = MPI_GROUP_NULL;
    if (group_of(comm, &group) != MPI_SUCCESS)
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

pki_mpi_identity pki_mpi_identify(MPI_Comm comm)
{
    pki_mpi_identity it = {group_of(comm), 0};
    if (!it.group || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
        return it;
    pthread_mutex_lock(&lock);
    for (it.number = 1; is_used(it.group, it.number);)
        it.number++;
    pki_mpi_identity *place = free_slot();
    if (place)
        *place = it;
    else
        it.group = 0;
    pthread_mutex_unlock(&lock);
    return it;
}

void pki_mpi_identity_release(const pki_mpi_identity *identity)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; identity->group && i < room; i++)
        if (taken[i].group == identity->group && taken[i].number == identity->number)
            taken[i] = (pki_mpi_identity){0, 0};
    pthread_mutex_unlock(&lock);
}

uint64_t pki_mpi_identity_id(const pki_mpi_identity *identity)
{
    uint64_t id = mixed(identity->group, identity->number);
    return identity->group ? id + !id : 0;
}

int *pki_mpi_peers(MPI_Comm comm, int *count)
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
