/* pk/gpu.h - where the time of GPU streams goes: regions between two points of a CUDA stream.
 *
 *     static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
 *
 *     pk_gpu_begin(&forward, stream);            // cudaStream_t or CUstream; 0 for the default one
 *     kernel<<<grid, block, 0, stream>>>(...);
 *     pk_gpu_end(&forward, stream);
 *
 *     PK_GPU_SCOPE(forward, stream);             // the same to the end of the block around it;
 *                                                // pk::gpu_scope in C++
 *
 * A begin and an end each put an event into the stream, as cudaEventRecord does, and return. When
 * the device has passed both, a thread of perfkit's reads them. The span appears on the stream's
 * own track of the trace (process "GPU n", thread "stream m (spans)") and in a distribution beside
 * the region's CPU one. A span is the time from one point of the stream to the other. It includes
 * waiting for other streams and gaps between launches: it is not kernel time, which only CUPTI
 * measures.
 *
 * No CUDA header is needed, and nothing is linked: libcuda.so.1 is opened when a session starts.
 * The program initialises CUDA, at the latest with its first span. Without a driver or a GPU all of
 * this does nothing, and pk_backend_status("cuda", ...) says why. (Asked before any span, it
 * initialises CUDA to find out.) perfkit never calls the CUDA runtime, so cudaGetLastError() is the
 * program's alone.
 *
 * Threads: every call from any thread. Spans of one thread on one stream nest, up to 64 deep.
 *          Threads that use the same stream have independent spans, each thread on a track of its
 *          own. A span ends on the thread and on the stream where it began.
 * Streams: 0 is resolved in the source file that passes it, as by the runtime's header: the legacy
 *          default stream, or the thread's own with CUDA_API_PER_THREAD_DEFAULT_STREAM (nvcc
 *          --default-stream per-thread). Default streams are those of the context that is current
 *          at the call. For other languages, which call plain functions, NULL is the legacy one.
 * Capture: inside a stream capture a begin or an end becomes a node of the graph, which stamps its
 *          event anew at each replay; see pk_gpu_graph_launching. Both have to lie in the same
 *          capture. What cannot be captured is skipped and counted. No capture is ever invalidated.
 *          Where CUDA allows no event nodes and that can be known (in bodies of conditional nodes,
 *          and after a programmatic dependency), nothing is put into the graph. It cannot be known
 *          for graphs that are launched from the device, whose instantiation fails with any event
 *          in them, nor for graphs that become children of a conditional node's body. Events
 *          between two kernels also keep them from overlapping by programmatic dependent launch.
 *          For these cases PK_GPU_GRAPHS=0 (docs/tuning.md) leaves all captures alone. What is kept
 *          out is counted (kept_out).
 * Failure: none visible. Every span is counted (pk_gpu_counts). pk_backend_status("cuda", ...)
 *          gives the most serious reason why spans are missing. A context that reports an error
 *          after which nothing works in it (an illegal address, a launch timeout, ...) is left
 *          alone from then on.
 * Cost:    off, or without a GPU: a load and a branch. On: what two cuEventRecord calls cost, plus
 *          two queries of the stream's capture state; no lock and no allocation after the first
 *          spans of a stream, and never a synchronisation. Events come from a pool per context that
 *          grows by 64 pairs at a time; a span that finds no pair is dropped and counted.
 * Contexts: no call is made on one of which nothing is unread, and no graph left with captured
 *          spans. Before cuCtxDestroy or cudaDeviceReset destroy such graphs, synchronise and call
 *          pk_flush. Seen with a double of the driver that is
 *          as strict as its headers, not yet on a GPU (docs/gpu-results.md).
 * Stop:    pk_stop waits at most 100 ms for spans that the device has not reached yet, then counts
 *          them as lost. Synchronise before pk_stop to have them all.
 */
#ifndef PK_GPU_H
#define PK_GPU_H

#include <pk/region.h>
#include <pk/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin a span, and end one that this thread began on this stream. An end also closes what was left
 * open inside it. */
PK_API PK_INLINE void pk_gpu_begin(pk_region *region, void *stream);
PK_API PK_INLINE void pk_gpu_end(pk_region *region, void *stream);

/* What the rest of the block around it puts into a stream, as a region: a declaration, as
 * PK_REGION_SCOPE. region is an lvalue. */
#define PK_GPU_SCOPE(region, stream)                                                               \
    PK_GPU_SCOPE_AT_(region, stream, PK_JOIN_(pk_gpu_scope_, __COUNTER__))

/* Call this right before cudaGraphLaunch(exec, stream) or cuGraphLaunch: it gives the replay events
 * of its own, so that its spans are read however fast replays follow each other.
 *
 *     pk_gpu_graph_launching(exec, graph, stream);
 *     cudaGraphLaunch(exec, stream);
 *
 * exec is a cudaGraphExec_t. graph is the cudaGraph_t that it was instantiated from, as the capture
 * returned it; it must not be destroyed yet. Calls for the same exec must not overlap, just as its
 * launches must not.
 *
 * Without this call that thread reads a graph's spans when it finds its events stamped anew,
 * about every 10 ms. It cannot know of the replays in between. The recorded spans are then a sample
 * of the replays, and pk_backend_status says so.
 *
 * Cost: two driver calls for each span in the graph. Failure: none visible; the replay's spans are
 * then counted as dropped or skipped. A graph that is not the captured one is left alone. */
PK_API PK_INLINE void pk_gpu_graph_launching(void *exec, void *graph, void *stream);

