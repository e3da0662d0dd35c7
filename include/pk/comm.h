/* pk/comm.h - collectives and messages: what was done on each communicator, how many bytes, how
 * fast.
 *
 * For MPI and NCCL, libpk_mpi and libpk_nccl record all this without changes to the program. For
 * any other library:
 *
 *     static pk_region ring = PK_REGION_OF(PK_COMM, "ring all-reduce");
 *     pk_comm *world = pk_comm_create("ring", "world", 0, rank, size);
 *
 *     pk_region_begin(&ring);
 *     pk_comm_call(&ring, world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, count, -1);
 *     ...
 *     pk_region_end(&ring);
 *
 * If the call returns before the operation is complete:
 *
 *     pk_comm_request r = pk_comm_start(world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, count,
 * -1);
 *     ...                                  // the program computes meanwhile: hidden
 *     pk_region_begin(&wait);
 *     ...                                  // the program waits: exposed
 *     pk_region_end(&wait);
 *     pk_comm_finish(&r, waited_ns);
 *
 * For each communicator, operation and size class (a power of two) the report has calls, bytes,
 * percentiles of the duration, algorithm bandwidth and bus bandwidth. It also says how much of the
 * communication was exposed: the program had to wait for it.
 *
 * Bandwidths follow nccl-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). With n ranks,
 * count elements of s bytes as given to the call, and t the duration, in GB/s (10^9 bytes):
 *
 *     operation                                  algorithm bandwidth    bus bandwidth: times
 *     ALL_REDUCE                                 count * s / t          2 (n - 1) / n
 *     ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL,
 *     GATHER, SCATTER                            count * s * n / t      (n - 1) / n
 *     BROADCAST, REDUCE, SEND, RECV, SEND_RECV   count * s / t          1
 *
 * count is what one rank gives to one other (for REDUCE_SCATTER and SCATTER: gets from it). A
 * single rank, BARRIER, OTHER and GROUP have no bandwidth.
 *
 * Threads: every call from any thread. One thread finishes a request, not necessarily the one that
 *          started it.
 * GPU:     times from events of streams have been seen with a double of the driver, not yet on a
 *          device (docs/gpu-results.md).
 * Failure: none visible. A call that finds its ring full is missing from the communicator's figures
 *          and counted there as dropped; it is still in its region's distribution. Beyond 4,095
 *          communicators all share one.
 * Cost:    off: a load and a branch. On: a region that is an operation takes 57 ns more than
 *          another (docs/internals/overhead.md); no lock, no allocation.
 */
#ifndef PK_COMM_H
#define PK_COMM_H

#include <pk/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations, with their names in trace and report. */
#define PK_COMM_OP_LIST(X)                                                                         \
    X(PK_COMM_OP_ALL_REDUCE, 0, "all_reduce")                                                      \
    X(PK_COMM_OP_BROADCAST, 1, "broadcast")                                                        \
    X(PK_COMM_OP_REDUCE, 2, "reduce")                                                              \
    X(PK_COMM_OP_ALL_GATHER, 3, "all_gather")                                                      \
    X(PK_COMM_OP_REDUCE_SCATTER, 4, "reduce_scatter")                                              \
    X(PK_COMM_OP_ALL_TO_ALL, 5, "all_to_all")                                                      \
    X(PK_COMM_OP_GATHER, 6, "gather")                                                              \
    X(PK_COMM_OP_SCATTER, 7, "scatter")                                                            \
    X(PK_COMM_OP_SEND, 8, "send")                                                                  \
    X(PK_COMM_OP_RECV, 9, "recv")                                                                  \
    X(PK_COMM_OP_SEND_RECV, 10, "send_recv")                                                       \
    X(PK_COMM_OP_BARRIER, 11, "barrier")                                                           \
    X(PK_COMM_OP_OTHER, 12, "other")                                                               \
    X(PK_COMM_OP_GROUP, 13, "group") /* several unlike ones, timed as one: pk/nccl.h */

typedef enum pk_comm_op {
#define PK_COMM_OP_ENUM(code, value, name) code = value,
    PK_COMM_OP_LIST(PK_COMM_OP_ENUM)
#undef PK_COMM_OP_ENUM
} pk_comm_op;

/* Types of the elements: value, bytes of one, name in the trace (PyTorch's). */
#define PK_COMM_TYPE_LIST(X)                                                                       \
    X(PK_COMM_TYPE_BYTE, 0, 1, "Byte")                                                             \
    X(PK_COMM_TYPE_INT8, 1, 1, "Char")                                                             \
    X(PK_COMM_TYPE_INT16, 2, 2, "Short")                                                           \
    X(PK_COMM_TYPE_INT32, 3, 4, "Int")                                                             \
    X(PK_COMM_TYPE_INT64, 4, 8, "Long")                                                            \
    X(PK_COMM_TYPE_UINT32, 5, 4, "UInt32")                                                         \
    X(PK_COMM_TYPE_UINT64, 6, 8, "UInt64")                                                         \
    X(PK_COMM_TYPE_FLOAT16, 7, 2, "Half")                                                          \
    X(PK_COMM_TYPE_BFLOAT16, 8, 2, "BFloat16")                                                     \
    X(PK_COMM_TYPE_FLOAT32, 9, 4, "Float")                                                         \
    X(PK_COMM_TYPE_FLOAT64, 10, 8, "Double")                                                       \
    X(PK_COMM_TYPE_FLOAT8_E4M3, 11, 1, "Float8_e4m3fn")                                            \
    X(PK_COMM_TYPE_FLOAT8_E5M2, 12, 1, "Float8_e5m2")

