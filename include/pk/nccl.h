/* pk/nccl.h - NCCL's operations by explicit calls, for programs that call NCCL through a function
 * table of their own. A program that calls NCCL by name needs none of this: it links or preloads
 * libpk_nccl, which is made of these functions (docs/nccl.md).
 *
 *     pk_comm *world = pk_comm_create("NCCL", "world", hash, rank, ranks);
 *
 *     pk_nccl_begin(world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, count, -1, stream);
 *     ncclResult_t result = table->all_reduce(send, recv, count, ncclFloat, ncclSum, comm, stream);
 *     pk_nccl_end(world, stream, result);
 *
 * A begin and an end each put an event into the stream, as pk_gpu_begin and pk_gpu_end do (pk/gpu.h
 * says what that means, also for captures and replays). In the trace the operation has a track of
 * its communicator and stream, and belongs to the region that is open on the thread; its figures
 * are the communicator's (pk/comm.h). Its time is that from one point of the stream to the other:
 * the collective, and waiting for the other ranks, which is what nccl-tests measures too.
 *
 * Groups: what lies between ncclGroupStart and the outermost ncclGroupEnd is started as one, by
 * that ncclGroupEnd. So each stream gets one pair of events for a group:
 *
 *     pk_nccl_group_start();
 *     ncclGroupStart();
 *     ...                                  // begins, calls, ends, as above
 *     pk_nccl_group_launch();
 *     ncclResult_t result = ncclGroupEnd();
 *     pk_nccl_group_end(result);
 *
 * Its time is divided among the operations that were put on the stream:
 *   - all alike (one communicator, operation, type and count): n operations, each with 1/n of the
 *     time, which is how nccl-tests counts aggregated ones;
 *   - as many sends as receives, all of one size on one communicator: one ALL_TO_ALL if they go to
 *     and come from all ranks, each once (the own rank may be left out), else as many SEND_RECV,
 *     each with its part of the time;
 *   - anything else: one operation GROUP for each communicator, with the sum of the bytes and
 *     without bandwidth; the trace lists its members. If the stream was given operations of several
 *     communicators, each communicator has an equal part of the time.
 *
 * result is NCCL's. 0 is success. 7 (ncclInProgress) says that a non-blocking communicator may put
 * the operation into the stream later: it is timed from the call until it is done, if pk_nccl_async
 * is called with its outcome before the next operation on that communicator; otherwise it counts as
 * skipped. Anything else is an error and counts both as skipped and as refused (pk_get_gpu_counts).
 *
 * Threads: every call from any thread. An operation ends on the thread where it began, and a group
 *          belongs to its thread, as NCCL's groups do.
 * Plugin:  where NCCL's profiler plugin is active too (docs/nccl.md), these calls are what is
 *          counted, from the first one of a session on; the plugin's operations are details in the
 *          trace.
 * GPU:     seen with a double of the driver, not yet on a device (docs/gpu-results.md).
 * Failure: none visible; see pk/gpu.h. errno and CUDA's error state stay as they are.
 * Cost:    off, or without a GPU: a load and a branch; a group counts its depth besides. On: two
 *          cuEventRecord calls, two queries of the capture state, and under 150 ns (overhead.md).
 *          Never a synchronisation; no lock, and no allocation after the first operations of a
 *          stream and the first groups of that size.
 */
#ifndef PK_NCCL_H
#define PK_NCCL_H

#include <pk/comm.h>
#include <pk/gpu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operation, as in pk_comm_call (pk/comm.h). stream: a cudaStream_t or CUstream; 0 is the legacy
 * default stream, as for NCCL. */
PK_API PK_INLINE void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                                    int32_t peer, void *stream);
PK_API PK_INLINE void pk_nccl_end(pk_comm *comm, void *stream, int32_t result);

/* Call these before ncclGroupStart, before ncclGroupEnd and after ncclGroupEnd. They nest as NCCL's
 * groups do. */
PK_API void pk_nccl_group_start(void);
PK_API void pk_nccl_group_launch(void);
PK_API void pk_nccl_group_end(int32_t result);

/* Call this after each ncclCommGetAsyncError(comm, &state), on the thread that made the operation,
 * with that state. An operation whose call returned 7 (ncclInProgress) is on its stream once the
 * state is 0; then its end is recorded. 7: still in progress. Anything else: it failed. */
PK_API void pk_nccl_async(pk_comm *comm, int32_t state);

/* Call this before ncclCommAbort: the operations on the communicator in this thread's group will
 * not take place. */
PK_API void pk_nccl_abort(pk_comm *comm);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

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

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_NCCL_
#include <pk/disable.h>
#endif
#endif
