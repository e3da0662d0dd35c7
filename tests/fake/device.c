/* fake/device.c - the mock of the driver with a device behind it, for programs that know nothing
 * of a script: the tests on a GPU (tests/gpu). libfake-device.so is libfake-cuda.so with this.
 *
 * Kernels take their time: spin(ns, to) and those called nccl...(ns) occupy their stream so long,
 * on a clock of the device's own, and what stands behind them on the stream is reached afterwards;
 * empty takes nothing, stray poisons its context. With CUDA_DEVICE_MAX_CONNECTIONS=1 all streams
 * are one queue. If PK_CUPTI_LIBRARY is the mock of CUPTI, that tells of launches, waits and
 * questions.
 *
 * FAKE_DEVICE_FAULT: something is wrong with it, which a test has to find. waits: questions are
 * told as waits, too. late: kernels see another time than events do. push: no context can be made
 * current for a while. elapsed: no time is negative. kernels: CUPTI does not tell of all. clock:
 * it tells of them by another clock. longer, shorter: it tells of each as 3 us longer, or a tenth
 * as long. beside: it has them begin before those in front of them have ended. dies: some context
 * that is destroyed is the end of the process. exchange: no thread can say that it takes care of
 * captures. plugin: NCCL finds no profiler. */
#include "device.h"
#include "driver_state.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the device ---- */

enum { FUNCTIONS = 32, KERNELS = 4096, LATENCY_NS = 3000, MHZ = 1500 };

#define DRIVER __attribute__((visibility("default"))) CUresult CUDAAPI

struct CUfunc_st {
    char name[64];
};

typedef struct spun { /* as tests/gpu/gpu.h has it */
    uint64_t began, ended, clock_began, clock_ended;
} spun;

typedef struct kernel {
    const node *at; /* in a graph */
    const struct CUfunc_st *function;
    uint64_t ns;
    spun *to;
} kernel;

static struct CUfunc_st functions[FUNCTIONS];
static kernel captured[KERNELS];
static size_t captured_count;
static context *primary[16];
static bool one_queue;

static void queried(CUresult answer)
{
    fake_tell_wait(FAKE_WAIT_QUERY, answer);
    if (fake_has_fault("waits"))
        fake_tell_wait(FAKE_WAIT_STREAM, answer);
}

__attribute__((constructor)) static void begin(void)
{
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    one_queue = queues && strcmp(queues, "1") == 0;
    if (fake_has_fault("push"))
        fake.failures[FAKE_CTX_PUSH] =
            (struct fake_failure){0, 1000000, CUDA_ERROR_INVALID_CONTEXT};
    if (fake_has_fault("exchange"))
        fake.failures[FAKE_EXCHANGE_MODE] =
            (struct fake_failure){0, 1000000, CUDA_ERROR_NOT_SUPPORTED};
    fake_on_query = queried;
    fake_on_memory = fake_tell_memory;
    fake_tell_begin();
}

/* -- devices and contexts -- */

DRIVER cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < fake.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

DRIVER cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Mock of a GPU %d", device);
    return CUDA_SUCCESS;
}

DRIVER cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)80 << 30;
    return CUDA_SUCCESS;
}

static context *new_context(int device)
{
    context *c = fake_keep(sizeof *c);
    *c = (context){.magic = MAGIC_CONTEXT, .device = device, .alive = true, .id = ++fake.ids};
    c->legacy = fake_make_stream(c, false);
    c->next = fake.contexts;
    return fake.contexts = c;
}

DRIVER cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    pthread_mutex_lock(&fake.lock);
    if (!primary[device] || !primary[device]->alive)
        primary[device] = new_context(device);
    *out = primary[device];
    return fake_leave(CUDA_SUCCESS);
}

DRIVER cuDevicePrimaryCtxReset(CUdevice device)
{
    pthread_mutex_lock(&fake.lock);
    if (primary[device])
        primary[device]->alive = false;
    return fake_leave(CUDA_SUCCESS);
}

#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device);
DRIVER cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    fake_current = *out = new_context(device);
    return fake_leave(CUDA_SUCCESS);
}

DRIVER cuCtxDestroy(CUcontext c)
{
    static unsigned destroyed;
    pthread_mutex_lock(&fake.lock);
    if (++destroyed == 20 && fake_has_fault("dies"))
        abort();
    c->alive = false;
    fake_current = fake_current == c ? NULL : fake_current;
    return fake_leave(CUDA_SUCCESS);
}

DRIVER cuCtxSetCurrent(CUcontext c)
{
    fake_current = c;
    return CUDA_SUCCESS;
}

/* -- waiting -- */