/* The distribution of the region's spans on all streams, in ns. Everything else is as with
 * pk_region_stats (pk/stats.h): PK_EOFF before the first pk_start, PK_ENOENT for a region without a
 * span. self equals sum; bytes and flops are 0. */
PK_API pk_status pk_region_gpu_stats(const pk_region *region, pk_stats *stats);

/* Accounting of the session's spans. After pk_stop, begun == recorded + dropped + skipped + lost.
 * Before, begun is larger by the spans that are open or not yet read. */
typedef struct pk_gpu_counts {
    uint32_t size;     /* sizeof(pk_gpu_counts); pk_get_gpu_counts(...) sets it */
    uint32_t contexts; /* that spans were begun in */
    uint64_t begun;    /* begins outside captures, plus spans of replays */
    uint64_t recorded; /* in the trace and in the distributions */
    uint64_t dropped;  /* no pair of events free, no memory, deeper than 64 */
    uint64_t skipped;  /* in a capture that cannot be followed, or in a dead context */
    uint64_t lost;     /* the end was never read: context gone, not reached at pk_stop, no end */
    uint64_t
        captured; /* spans that became part of a graph; they have no time and are not in begun */
    uint64_t replayed;   /* of recorded: spans of graphs' replays */
    uint64_t sampled;    /* of replayed: without pk_gpu_graph_launching */
    uint64_t unbalanced; /* left open, then closed by an end around them; recorded */
    uint64_t stray_ends; /* ends without a begin on that thread and stream */
    uint64_t pairs;      /* pairs of events made */
    uint64_t operations; /* of recorded: a communicator's, see pk/nccl.h */
    uint64_t refused;    /* of skipped: operations whose library returned an error */
    uint64_t kept_out;   /* of skipped: in captures that take no events, or by PK_GPU_GRAPHS=0 */
} pk_gpu_counts;

/* During a session, and after it until the next one. All 0 without a GPU. PK_EINVAL if size is 0 or
 * too large; a smaller size is filled in as far as it goes. */
PK_API pk_status pk_get_gpu_counts(pk_gpu_counts *counts);

/* ---- below: how it is done; not for direct use ---- */

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define PK_GPU_DEFAULT_STREAM_ 2 /* CU_STREAM_PER_THREAD */
#else
#define PK_GPU_DEFAULT_STREAM_ 1 /* CU_STREAM_LEGACY */
#endif

#define pk_gpu_begin(region, stream) (pk_gpu_begin)((region), pk_gpu_stream_(stream))
#define pk_gpu_end(region, stream) (pk_gpu_end)((region), pk_gpu_stream_(stream))
#define pk_gpu_graph_launching(exec, graph, stream)                                                \
    (pk_gpu_graph_launching)((exec), (graph), pk_gpu_stream_(stream))

#define pk_region_gpu_stats(region, stats) (pk_region_gpu_stats)((region), pk_stats_sized_(stats))

#define pk_get_gpu_counts(counts) (pk_get_gpu_counts)(pk_gpu_counts_sized_(counts))

static inline pk_gpu_counts *pk_gpu_counts_sized_(pk_gpu_counts *counts)
{
    if (counts)
        counts->size = sizeof *counts;
    return counts;
}

/* The caller's default stream: different from one file of a program to another, hence static. */
static inline void *pk_gpu_stream_(void *stream)
{
    uintptr_t number = PK_GPU_DEFAULT_STREAM_;
    if (!stream)
        __builtin_memcpy(&stream, &number, sizeof stream);
    return stream;
}

#ifndef PK_DISABLE

#define PK_GPU_SCOPE_AT_(region, stream, scope)                                                    \
    struct pk_gpu_open_ scope __attribute__((cleanup(pk_gpu_scope_close_), unused)) =              \
        pk_gpu_scope_open_(&(region), (stream))

/* Non-zero while a session is open that records spans of streams. */
extern PK_API uint32_t pk_gpu_gate_;

PK_API void pk_gpu_begin_on_(pk_region *region, void *stream);
PK_API void pk_gpu_end_on_(pk_region *region, void *stream);
PK_API void pk_gpu_graph_launching_on_(void *exec, void *graph, void *stream);

#define PK_GPU_ON_ PK_EXPECT_OFF_(__atomic_load_n(&pk_gpu_gate_, __ATOMIC_RELAXED) != 0)

PK_INLINE void(pk_gpu_begin)(pk_region *region, void *stream)
{
    if (PK_GPU_ON_)
        pk_gpu_begin_on_(region, stream);
}

PK_INLINE void(pk_gpu_end)(pk_region *region, void *stream)
{
    if (PK_GPU_ON_)
        pk_gpu_end_on_(region, stream);
}

PK_INLINE void(pk_gpu_graph_launching)(void *exec, void *graph, void *stream)
{
    if (PK_GPU_ON_)
        pk_gpu_graph_launching_on_(exec, graph, stream);
}

struct pk_gpu_open_ {
    pk_region *region;
    void *stream;
};

static inline struct pk_gpu_open_ pk_gpu_scope_open_(pk_region *region, void *stream)
{
    struct pk_gpu_open_ scope;
    scope.region = region;
    scope.stream = pk_gpu_stream_(stream);
    (pk_gpu_begin)(region, scope.stream);
    return scope;
}

static inline void pk_gpu_scope_close_(struct pk_gpu_open_ *scope)
{
    (pk_gpu_end)(scope->region, scope->stream);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_GPU_
#include <pk/disable.h>
#endif
#endif
