/* nccl_stub.h - the part of NCCL's interface that the stub has, for a program that was never built
 * for perfkit, and for the test that scripts it. In words of its own; ../abi.c knows the real one.
 */
#ifndef TESTS_NCCL_STUB_H
#define TESTS_NCCL_STUB_H

#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *stub_stream;
typedef struct stub_window_s *stub_window;
typedef struct {
    char internal[128];
} ncclUniqueId;

typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cga, min_ctas, max_ctas;
    const char *net;
    int split_share, traffic_class;
    const char *name;
    int later[6];
} ncclConfig;

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT16, E4M3, E5M2 };
enum { SUM };

/* X(name, parameters): pnccl... strong and nccl... weak, as NCCL has them. */
#define STUB_COLLECTIVES(X)                                                                        \
    X(AllReduce, (const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm,   \
                  stub_stream stream))                                                             \
    X(Broadcast, (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm, \
                  stub_stream stream))                                                             \
    X(Bcast,                                                                                       \
      (void *buffer, size_t count, int type, int root, ncclComm_t comm, stub_stream stream))       \
    X(Reduce, (const void *send, void *recv, size_t count, int type, int op, int root,             \
               ncclComm_t comm, stub_stream stream))                                               \
    X(AllGather,                                                                                   \
      (const void *send, void *recv, size_t count, int type, ncclComm_t comm, stub_stream stream)) \
    X(ReduceScatter, (const void *send, void *recv, size_t count, int type, int op,                \
                      ncclComm_t comm, stub_stream stream))                                        \
    X(Send,                                                                                        \
      (const void *send, size_t count, int type, int peer, ncclComm_t comm, stub_stream stream))   \
    X(Recv, (void *recv, size_t count, int type, int peer, ncclComm_t comm, stub_stream stream))

#define STUB_LATER(X)                                                                              \
    X(AlltoAll,                                                                                    \
      (const void *send, void *recv, size_t count, int type, ncclComm_t comm, stub_stream stream)) \
    X(Gather, (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,    \
               stub_stream stream))                                                                \
    X(Scatter, (const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm,   \
                stub_stream stream))                                                               \
    X(GroupSimulateEnd, (void *info))                                                              \
    X(CommInitRankScalable,                                                                        \
      (ncclComm_t * comm, int ranks, int rank, int n, ncclUniqueId *ids, ncclConfig *config))      \
    X(CommShrink,                                                                                  \
      (ncclComm_t comm, int *excluded, int n, ncclComm_t *newcomm, ncclConfig *config, int flags)) \
    X(CommRevoke, (ncclComm_t comm, int flags))                                                    \
    X(CommGrow, (ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,                     \
                 ncclComm_t *newcomm, ncclConfig *config))                                         \
    X(PutSignal,                                                                                   \
      (const void *send, size_t count, int type, int peer, stub_window window, size_t offset,      \
       int signal, int context, unsigned flags, ncclComm_t comm, stub_stream stream))              \
    X(Signal,                                                                                      \
      (int peer, int signal, int context, unsigned flags, ncclComm_t comm, stub_stream stream))

#define STUB_OTHERS(X)                                                                             \
    X(GetUniqueId, (ncclUniqueId * id))                                                            \
    X(GroupStart, (void))                                                                          \
    X(GroupEnd, (void))                                                                            \
    X(CommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))                     \
    X(CommInitRankConfig,                                                                          \
      (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig *config))               \
    X(CommInitAll, (ncclComm_t * comms, int n, const int *list))                                   \
    X(CommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig *config))   \
    X(CommFinalize, (ncclComm_t comm))                                                             \
    X(CommDestroy, (ncclComm_t comm))                                                              \
    X(CommAbort, (ncclComm_t comm))                                                                \
    X(CommGetAsyncError, (ncclComm_t comm, int *state))                                            \
    X(CommCount, (const ncclComm_t comm, int *count))                                              \
    X(CommUserRank, (const ncclComm_t comm, int *rank))

#define STUB_DECLARE(NAME, PARAMS)                                                                 \
    int nccl##NAME PARAMS;                                                                         \
    int pnccl##NAME PARAMS;
STUB_COLLECTIVES(STUB_DECLARE)
STUB_LATER(STUB_DECLARE)
STUB_OTHERS(STUB_DECLARE)

/* What the next collective, and the next end of a group, will answer on this thread. */
void stub_next(int result);
void stub_next_end(int result);

/* One that does not block answers ncclInProgress to what takes time, and so does
 * ncclCommGetAsyncError the first two times; until it has answered success every other function of
 * it but abort is refused (the user guide, "Error handling and communicator abort"). */
enum { STUB_TURNS = 2 };

/* Collectives and messages that were done so far, by name and not through one another. */
unsigned stub_done(void);

#endif
