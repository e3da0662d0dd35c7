/* stub.c - an NCCL that answers at once: strong pnccl... and weak nccl... as the real one has them,
 * groups that do their work at their end, handles that come then, errors by script. STUB_OLD: one
 * of 2.19, without what came later. */
#include "nccl_stub.h"

#include <stdlib.h>

#define NEXT 64
#define MAGIC 0x6e63636c

struct ncclComm {
    int magic, ranks, rank, aborted;
    int patient; /* it does not block */
    int turns;   /* questions until what is in progress is done */
    int queued;  /* in the open group */
    int revoked;
};

static __thread int next_result, next_end, depth;
static __thread unsigned queued, filling;
static __thread struct {
    ncclComm_t *place, comm;
} fill[NEXT];
static unsigned done;

void stub_next(int result)
{
    next_result = result;
}

void stub_next_end(int result)
{
    next_end = result;
}

unsigned stub_done(void)
{
    return __atomic_load_n(&done, __ATOMIC_RELAXED);
}

static int take(int *result)
{
    int taken = *result;
    *result = 0;
    return taken;
}

static size_t bytes_of(int type)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < 12 ? bytes[type] : 0;
}

static int refuses(const struct ncclComm *comm)
{
    return !comm || comm->magic != MAGIC || comm->turns > 0 || comm->revoked;
}

/* What takes time on one that does not block. */
static int begin(struct ncclComm *comm)
{
    if (!comm->patient)
        return 0;
    comm->turns = STUB_TURNS + 1; /* the last one is answered success */
    return 7;
}

/* Something that depends on all that was passed. */
static int act(int what, const void *send, void *recv, size_t count, int type, ncclComm_t comm)
{
    int result = take(&next_result);
    if (refuses(comm) || !bytes_of(type))
        return 4;
    if (result && result != 7)
        return result;
    const unsigned char *from = send;
    unsigned char *to = recv;
    for (size_t i = 0; from && to && i < count * bytes_of(type); i++)
        to[i] = (unsigned char)(from[i] * 3 + what + comm->rank);
    __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
    queued += depth > 0;
    comm->queued += depth > 0;
    return result || depth > 0 ? result : begin(comm);
}

static ncclComm_t all[NEXT]; /* that do not block: a group's end begins theirs */

static int make(ncclComm_t *place, int ranks, int rank)
{
    ncclComm_t comm = malloc(sizeof *comm);
    if (!place || !comm || rank < 0 || rank >= ranks) {
        free(comm);
        return 4;
    }
    *comm = (struct ncclComm){.magic = MAGIC, .ranks = ranks, .rank = rank};
    *place = NULL;
    if (depth == 0 || filling == NEXT) {
        *place = comm;
    } else {
        fill[filling].place = place;
        fill[filling++].comm = comm;
    }
    return 0;
}

#define WEAK(NAME, PARAMS) int nccl##NAME PARAMS __attribute__((weak, alias("pnccl" #NAME)));

int pncclAllReduce(const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm,
                   stub_stream stream)
{
    (void)stream;
    return act(1 + op, send, recv, count, type, comm);
}

int pncclBroadcast(const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,
                   stub_stream stream)
{
    (void)stream;
    return act(2 + root, send, recv, count, type, comm);
}

/* As NCCL's, by the name that others may have taken. */
int pncclBcast(void *buffer, size_t count, int type, int root, ncclComm_t comm, stub_stream stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

int pncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                ncclComm_t comm, stub_stream stream)
{
    (void)stream;
    return act(3 + op + root, send, recv, count, type, comm);
}

int pncclAllGather(const void *send, void *recv, size_t count, int type, ncclComm_t comm,
                   stub_stream stream)
{
    (void)stream;
    return act(4, send, recv, count, type, comm);
}

int pncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                       ncclComm_t comm, stub_stream stream)
{
    (void)stream;
    return act(5 + op, send, recv, count, type, comm);
}

int pncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
              stub_stream stream)
{
    (void)stream;
    return act(peer, send, NULL, count, type, comm);
}

int pncclRecv(void *recv, size_t count, int type, int peer, ncclComm_t comm, stub_stream stream)
{
    (void)stream;
    return act(6 + peer, recv, recv, count, type, comm);
}

STUB_COLLECTIVES(WEAK)

int pncclGetUniqueId(ncclUniqueId *id)
{
    static unsigned char made;
    for (size_t i = 0; i < sizeof id->internal; i++)
        id->internal[i] = (char)(i * 37 + made);
    made++;
    return 0;
}

int pncclGroupStart(void)
{
    depth++;
    return 0;
}

