/* fake/driver_graph.c - the mock: captures, graphs and their replays, and what the test scripts. */
#include "driver_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- captures, graphs and their replays ---- */

/* -- the driver's functions -- */

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUresult code = fake_enter(FAKE_IS_CAPTURING);
    stream *s = fake_stream(handle);
    if (!code && !s)
        code = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD
                   ? CUDA_ERROR_INVALID_CONTEXT
                   : CUDA_ERROR_INVALID_HANDLE;
    if (!code && handle == CU_STREAM_LEGACY && fake_legacy_blocked(s->ctx))
        code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!code)
        *status = s->capturing && s->capturing->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                        : s->status;
    return fake_leave(code);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status,
                                        cuuint64_t *id, CUgraph *graph_out,
                                        const CUgraphNode **nodes, const CUgraphEdgeData **edges,
                                        size_t *count)
{
    CUresult code = fake_enter(FAKE_CAPTURE_INFO);
    stream *s = fake_stream(handle);
    if (!code && s) {
        *status = s->status;
        *id = s->capturing ? s->capturing->capture : 0;
        *graph_out = s->capturing;
        *nodes = &s->last;
        *count = s->last != NULL;
        if (edges)
            *edges = &s->edge;
        else if (s->last && s->edge.type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
            code = CUDA_ERROR_LOSSY_QUERY;
    }
    return fake_leave(code);
}

static bool has_node(const graph *g, const node *n)
{
    for (size_t i = 0; g && i < g->count; i++)
        if (g->nodes[i] == n)
            return true;
    return false;
}

/* Of a set of several, the mock keeps the first. */
CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes,
                                                   const CUgraphEdgeData *edges, size_t count,
                                                   unsigned flags)
{
    CUresult code = fake_enter(FAKE_UPDATE_DEPENDENCIES);
    stream *s = fake_stream(handle);
    if (!code && (!s || s->status != CU_STREAM_CAPTURE_STATUS_ACTIVE))
        code = CUDA_ERROR_ILLEGAL_STATE;
    if (!code && (flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES || count != 1 ||
                  !has_node(s->capturing, nodes[0])))
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code) {
        s->last = nodes[0];
        s->edge = edges ? edges[0] : (CUgraphEdgeData){0};
    }
    return fake_leave(code);
}

static node *add_node(graph *g, event *e)
{
    node *n = fake_keep(sizeof *n);
    n->event = e;
    return g->nodes[g->count++] = n;
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, const CUgraphNode *from,
                                           size_t count, CUevent e)
{
    CUresult code = fake_enter(FAKE_ADD_EVENT_NODE);
    for (size_t i = 0; i < count && !code; i++)
        code = has_node(g, from[i]) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (!code && e->magic != MAGIC_EVENT)
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code && g->is_body)
        code = CUDA_ERROR_NOT_SUPPORTED;
    if (!code)
        *out = add_node(g, e);
    return fake_leave(code);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec x, CUgraphNode n, CUevent e)
{
    CUresult code = fake_enter(FAKE_EXEC_SET_EVENT);
    size_t i = 0;
    while (i < x->count && x->nodes[i] != n)
        i++;
    if (!code && (i == x->count || !n->event))
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code)
        x->events[i] = e;
    return fake_leave(code);
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    CUresult code = fake_enter(FAKE_GRAPH_NODES);
    for (size_t i = 0; nodes && i < g->count && i < *count; i++)
        nodes[i] = g->nodes[i];
    *count = g->count;
    return fake_leave(code);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode n, CUevent *e)
{
    CUresult code = fake_enter(FAKE_NODE_EVENT);
    *e = n->event;
    return fake_leave(code ? code : n->event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy,
                                    unsigned references, unsigned flags)
{
    CUresult code = fake_enter(FAKE_OBJECT_CREATE);
    if (!code && flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        code = CUDA_ERROR_INVALID_VALUE;
    if (!code) {
        object *o = fake_keep(sizeof *o);
        *o = (object){destroy, ptr, references};
        *out = o;
    }
    return fake_leave(code);
}

static void drop(object *o)
{
    if (--o->references == 0)
        o->destroy(o->ptr);
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject o, unsigned count)
{
    CUresult code = fake_enter(FAKE_OBJECT_RELEASE);
    while (!code && count-- > 0)
        drop(o);
    return fake_leave(code);
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned count, unsigned flags)
{
    CUresult code = fake_enter(FAKE_GRAPH_RETAIN);
    (void)count;
    if (!code && flags != CU_GRAPH_USER_OBJECT_MOVE)
        o->references++;
    if (!code)
        g->objects[g->object_count++] = o;
    return fake_leave(code);
}

/* -- the script's part -- */

void fake_add_node(stream *s, event *e)
{
    s->last = add_node(s->capturing, e);
    s->edge = (CUgraphEdgeData){0};
}

/* What may not be in the graph is not just refused: the capture is over. */
CUresult fake_record_node(stream *s, event *e)
{
    bool programmatic = s->last && s->edge.type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
    if (!s->capturing->is_body && !programmatic) {
        fake_add_node(s, e);
        return CUDA_SUCCESS;
    }
    s->capturing->invalid = true;
    fake.invalidated++;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUgraph fake_graph_create(void)
{
    pthread_mutex_lock(&fake.lock);
    graph *g = fake_keep(sizeof *g);
    pthread_mutex_unlock(&fake.lock);
    return g;
}

CUresult fake_capture_begin_to(CUstream handle, CUgraph g, CUstreamCaptureMode mode)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle);
    g->capture = ++fake.ids;
    g->mode = mode;
    g->owner = pthread_self();
    g->active = true;
    g->next = fake.captures;
    fake.captures = g;
    s->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    s->capturing = g;
    s->last = NULL;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

CUresult fake_capture_begin(CUstream handle, CUstreamCaptureMode mode)
{
    return fake_capture_begin_to(handle, fake_graph_create(), mode);
}

CUgraph fake_conditional(CUstream handle)
{
    graph *body = fake_graph_create();
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle);
    body->is_body = true;
    fake_add_node(s, NULL);
    s->last->body = body;
    pthread_mutex_unlock(&fake.lock);
    return body;
}

void fake_programmatic(CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle);
    fake_add_node(s, NULL);
    s->edge = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    pthread_mutex_unlock(&fake.lock);
}

