#include "backend/cuda/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- spans that were captured into a graph, in the order of the capture ---- */

#define GRAPHS_MAX 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_cuda_graph *first; /* release; acquire in pki_cuda_graphs */
static uint32_t numbers, records;

pki_cuda_graph *pki_cuda_graphs(void)
{
    return pki_load_acquire(&first); /* pairs with the release in new_record */
}

/* On a thread of the driver's, which must not be kept. */
static void CUDA_CB mark_gone(void *graph)
{
    pki_cuda_graph *g = graph;
    pki_store_release(&g->state, (uint32_t)PKI_CUDA_GRAPH_GONE); /* acquire: the collector's walk */
}

static bool is_used(const pki_cuda_graph *g)
{
    return pki_load_acquire(&g->state) == PKI_CUDA_GRAPH_USED; /* release: use, below */
}

/* The one of that capture; NULL if there is none, or none any more. */
static pki_cuda_graph *pki_cuda_graph_of_capture(uint64_t capture)
{
    for (pki_cuda_graph *g = pki_cuda_graphs(); g; g = g->next)
        if (is_used(g) && g->capture == capture)
            return g;
    return NULL;
}

pki_cuda_graph *pki_cuda_graph_of_handle(CUgraph handle)
{
    pki_cuda_graph *newest = NULL;
    for (pki_cuda_graph *g = pki_cuda_graphs(); g; g = g->next)
        if (is_used(g) && g->handle == handle && (!newest || g->number > newest->number))
            newest = g;
    return newest;
}

static pki_cuda_graph *new_record(void)
{
    pki_cuda_graph *g = records < GRAPHS_MAX ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return NULL;
    records++;
    g->next = first;
    pki_store_release(&first, g); /* pairs with the acquire in pki_cuda_graphs */
    return g;
}

static pki_cuda_graph *free_record(void)
{
    for (pki_cuda_graph *g = first; g; g = g->next)
        if (pki_load_acquire(&g->state) == PKI_CUDA_GRAPH_FREE) /* release: _retire */
            return g;
    return new_record();
}

