/* fake/driver.c - the mock: fake.contexts, fake.streams, events, and the script (driver.h). */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver_state.h"

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
                    .version = 13000,
                    .devices = 2,
                    .rate = 1,
                    .base_device = 1e9};
_Thread_local context *fake_current;
void (*fake_on_query)(CUresult answer);

static _Thread_local context *pushed[8];
static _Thread_local unsigned push_depth;
static _Thread_local stream *own; /* the thread's default one */
static _Thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult fake_enter(fake_call call)
{
    pthread_mutex_lock(&fake.lock);
    fake_go_on();
    fake.counts[call]++;
    if (fake.failures[call].times == 0)
        return CUDA_SUCCESS;
    if (fake.failures[call].after > 0) {
        fake.failures[call].after--;
        return CUDA_SUCCESS;
    }
    fake.failures[call].times--;
    return fake.failures[call].code;
}

CUresult fake_leave(CUresult code)
{
    pthread_mutex_unlock(&fake.lock);
    return code;
}

bool fake_unsafe(void)
{
    bool spoilt = false;
    for (graph *g = fake.captures; g; g = g->next) {
        bool ours = pthread_equal(g->owner, pthread_self()) &&
                    g->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                    mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool anybodys =
            g->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (g->active && !g->invalid && (ours || anybodys)) {
            g->invalid = spoilt = true;
            fake.invalidated++;
        }
    }
    return spoilt;
}

