#include "comm/mpi/communicator.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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
    pk_comm_peers(c->collective, peers, count);
    pk_comm_peers(c->messages, peers, count);
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

void pki_mpi_comm_made(int status, const MPI_Comm *made)
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

const pki_mpi_comm *pki_mpi_comm_of(MPI_Comm comm)
{
    unsigned i = slot_of(comm);
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (__builtin_expect(cache[i].comm == comm && cache[i].generation == now, 1))
        return cache[i].known;
    return look_up(comm, i, now);
}
