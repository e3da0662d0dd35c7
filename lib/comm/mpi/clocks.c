#include "comm/mpi/clocks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/mpi/communicator.h"

#define TRIPS 50
#define TRIPS_SECONDS 0.1 /* for one pair; more is not worth it on a busy machine */
#define SILENCE_SECONDS 10.0

static MPI_Comm leaders = MPI_COMM_NULL;
static pk_region region = PK_REGION_OF(PK_COMM, "clocks of nodes");
static pk_region message = PK_REGION_OF(PK_COMM, "clock message");

static double seconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- a message ---- */

static void say(const pki_mpi_comm *c, int to, char more)
{
    pk_region_begin(&message);
    pk_comm_call(&message, c->messages, PK_OP_SEND, PK_TYPE_INT8, 1, to);
    PMPI_Send(&more, 1, MPI_CHAR, to, 0, leaders);
    pk_region_end(&message);
}

/* 0 also if nothing comes: then nothing is waited for any more. */
static char hear(const pki_mpi_comm *c, int from)
{
    char more = 0;
    int there = 0;
    MPI_Request request;
    double until = seconds() + SILENCE_SECONDS;
    pk_region_begin(&message);
    PMPI_Irecv(&more, 1, MPI_CHAR, from, 0, leaders, &request);
    while (!there && seconds() < until)
        PMPI_Test(&request, &there, MPI_STATUS_IGNORE);
    if (there) {
        pk_comm_call(&message, c->messages, PK_OP_RECV, PK_TYPE_INT8, 1, from);
    } else {
        PMPI_Cancel(&request); /* behind it a wait returns, whatever others do (MPI 4.1, 3.8.4), */
        PMPI_Wait(&request, MPI_STATUS_IGNORE); /* and `more` is ours again: not before */
        more = 0;
    }
    pk_region_end(&message);
    return more;
}

/* ---- a pair ---- */

static void ask(const pki_mpi_comm *c, int child)
{
    double until = seconds() + TRIPS_SECONDS;
    char more = 1;
    for (int i = 1; more; i++) {
        more = i < TRIPS && seconds() < until ? 1 : 2; /* 2: the last one */
        say(c, child, more);
        more = hear(c, child) == 1;
    }
}

static void answer(const pki_mpi_comm *c, int parent)
{
    for (char more = 1; more == 1;) {
        more = hear(c, parent);
        if (more)
            say(c, parent, more);
    }
}

/* Pairs that have nothing to do with each other are at it at the same time. */
static void measure(const pki_mpi_comm *c)
{
    for (int distance = 1; distance < c->size; distance *= 2) {
        if (c->rank % (2 * distance) == distance) {
            answer(c, c->rank - distance);
            return;
        }
        if (c->rank + distance < c->size)
            ask(c, c->rank + distance);
    }
}

/* If all of them record; who does not, may not even have started perfkit. */
static void measure_if_all(void)
{
    int here = pki_mpi_is_on(), all = 0;
    if (leaders == MPI_COMM_NULL ||
        PMPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, leaders) != MPI_SUCCESS || !all)
        return;
    const pki_mpi_comm *c = pki_mpi_comm_of(leaders);
    if (!c)
        return;
    pk_region_begin(&region);
    measure(c);
    pk_region_end(&region);
}

/* ---- who takes part ---- */

static void choose_leaders(bool all)
{
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0, place = 0, size = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!all) {
        PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
        PMPI_Comm_rank(node, &place);
        PMPI_Comm_free(&node);
    }
    PMPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    if (leaders == MPI_COMM_NULL)
        return;
    PMPI_Comm_set_name(leaders, "perfkit clocks");
    PMPI_Comm_size(leaders, &size);
    if (size < 2)
        PMPI_Comm_free(&leaders);
}

void pki_mpi_clocks_begin(void)
{
    const char *wanted = secure_getenv("PK_MPI_CLOCKS");
    bool all = wanted && strcmp(wanted, "all") == 0;
    if (leaders != MPI_COMM_NULL || !wanted || !(all || strcmp(wanted, "1") == 0))
        return;
    choose_leaders(all);
    measure_if_all();
}

void pki_mpi_clocks_end(void)
{
    measure_if_all();
    if (leaders != MPI_COMM_NULL)
        PMPI_Comm_free(&leaders);
}
