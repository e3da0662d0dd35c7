/* fake/driver.c - the mock of libcuda: contexts, streams and events, and a device that takes its
 * time. */
#include "driver_state.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- contexts, streams, events, and the script ---- */

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
                    .version = 13000,
                    .devices = 2,
                    .rate = 1,
                    .base_device = 1e9};
_Thread_local context *fake_current;
void (*fake_on_query)(CUresult answer);
void (*fake_on_call)(fake_call call);

static _Thread_local context *pushed[8];
static _Thread_local unsigned push_depth;
static _Thread_local stream *own; /* the thread's default one */
static _Thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult fake_enter(fake_call call)
{
    void (*told)(fake_call) = __atomic_load_n(&fake_on_call, __ATOMIC_ACQUIRE);
    if (told)
        told(call);
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

/* -- the driver's functions -- */

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
    *ctx = s && !s->green ? s->ctx : NULL;
    code = code ? code : s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    return fake_leave(!code && s->green ? CUDA_ERROR_NOT_SUPPORTED : code);
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
    CUresult code = fake_enter(FAKE_STREAM_CTX);
    const stream *s = fake_stream(handle);
    *ctx = s ? s->ctx : NULL;
    *green = s && s->green ? (CUgreenCtx)(void *)s->ctx : NULL;
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

/* ---- a device that takes its time, and threads that wait for it ---- */

/* -- the device -- */

static bool is_there(const work_item *w)
{
    return !w->word || (int32_t)(__atomic_load_n(w->word, __ATOMIC_ACQUIRE) - w->value) >= 0;
}

/* When the stream's next piece of work will be done; UINT64_MAX: not by itself. A word that has
 * come is seen when somebody looks. */
static uint64_t done_at(const stream *s, uint64_t now)
{
    const work_item *w = &s->queue[s->tail % QUEUE];
    if (s->tail == s->head || w->due == UINT64_MAX || !is_there(w))
        return UINT64_MAX;
    uint64_t begins = s->free_at > w->due ? s->free_at : w->due;
    return (w->word ? now : begins) + w->ns;
}

static void go_on(stream *s, uint64_t now)
{
    for (uint64_t done; (done = done_at(s, now)) <= now;) {
        work_item w = s->queue[s->tail++ % QUEUE];
        s->launched -= !w.event && !w.word;
        s->free_at = done;
        fake_stamp(s, w, done);
    }
}

void fake_go_on(void)
{
    bool moves = fake.lagging || fake.waiting || fake.time;
    uint64_t now = moves ? fake_monotonic() : 0;
    for (stream *s = fake.streams; s && moves; s = s->next)
        go_on(s, now);
}

void fake_push(stream *s, work_item w)
{
    s->queue[s->head++ % QUEUE] = w;
    s->launched += !w.event && !w.word;
    fake_go_on();
}

/* What was under way on the other clock is forgotten. */
void fake_live_on(const fake_cuda_time *time)
{
    pthread_mutex_lock(&fake.lock);
    fake.base_ns = fake.time == time ? fake.base_ns : 0;
    for (stream *s = fake.streams; s && fake.time != time; s = s->next) {
        s->head = s->tail = s->launched = 0;
        s->free_at = 0;
    }
    fake.time = time;
    pthread_mutex_unlock(&fake.lock);
}

/* -- who waits for it -- */

bool fake_wait_for(stream *s)
{
    pthread_mutex_lock(&fake.lock);
    const fake_cuda_time *time = fake.time;
    uint64_t now = time ? time->now() : 0, next = time && s ? done_at(s, now) : UINT64_MAX;
    pthread_mutex_unlock(&fake.lock);
    if (!time) {
        sched_yield();
        return true;
    }
    if (next != UINT64_MAX) {
        time->pass(next > now ? next - now : 0);
        return true;
    }
    bool comes = time->wait();
    pthread_mutex_lock(&fake.lock);
    fake.hung += !comes;
    pthread_mutex_unlock(&fake.lock);
    return comes;
}

static bool is_full(const stream *s)
{
    return s->launched >= LAUNCHES;
}

static bool is_busy(const stream *s)
{
    return s->head != s->tail;
}

/* Until that is so no more; the lock is taken in between. */
static bool wait_while(bool (*so)(const stream *), stream *s)
{
    for (;;) {
        pthread_mutex_lock(&fake.lock);
        fake_go_on();
        bool still = so(s);
        pthread_mutex_unlock(&fake.lock);
        if (!still)
            return true;
        if (!fake_wait_for(s))
            return false;
    }
}

/* For one more launch. */
bool fake_await_room(stream *s)
{
    return !s || wait_while(is_full, s);
}

static bool wait_for_device(const context *ctx)
{
    for (stream *s = fake.streams; s; s = s->next)
        if (s->ctx == ctx && !wait_while(is_busy, s))
            return false;
    return true;
}

CUresult fake_synchronize(CUstream handle)
{
    return wait_while(is_busy, fake_stream(handle)) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUresult CUDAAPI cuEventSynchronize(CUevent e)
{
    CUresult code;
    while ((code = cuEventQuery(e)) == CUDA_ERROR_NOT_READY)
        if (!fake_wait_for(e->on))
            return CUDA_ERROR_UNKNOWN;
    return code;
}

/* An allocation of device memory waits for the device (CUDA's "implicit synchronization"). */
bool fake_settle(void)
{
    return wait_for_device(fake_current);
}

/* -- kernels -- */

void fake_run(stream *s, uint64_t ns)
{
    pthread_mutex_lock(&fake.lock);
    fake_push(s, (work_item){.due = fake_monotonic(), .ns = ns});
    pthread_mutex_unlock(&fake.lock);
}

CUresult fake_kernel(CUstream handle, uint64_t launch_ns, uint64_t ns)
{
    stream *s = fake_stream(handle);
    if (!s->ctx->loaded && !wait_for_device(s->ctx))
        return CUDA_ERROR_UNKNOWN;
    s->ctx->loaded = true;
    fake.time->pass(launch_ns);
    if (!fake_await_room(s))
        return CUDA_ERROR_UNKNOWN;
    fake_run(s, ns);
    return CUDA_SUCCESS;
}

/* -- waits for memory -- */

void fake_no_waits(void)
{
    fake.no_waits = true;
}

static CUresult wait_value(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    const uint32_t *word = fake_host_word(address);
    stream *s = fake_stream(handle);
    if (fake.no_waits)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!s || !word || flags != CU_STREAM_WAIT_VALUE_GEQ)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    fake.waiting = true;
    fake_push(s, (work_item){.due = fake_monotonic(), .word = word, .value = value});
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

#ifndef FAKE_NO_PROC_ADDRESS
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags)
{
    return wait_value(handle, address, value, flags);
}
#endif

/* The first form, of drivers before 11.7. */
#undef cuStreamWaitValue32
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags);
CUresult CUDAAPI cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags)
{
    fake.misused += fake.no_waits;
    return wait_value(handle, address, value, flags);
}