typedef enum pk_comm_type {
#define PK_COMM_TYPE_ENUM(code, value, bytes, name) code = value,
    PK_COMM_TYPE_LIST(PK_COMM_TYPE_ENUM)
#undef PK_COMM_TYPE_ENUM
} pk_comm_type;

/* A communicator, for the process's life. */
typedef struct pk_comm pk_comm;

/* library: "MPI", "NCCL", ...; name: that of the communicator. Both are copied, and 63 bytes count.
 * id: a number that is the same on all ranks of the communicator; 0 if the library has none. Never
 * NULL. */
PK_API pk_comm *pk_comm_create(const char *library, const char *name, uint64_t id, int32_t rank,
                               int32_t size);

/* Which ranks of the job belong to it: ranks[i], of count, is the job's rank of peer i in its
 * operations. With this the report can show who talks to whom. The array is copied; NULL or a count
 * of 0 is ignored. The first call counts; if a later one differs (a communicator without an id was
 * freed, and another of that name was created), partners are unknown. Without this call, a
 * communicator with as many ranks as the job is taken for all of its ranks in order; partners on
 * any other are unknown. */
PK_API void pk_comm_set_peers(pk_comm *comm, const int32_t *ranks, int32_t count);

/* There will be no more calls on it; what was done on it stays in the report. Accepts NULL. */
PK_API void pk_comm_destroy(pk_comm *comm);

/* The region, which is open on this thread, is an operation on comm. peer: the root or the other
 * rank; -1: none. */
PK_API PK_INLINE void pk_comm_call(pk_region *region, pk_comm *comm, pk_comm_op op,
                                   pk_comm_type type, uint64_t count, int32_t peer);

/* The message's tag, for the trace; after the region's pk_comm_call. Negative: none. */
PK_API PK_INLINE void pk_comm_set_tag(pk_region *region, int32_t tag);

/* An operation that continues after the call that started it has returned. All zero: none. */
typedef struct pk_comm_request {
    pk_comm *comm;
    uint64_t sequence;                  /* on this communicator, from 1 */
    uint64_t start, bytes, what, extra; /* perfkit's */
    uint64_t spare[2];                  /* 0; for later versions */
} pk_comm_request;

PK_API PK_INLINE pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                               uint64_t count, int32_t peer);

/* What was not known when it started: how many bytes a receive got, and from whom. */
PK_API PK_INLINE void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer);

/* The tag of a message, before it is finished; the last one counts. Negative: as it was. */
PK_API PK_INLINE void pk_comm_set_request_tag(pk_comm_request *request, int32_t tag);

/* The operation is complete, as far as this process knows. waited_ns: for how long of that time the
 * program had to wait. The request becomes zero; a request that is zero is ignored. */
PK_API PK_INLINE void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

PK_API void pk_comm_call_on_(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                             uint64_t count, int32_t peer);
PK_API void pk_comm_set_tag_on_(pk_region *region, int32_t tag);
PK_API pk_comm_request pk_comm_start_on_(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                         uint64_t count, int32_t peer);
PK_API void pk_comm_correct_on_(pk_comm_request *request, uint64_t bytes, int32_t peer);
PK_API void pk_comm_set_request_tag_on_(pk_comm_request *request, int32_t tag);
PK_API void pk_comm_finish_on_(pk_comm_request *request, uint64_t waited_ns);

PK_INLINE void pk_comm_call(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                            uint64_t count, int32_t peer)
{
    if (PK_ON_)
        pk_comm_call_on_(region, comm, op, type, count, peer);
}

PK_INLINE void pk_comm_set_tag(pk_region *region, int32_t tag)
{
    if (PK_ON_)
        pk_comm_set_tag_on_(region, tag);
}

PK_INLINE pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                        uint64_t count, int32_t peer)
{
    pk_comm_request none = {0, 0, 0, 0, 0, 0, {0, 0}};
    if (PK_ON_)
        return pk_comm_start_on_(comm, op, type, count, peer);
    return none;
}

/* A request is zero if it was off when the operation started. What has started is finished also
 * when the session is over: the communicator goes on. */
#define PK_STARTED_(request) PK_EXPECT_OFF_((request) && (request)->comm)

PK_INLINE void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer)
{
    if (PK_STARTED_(request))
        pk_comm_correct_on_(request, bytes, peer);
}

PK_INLINE void pk_comm_set_request_tag(pk_comm_request *request, int32_t tag)
{
    if (PK_STARTED_(request))
        pk_comm_set_request_tag_on_(request, tag);
}

PK_INLINE void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns)
{
    if (PK_STARTED_(request))
        pk_comm_finish_on_(request, waited_ns);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_COMM_
#include <pk/disable.h>
#endif
#endif
