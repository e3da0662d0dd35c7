/* fake/driver.h - a scripted libcuda: streams, events, captures and graphs without a GPU.
 *
 * libfake-cuda.so comes in by PK_CUDA_LIBRARY; a test opens the same file and finds the script's
 * functions in the table named FAKE_CUDA_SCRIPT. The device's clock runs beside CLOCK_MONOTONIC, at
 * a rate of the script's. Work is done as soon as it is handed over, or, while it is held, when the
 * script says so. Everything is under one lock, so a call counts as one however many threads there
 * are.
 *
 * What the real driver forbids is forbidden here: in a capture of mode GLOBAL, an unsafe call of
 * any thread that has not exchanged its mode invalidates the capture, and is counted. Calls for
 * which cuda.h lists CUDA_ERROR_INVALID_CONTEXT answer it on a thread without a current context.
 * The body of a conditional node takes kernels, copies, fills, empty nodes, child graphs and
 * conditional nodes only, a graph for launches from the device the first three and child graphs,
 * and a programmatic dependency holds between kernels only: an event node is refused there, which
 * spoils a capture that it was recorded into.
 *
 * The device can live on a test's own clock (live_on): kernels take what the test says, launching
 * them, too, and whoever waits for the device lets that clock go on. As on a device: work of a
 * stream runs in order; a wait for memory (cuStreamWaitValue32) holds back what follows it on that
 * stream and nothing else, and is refused where the device has none; the 1025th launch that has not
 * run blocks its thread; events are stamped in steps of 0.5 us; loading a kernel, at its first
 * launch, and allocating wait for the device. Who waits for what will never come gets
 * CUDA_ERROR_UNKNOWN, and is counted as hung. */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_CUDA_CALLS(X)                                                                         \
    X(INIT, cuInit, 2000)                                                                          \
    X(DRIVER_VERSION, cuDriverGetVersion, 2020)                                                    \
    X(DEVICE_COUNT, cuDeviceGetCount, 2000)                                                        \
    X(ERROR_NAME, cuGetErrorName, 6000)                                                            \
    X(CTX_CURRENT, cuCtxGetCurrent, 4000)                                                          \
    X(CTX_PUSH, cuCtxPushCurrent, 4000)                                                            \
    X(CTX_POP, cuCtxPopCurrent, 4000)                                                              \
    X(CTX_DEVICE, cuCtxGetDevice, 2000)                                                            \
    X(CTX_API_VERSION, cuCtxGetApiVersion, 3020)                                                   \
    X(CTX_ID, cuCtxGetId, 12000)                                                                   \
    X(EXCHANGE_MODE, cuThreadExchangeStreamCaptureMode, 10010)                                     \
    X(STREAM_CTX, cuStreamGetCtx, 9020)                                                            \
    X(STREAM_CTX_2, cuStreamGetCtx_v2, 12050)                                                      \
    X(STREAM_ID, cuStreamGetId, 12000)                                                             \
    X(STREAM_CREATE, cuStreamCreate, 2000)                                                         \
    X(IS_CAPTURING, cuStreamIsCapturing, 10000)                                                    \
    X(EVENT_CREATE, cuEventCreate, 2000)                                                           \
    X(EVENT_DESTROY, cuEventDestroy, 4000)                                                         \
    X(EVENT_RECORD, cuEventRecord, 2000)                                                           \
    X(EVENT_RECORD_FLAGS, cuEventRecordWithFlags, 11010)                                           \
    X(EVENT_QUERY, cuEventQuery, 2000)                                                             \
    X(EVENT_ELAPSED, cuEventElapsedTime, 2000)                                                     \
    X(CAPTURE_INFO, cuStreamGetCaptureInfo, 12030)                                                 \
    X(UPDATE_DEPENDENCIES, cuStreamUpdateCaptureDependencies, 12030)                               \
    X(ADD_EVENT_NODE, cuGraphAddEventRecordNode, 11010)                                            \
    X(EXEC_SET_EVENT, cuGraphExecEventRecordNodeSetEvent, 11010)                                   \
    X(GRAPH_NODES, cuGraphGetNodes, 10000)                                                         \
    X(NODE_EVENT, cuGraphEventRecordNodeGetEvent, 11010)                                           \
    X(OBJECT_CREATE, cuUserObjectCreate, 11030)                                                    \
    X(OBJECT_RELEASE, cuUserObjectRelease, 11030)                                                  \
    X(GRAPH_RETAIN, cuGraphRetainUserObject, 11030)

