#include "backend/cuda/capture.h"

#include "backend/cuda/graph.h"

typedef struct capture {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    CUgraphNode
        node; /* the only one that the stream's next one depends on; NULL: there are others */
} capture;

static bool can_follow(void)
{
    return pki_cuda.event_record_flags && (pki_cuda.capture_info_v3 || pki_cuda.capture_info_v2) &&
           pki_cuda.exec_set_event && pki_cuda.graph_nodes && pki_cuda.node_event &&
           pki_cuda.object_create && pki_cuda.object_release && pki_cuda.graph_retain;
}

static CUresult look_at(CUstream stream, capture *c)
{
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t count = 0;
    *c = (capture){.status = CU_STREAM_CAPTURE_STATUS_NONE};
    CUresult code =
        pki_cuda.capture_info_v3
            ? pki_cuda.capture_info_v3(stream, &c->status, &c->id, &c->graph, &nodes, &edges,
                                       &count)
            : pki_cuda.capture_info_v2(stream, &c->status, &c->id, &c->graph, &nodes, &count);
    bool active = !code && c->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    c->node = active && count == 1 ? nodes[0] : NULL;
    return code;
}

/* The node that this makes, or NULL. */
static CUgraphNode record(const pki_cuda_lane *l, CUevent event, CUresult *code)
{
    capture c;
    *code = pki_cuda.event_record_flags(event, l->stream, CU_EVENT_RECORD_EXTERNAL);
    if (*code == CUDA_ERROR_INVALID_CONTEXT)
        *code = pki_cuda_record_in(l->context->handle, event, l->stream, CU_EVENT_RECORD_EXTERNAL);
    if (!*code)
        *code = look_at(l->stream, &c);
    return *code ? NULL : c.node;
}

static pki_cuda_mark mark_of(pki_cuda_mark_type type, uint32_t pair, uint32_t region)
{
    return (pki_cuda_mark){pair | (uint32_t)type << PKI_CUDA_PAIR_BITS, region};
}

/* What was recorded stays in the graph and stamps its event for as long as that is there: then the
 * pair is not for others any more, whatever comes of the span. */
static pki_cuda_reason begin_in(pki_cuda_graph *g, const pki_cuda_lane *l, pki_cuda_open *o,
                                uint32_t pair, CUresult *code)
{
    pki_cuda_pair *p = pki_cuda_pair_at(&l->context->pool, pair);
    CUgraphNode node = record(l, p->begin, code);
    pki_cuda_mark mark = mark_of(PKI_CUDA_BEGIN, pair, o->region);
    if (!node || !pki_cuda_graph_append(g, l->stream, node, mark, &o->ordinal)) {
        pki_cuda_operation_lost(&p->operation);
        return PKI_CUDA_CAPTURE_FAILED;
    }
    o->how = PKI_CUDA_CAPTURED;
    o->pair = pair;
    o->capture = g->capture;
    return PKI_CUDA_FINE;
}

pki_cuda_reason pki_cuda_capture_begin(const pki_cuda_lane *l, pki_cuda_open *o, uint32_t pair,
                                       CUresult *code)
{
    capture c;
    pki_cuda_graph *g = NULL;
    if (can_follow())
        *code = look_at(l->stream, &c);
    if (can_follow() && !*code && c.status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        g = pki_cuda_graph_for(l->context, c.graph, c.id, code);
    if (g)
        return begin_in(g, l, o, pair, code);
    pki_cuda_pair_give(&l->context->pool, pair);
    return can_follow() ? PKI_CUDA_CAPTURE_FAILED : PKI_CUDA_CAPTURE_OLD;
}

static pki_cuda_reason give_up(pki_cuda_graph *g, const pki_cuda_lane *l, const pki_cuda_open *o,
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
    *code = pki_load(&l->context->dead) ? CUDA_SUCCESS : look_at(l->stream, &c);
    if (*code || !g || pki_load(&l->context->dead) || c.status != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
        c.id != o->capture)
        return give_up(g, l, o, *code ? PKI_CUDA_CAPTURE_FAILED : PKI_CUDA_CAPTURE_SPLIT);
    CUgraphNode node = record(l, pki_cuda_pair_at(&l->context->pool, o->pair)->end, code);
    if (!node || !pki_cuda_graph_append(g, l->stream, node,
                                        mark_of(PKI_CUDA_END, o->pair, o->region), &ordinal))
        return give_up(g, l, o, PKI_CUDA_CAPTURE_FAILED);
    return PKI_CUDA_FINE;
}

void pki_cuda_capture_cancel(const pki_cuda_lane *l, const pki_cuda_open *o)
{
    give_up(pki_cuda_graph_of_capture(o->capture), l, o, PKI_CUDA_FINE);
}
