#include "backend/cuda/sample.h"

#include <math.h>
#include <stdlib.h>

#include "backend/cuda/emit.h"
#include "backend/cuda/replay.h"
#include "backend/cuda/reasons.h"

static CUevent event_of(const pki_cuda_graph *g, const pki_cuda_node *n)
{
    pki_cuda_pair *pair = pki_cuda_pair_at(&g->context->pool, pki_cuda_mark_pair(n->mark));
    return pki_cuda_mark_type_of(n->mark) == PKI_CUDA_BEGIN ? pair->begin : pair->end;
}

/* False: not reached, never launched, or being captured. */
static bool read(pki_cuda_graph *g, const pki_cuda_node *n, double *device)
{
    CUevent event = event_of(g, n);
    CUresult code = pki_cuda.event_query(event);
    if (!code)
        code = pki_cuda_event_time(g->context, event, device);
    pki_cuda_context_failed(g->context, code);
    return code == CUDA_SUCCESS;
}

static bool is_at(const pki_cuda_graph *g, double a, double b)
{
    return fabs(a - b) < pki_cuda_same_ns(g->context, a);
}

static bool make_lanes(pki_cuda_graph *g)
{
    for (uint32_t b = 0; b < g->branches; b++) {
        pki_cuda_lane *l = g->lanes[b];
        if (!l)
            l = g->lanes[b] = pki_cuda_lane_acquire(g->context, g->streams[b]);
        if (!l)
            return false;
        l->graph = g->number;
        l->branch = b;
        l->stream_id = g->stream_ids[b];
        if (l->session != pki_load(&pki_cuda_session))
            pki_cuda_lane_enter(l);
    }
    return true;
}

static bool has_room(pki_cuda_graph *g, uint32_t count)
{
    if (count <= g->times_room)
        return true;
    double *more = realloc(g->times, count * sizeof *more);
    if (!more)
        return false;
    g->times = more;
    g->times_room = count;
    return true;
}

/* Of one replay, if each branch is in order and nothing is as old as what was read last. */
static bool read_all(pki_cuda_graph *g, uint32_t count)
{
    double last[PKI_CUDA_BRANCHES];
    for (uint32_t b = 0; b < PKI_CUDA_BRANCHES; b++)
        last[b] = g->seen_any ? g->seen : -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(g, i);
        double *t = &g->times[i];
        if (!n->node)
            continue;
        if (!read(g, n, t) || *t < last[n->branch] || (g->seen_any && is_at(g, *t, g->seen)))
            return false;
        last[n->branch] = *t;
    }
    return true;
}

/* And no other replay has begun meanwhile. Nor were these the nodes of a graph that was still being
 * captured when they were counted, and has been launched since: then there are more by now. */
static bool still_there(pki_cuda_graph *g, uint32_t count)
{
    double again;
    if (pki_cuda_graph_count(g) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(g, i);
        if (n->node && (!read(g, n, &again) || !is_at(g, again, g->times[i])))
            return false;
    }
    return true;
}

static void count_span(pki_cuda_lane *l)
{
    pki_bump(&l->counters.begun, 1);
    pki_bump(&l->recorded, 1);
    pki_bump(&l->replayed, 1);
    pki_bump(&l->sampled, 1);
}

/* Operations are enqueued as they are seen: of the replays in between nothing is known. */
static void emit_end(pki_cuda_lane *l, pki_cuda_graph *g, const pki_cuda_node *n, double device)
{
    pki_cuda_operation *op =
        &pki_cuda_pair_at(&g->context->pool, pki_cuda_mark_pair(n->mark))->operation;
    if (op->what) {
        pki_cuda_replay_enqueue(op);
        pki_cuda_emit_operation(l, n->mark.region, device, op, true);
        pki_bump(&l->operations, 1);
    } else {
        pki_cuda_emit_end(l, n->mark.region, device);
    }
}

static void emit(pki_cuda_graph *g, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(g, i);
        pki_cuda_lane *l = g->lanes[n->branch];
        switch (pki_cuda_mark_type_of(n->mark)) {
        case PKI_CUDA_BEGIN:
            pki_cuda_emit_begin(l, n->mark.region, g->times[i]);
            break;
        case PKI_CUDA_END:
            emit_end(l, g, n, g->times[i]);
            count_span(l);
            break;
        default:
            pki_cuda_emit_cancel(l, n->mark.region);
        }
    }
}

static double latest(const pki_cuda_graph *g, uint32_t count)
{
    double most = -INFINITY;
    for (uint32_t i = 0; i < count; i++)
        if (pki_cuda_graph_node(g, i)->node)
            most = fmax(most, g->times[i]);
    return most;
}

static void sample_graph(pki_cuda_graph *g)
{
    uint32_t count = pki_cuda_graph_count(g);
    if (count == 0 || !has_room(g, count) || !pki_cuda_context_use(g->context) ||
        !pki_cuda_anchors_update(g->context) || !read_all(g, count) || !still_there(g, count) ||
        !make_lanes(g))
        return;
    emit(g, count);
    g->seen_any = true;
    g->seen = latest(g, count);
    pki_cuda_note_reason(PKI_CUDA_SAMPLED, CUDA_SUCCESS, 0);
}

static bool is_pending(const pki_cuda_graph *g)
{
    for (const pki_cuda_exec *x = pki_load_acquire(&g->execs); x; x = x->next) /* make_exec */
        if (pki_cuda_exec_pending(x))
            return true;
    return false;
}

static void retire(pki_cuda_graph *g)
{
    for (pki_cuda_exec *x = pki_load_acquire(&g->execs), *next; x; x = next) {
        next = x->next;
        pki_cuda_exec_retire(x);
    }
    pki_cuda_graph_retire(g);
}

/* What was stamped before the session began is not its own. */
static void enter_session(pki_cuda_graph *g)
{
    uint32_t count = pki_cuda_graph_count(g);
    bool older = g->session != 0;
    if (g->session == pki_load(&pki_cuda_session) || count == 0 || !has_room(g, count))
        return;
    if (older && (!pki_cuda_context_use(g->context) || !pki_cuda_anchors_update(g->context)))
        return;
    g->session = pki_load(&pki_cuda_session);
    g->seen_any = false;
    if (older && read_all(g, count) && still_there(g, count)) {
        g->seen_any = true;
        g->seen = latest(g, count);
    }
}

void pki_cuda_sample(void)
{
    for (pki_cuda_graph *g = pki_cuda_graphs(); g; g = g->next) {
        /* Pairs with the releases in cuda/graph.c. */
        uint32_t state = pki_load_acquire(&g->state);
        if (state == PKI_CUDA_GRAPH_GONE && !is_pending(g))
            retire(g);
        if (state != PKI_CUDA_GRAPH_USED || pki_load(&g->context->dead))
            continue;
        enter_session(g);
        if (g->session == pki_load(&pki_cuda_session))
            sample_graph(g);
    }
}