static CUresult wait_for(const stream *s, fake_wait kind)
{
    const struct timespec nap = {0, 100000};
    for (;;) {
        fake_enter(FAKE_STREAM_ID); /* time passes */
        CUresult code = s->ctx->alive ? s->ctx->poison : CUDA_ERROR_CONTEXT_IS_DESTROYED;
        int64_t left = (int64_t)(s->ends_at - fake_monotonic());
        bool done = s->head == s->tail;
        fake_leave(code);
        if (done || code) {
            fake_tell_wait(kind, code);
            return code;
        }
        if (left > 300000)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
}

DRIVER cuStreamSynchronize(CUstream handle)
{
    const stream *s = fake_stream(handle);
    return s ? wait_for(s, FAKE_WAIT_STREAM) : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER cuCtxSynchronize(void)
{
    for (const stream *s = fake.streams; s; s = s->next)
        if (s->ctx == fake_current) {
            CUresult code = wait_for(s, FAKE_WAIT_CONTEXT);
            if (code)
                return code;
        }
    return fake_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER cuStreamDestroy(CUstream handle)
{
    (void)handle; /* it stays readable */
    return CUDA_SUCCESS;
}

/* With a plain name, too, as the driver has it. */
CUresult cuEventElapsedTime_v1(float *ms, CUevent from, CUevent to) __asm__("cuEventElapsedTime");
DRIVER cuEventElapsedTime_v1(float *ms, CUevent from, CUevent to)
{
    CUresult code = cuEventElapsedTime(ms, from, to);
    *ms = code == CUDA_SUCCESS && fake_has_fault("elapsed") && *ms < 0 ? -2 * *ms : *ms;
    return code;
}

/* -- kernels -- */

DRIVER cuModuleLoadData(CUmodule *out, const void *text)
{
    *out = (CUmodule)(uintptr_t)text;
    return CUDA_SUCCESS;
}

DRIVER cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    size_t i = 0;
    (void)module;
    while (i < FUNCTIONS - 1 && functions[i].name[0] && strcmp(functions[i].name, name) != 0)
        i++;
    snprintf(functions[i].name, sizeof functions[i].name, "%s", name);
    *out = &functions[i];
    return CUDA_SUCCESS;
}

/* When it begins: behind what is on its stream. Under the lock. */
static uint64_t occupy(stream *s, uint64_t ns)
{
    uint64_t begins = fake_monotonic() + LATENCY_NS;
    begins = begins > s->ends_at ? begins : s->ends_at;
    s->ends_at = begins + ns;
    fake.lagging = true; /* from here on, time is looked at */
    fake_push(s, (work_item){.due = begins, .ns = ns});
    for (stream *other = fake.streams; other && one_queue; other = other->next)
        if (other != s) {
            other->ends_at = s->ends_at;
            fake_push(other, (work_item){.due = s->ends_at});
        }
    return begins;
}

static uint64_t run(stream *s, const kernel *k)
{
    uint64_t begins = occupy(s, k->ns), ends = begins + k->ns;
    if (strcmp(k->function->name, "stray") == 0)
        s->ctx->poison = CUDA_ERROR_ILLEGAL_ADDRESS;
    uint64_t off = k->ns > 0 && fake_has_fault("late") ? 1000000 : 0;
    if (k->to)
        *k->to = (spun){fake_device_at(begins) + off, fake_device_at(ends) + off,
                        begins * MHZ / 1000, ends * MHZ / 1000};
    return begins;
}

static kernel kernel_of(CUfunction f, void **arguments)
{
    kernel k = {NULL, f, 0, NULL};
    bool spins = strcmp(f->name, "spin") == 0;
    k.ns = strcmp(f->name, "walk") == 0 ? fake_walk_ns() : 0;
    uint64_t to = 0;
    if (spins || strncmp(f->name, "nccl", 4) == 0 || strncmp(f->name, "gemm", 4) == 0)
        memcpy(&k.ns, arguments[0], sizeof k.ns);
    if (spins)
        memcpy(&to, arguments[1], sizeof to);
    k.to = (spun *)(uintptr_t)to;
    return k;
}

#undef cuLaunchKernel
DRIVER cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream handle, void **arguments, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    fake_await_room(fake_stream(handle));
    CUresult code = fake_enter(FAKE_STREAM_ID);
    stream *s = fake_stream(handle);
    kernel k = kernel_of(f, arguments);
    uint64_t from_now = 0;
    code = code ? code : !s ? CUDA_ERROR_INVALID_HANDLE : s->ctx->poison;
    code = code || s->ctx->alive ? code : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    bool in_capture = !code && s->capturing;
    if (in_capture && captured_count < KERNELS) {
        fake_add_node(s, NULL);
        k.at = s->last;
        captured[captured_count++] = k;
    } else if (!code) {
        from_now = run(s, &k) - fake_monotonic();
    }
    fake_leave(code);
    if (!code && !in_capture)
        fake_tell_kernel(f->name, (int64_t)from_now > 0 ? from_now : 1, k.ns);
    return code;
}

DRIVER cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

/* -- captures and graphs -- */

DRIVER cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    return fake_capture_begin(handle, mode);
}

