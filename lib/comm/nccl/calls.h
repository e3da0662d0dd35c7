/* lib/comm/nccl/calls.h - the functions of NCCL that are wrapped or asked, and its types as far as
 * calls of it pass them: the one place that knows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <pk/comm.h>

/* ---- types ---- */

/* In words of our own: NCCL's header need not be there, and no version of it is preferred. NCCL is
 * a C library whose enumerations are ints and whose handles are pointers; the unique id travels by
 * value. tests/nccl/wrap/abi.c holds this against a real nccl.h where there is one. Source: NCCL's
 * documentation and headers, 2.19 to 2.28, and the user guide of 2.30. */

typedef struct pki_wrap_config { /* each version has more at its end; size says how much there is */
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name; /* since 2.27; NULL: none */
} pki_wrap_config;

enum {
    PKI_WRAP_SUCCESS = 0,
    PKI_WRAP_INVALID_USAGE = 5,
    PKI_WRAP_IN_PROGRESS = 7, /* of a communicator that does not block: not an error */
    PKI_WRAP_NO_COLOR = -1,
    PKI_WRAP_ID_BYTES = 128
};

/* The test has the real ones in their place. */
#ifndef PKI_WRAP_REAL_TYPES
typedef int pki_wrap_result;
typedef int pki_wrap_type;
typedef int pki_wrap_redop;
typedef struct ncclComm *pki_wrap_comm;
typedef struct CUstream_st *pki_wrap_stream;
typedef struct pki_wrap_id {
    char internal[PKI_WRAP_ID_BYTES];
} pki_wrap_id;
typedef pki_wrap_config pki_wrap_config_arg;
typedef struct ncclWindow_vidmem *pki_wrap_window; /* an opaque pointer, since 2.27 */
typedef struct pki_wrap_sim pki_wrap_sim;
#endif

/* ---- functions ---- */

/* Each has a strong name with a p in front, which is called. Every NCCL since 2.19 has them, but
 * for those that came LATER. */

#define BUFFERS const void *sendbuff, void *recvbuff
#define ON pki_wrap_comm comm, pki_wrap_stream stream

#define P_ALLREDUCE (BUFFERS, size_t count, pki_wrap_type type, pki_wrap_redop op, ON)
#define P_ROOTED (BUFFERS, size_t count, pki_wrap_type type, int root, ON)
#define P_BCAST (void *buff, size_t count, pki_wrap_type type, int root, ON)
#define P_REDUCE (BUFFERS, size_t count, pki_wrap_type type, pki_wrap_redop op, int root, ON)
#define P_EVEN (BUFFERS, size_t count, pki_wrap_type type, ON)
#define P_SEND (const void *buff, size_t count, pki_wrap_type type, int peer, ON)
#define P_RECV (void *buff, size_t count, pki_wrap_type type, int peer, ON)

/* X(name, parameters, arguments, operation, peer): by pk/comm.h's rules NCCL's counts are the ones
 * that are wanted, what one rank gives to (or gets from) one other. */
#define PKI_WRAP_COLLECTIVES(X)                                                                    \
    X(AllReduce, P_ALLREDUCE, (sendbuff, recvbuff, count, type, op, comm, stream),                 \
      PK_COMM_OP_ALL_REDUCE, -1)                                                                   \
    X(Broadcast, P_ROOTED, (sendbuff, recvbuff, count, type, root, comm, stream),                  \
      PK_COMM_OP_BROADCAST, root)                                                                  \
    X(Bcast, P_BCAST, (buff, count, type, root, comm, stream), PK_COMM_OP_BROADCAST, root)         \
    X(Reduce, P_REDUCE, (sendbuff, recvbuff, count, type, op, root, comm, stream),                 \
      PK_COMM_OP_REDUCE, root)                                                                     \
    X(AllGather, P_EVEN, (sendbuff, recvbuff, count, type, comm, stream), PK_COMM_OP_ALL_GATHER,   \
      -1)                                                                                          \
    X(ReduceScatter, P_ALLREDUCE, (sendbuff, recvbuff, count, type, op, comm, stream),             \
      PK_COMM_OP_REDUCE_SCATTER, -1)                                                               \
    X(Send, P_SEND, (buff, count, type, peer, comm, stream), PK_COMM_OP_SEND, peer)                \
    X(Recv, P_RECV, (buff, count, type, peer, comm, stream), PK_COMM_OP_RECV, peer)

/* Since 2.28. */
#define PKI_WRAP_LATER_COLLECTIVES(X)                                                              \
    X(AlltoAll, P_EVEN, (sendbuff, recvbuff, count, type, comm, stream), PK_COMM_OP_ALL_TO_ALL,    \
      -1)                                                                                          \
    X(Gather, P_ROOTED, (sendbuff, recvbuff, count, type, root, comm, stream), PK_COMM_OP_GATHER,  \
      root)                                                                                        \
    X(Scatter, P_ROOTED, (sendbuff, recvbuff, count, type, root, comm, stream),                    \
      PK_COMM_OP_SCATTER, root)

/* One-sided, since 2.29. X(name, parameters, arguments, operation, peer, type, count). A signal
 * alone moves nothing. Source: the user guide, "Point To Point Communication Functions". */