void fake_capture_join(CUstream other, CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle), *o = fake_stream(other);
    o->status = s->status;
    o->capturing = s->capturing;
    o->last = s->last;
    o->edge = s->edge;
    pthread_mutex_unlock(&fake.lock);
}

static void leave_capture(const graph *g)
{
    for (stream *s = fake.streams; s; s = s->next)
        if (s->capturing == g) {
            s->capturing = NULL;
            s->status = CU_STREAM_CAPTURE_STATUS_NONE;
        }
    for (graph **at = &fake.captures; *at; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            return;
        }
}

CUresult fake_capture_end(CUstream handle, CUgraph *out)
{
    pthread_mutex_lock(&fake.lock);
    graph *g = fake_stream(handle)->capturing;
    leave_capture(g);
    g->active = false;
    *out = g->invalid ? NULL : g;
    CUresult code = g->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (g->invalid)
        fake_release(g->objects, &g->object_count);
    pthread_mutex_unlock(&fake.lock);
    return code;
}

void fake_work(CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle);
    if (s->capturing)
        fake_add_node(s, NULL);
    pthread_mutex_unlock(&fake.lock);
}

static bool has_events(const graph *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->event || (g->nodes[i]->body && has_events(g->nodes[i]->body)))
            return true;
    return false;
}

static bool bodies_have_events(const graph *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->body && has_events(g->nodes[i]->body))
            return true;
    return false;
}

