/* pk/nccl.h - NCCL's operations by explicit calls, for programs that reach NCCL through a table of
 * their own. Who calls NCCL by its names needs none of this: libpk_nccl, linked or preloaded, is
 * made of these functions (docs/nccl.md).
 *
 *     pk_comm *world = pk_comm_create("NCCL", "world", hash, rank, ranks);
 *
 *     pk_nccl_begin(world, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, count, -1, stream);
 *     ncclResult_t result = table->all_reduce(send, recv, count, ncclFloat, ncclSum, comm, stream);
 *     pk_nccl_end(world, stream, result);
 *
 * A begin and an end put an event each into the stream, as pk_gpu_begin and pk_gpu_end do (pk/gpu.h
 * says what that means, also for captures and replays). The operation lies on a track of its
 * communicator and stream in the trace, under the region that is open on the thread, and in the
 * communicator's figures (pk/comm.h). Its time is that from one point of the stream to the other:
 * the collective, and waiting for the other ranks, which is what nccl-tests measures too.
 *
 * Groups: NCCL starts what is between ncclGroupStart and the outermost ncclGroupEnd at that end, as
 * one. So each stream gets one pair of events for a group:
 *
 *     pk_nccl_group_start();
 *     ncclGroupStart();
 *     ...                                  // begins, calls, ends, as above
 *     pk_nccl_group_launch();
 *     ncclResult_t result = ncclGroupEnd();
 *     pk_nccl_group_end(result);
 *
 * and its time is shared among what the stream was given:
 *   - alike (one communicator, operation, type and count): n operations, each with 1/n of the time,
 *     which is how nccl-tests counts aggregated ones;
 *   - as many sends as receives, all of the same size on one communicator: to and from different
 *     ranks that are all of them (with or without the own one), one ALL_TO_ALL, else so many
 *     SEND_RECV, each with its part of the time;
 *   - anything else: one operation GROUP of each communicator, with the sum of the bytes and
 *     without bandwidth, its members listed in the trace. If the stream was given several
 *     communicators' operations, each of them has an equal part of the time.
 *
 * result is NCCL's: 0 is success, 7 (ncclInProgress) says that a communicator that does not block
 * may put the operation into the stream later, so that it cannot be timed; anything else is an
 * error. Both are counted in pk_get_gpu_counts as skipped, errors as refused besides.
 *
 * Threads: every call from any thread; an operation ends on the thread where it began, and a group
 *          is the thread's own, as NCCL's are.
 * Both:    with NCCL's profiler plugin beside it (docs/backends.md) these calls are what is counted,
 *          from the first one of a session on; the plugin's operations are details in the trace.
 * Failure: none visible; see pk/gpu.h. errno and CUDA's error state stay as they are.
 * Cost:    off, or without a GPU: a load and a branch; a group counts its depth besides. On: two
 *          cuEventRecord calls, two queries of the capture state, and under 150 ns (overhead.md).
 *          No synchronisation ever; no lock, and no allocation after the first ones of a stream and
 *          the first groups of that size.
 */
#ifndef PK_NCCL_H
#define PK_NCCL_H

#include <pk/comm.h>
#include <pk/gpu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operation, as in pk_comm_call (pk/comm.h). stream: a cudaStream_t or CUstream; 0, as NCCL takes
 * it: the legacy default stream. */
PK_API PK_INLINE void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                                    int32_t peer, void *stream);
PK_API PK_INLINE void pk_nccl_end(pk_comm *comm, void *stream, int32_t result);

/* Before ncclGroupStart, before ncclGroupEnd, and after it. They nest as NCCL's do. */
PK_API void pk_nccl_group_start(void);
PK_API void pk_nccl_group_launch(void);
PK_API void pk_nccl_group_end(int32_t result);

/* Before ncclCommAbort: what this thread's group has of the communicator will not be done. */
PK_API void pk_nccl_abort(pk_comm *comm);

/* ---- below: how it is done ---- */

PK_API void pk_nccl_begin_on_(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                              int32_t peer, void *stream);
PK_API void pk_nccl_end_on_(pk_comm *comm, void *stream, int32_t result);

PK_INLINE void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                             int32_t peer, void *stream)
{
    if (PK_GPU_ON_)
        pk_nccl_begin_on_(comm, op, type, count, peer, stream);
}

PK_INLINE void pk_nccl_end(pk_comm *comm, void *stream, int32_t result)
{
    if (PK_GPU_ON_)
        pk_nccl_end_on_(comm, stream, result);
}

#ifdef __cplusplus
}
#endif
#endif