/* ---- what a benchmark asks of the driver beside events and waits ---- */

/* Memory to flush the L2 cache with, a word that both sides see. Blocks are counted, and the tally
 * is what a test reads. */

enum { L2_BYTES = 1 << 20, BYTES_PER_NS = 1000 };

struct fake_bench_tally {
    unsigned blocks, fills;
    size_t filled;
    unsigned words; /* blocks of host memory */
};

__attribute__((visibility("default"))) struct fake_bench_tally FAKE_CUDA_BENCH;

#define DRIVER __attribute__((visibility("default"))) CUresult CUDAAPI

void (*fake_on_memory)(uint64_t address, size_t bytes, bool frees, bool pinned);

static void *told(void *block, size_t bytes, bool frees, bool pinned)
{
    if (fake_on_memory && block)
        fake_on_memory((uint64_t)(uintptr_t)block, bytes, frees, pinned);
    return block;
}

static CUresult driver_bench_has_current(void)
{
    return fake_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!fake_settle())
        return CUDA_ERROR_UNKNOWN;
    void *block = told(malloc(bytes), bytes, false, false);
    *out = (CUdeviceptr)(uintptr_t)block;
    FAKE_CUDA_BENCH.blocks += block != NULL;
    return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER cuMemFree(CUdeviceptr block)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    free(told((void *)(uintptr_t)block, 0, true, false));
    FAKE_CUDA_BENCH.blocks--;
    return CUDA_SUCCESS;
}

DRIVER cuMemsetD8Async(CUdeviceptr block, unsigned char value, size_t bytes, CUstream on)
{
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes) { /* nobody reads it, and a benchmark fills 2 MiB for each of its samples */
        ((unsigned char *)(uintptr_t)block)[0] = value;
        ((unsigned char *)(uintptr_t)block)[bytes - 1] = value;
    }
    FAKE_CUDA_BENCH.fills++;
    FAKE_CUDA_BENCH.filled = bytes;
    if (fake.time)
        fake_run(fake_stream(on), bytes / BYTES_PER_NS);
    return CUDA_SUCCESS;
}

uint64_t fake_walk_ns(void)
{
    static unsigned fills;
    bool flushed = fills != FAKE_CUDA_BENCH.fills;
    fills = FAKE_CUDA_BENCH.fills;
    return flushed ? 8000 : 4000;
}

/* -- host memory that the device sees: under another address, as it may be -- */

enum { MAPPED = 4 };
static const uintptr_t ELSEWHERE = (uintptr_t)1 << 60;
static struct {
    uint32_t *block;
    bool mapped;
} words[MAPPED];

const uint32_t *fake_host_word(CUdeviceptr address)
{
    for (int i = 0; i < MAPPED; i++)
        if (words[i].block && address == (CUdeviceptr)((uintptr_t)words[i].block + ELSEWHERE))
            return words[i].block;
    return NULL;
}

static int find_word(const void *block)
{
    int i = 0;
    while (i < MAPPED && words[i].block != block)
        i++;
    return i;
}

DRIVER cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    int i = find_word(NULL);
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (i == MAPPED || !(*out = calloc(1, bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    words[i].block = told(*out, bytes, false, true);
    words[i].mapped = flags & CU_MEMHOSTALLOC_DEVICEMAP;
    FAKE_CUDA_BENCH.words++;
    return CUDA_SUCCESS;
}

DRIVER cuMemHostGetDevicePointer(CUdeviceptr *out, void *block, unsigned flags)
{
    int i = find_word(block);
    if (i == MAPPED || !words[i].mapped || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)((uintptr_t)block + ELSEWHERE);
    return driver_bench_has_current();
}

DRIVER cuMemFreeHost(void *block)
{
    int i = find_word(block);
    if (!block || i == MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    words[i].block = NULL;
    free(told(block, 0, true, true));
    FAKE_CUDA_BENCH.words--;
    return driver_bench_has_current();
}

/* -- the device -- */

DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    switch ((int)which) {
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = L2_BYTES;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
        *value = !fake.no_waits;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

DRIVER cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    (void)device;
    memset(uuid->bytes, 0x5a, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
