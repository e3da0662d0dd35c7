/* fake/driver_graph.c - the mock: captures, graphs and their replays. */
#include <stdlib.h>
#include <string.h>

#include "driver_state.h"

/* ---- the driver's functions ---- */

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

/* ---- the script's part ---- */

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