uint64_t fake_monotonic(void)
{
    struct timespec t;
    if (fake.time)
        return fake.time->now();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t fake_device_at(uint64_t monotonic)
{
    if (!fake.base_ns)
        fake.base_ns = monotonic;
    return (uint64_t)(fake.base_device + (double)(int64_t)(monotonic - fake.base_ns) * fake.rate);
}

uint64_t fake_device_ns(void)
{
    return fake_device_at(fake_monotonic());
}

void *fake_keep(size_t bytes)
{
    static union kept {
        union kept *next;
        max_align_t whatever;
    } * all;
    union kept *k = calloc(1, sizeof *k + bytes);
    if (!k)
        abort();
    k->next = all;
    all = k;
    return k + 1;
}

stream *fake_make_stream(context *ctx, bool blocking)
{
    stream *s = fake_keep(sizeof *s);
    s->magic = MAGIC_STREAM;
    s->ctx = ctx;
    s->blocking = blocking;
    s->id = ++fake.ids;
    s->next = fake.streams;
    return fake.streams = s;
}

stream *fake_stream(CUstream handle)
{
    if (handle == CU_STREAM_LEGACY)
        return fake_current ? fake_current->legacy : NULL;
    if (handle == CU_STREAM_PER_THREAD) {
        if (fake_current && (!own || own->ctx != fake_current))
            own = fake_make_stream(fake_current, true);
        return fake_current ? own : NULL;
    }
    return handle && handle->magic == MAGIC_STREAM ? handle : NULL;
}

static CUresult health(const context *ctx)
{
    if (!ctx || ctx->magic != MAGIC_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    return ctx->alive ? ctx->poison : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void fake_stamp(stream *s, work_item w, uint64_t when)
{
    if (!w.event || w.asked < w.event->done)
        return;
    w.event->done = w.asked;
    w.event->stamp = fake_device_at(when);
    if (fake.time)
        w.event->stamp -= w.event->stamp % EVENT_STEP;
    s->stamps[s->stamped++ % STAMPS] = w.event->stamp;
}

void fake_enqueue(stream *s, event *e)
{
    uint64_t now = fake_monotonic();
    bool held = fake.holding && !s->hasty;
    work_item w = {
        .event = e, .asked = ++e->asked, .due = held ? UINT64_MAX : now + fake.lag, .ns = 0};
    e->on = s;
    if (held || fake.lag || fake.time || s->head != s->tail)
        fake_push(s, w);
    else
        fake_stamp(s, w, now);
}

bool fake_legacy_blocked(const context *ctx)
{
    for (const stream *s = fake.streams; s; s = s->next)
        if (s->ctx == ctx && s->blocking && s->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
            return true;
    return false;
}

/* ---- the driver's functions ---- */

CUresult CUDAAPI cuInit(unsigned flags)
{
    CUresult code = fake_enter(FAKE_INIT);
    (void)flags;
    code = code ? code : fake.init_code;
    fake.is_initialised = code == CUDA_SUCCESS;
    return fake_leave(code);
}

CUresult CUDAAPI cuDriverGetVersion(int *out)
{
    *out = fake.version;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    CUresult code = fake_enter(FAKE_DEVICE_COUNT);
    code = !fake.is_initialised ? CUDA_ERROR_NOT_INITIALIZED : code ? code : fake.count_code;
    if (!code)
        *count = fake.devices;
    return fake_leave(code);
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
                                                : "CUDA_ERROR_OF_THE_DOUBLE";
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *ctx)
{
    CUresult code = fake_enter(FAKE_CTX_CURRENT);
    *ctx = fake_current;
    return fake_leave(code);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    CUresult code = fake_enter(FAKE_CTX_PUSH);
    if (push_depth == sizeof pushed / sizeof *pushed)
        abort(); /* somebody does not pop */
    if (!code && (!ctx || ctx->magic != MAGIC_CONTEXT || !ctx->alive))
        code = CUDA_ERROR_INVALID_CONTEXT;
    if (!code) {
        pushed[push_depth++] = fake_current;
        fake_current = ctx;
    }
    return fake_leave(code);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *ctx)
{
    CUresult code = fake_enter(FAKE_CTX_POP);
    if (push_depth == 0)
        return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    *ctx = fake_current;
    fake_current = pushed[--push_depth];
    return fake_leave(code);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    CUresult code = fake_enter(FAKE_CTX_DEVICE);
    code = code ? code : health(fake_current);
    if (!code)
        *device = fake_current->device;
    return fake_leave(code);
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned *out)
{
    CUresult code = fake_enter(FAKE_CTX_API_VERSION);
    *out = 3020;
    if (!code && (!ctx || ctx->magic != MAGIC_CONTEXT || !ctx->alive))
        code = CUDA_ERROR_INVALID_CONTEXT;
    return fake_leave(code);
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    CUresult code = fake_enter(FAKE_CTX_ID);
    *id = ctx->id;
    return fake_leave(code);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *wanted)
{
    CUresult code = fake_enter(FAKE_EXCHANGE_MODE);
    CUstreamCaptureMode old = mode;
    if (code)
        return fake_leave(code);
    mode = *wanted;
    *wanted = old;
    fake.exchanged += mode == CU_STREAM_CAPTURE_MODE_RELAXED ? 1 : 0;
    fake.exchanged -= old == CU_STREAM_CAPTURE_MODE_RELAXED ? 1 : 0;
    return fake_leave(code);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    CUresult code = fake_enter(FAKE_STREAM_CTX);
    const stream *s = fake_stream(handle);
    *ctx = s ? s->ctx : NULL;
    return fake_leave(code ? code : s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUresult code = fake_enter(FAKE_STREAM_ID);
    const stream *s = fake_stream(handle);
    *id = s ? s->id : 0;
    return fake_leave(code ? code : s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned flags)
{
    CUresult code = fake_enter(FAKE_STREAM_CREATE);
    code = code            ? code
           : fake_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                           : health(fake_current);
    if (!code) {
        *out = fake_make_stream(fake_current, !(flags & CU_STREAM_NON_BLOCKING));
        (*out)->hasty = true;
    }
    return fake_leave(code);
}

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned flags)
{
    CUresult code = fake_enter(FAKE_EVENT_CREATE);
    (void)flags;
    code = code            ? code
           : fake_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                           : health(fake_current);
    if (!code) {
        event *e = fake_keep(sizeof *e);
        *e = (event){.magic = MAGIC_EVENT, .ctx = fake_current};
        *out = e;
        fake.event_count++;
    }
    return fake_leave(code);
}

/* What the driver's header lists for these calls: CUDA_ERROR_INVALID_CONTEXT on a thread that has
 * none, whatever context their arguments belong to. */
static CUresult has_current(CUresult code)
{
    return code || fake_current ? code : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuEventDestroy(CUevent e)
{
    CUresult code = has_current(fake_enter(FAKE_EVENT_DESTROY));
    if (!code) {
        fake.event_count--;
        e->magic = 0; /* its memory stays: whoever uses it still is told */
    }
    return fake_leave(code);
}

static CUresult can_record(const event *e, const stream *s)
{
    if (!s || e->magic != MAGIC_EVENT || e->ctx != s->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    return health(s->ctx);
}

CUresult CUDAAPI cuEventRecord(CUevent e, CUstream handle)
{
    CUresult code = has_current(fake_enter(FAKE_EVENT_RECORD));
    stream *s = fake_stream(handle);
    code = code ? code : can_record(e, s);
    if (!code && handle == CU_STREAM_LEGACY && fake_legacy_blocked(s->ctx)) {
        fake.invalidated++;
        code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!code && s->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        e->captured = true;
    else if (!code)
        fake_enqueue(s, e);
    return fake_leave(code);
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent e, CUstream handle, unsigned flags)
{
    CUresult code = has_current(fake_enter(FAKE_EVENT_RECORD_FLAGS));
    stream *s = fake_stream(handle);
    code = code ? code : can_record(e, s);
    bool external = flags == CU_EVENT_RECORD_EXTERNAL;
    if (!code && (!external || s->status != CU_STREAM_CAPTURE_STATUS_ACTIVE))
        code = CUDA_ERROR_INVALID_VALUE;
    return fake_leave(code ? code : fake_record_node(s, e));
}

static CUresult state_of(const event *e)
{
    if (e->magic != MAGIC_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    CUresult code = health(e->ctx);
    return code ? code : e->done < e->asked ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent e)
{
    CUresult code = fake_enter(FAKE_EVENT_QUERY);
    code = code ? code : fake_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : state_of(e);
    fake_leave(code);
    void (*told)(CUresult) = __atomic_load_n(&fake_on_query, __ATOMIC_ACQUIRE);
    if (told)
        told(code);
    return code;
}

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    CUresult code = has_current(fake_enter(FAKE_EVENT_ELAPSED));
    code = code ? code : fake_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
    code = code ? code : state_of(from);
    code = code ? code : state_of(to);
    if (!code && (from->done == 0 || to->done == 0))
        code = CUDA_ERROR_INVALID_HANDLE;
    if (!code)
        *ms = (float)((double)(int64_t)(to->stamp - from->stamp) / 1e6);
    return fake_leave(code);
}