typedef enum fake_call {
#define FAKE_CALL_ENUM(id, name, version) FAKE_##id,
    FAKE_CUDA_CALLS(FAKE_CALL_ENUM)
#undef FAKE_CALL_ENUM
        FAKE_CALLS
} fake_call;

/* The test's clock. wait: the calling thread waits for something that is not the device's; false:
 * there is nothing that could ever come. */
typedef struct fake_cuda_time {
    uint64_t (*now)(void);
    void (*pass)(uint64_t ns);
    bool (*wait)(void);
} fake_cuda_time;

typedef struct fake_cuda_script {
    /* Forgets contexts, streams and graphs, and what was scripted. Events stay readable. */
    void (*reset)(void);

    /* Before the first call of perfkit's. Version 0: the toolkit's stub. */
    void (*set_driver)(int version, int devices, CUresult init, CUresult count);
    bool (*initialised)(void);

    CUcontext (*context_create)(int device); /* current on this thread from here on */
    void (*context_destroy)(CUcontext ctx);
    void (*context_poison)(CUcontext ctx, CUresult code); /* every call answers this from here on */
    void (*context_current)(CUcontext ctx);
    CUstream (*stream_create)(CUcontext ctx);
    CUstream (*stream_green)(CUcontext ctx); /* of a green context of that device */
    CUstream (*stream_again)(CUstream stream, CUcontext ctx); /* destroyed; the handle is reused */

    /* Work waits from here on, until so many pieces of it are run on one stream. Returns how many
     * were. */
    void (*hold)(bool on);
    unsigned (*run)(CUstream stream, unsigned most);
    void (*clock)(double rate); /* of the device's clock, from here on */
    void (*lag)(uint64_t ns);   /* how late work is done, on all streams: a device that is shared */
    uint64_t (*host_ns)(uint64_t device); /* CLOCK_MONOTONIC when the device's clock said so */

    unsigned (*calls)(fake_call call);
    void (*count_anew)(void);
    void (*on_query)(void (*told)(CUresult answer)); /* of each cuEventQuery, by who asks */
    void (*on_call)(void (*told)(fake_call call));   /* before each, by who makes it */
    /* The call fails so many times, after so many that do not. */
    void (*let_fail)(fake_call call, unsigned after, unsigned times, CUresult code);

    /* Device times of the last events stamped on the stream, oldest first; how many there are. */
    unsigned (*stamps)(CUstream stream, uint64_t *ns, unsigned most);
    uint64_t (*device_ns)(void);

    CUresult (*capture_begin)(CUstream stream, CUstreamCaptureMode mode);
    CUresult (*capture_end)(CUstream stream, CUgraph *graph);
    void (*capture_join)(CUstream other, CUstream stream); /* other takes part in stream's */
    void (*work)(CUstream stream);                         /* a kernel: a node in a capture */
    unsigned (*invalidated)(void); /* captures that somebody's unsafe call has spoilt */
    CUgraph (*graph_create)(void);
    CUresult (*capture_begin_to)(CUstream stream, CUgraph graph, CUstreamCaptureMode mode);
    CUgraph (*conditional)(CUstream stream);   /* a node in its capture; returns the node's body */
    void (*programmatic)(CUstream stream);     /* a kernel, to be overlapped by the stream's next */
    CUgraphExec (*instantiate)(CUgraph graph); /* NULL: refused */
    CUresult (*instantiate_for_device)(CUgraph graph, CUgraphExec *exec);
    CUresult (*launch)(CUgraphExec exec, CUstream stream);
    void (*graph_destroy)(CUgraph graph);
    void (*exec_destroy)(CUgraphExec exec);
    void (*graph_again)(CUgraph graph); /* destroyed; another one, of one kernel, has its handle */
    unsigned (*nodes)(CUgraph graph);
    unsigned (*events)(void); /* that exist */
    unsigned (*modes)(void);  /* threads whose capture mode is not what it was at first, now */

    void (*live_on)(const fake_cuda_time *time); /* until reset */
    void (*no_waits)(void);    /* cuStreamWaitValue32 is not supported, until reset */
    unsigned (*misused)(void); /* its first form's calls where the attribute forbids them */
    unsigned (*hung)(void);
    CUresult (*kernel)(CUstream stream, uint64_t launch_ns, uint64_t ns);
    CUresult (*synchronize)(CUstream stream);
} fake_cuda_script;

#define FAKE_CUDA_SCRIPT "fake_cuda_script"

#endif
