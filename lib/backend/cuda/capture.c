#include "backend/cuda/capture.h"

#include "backend/cuda/graph.h"

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
