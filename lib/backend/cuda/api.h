/* lib/backend/cuda/api.h - the CUDA driver, found at run time.
 *
 * Nothing links libcuda.so.1, and the CUDA runtime is never called: its error state belongs to the
 * program. PK_CUDA_LIBRARY names another file; a test's double comes in that way, since one on the
 * loader's search path would be taken by the runtime, CUPTI and NCCL, too.
 *
 * cuInit is left to whoever uses the GPU. A process that has called it cannot use CUDA in the
 * children that it forks, and pk_start must not take that away from a program that starts workers
 * first. So pk_start opens the library and asks cuDeviceGetCount, which answers if the program has
 * called cuInit before; else the first span decides, or pk_backend_status.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct pki_cuda_api {
    CUresult(CUDAAPI *init)(unsigned flags);
    CUresult(CUDAAPI *driver_version)(int *version);
    CUresult(CUDAAPI *device_count)(int *count);
    CUresult(CUDAAPI *error_name)(CUresult error, const char **name);
    CUresult(CUDAAPI *ctx_current)(CUcontext *ctx);
    CUresult(CUDAAPI *ctx_push)(CUcontext ctx);
    CUresult(CUDAAPI *ctx_pop)(CUcontext *ctx);
    CUresult(CUDAAPI *ctx_device)(CUdevice *device);
    CUresult(CUDAAPI *ctx_api_version)(CUcontext ctx, unsigned *version);
    CUresult(CUDAAPI *ctx_id)(CUcontext ctx, unsigned long long *id); /* 12.0; may be NULL */
    CUresult(CUDAAPI *exchange_mode)(CUstreamCaptureMode *mode);
    CUresult(CUDAAPI *stream_ctx)(CUstream stream, CUcontext *ctx);
    /* 12.5; may be NULL. Of a stream of a green context the primary one, for which the older form
     * may have none. green: a CUgreenCtx, which older headers lack. */
    CUresult(CUDAAPI *stream_ctx_v2)(CUstream stream, CUcontext *ctx, void **green);
    CUresult(CUDAAPI *stream_id)(CUstream stream, unsigned long long *id); /* 12.0; may be NULL */
    CUresult(CUDAAPI *stream_create)(CUstream *stream, unsigned flags);
    CUresult(CUDAAPI *stream_create_priority)(CUstream *stream, unsigned flags, int priority);
    CUresult(CUDAAPI *priority_range)(int *lowest, int *highest); /* both 5.5; may be NULL */
    CUresult(CUDAAPI *is_capturing)(CUstream stream, CUstreamCaptureStatus *status);
    CUresult(CUDAAPI *event_create)(CUevent *event, unsigned flags);
    CUresult(CUDAAPI *event_destroy)(CUevent event);
    CUresult(CUDAAPI *event_record)(CUevent event, CUstream stream);
    CUresult(CUDAAPI *event_query)(CUevent event);
    CUresult(CUDAAPI *event_elapsed)(float *ms, CUevent start, CUevent end);

    /* Of captures and graphs: 11.1 to 12.3. Each may be NULL. */
    CUresult(CUDAAPI *event_record_flags)(CUevent event, CUstream stream, unsigned flags);
    CUresult(CUDAAPI *capture_info_v3)(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                       const CUgraphEdgeData **edges, size_t *count);
    CUresult(CUDAAPI *capture_info_v2)(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                       size_t *count);
    CUresult(CUDAAPI *depend_v2)(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                 size_t count, unsigned flags);
    CUresult(CUDAAPI *depend_v1)(CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags);
    CUresult(CUDAAPI *add_event_node)(CUgraphNode *node, CUgraph graph, const CUgraphNode *nodes,
                                      size_t count, CUevent event);
    CUresult(CUDAAPI *exec_set_event)(CUgraphExec exec, CUgraphNode node, CUevent event);
    CUresult(CUDAAPI *graph_nodes)(CUgraph graph, CUgraphNode *nodes, size_t *count);
    CUresult(CUDAAPI *node_event)(CUgraphNode node, CUevent *event);
    CUresult(CUDAAPI *object_create)(CUuserObject *object, void *ptr, CUhostFn destroy,
                                     unsigned references, unsigned flags);
    CUresult(CUDAAPI *object_release)(CUuserObject object, unsigned count);
    CUresult(CUDAAPI *graph_retain)(CUgraph graph, CUuserObject object, unsigned count,
                                    unsigned flags);
} pki_cuda_api;

/* Valid once pki_cuda_find has said so. */
extern pki_cuda_api pki_cuda;

typedef enum pki_cuda_verdict {
    PKI_CUDA_UNTRIED,
    PKI_CUDA_ABSENT, /* no library, or not one that we can use */
    PKI_CUDA_FOUND,  /* the library is there; whether there is a GPU is not known yet */
    PKI_CUDA_LIVE,
    PKI_CUDA_NO_GPU /* cuInit or cuDeviceGetCount said no; or the process was forked */
} pki_cuda_verdict;

/* The library is opened at the first call. Nothing is initialised. */
pki_cuda_verdict pki_cuda_find(void);

/* Makes a verdict of FOUND, with cuInit. Asked once, the answer stays. */
pki_cuda_verdict pki_cuda_decide(void);

/* What is known so far, why it is not LIVE, and the driver's version as 12.4; both may be "". */
pki_cuda_verdict pki_cuda_known(void);
const char *pki_cuda_why(void);

void pki_cuda_api_after_fork(void);

/* "CUDA_ERROR_ILLEGAL_ADDRESS", or "error" for codes without a name. */
const char *pki_cuda_error_name(CUresult code);

/* Nothing works in a context any more that has answered this; it never recovers. */
bool pki_cuda_is_sticky(CUresult code);

/* Between the two, the context is current on this thread, whatever was before. Recording an event
 * and asking for the time between two are refused on a thread without a context. */
static inline CUresult pki_cuda_enter(CUcontext context)
{
    return pki_cuda.ctx_push(context);
}

static inline void pki_cuda_leave(void)
{
    CUcontext popped;
    pki_cuda.ctx_pop(&popped);
}

/* On a thread of the program's, which may have no context yet although its stream has one: then the
 * stream's context is made current for this one call. flags: 0, or CU_EVENT_RECORD_EXTERNAL. */
CUresult pki_cuda_record_in(CUcontext context, CUevent event, CUstream stream, unsigned flags);

static inline CUresult pki_cuda_record(CUcontext context, CUevent event, CUstream stream)
{
    CUresult code = pki_cuda.event_record(event, stream);
    return PKI_UNLIKELY(code == CUDA_ERROR_INVALID_CONTEXT)
               ? pki_cuda_record_in(context, event, stream, 0)
               : code;
}

/* Between the two, calls that a capture of somebody else would forbid are allowed on this thread,
 * and do not invalidate it. */
static inline CUstreamCaptureMode pki_cuda_relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    pki_cuda.exchange_mode(&mode);
    return mode;
}

static inline void pki_cuda_restore(CUstreamCaptureMode mode)
{
    pki_cuda.exchange_mode(&mode);
}