/* False if the driver refuses to notify us when it ends. */
static bool watch(pki_cuda_graph *g, CUresult *code)
{
    CUuserObject object;
    *code = pki_cuda.object_create(&object, g, mark_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (*code) {
        pki_store_release(&g->state, (uint32_t)PKI_CUDA_GRAPH_FREE); /* acquire: free_record */
        return false;
    }
    *code = pki_cuda.graph_retain(g->handle, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (*code)
        pki_cuda.object_release(object, 1); /* says that the graph is gone: nobody uses it */
    return !*code;
}

static void use(pki_cuda_graph *g, pki_cuda_context *context, CUgraph handle, uint64_t capture)
{
    g->number = ++numbers;
    g->context = context;
    g->handle = handle;
    g->capture = capture;
    g->count = g->spans = g->branches = 0;
    g->execs = NULL;
    g->refuses = g->seen_any = false;
    g->session = 0;
    memset(g->lanes, 0, sizeof g->lanes);
    pki_store_release(&g->state, (uint32_t)PKI_CUDA_GRAPH_USED); /* acquire: is_used */
}

/* The record of the capture, made if needed; NULL and the reason if it cannot be followed. */
static pki_cuda_graph *pki_cuda_graph_for(pki_cuda_context *context, CUgraph handle,
                                          uint64_t capture, CUresult *code)
{
    pthread_mutex_lock(&lock);
    pki_cuda_graph *g = pki_cuda_graph_of_capture(capture);
    if (!g) {
        *code = CUDA_ERROR_OUT_OF_MEMORY;
        g = free_record();
        if (g) {
            use(g, context, handle, capture);
            g = watch(g, code) ? g : NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return g;
}

/* Which of the capture's streams; PKI_CUDA_BRANCHES: one too many. */
static uint32_t branch_of(pki_cuda_graph *g, CUstream stream)
{
    uint32_t i = 0;
    while (i < g->branches && g->streams[i] != stream)
        i++;
    if (i == g->branches && i < PKI_CUDA_BRANCHES) {
        g->streams[i] = stream;
        g->stream_ids[i] = pki_cuda_stream_id(stream);
        g->branches++;
    }
    return i;
}

/* The place behind the last node; chunks of an earlier use are used again. */
static pki_cuda_node *next_node(pki_cuda_graph *g)
{
    pki_cuda_chunk **at = &g->first;
    for (uint32_t i = g->count / PKI_CUDA_CHUNK; i > 0; i--)
        at = &(*at)->next;
    if (!*at)
        *at = calloc(1, sizeof **at);
    return *at ? &(*at)->nodes[g->count % PKI_CUDA_CHUNK] : NULL;
}

/* Appends a node; for a begin, *ordinal is set. False without room. */
static bool pki_cuda_graph_append(pki_cuda_graph *g, CUstream stream, CUgraphNode node,
                                  pki_cuda_mark mark, uint32_t *ordinal)
{
    pthread_mutex_lock(&lock);
    uint32_t branch = branch_of(g, stream);
    pki_cuda_node *n = branch < PKI_CUDA_BRANCHES ? next_node(g) : NULL;
    if (n) {
        if (pki_cuda_mark_type_of(mark) == PKI_CUDA_BEGIN)
            *ordinal = g->spans++;
        *n = (pki_cuda_node){node, mark, *ordinal, branch};
        pki_store_release(&g->count, g->count + 1); /* pairs with the acquire in _count */
    }
    pthread_mutex_unlock(&lock);
    return n != NULL;
}

uint32_t pki_cuda_graph_count(const pki_cuda_graph *g)
{
    return pki_load_acquire(&g->count); /* pairs with the release in _append */
}

const pki_cuda_node *pki_cuda_graph_node(const pki_cuda_graph *g, uint32_t i)
{
    const pki_cuda_chunk *chunk = g->first;
    for (; i >= PKI_CUDA_CHUNK; i -= PKI_CUDA_CHUNK)
        chunk = chunk->next;
    return &chunk->nodes[i];
}

void pki_cuda_graph_retire(pki_cuda_graph *g)
{
    bool alive = pki_cuda_context_alive(g->context);
    for (uint32_t i = 0; alive && i < g->count; i++) {
        pki_cuda_mark mark = pki_cuda_graph_node(g, i)->mark;
        if (pki_cuda_mark_type_of(mark) == PKI_CUDA_BEGIN) {
            pki_cuda_pair_release(&g->context->pool, pki_cuda_mark_pair(mark));
            pki_cuda_pool_unpin(&g->context->pool);
        }
    }
    for (uint32_t i = 0; i < PKI_CUDA_BRANCHES; i++)
        if (g->lanes[i])
            pki_store_release(&g->lanes[i]->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: a round */
    memset(g->lanes, 0, sizeof g->lanes);
    pki_store_release(&g->state, (uint32_t)PKI_CUDA_GRAPH_FREE); /* acquire: free_record */
}

void pki_cuda_graphs_after_fork(void)
{
    static void *volatile parents __attribute__((unused)); /* neither freed nor lost */
    pthread_mutex_init(&lock, NULL);
    parents = first;
    first = NULL;
    records = 0;
}

/* ---- a begin or an end on a stream that is being captured ---- */

typedef struct capture {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes; /* what the stream's next one depends on; valid until it is there */
    size_t count;
    bool programmatic; /* on a part of a kernel: no other node may depend so */
} capture;

static bool wanted = true;

void pki_cuda_capture_want(bool on)
{
    pki_store(&wanted, on);
}

static bool can_follow(void)
{
    return pki_cuda.event_record_flags && (pki_cuda.capture_info_v3 || pki_cuda.capture_info_v2) &&
           (pki_cuda.depend_v2 || pki_cuda.depend_v1) && pki_cuda.add_event_node &&
           pki_cuda.exec_set_event && pki_cuda.graph_nodes && pki_cuda.node_event &&
           pki_cuda.object_create && pki_cuda.object_release && pki_cuda.graph_retain;
}

static bool is_programmatic(const CUgraphEdgeData *edges, size_t count)
{
    for (size_t i = 0; edges && i < count; i++)
        if (edges[i].type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT || edges[i].from_port != 0)
            return true;
    return false;
}

static CUresult query_capture(CUstream stream, capture *c)
{
    const CUgraphEdgeData *edges = NULL;
    *c = (capture){.status = CU_STREAM_CAPTURE_STATUS_NONE};
    CUresult code =
        pki_cuda.capture_info_v3
            ? pki_cuda.capture_info_v3(stream, &c->status, &c->id, &c->graph, &c->nodes, &edges,
                                       &c->count)
            : pki_cuda.capture_info_v2(stream, &c->status, &c->id, &c->graph, &c->nodes, &c->count);
    if (code || c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        c->count = 0;
    c->programmatic = is_programmatic(edges, c->count);
    return code;
}

/* The only node that the stream's next one depends on; NULL: there are others. */
static CUgraphNode last_of(const capture *c)
{
    return c->count == 1 ? c->nodes[0] : NULL;
}

/* The node that this makes, or NULL. */
static CUgraphNode record(const pki_cuda_lane *l, CUevent event, CUresult *code)
{
    capture c;
    *code = pki_cuda.event_record_flags(event, l->stream, CU_EVENT_RECORD_EXTERNAL);
    if (*code == CUDA_ERROR_INVALID_CONTEXT)
        *code = pki_cuda_record_in(l->context->handle, event, l->stream, CU_EVENT_RECORD_EXTERNAL);
    if (!*code)
        *code = query_capture(l->stream, &c);
    return *code ? NULL : last_of(&c);
}

static CUresult depend_on(CUstream stream, CUgraphNode node)
{
    return pki_cuda.depend_v2
               ? pki_cuda.depend_v2(stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
               : pki_cuda.depend_v1(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

/* The first event of a capture is put into the graph, not into the stream. Both come to the same
 * node; but what a graph does not take is refused by an error here, and there by spoiling the
 * capture. Once it has taken one, it takes others. NULL: refused, or (*code 0) not to be used. */
static CUgraphNode record_first(const pki_cuda_lane *l, const capture *c, CUevent event,
                                CUresult *code)
{
    CUgraphNode node = NULL;
    *code = pki_cuda_enter(l->context->handle);
    if (*code)
        return NULL;
    *code = pki_cuda.add_event_node(&node, c->graph, c->nodes, c->count, event);
    if (!*code && depend_on(l->stream, node))
        node = NULL;
    pki_cuda_leave();
    return *code ? NULL : node;
}

static pki_cuda_mark mark_of(pki_cuda_mark_type type, uint32_t pair, uint32_t region)
{
    return (pki_cuda_mark){pair | (uint32_t)type << PKI_CUDA_PAIR_BITS, region};
}

/* What was recorded stays in the graph and stamps its event for as long as that is there: then the
 * pair is not for others any more, whatever comes of the span. */
static pki_cuda_reason begin_in(pki_cuda_graph *g, const pki_cuda_lane *l, pki_cuda_open *o,
                                uint32_t pair, CUgraphNode node)
{
    pki_cuda_pair *p = pki_cuda_pair_at(&l->context->pool, pair);
    pki_cuda_mark mark = mark_of(PKI_CUDA_BEGIN, pair, o->region);
    if (!node || !pki_cuda_graph_append(g, l->stream, node, mark, &o->ordinal)) {
        pki_cuda_operation_abandon(&p->operation);
        return PKI_CUDA_CAPTURE_FAILED;
    }
    o->how = PKI_CUDA_CAPTURED;
    o->pair = pair;
    o->capture = g->capture;
    return PKI_CUDA_FINE;
}

static pki_cuda_reason release_pair(const pki_cuda_lane *l, uint32_t pair, pki_cuda_reason reason)
{
    pki_cuda_pair_release(&l->context->pool, pair);
    pki_cuda_pool_unpin(&l->context->pool);
    return reason;
}

static pki_cuda_reason begin_pinned(const pki_cuda_lane *l, const capture *c, pki_cuda_open *o,
                                    uint32_t pair, CUresult *code)
{
    CUevent event = pki_cuda_pair_at(&l->context->pool, pair)->begin;
    pki_cuda_graph *g = pki_cuda_graph_for(l->context, c->graph, c->id, code);
    if (!g)
        return release_pair(l, pair, PKI_CUDA_CAPTURE_FAILED);
    if (pki_cuda_graph_count(g) > 0)
        return begin_in(g, l, o, pair, record(l, event, code));
    CUgraphNode node = pki_load(&g->refuses) ? NULL : record_first(l, c, event, code);
    if (*code)
        pki_store(&g->refuses, true);
    return pki_load(&g->refuses) ? release_pair(l, pair, PKI_CUDA_CAPTURE_NO_EVENTS)
                                 : begin_in(g, l, o, pair, node);
}

/* Why not, before anything is taken for it. */
static pki_cuda_reason check_capture(const pki_cuda_lane *l, capture *c, CUresult *code)
{
    if (!pki_load(&wanted))
        return PKI_CUDA_CAPTURE_OFF;
    if (!can_follow())
        return PKI_CUDA_CAPTURE_OLD;
    *code = query_capture(l->stream, c);
    if (*code || c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return PKI_CUDA_CAPTURE_FAILED;
    return c->programmatic ? PKI_CUDA_CAPTURE_PROGRAMMATIC : PKI_CUDA_FINE;
}

pki_cuda_reason pki_cuda_capture_begin(const pki_cuda_lane *l, pki_cuda_open *o,
                                       pki_cuda_operation *op, CUresult *code)
{
    capture c;
    pki_cuda_pool *pool = &l->context->pool;
    pki_cuda_reason reason = check_capture(l, &c, code);
    if (reason)
        return reason;
    if (!pki_cuda_pool_pin(pool))
        return PKI_CUDA_CAPTURE_NO_PAIR;
    uint32_t pair = pki_cuda_pair_acquire(l->context);
    if (!pair) {
        pki_cuda_pool_unpin(pool);
        return PKI_CUDA_NO_PAIR;
    }
    *code = pki_cuda_pair_renew(pki_cuda_pair_at(pool, pair), l->context->handle);
    if (*code)
        return release_pair(l, pair, PKI_CUDA_CAPTURE_FAILED);
    if (op)
        pki_cuda_operation_hand_over(op, &pki_cuda_pair_at(pool, pair)->operation);
    return begin_pinned(l, &c, o, pair, code);
}

static pki_cuda_reason cancel(pki_cuda_graph *g, const pki_cuda_lane *l, const pki_cuda_open *o,
                              pki_cuda_reason reason)
{
    uint32_t ordinal = o->ordinal;
    if (g)
        pki_cuda_graph_append(g, l->stream, NULL, mark_of(PKI_CUDA_CANCEL, o->pair, o->region),
                              &ordinal);
    return reason;
}

pki_cuda_reason pki_cuda_capture_end(const pki_cuda_lane *l, const pki_cuda_open *o, CUresult *code)
{
    capture c;
    uint32_t ordinal = o->ordinal;
    pki_cuda_graph *g = pki_cuda_graph_of_capture(o->capture);
    *code = pki_load(&l->context->dead) ? CUDA_SUCCESS : query_capture(l->stream, &c);
    if (*code || !g || pki_load(&l->context->dead) || c.status != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
        c.id != o->capture)
        return cancel(g, l, o, *code ? PKI_CUDA_CAPTURE_FAILED : PKI_CUDA_CAPTURE_SPLIT);
    if (c.programmatic)
        return cancel(g, l, o, PKI_CUDA_CAPTURE_PROGRAMMATIC);
    CUgraphNode node = record(l, pki_cuda_pair_at(&l->context->pool, o->pair)->end, code);
    if (!node || !pki_cuda_graph_append(g, l->stream, node,
                                        mark_of(PKI_CUDA_END, o->pair, o->region), &ordinal))
        return cancel(g, l, o, PKI_CUDA_CAPTURE_FAILED);
    return PKI_CUDA_FINE;
}

void pki_cuda_capture_cancel(const pki_cuda_lane *l, const pki_cuda_open *o)
{
    cancel(pki_cuda_graph_of_capture(o->capture), l, o, PKI_CUDA_FINE);
}