int pncclGroupEnd(void)
{
    if (depth == 0)
        return 5;
    if (--depth > 0)
        return 0;
    int result = take(&next_end);
    for (unsigned i = 0; i < NEXT && !result; i++)
        if (all[i] && all[i]->queued)
            result = begin(all[i]);
    for (unsigned i = 0; i < NEXT; i++)
        if (all[i])
            all[i]->queued = 0;
    for (unsigned i = 0; i < filling; i++)
        *fill[i].place = fill[i].comm;
    filling = queued = 0;
    return result;
}

int pncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    (void)id;
    return make(comm, ranks, rank);
}

int pncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                            ncclConfig *config)
{
    (void)id;
    int result = make(comm, ranks, rank);
    if (result || !config || config->blocking != 0)
        return result;
    unsigned i = 0;
    while (i < NEXT - 1 && all[i])
        i++;
    all[i] = *comm;
    (*comm)->patient = 1;
    return begin(*comm);
}

int pncclCommGetAsyncError(ncclComm_t comm, int *state)
{
    if (!comm || comm->magic != MAGIC)
        return 4;
    comm->turns -= comm->turns > 0;
    *state = comm->turns > 0 ? 7 : 0;
    return 0;
}

int pncclCommInitAll(ncclComm_t *comms, int n, const int *list)
{
    (void)list;
    for (int i = 0; i < n; i++)
        make(&comms[i], n, i);
    return 0;
}

int pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig *config)
{
    (void)config;
    *newcomm = NULL;
    return color < 0 ? 0 : make(newcomm, comm->ranks / 2, key);
}

int pncclCommFinalize(ncclComm_t comm)
{
    return comm && comm->magic == MAGIC ? 0 : 4;
}

int pncclCommDestroy(ncclComm_t comm)
{
    if (!comm || comm->magic != MAGIC || comm->turns > 0)
        return 4;
    for (unsigned i = 0; i < NEXT; i++)
        if (all[i] == comm) /* written only then: threads have blocking ones, which are not in it */
            all[i] = NULL;
    comm->magic = 0;
    free(comm);
    return 0;
}

int pncclCommAbort(ncclComm_t comm)
{
    if (comm && comm->magic == MAGIC)
        comm->turns = 0;
    return pncclCommDestroy(comm);
}

int pncclCommCount(const ncclComm_t comm, int *count)
{
    if (!comm || comm->magic != MAGIC || comm->turns > 0)
        return 4;
    *count = comm->ranks;
    return 0;
}

int pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    if (!comm || comm->magic != MAGIC || comm->turns > 0)
        return 4;
    *rank = comm->rank;
    return 0;
}

STUB_OTHERS(WEAK)

#ifndef STUB_OLD
int pncclAlltoAll(const void *send, void *recv, size_t count, int type, ncclComm_t comm,
                  stub_stream stream)
{
    (void)stream;
    return act(7, send, recv, count, type, comm);
}

int pncclGather(const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,
                stub_stream stream)
{
    (void)stream;
    return act(8 + root, send, recv, count, type, comm);
}

int pncclScatter(const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,
                 stub_stream stream)
{
    (void)stream;
    return act(9 + root, send, recv, count, type, comm);
}

int pncclGroupSimulateEnd(void *info)
{
    (void)info;
    depth = 0;
    queued = 0;
    return 0;
}

int pncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int n, ncclUniqueId *ids,
                              ncclConfig *config)
{
    (void)n, (void)ids, (void)config;
    return make(comm, ranks, rank);
}

int pncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *newcomm, ncclConfig *config,
                    int flags)
{
    (void)excluded, (void)config, (void)flags;
    return make(newcomm, comm->ranks - n, 0);
}

/* The communicator is quiet then, and may only be destroyed, split or shrunk. */
int pncclCommRevoke(ncclComm_t comm, int flags)
{
    if (!comm || comm->magic != MAGIC || flags != 0)
        return 4;
    comm->turns = 0;
    comm->revoked = 1;
    return 0;
}

/* Existing ranks: theirs, and no rank; new ones: none, and the id and the rank. */
int pncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm,
                  ncclConfig *config)
{
    (void)config;
    if (comm ? rank != -1 || ranks <= comm->ranks || refuses(comm) : !id)
        return 4;
    return make(newcomm, ranks, comm ? comm->rank : rank);
}

int pncclPutSignal(const void *send, size_t count, int type, int peer, stub_window window,
                   size_t offset, int signal, int context, unsigned flags, ncclComm_t comm,
                   stub_stream stream)
{
    (void)window, (void)stream;
    if (signal != 0 || context != 0 || flags != 0)
        return 4;
    return act(10 + peer + (int)offset, send, NULL, count, type, comm);
}

int pncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                stub_stream stream)
{
    (void)stream;
    if (signal != 0 || context != 0 || flags != 0)
        return 4;
    return act(11 + peer, NULL, NULL, 0, INT8, comm);
}

STUB_LATER(WEAK)
#endif