#define P_PUT                                                                                      \
    (const void *buff, size_t count, pki_wrap_type type, int peer, pki_wrap_window window,         \
     size_t offset, int signal, int context, unsigned flags, ON)
#define P_SIGNAL (int peer, int signal, int context, unsigned flags, ON)
#define PKI_WRAP_ONE_SIDED(X)                                                                      \
    X(PutSignal, P_PUT,                                                                            \
      (buff, count, type, peer, window, offset, signal, context, flags, comm, stream),             \
      PK_COMM_OP_SEND, peer, type_of(type), count)                                                 \
    X(Signal, P_SIGNAL, (peer, signal, context, flags, comm, stream), PK_COMM_OP_OTHER, peer,      \
      PK_COMM_TYPE_BYTE, 0)

/* X(name, parameters, version that brought it) */
#define PKI_WRAP_OTHERS(X)                                                                         \
    X(GroupStart, (void), 2.19)                                                                    \
    X(GroupEnd, (void), 2.19)                                                                      \
    X(CommInitRank, (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank), 2.19)          \
    X(CommInitRankConfig,                                                                          \
      (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank, pki_wrap_config_arg *config), \
      2.19)                                                                                        \
    X(CommInitAll, (pki_wrap_comm * newcomms, int devices, const int *list), 2.19)                 \
    X(CommSplit,                                                                                   \
      (pki_wrap_comm comm, int color, int key, pki_wrap_comm *newcomm,                             \
       pki_wrap_config_arg *config),                                                               \
      2.19)                                                                                        \
    X(CommFinalize, (pki_wrap_comm comm), 2.19)                                                    \
    X(CommDestroy, (pki_wrap_comm comm), 2.19)                                                     \
    X(CommAbort, (pki_wrap_comm comm), 2.19)                                                       \
    X(CommGetAsyncError, (pki_wrap_comm comm, pki_wrap_result * state), 2.19)                      \
    X(CommCount, (const pki_wrap_comm comm, int *count), 2.19)                                     \
    X(CommUserRank, (const pki_wrap_comm comm, int *rank), 2.19)

#define PKI_WRAP_LATER_OTHERS(X)                                                                   \
    X(GroupSimulateEnd, (pki_wrap_sim * info), 2.22)                                               \
    X(CommInitRankScalable,                                                                        \
      (pki_wrap_comm * newcomm, int ranks, int rank, int count, pki_wrap_id *ids,                  \
       pki_wrap_config_arg *config),                                                               \
      2.23)                                                                                        \
    X(CommShrink,                                                                                  \
      (pki_wrap_comm comm, int *excluded, int count, pki_wrap_comm *newcomm,                       \
       pki_wrap_config_arg *config, int flags),                                                    \
      2.27)

#define PKI_WRAP_NEWEST_OTHERS(X)                                                                  \
    X(CommRevoke, (pki_wrap_comm comm, int flags), 2.28)                                           \
    X(CommGrow,                                                                                    \
      (pki_wrap_comm comm, int ranks, const pki_wrap_id *id, int rank, pki_wrap_comm *newcomm,     \
       pki_wrap_config_arg *config),                                                               \
      2.29)

/* ---- NCCL's own, by their names with a p in front ---- */

/* In the static library they are references like any others, so that a static NCCL is linked as if
 * it had been called by name; those of newer versions are weak, and NULL where the NCCL at hand has
 * them not. The shared library may be preloaded before any NCCL is there, and NCCL may be visible
 * to nobody but the library that uses it, so it looks for them at the first call of each. */

#ifndef PKI_WRAP_REAL_TYPES /* an older nccl.h has not all of them */
typedef struct pki_wrap_table {
#define PKI_WRAP_POINTER(NAME, PARAMS, ...) pki_wrap_result(*NAME) PARAMS;
    PKI_WRAP_COLLECTIVES(PKI_WRAP_POINTER)
    PKI_WRAP_LATER_COLLECTIVES(PKI_WRAP_POINTER)
    PKI_WRAP_OTHERS(PKI_WRAP_POINTER)
    PKI_WRAP_LATER_OTHERS(PKI_WRAP_POINTER)
    PKI_WRAP_ONE_SIDED(PKI_WRAP_POINTER)
    PKI_WRAP_NEWEST_OTHERS(PKI_WRAP_POINTER)
#undef PKI_WRAP_POINTER
} pki_wrap_table;

extern pki_wrap_table pki_wrap_real;

/* Looks for what is missing. Any thread. */
void pki_wrap_resolve(void);

/* The function, or NULL: this NCCL has none, and the call is PKI_WRAP_INVALID_USAGE. */
#define PKI_WRAP_REAL(NAME)                                                                        \
    (__extension__({                                                                               \
        if (__builtin_expect(!__atomic_load_n(&pki_wrap_real.NAME, __ATOMIC_RELAXED), 0))          \
            pki_wrap_resolve();                                                                    \
        __atomic_load_n(&pki_wrap_real.NAME, __ATOMIC_RELAXED);                                    \
    }))
#endif
