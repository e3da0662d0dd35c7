/* lib/bench/device_cuda.c - timing benchmarks on a CUDA stream */
#include <pk/bench.h>

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/api.h"
#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"
#include "bench/case.h"
#include "bench/counters.h"
#include "bench/device.h"
#include "bench/stats/samples.h"

/* ---- How a GPU feels while it is measured: lib/bench/device.h ---- */

struct pki_bench_health_source {
    const pki_nvml *nvml;
    pki_nvml_handle device;
};

static bool find_device(pki_bench_health_source *s, const char *uuid)
{
    char reason[128];
    s->nvml = *uuid ? pki_nvml_open(reason, sizeof reason) : NULL;
    if (!s->nvml || !s->nvml->by_uuid || s->nvml->init() != PKI_NVML_OK)
        return false;
    if (s->nvml->by_uuid(uuid, &s->device) == PKI_NVML_OK)
        return true;
    s->nvml->shutdown();
    return false;
}

static pki_bench_health_source *pki_bench_health_open(const char *uuid)
{
    pki_bench_health_source *s = calloc(1, sizeof *s);
    if (s && find_device(s, uuid))
        return s;
    free(s);
    return NULL;
}

static void pki_bench_health_close(pki_bench_health_source *s)
{
    if (s)
        s->nvml->shutdown();
    free(s);
}

static bool read_reasons(const pki_bench_health_source *s, pki_bench_health *health)
{
    unsigned long long bits = 0;
    int (*read)(pki_nvml_handle, unsigned long long *) =
        s->nvml->reasons ? s->nvml->reasons : s->nvml->old_reasons;
    if (!read || read(s->device, &bits) != PKI_NVML_OK)
        return false;
    for (uint64_t bit = 1; bit <= PKI_NVML_DISPLAY; bit <<= 1) {
        const char *text = bits & bit & PKI_NVML_HELD_DOWN ? pki_nvml_reason_text(bit) : NULL;
        size_t used = strlen(health->held_down);
        if (text)
            snprintf(health->held_down + used, sizeof health->held_down - used, "%s%s",
                     used ? ", " : "", text);
    }
    return true;
}

static bool pki_bench_health_read(const pki_bench_health_source *s, pki_bench_health *health)
{
    memset(health, 0, sizeof *health);
    if (!s)
        return false;
    if (!s->nvml->clock ||
        s->nvml->clock(s->device, PKI_NVML_CLOCK_SM, &health->mhz) != PKI_NVML_OK)
        health->mhz = 0;
    return read_reasons(s, health) || health->mhz;
}

/* ---- a CUDA stream that waits until the processor lets it go on ---- */

typedef struct pki_bench_gate {
    CUresult(CUDAAPI *wait)(CUstream, CUdeviceptr, cuuint32_t value, unsigned flags);
    CUresult(CUDAAPI *old_wait)(CUstream, CUdeviceptr, cuuint32_t value, unsigned flags);
    CUresult(CUDAAPI *allocate)(void **block, size_t bytes, unsigned flags);
    CUresult(CUDAAPI *address)(CUdeviceptr *device, void *block, unsigned flags);
    CUresult(CUDAAPI *release)(void *block);
    uint32_t *word;
    CUdeviceptr place; /* the device's name for it */
    uint32_t shut;     /* how often; the word follows */
} pki_bench_gate;

static void pki_bench_gate_destroy(pki_bench_gate *gate);

/* One word of host memory that the device sees. Shutting the gate puts a wait for the word's next
 * value into the stream (cuStreamWaitValue32); opening it stores that value, which asks nothing of
 * the driver. The word counts up, so an opening that comes late opens nothing of later. */

/* Their second form needs driver 11.7 and nothing else; the first one, only where it is switched
 * on: CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 says whether. */
static const pki_dl_function device_gate_functions[] = {
    {"cuStreamWaitValue32_v2", offsetof(pki_bench_gate, wait), true},
    {"cuStreamWaitValue32", offsetof(pki_bench_gate, old_wait), true},
    {"cuMemHostAlloc", offsetof(pki_bench_gate, allocate), true},
    {"cuMemHostGetDevicePointer_v2", offsetof(pki_bench_gate, address), true},
    {"cuMemFreeHost", offsetof(pki_bench_gate, release), true},
};

typedef CUresult(CUDAAPI *ask_attribute)(int *value, CUdevice_attribute which, CUdevice device);

static bool may_wait(pki_bench_gate *g, void *library, CUdevice device)
{
    static const pki_dl_function ask[] = {{"cuDeviceGetAttribute", 0, false}};
    struct {
        ask_attribute attribute;
    } table;
    char reason[64];
    int old_form = 0;
    if (!pki_dl_bind(library, device_gate_functions, PKI_COUNT_OF(device_gate_functions), g, reason,
                     sizeof reason) ||
        !pki_dl_bind(library, ask, 1, &table, reason, sizeof reason) || !g->allocate ||
        !g->address || !g->release)
        return false;
    if (g->wait)
        return true;
    table.attribute(&old_form, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, device);
    g->wait = old_form ? g->old_wait : NULL;
    return g->wait != NULL;
}

static bool make_word(pki_bench_gate *g)
{
    void *block = NULL;
    if (g->allocate(&block, sizeof *g->word, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS)
        return false;
    g->word = block;
    pki_store(g->word, 0);
    return g->address(&g->place, block, 0) == CUDA_SUCCESS;
}

/* With the stream's context current. NULL: it is there, and open. Else why it cannot be. */
/* A wait for what is already there is how a device that cannot wait says so. */
static const char *pki_bench_gate_make(pki_bench_gate *g, void *library, CUdevice device,
                                       CUstream stream)
{
    memset(g, 0, sizeof *g);
    const char *why_not = NULL;
    if (!may_wait(g, library, device))
        why_not = "the driver has no wait for memory in streams";
    else if (!make_word(g))
        why_not = "no host memory that the device sees";
    else if (g->wait(stream, g->place, 0, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        why_not = "the device has no wait for memory in streams";
    if (why_not)
        pki_bench_gate_destroy(g);
    return why_not;
}

static void pki_bench_gate_destroy(pki_bench_gate *g)
{
    if (g->word)
        g->release(g->word);
    g->word = NULL;
}

/* from any thread */
static CUresult pki_bench_gate_shut(pki_bench_gate *g, CUstream stream)
{
    uint32_t next = g->shut + 1;
    CUresult code = g->wait(stream, g->place, next, CU_STREAM_WAIT_VALUE_GEQ);
    if (code == CUDA_SUCCESS)
        pki_store_release(&g->shut, next); /* the watchdog's thread reads it */
    return code;
}

static void pki_bench_gate_open(pki_bench_gate *g)
{
    pki_store_release(g->word, pki_load_acquire(&g->shut));
}

/* ---- Timing benchmarks on a stream, by two events ---- */

/* Here a program measures itself and waits, so waiting for the stream is in order. */

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
