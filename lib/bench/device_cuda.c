/* Timing benchmarks on a stream, by two events: lib/bench/device.h. Here a program measures
 * itself and waits, so waiting for the stream is in order. */
#include "bench/device.h"
#include "bench/device_gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/api.h"
#include "base/compiler.h"
#include "base/dl.h"

/* Beyond what spans need. */
typedef struct table {
    CUresult(CUDAAPI *event_synchronize)(CUevent event);
    CUresult(CUDAAPI *allocate)(CUdeviceptr *block, size_t bytes);
    CUresult(CUDAAPI *release)(CUdeviceptr block);
    CUresult(CUDAAPI *fill)(CUdeviceptr block, unsigned char value, size_t bytes, CUstream stream);
    CUresult(CUDAAPI *attribute)(int *value, CUdevice_attribute which, CUdevice device);
    CUresult(CUDAAPI *uuid)(CUuuid *uuid, CUdevice device);
} table;

static const pki_dl_function functions[] = {
    {"cuEventSynchronize", offsetof(table, event_synchronize), false},
    {"cuMemAlloc_v2", offsetof(table, allocate), false},
    {"cuMemFree_v2", offsetof(table, release), false},
    {"cuMemsetD8Async", offsetof(table, fill), false},
    {"cuDeviceGetAttribute", offsetof(table, attribute), false},
    {"cuDeviceGetUuid_v2", offsetof(table, uuid), true},
};

typedef struct timer {
    table cuda;
    void *library;
    CUcontext context;
    CUstream stream;
    CUevent start, end;
    CUdeviceptr flushed; /* twice as large as the L2 cache; 0: not asked for */
    size_t flushed_bytes;
    CUdevice device;
    pki_bench_gate gate;
    const char *no_gate; /* why there is none; NULL: there is */
    pki_bench_health_source *health;
    char why[160];
} timer;

#define RESOLUTION 500.0 /* ns, by cuda.h's cuEventElapsedTime */

/* Does the timer remember what went wrong? */
static bool fine(timer *t, const char *call, CUresult code)
{
    if (code != CUDA_SUCCESS)
        snprintf(t->why, sizeof t->why, "%s: %s (%d)", call, pki_cuda_error_name(code), (int)code);
    return code == CUDA_SUCCESS;
}

static const char *why(void *timer_)
{
    return ((timer *)timer_)->why;
}

/* ---- life ---- */

static void open_health(timer *t)
{
    CUuuid uuid;
    char text[48], *out = text;
    if (!t->cuda.uuid || t->cuda.uuid(&uuid, t->device) != CUDA_SUCCESS)
        return;
    out += snprintf(out, sizeof text, "GPU");
    for (int i = 0; i < 16; i++)
        out +=
            snprintf(out, 4, "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                     (unsigned)(unsigned char)uuid.bytes[i]);
    t->health = pki_bench_health_open(text);
}

static bool bind(timer *t)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    char reason[sizeof t->why] = "";
    t->library = pki_dl_open("PK_CUDA_LIBRARY", names, reason, sizeof reason);
    bool bound = t->library && pki_dl_bind(t->library, functions, PKI_COUNT_OF(functions), &t->cuda,
                                           reason, sizeof reason);
    if (!bound)
        snprintf(t->why, sizeof t->why, "the CUDA driver cannot time streams: %.110s", reason);
    return bound;
}

/* The stream's context, or the current one for a default stream. */
static bool find_context(timer *t)
{
    if (t->stream) {
        if (!fine(t, "cuStreamGetCtx", pki_cuda.stream_ctx(t->stream, &t->context)))
            return false;
    } else {
        if (!fine(t, "cuCtxGetCurrent", pki_cuda.ctx_current(&t->context)))
            return false;
        t->stream = CU_STREAM_LEGACY; /* as pk_gpu_begin takes it */
    }
    if (!t->context)
        snprintf(t->why, sizeof t->why,
                 "no CUDA context is current on this thread (cudaFree(0) in the set-up makes one)");
    return t->context != NULL;
}

static bool make_events(timer *t)
{
    return fine(t, "cuCtxGetDevice", pki_cuda.ctx_device(&t->device)) &&
           fine(t, "cuEventCreate", pki_cuda.event_create(&t->start, CU_EVENT_BLOCKING_SYNC)) &&
           fine(t, "cuEventCreate", pki_cuda.event_create(&t->end, CU_EVENT_BLOCKING_SYNC));
}

