/* lib/comm/nccl/calls.h - the functions of NCCL that are wrapped or asked. The one place that knows
 * their parameters; each has a strong name with a p in front, which is called. Every NCCL
 * since 2.19 has them, but for those that came LATER.
 */
#pragma once

#include <pk/comm.h>

#include "comm/nccl/abi.h"

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