DRIVER cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    return fake_capture_end(handle, out);
}

DRIVER cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return fake_instantiate_for_device(g, out);
    *out = fake_instantiate(g);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const kernel *kernel_at(const node *n)
{
    for (size_t i = 0; i < captured_count; i++)
        if (captured[i].at == n)
            return &captured[i];
    return NULL;
}

/* Conditions hold. */
static void run_body(stream *s, const graph *body)
{
    for (size_t i = 0; i < body->count; i++) {
        const kernel *k = kernel_at(body->nodes[i]);
        if (k)
            run(s, k);
        else if (body->nodes[i]->body)
            run_body(s, body->nodes[i]->body);
    }
}

DRIVER cuGraphLaunch(CUgraphExec x, CUstream handle)
{
    fake_enter(FAKE_STREAM_ID);
    stream *s = fake_stream(handle);
    for (size_t i = 0; i < x->count; i++) {
        const kernel *k = kernel_at(x->nodes[i]);
        if (x->events[i])
            fake_enqueue(s, x->events[i]);
        else if (k)
            run(s, k);
        else if (x->nodes[i]->body)
            run_body(s, x->nodes[i]->body);
    }
    return fake_leave(CUDA_SUCCESS);
}

DRIVER cuGraphCreate(CUgraph *out, unsigned flags)
{
    (void)flags;
    *out = fake_graph_create();
    return CUDA_SUCCESS;
}

DRIVER cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph g, CUcontext ctx,
                                      unsigned first, unsigned flags)
{
    (void)g, (void)ctx, (void)first;
    *out = 1;
    return flags == CU_GRAPH_COND_ASSIGN_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Conditional nodes with one body. */
DRIVER cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *from,
                      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)from, (void)edges;
    if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || params->conditional.size != 1 ||
        count > 0 || params->conditional.type != CU_GRAPH_COND_TYPE_IF || !params->conditional.ctx)
        return CUDA_ERROR_INVALID_VALUE;
    graph *body = fake_graph_create();
    pthread_mutex_lock(&fake.lock);
    node *n = fake_keep(sizeof *n);
    body->is_body = true;
    n->body = body;
    *out = g->nodes[g->count++] = n;
    params->conditional.phGraph_out = &n->body;
    return fake_leave(CUDA_SUCCESS);
}

DRIVER cuStreamBeginCaptureToGraph(CUstream handle, CUgraph g, const CUgraphNode *from,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUstreamCaptureMode mode)
{
    (void)from, (void)edges, (void)count;
    return fake_capture_begin_to(handle, g, mode);
}

DRIVER cuGraphExecDestroy(CUgraphExec x)
{
    fake_exec_destroy(x);
    return CUDA_SUCCESS;
}

DRIVER cuGraphDestroy(CUgraph g)
{
    fake_graph_destroy(g);
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

/* The mock's memory pool: blocks of the host's memory, and how much of the device the pool holds,
 * by pieces, until it is trimmed. */

enum { PIECE = 2097152, BLOCKS = 64 }; /* as fake_cupti.h has it */

static struct {
    uint64_t address, bytes;
} blocks[BLOCKS];
static uint64_t reserved, used;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static int find(uint64_t address)
{
    int i = 0;
    while (i < BLOCKS && blocks[i].address != address)
        i++;
    return i;
}

DRIVER cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    (void)device;
    *out = (CUmemoryPool)(void *)&reserved;
    return CUDA_SUCCESS;
}

DRIVER cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream on)
{
    void *block = malloc(bytes);
    int i = find(0);
    (void)on;
    if (!block || i == BLOCKS) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUdeviceptr)(uintptr_t)block;
    blocks[i].address = *out;
    blocks[i].bytes = bytes;
    used += bytes;
    reserved = rounded(used) > reserved ? rounded(used) : reserved;
    fake_tell_pool(*out, bytes, false);
    return CUDA_SUCCESS;
}

DRIVER cuMemFreeAsync(CUdeviceptr address, CUstream on)
{
    int i = find(address);
    (void)on;
    if (!address || i == BLOCKS)
        return CUDA_ERROR_INVALID_VALUE;
    used -= blocks[i].bytes;
    blocks[i].address = 0;
    fake_tell_pool(address, 0, true);
    free((void *)(uintptr_t)address);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolTrimTo(CUmemoryPool pool, size_t keeps)
{
    (void)pool;
    uint64_t least = rounded(used) > rounded(keeps) ? rounded(used) : rounded(keeps);
    reserved = reserved < least ? reserved : least;
    fake_tell_trim(keeps);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    (void)pool;
    if (which != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && which != CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? reserved : used;
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    (void)pool, (void)value;
    return which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