/* Twice what the cache holds, since nobody says in which order it gives up its lines. Before
 * anything is held back: allocating may wait for the device. */
static bool make_flushed(timer *t)
{
    int bytes = 0;
    if (!fine(t, "cuDeviceGetAttribute",
              t->cuda.attribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, t->device)))
        return false;
    t->flushed_bytes = bytes > 0 ? 2 * (size_t)bytes : 1;
    return fine(t, "cuMemAlloc", t->cuda.allocate(&t->flushed, t->flushed_bytes));
}

/* Between the two, the stream's context is current on this thread. */
static bool enter(timer *t)
{
    return fine(t, "cuCtxPushCurrent", pki_cuda_enter(t->context));
}

static void close_timer(void *timer_)
{
    timer *t = timer_;
    if (t->context && enter(t)) {
        if (t->start)
            pki_cuda.event_destroy(t->start);
        if (t->end)
            pki_cuda.event_destroy(t->end);
        if (t->flushed)
            t->cuda.release(t->flushed);
        pki_bench_gate_destroy(&t->gate);
        pki_cuda_leave();
    }
    pki_bench_health_close(t->health);
    free(t);
}

static void *open_timer(void *stream, bool cold, char *reason, size_t size)
{
    timer *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(reason, size, "no memory for a timer");
        return NULL;
    }
    t->stream = stream;
    bool made = bind(t) && find_context(t) && enter(t);
    if (made) {
        made = make_events(t) && (!cold || make_flushed(t));
        if (made) {
            t->no_gate = pki_bench_gate_make(&t->gate, t->library, t->device, t->stream);
            open_health(t);
        }
        pki_cuda_leave();
    }
    if (made)
        return t;
    snprintf(reason, size, "%s", t->why);
    close_timer(t);
    return NULL;
}

/* ---- a sample ---- */

static bool begin(void *timer_)
{
    timer *t = timer_;
    return fine(t, "cuEventRecord", pki_cuda_record(t->context, t->start, t->stream));
}

static bool end(void *timer_)
{
    timer *t = timer_;
    return fine(t, "cuEventRecord", pki_cuda_record(t->context, t->end, t->stream));
}

static bool elapsed(void *timer_, double *ns)
{
    timer *t = timer_;
    float ms = 0;
    if (!fine(t, "cuEventSynchronize", t->cuda.event_synchronize(t->end)) || !enter(t))
        return false;
    bool read = fine(t, "cuEventElapsedTime", pki_cuda.event_elapsed(&ms, t->start, t->end));
    pki_cuda_leave();
    *ns = (double)ms * 1e6;
    return read;
}

static bool flush(void *timer_)
{
    timer *t = timer_;
    if (!enter(t))
        return false;
    bool done =
        fine(t, "cuMemsetD8Async", t->cuda.fill(t->flushed, 0, t->flushed_bytes, t->stream));
    pki_cuda_leave();
    return done;
}

/* ---- holding back ---- */

static const char *cannot_hold(void *timer_)
{
    return ((timer *)timer_)->no_gate;
}

static bool hold(void *timer_)
{
    timer *t = timer_;
    if (!enter(t))
        return false;
    bool held = fine(t, "cuStreamWaitValue32", pki_bench_gate_shut(&t->gate, t->stream));
    pki_cuda_leave();
    return held;
}

static void release(void *timer_)
{
    pki_bench_gate_open(&((timer *)timer_)->gate);
}

static bool health(void *timer_, pki_bench_health *now)
{
    return pki_bench_health_read(((timer *)timer_)->health, now);
}

/* ---- the table ---- */

/* A shared libpkbench has a driver's table of its own, of which libpk's handler of forks does not
 * know. */
static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, pki_cuda_api_after_fork);
}

const pki_bench_device *pki_bench_device_find(const char **why_not)
{
    static const pki_bench_device cuda = {
        "cuda events", RESOLUTION, open_timer,  close_timer, begin,   end,   elapsed,
        why,           flush,      cannot_hold, hold,        release, health};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    *why_not = "";
    if (pki_cuda_decide() == PKI_CUDA_LIVE)
        return &cuda;
    *why_not = pki_cuda_why();
    return NULL;
}