CUresult fake_instantiate_for_device(CUgraph g, CUgraphExec *out)
{
    *out = NULL;
    if (has_events(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    *out = fake_instantiate(g);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUgraphExec fake_instantiate(CUgraph g)
{
    pthread_mutex_lock(&fake.lock);
    if (bodies_have_events(g)) {
        pthread_mutex_unlock(&fake.lock);
        return NULL;
    }
    exec *x = fake_keep(sizeof *x);
    x->origin = g;
    x->count = g->count;
    memcpy(x->nodes, g->nodes, sizeof x->nodes);
    for (size_t i = 0; i < g->count; i++)
        x->events[i] = g->nodes[i]->event;
    for (unsigned i = 0; i < g->object_count; i++) {
        g->objects[i]->references++;
        x->objects[x->object_count++] = g->objects[i];
    }
    pthread_mutex_unlock(&fake.lock);
    return x;
}

CUresult fake_launch(CUgraphExec x, CUstream handle)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_stream(handle);
    for (size_t i = 0; i < x->count; i++)
        if (x->events[i])
            fake_enqueue(s, x->events[i]);
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

void fake_release(object **objects, unsigned *count)
{
    while (*count > 0)
        drop(objects[--*count]);
}

/* Handles stay readable, so that their use after this is an answer and not a crash. */
void fake_graph_destroy(CUgraph g)
{
    pthread_mutex_lock(&fake.lock);
    fake_release(g->objects, &g->object_count);
    pthread_mutex_unlock(&fake.lock);
}

void fake_exec_destroy(CUgraphExec x)
{
    pthread_mutex_lock(&fake.lock);
    fake_release(x->objects, &x->object_count);
    pthread_mutex_unlock(&fake.lock);
}

void fake_graph_again(CUgraph g)
{
    pthread_mutex_lock(&fake.lock);
    fake_release(g->objects, &g->object_count);
    memset(g->nodes, 0, sizeof g->nodes);
    g->nodes[0] = fake_keep(sizeof *g->nodes[0]);
    g->count = 1;
    pthread_mutex_unlock(&fake.lock);
}

/* ---- what the test scripts, and how the library is entered ---- */

/* -- entry points, by name and by the version in which their form came -- */

#ifndef FAKE_NO_PROC_ADDRESS
static const struct {
    const char *name;
    int version;
    void *(*function)(void);
} entries[] = {
#define ENTRY(id, name, version) {#name, version, (void *(*)(void))(void (*)(void))name},
    FAKE_CUDA_CALLS(ENTRY)
#undef ENTRY
};

/* Macros of cuda.h give some names a suffix: what is asked for is the plain one. */
static bool is_called(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && (entry[n] == 0 || strncmp(entry + n, "_v", 2) == 0);
}

#undef cuGetProcAddress
CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *status);

CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    (void)flags, (void)status;
    *function = NULL;
    if (fake.version == 0)
        return CUDA_ERROR_STUB_LIBRARY;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (is_called(entries[i].name, name) && version >= entries[i].version &&
            fake.version >= entries[i].version)
            memcpy(function, &entries[i].function, sizeof *function);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#endif

/* -- the script -- */

static void reset(void)
{
    pthread_mutex_lock(&fake.lock);
    memset(fake.failures, 0, sizeof fake.failures);
    memset(fake.counts, 0, sizeof fake.counts);
    fake.holding = fake.lagging = false;
    fake.lag = 0;
    fake.invalidated = fake.hung = fake.misused = 0;
    fake.waiting = fake.no_waits = false;
    fake_current = NULL;
    pthread_mutex_unlock(&fake.lock);
    fake_live_on(NULL);
}

static void set_driver(int version, int devices, CUresult init, CUresult count)
{
    fake.version = version;
    fake.devices = devices;
    fake.init_code = init;
    fake.count_code = count;
}

static bool initialised(void)
{
    return fake.is_initialised;
}

static CUcontext context_create(int device)
{
    pthread_mutex_lock(&fake.lock);
    context *c = fake_keep(sizeof *c);
    fake.is_initialised = true;
    *c = (context){.magic = MAGIC_CONTEXT, .device = device, .alive = true, .id = ++fake.ids};
    c->legacy = fake_make_stream(c, false);
    c->next = fake.contexts;
    fake.contexts = c;
    fake_current = c;
    pthread_mutex_unlock(&fake.lock);
    return c;
}

static void context_destroy(CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    c->alive = false;
    pthread_mutex_unlock(&fake.lock);
}

static void context_poison(CUcontext c, CUresult code)
{
    pthread_mutex_lock(&fake.lock);
    c->poison = code;
    pthread_mutex_unlock(&fake.lock);
}

static void context_current(CUcontext c)
{
    fake_current = c;
}

static CUstream stream_create(CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    stream *s = fake_make_stream(c, true);
    pthread_mutex_unlock(&fake.lock);
    return s;
}

static CUstream stream_green(CUcontext c)
{
    CUstream s = stream_create(c);
    s->green = true;
    return s;
}

static CUstream stream_again(CUstream s, CUcontext c)
{
    pthread_mutex_lock(&fake.lock);
    s->ctx = c;
    s->id = ++fake.ids;
    pthread_mutex_unlock(&fake.lock);
    return s;
}

static unsigned run_locked(stream *s, unsigned most)
{
    unsigned n = 0;
    for (; s && n < most && s->tail != s->head; n++)
        fake_stamp(s, s->queue[s->tail++ % QUEUE], fake_monotonic());
    return n;
}

static unsigned run(CUstream handle, unsigned most)
{
    pthread_mutex_lock(&fake.lock);
    unsigned n = run_locked(fake_stream(handle), most);
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static void hold(bool on)
{
    pthread_mutex_lock(&fake.lock);
    fake.holding = on;
    for (stream *s = fake.streams; s && !on; s = s->next)
        run_locked(s, QUEUE);
    pthread_mutex_unlock(&fake.lock);
}

static void set_clock(double rate)
{
    pthread_mutex_lock(&fake.lock);
    fake.base_device = (double)fake_device_ns();
    fake.base_ns = 0;
    fake.rate = rate;
    pthread_mutex_unlock(&fake.lock);
}

static void lag(uint64_t ns)
{
    pthread_mutex_lock(&fake.lock);
    fake.lag = ns;
    fake.lagging = true;
    pthread_mutex_unlock(&fake.lock);
}

static uint64_t host_ns(uint64_t device)
{
    pthread_mutex_lock(&fake.lock);
    double passed = ((double)device - fake.base_device) / fake.rate;
    pthread_mutex_unlock(&fake.lock);
    return (uint64_t)((double)fake.base_ns + passed);
}

static unsigned calls(fake_call call)
{
    pthread_mutex_lock(&fake.lock);
    unsigned n = fake.counts[call];
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static void count_anew(void)
{
    pthread_mutex_lock(&fake.lock);
    memset(fake.counts, 0, sizeof fake.counts);
    pthread_mutex_unlock(&fake.lock);
}

static void let_fail(fake_call call, unsigned after, unsigned times, CUresult code)
{
    pthread_mutex_lock(&fake.lock);
    fake.failures[call] = (struct fake_failure){after, times, code};
    pthread_mutex_unlock(&fake.lock);
}

static unsigned stamps(CUstream handle, uint64_t *ns, unsigned most)
{
    pthread_mutex_lock(&fake.lock);
    const stream *s = fake_stream(handle);
    unsigned n = s->stamped < most ? s->stamped : most;
    for (unsigned i = 0; i < n; i++)
        ns[i] = s->stamps[(s->stamped - n + i) % STAMPS];
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static uint64_t device_ns(void)
{
    pthread_mutex_lock(&fake.lock);
    uint64_t now = fake_device_ns();
    pthread_mutex_unlock(&fake.lock);
    return now;
}

static unsigned locked(const unsigned *count)
{
    pthread_mutex_lock(&fake.lock);
    unsigned now = *count;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

static unsigned invalidated(void)
{
    return locked(&fake.invalidated);
}

static unsigned nodes(CUgraph g)
{
    pthread_mutex_lock(&fake.lock);
    unsigned count = (unsigned)g->count;
    pthread_mutex_unlock(&fake.lock);
    return count;
}

static unsigned events(void)
{
    return locked(&fake.event_count);
}

static unsigned modes(void)
{
    return locked(&fake.exchanged);
}

static unsigned hung(void)
{
    return locked(&fake.hung);
}

static unsigned misused(void)
{
    return locked(&fake.misused);
}

static void on_query(void (*told)(CUresult answer))
{
    __atomic_store_n(&fake_on_query, told, __ATOMIC_RELEASE);
}

static void on_call(void (*told)(fake_call call))
{
    __atomic_store_n(&fake_on_call, told, __ATOMIC_RELEASE);
}

extern const fake_cuda_script fake_cuda_script_table __asm__(FAKE_CUDA_SCRIPT);
const fake_cuda_script fake_cuda_script_table = {
    .reset = reset,
    .set_driver = set_driver,
    .initialised = initialised,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .context_poison = context_poison,
    .context_current = context_current,
    .stream_create = stream_create,
    .stream_green = stream_green,
    .stream_again = stream_again,
    .hold = hold,
    .run = run,
    .clock = set_clock,
    .lag = lag,
    .host_ns = host_ns,
    .calls = calls,
    .count_anew = count_anew,
    .on_query = on_query,
    .on_call = on_call,
    .let_fail = let_fail,
    .stamps = stamps,
    .device_ns = device_ns,
    .capture_begin = fake_capture_begin,
    .capture_end = fake_capture_end,
    .capture_join = fake_capture_join,
    .work = fake_work,
    .invalidated = invalidated,
    .graph_create = fake_graph_create,
    .capture_begin_to = fake_capture_begin_to,
    .conditional = fake_conditional,
    .programmatic = fake_programmatic,
    .instantiate = fake_instantiate,
    .instantiate_for_device = fake_instantiate_for_device,
    .launch = fake_launch,
    .graph_destroy = fake_graph_destroy,
    .exec_destroy = fake_exec_destroy,
    .graph_again = fake_graph_again,
    .nodes = nodes,
    .events = events,
    .modes = modes,
    .live_on = fake_live_on,
    .no_waits = fake_no_waits,
    .misused = misused,
    .hung = hung,
    .kernel = fake_kernel,
    .synchronize = fake_synchronize,
};

/* -- fork -- */

static void before_fork(void)
{
    pthread_mutex_lock(&fake.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&fake.lock);
}

/* A child asks the mock what has been called, while the collector of its parent was amid a call. */
__attribute__((constructor)) static void see_to_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}
