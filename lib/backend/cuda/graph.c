#include "backend/cuda/graph.h"

#include <pk/gpu.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/replay.h"

/* ---- spans that were captured into a graph, in the order of the capture ---- */

#define GRAPHS_MAX 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_cuda_graph *first; /* release; acquire in pki_cuda_graphs */
static uint32_t numbers, records;

static pki_cuda_graph *pki_cuda_graphs(void)
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

/* The newest one with this handle. Others may be given away and taken again meanwhile. */
static pki_cuda_graph *pki_cuda_graph_of_handle(CUgraph handle)
{
    pki_cuda_graph *newest = NULL;
    for (pki_cuda_graph *g = pki_cuda_graphs(); g; g = g->next)
        if (is_used(g) && pki_load(&g->handle) == handle &&
            (!newest || pki_load(&g->number) > pki_load(&newest->number)))
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

static void take(pki_cuda_graph *g, pki_cuda_context *context, CUgraph handle, uint64_t capture)
{
    pki_store(&g->number, ++numbers);
    g->context = context;
    pki_store(&g->handle, handle);
    g->capture = capture;
    g->count = g->spans = g->branches = 0;
    g->execs = NULL;
    g->refuses = g->seen_any = false;
    g->session = g->dropped = 0;
    memset(g->lanes, 0, sizeof g->lanes);
    pki_store(&g->state, (uint32_t)PKI_CUDA_GRAPH_TAKEN);
}

static pki_cuda_graph *take_record(pki_cuda_context *context, CUgraph handle, uint64_t capture)
{
    pthread_mutex_lock(&lock);
    pki_cuda_graph *g = free_record();
    if (g)
        take(g, context, handle, capture);
    pthread_mutex_unlock(&lock);
    return g;
}

/* The graph has been given its object. Another thread of the capture may have been first: then this
 * one stays empty until the graph is gone. */
static pki_cuda_graph *use(pki_cuda_graph *g)
{
    uint32_t taken = PKI_CUDA_GRAPH_TAKEN;
    pthread_mutex_lock(&lock);
    pki_cuda_graph *used = pki_cuda_graph_of_capture(g->capture);
    if (!used && __atomic_compare_exchange_n(&g->state, &taken, PKI_CUDA_GRAPH_USED, false,
                                             __ATOMIC_RELEASE, __ATOMIC_RELAXED)) /* is_used */
        used = g;
    pthread_mutex_unlock(&lock);
    return used;
}

/* The record of the capture, made if needed; NULL and the reason if it cannot be followed. The
 * driver is called without the lock, for which other capturing threads may wait. */
static pki_cuda_graph *pki_cuda_graph_for(pki_cuda_context *context, CUgraph handle,
                                          uint64_t capture, CUresult *code)
{
    pki_cuda_graph *g = pki_cuda_graph_of_capture(capture);
    if (g)
        return g;
    *code = CUDA_ERROR_OUT_OF_MEMORY;
    g = take_record(context, handle, capture);
    return g && watch(g, code) ? use(g) : NULL;
}

/* Which of the capture's streams; PKI_CUDA_BRANCHES: one too many. */
static uint32_t branch_of(pki_cuda_graph *g, const pki_cuda_lane *l)
{
    uint32_t i = 0;
    while (i < g->branches && g->streams[i] != l->stream)
        i++;
    if (i == g->branches && i < PKI_CUDA_BRANCHES) {
        g->streams[i] = l->stream;
        g->stream_ids[i] = l->stream_id;
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
static bool pki_cuda_graph_append(pki_cuda_graph *g, const pki_cuda_lane *l, CUgraphNode node,
                                  pki_cuda_mark mark, uint32_t *ordinal)
{
    pthread_mutex_lock(&lock);
    uint32_t branch = branch_of(g, l);
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

static uint32_t pki_cuda_graph_count(const pki_cuda_graph *g)
{
    return pki_load_acquire(&g->count); /* pairs with the release in _append */
}

static const pki_cuda_node *pki_cuda_graph_node(const pki_cuda_graph *g, uint32_t i)
{
    const pki_cuda_chunk *chunk = g->first;
    for (; i >= PKI_CUDA_CHUNK; i -= PKI_CUDA_CHUNK)
        chunk = chunk->next;
    return &chunk->nodes[i];
}

/* Once it is gone, and nothing of it is left to read: its events go back. By the collector. */
static void pki_cuda_graph_retire(pki_cuda_graph *g)
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

bool pki_cuda_captures = true;

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
    if (!node || !pki_cuda_graph_append(g, l, node, mark, &o->ordinal)) {
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
    if (!pki_load(&pki_cuda_captures))
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
        pki_cuda_graph_append(g, l, NULL, mark_of(PKI_CUDA_CANCEL, o->pair, o->region), &ordinal);
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
    if (!node ||
        !pki_cuda_graph_append(g, l, node, mark_of(PKI_CUDA_END, o->pair, o->region), &ordinal))
        return cancel(g, l, o, PKI_CUDA_CAPTURE_FAILED);
    return PKI_CUDA_FINE;
}

void pki_cuda_capture_cancel(const pki_cuda_lane *l, const pki_cuda_open *o)
{
    cancel(pki_cuda_graph_of_capture(o->capture), l, o, PKI_CUDA_FINE);
}

/* ---- the replays of a graph that its program announces ---- */

/* ---- an exec that is met for the first time ---- */

/* The graph has to be the one that was captured, node by node: its handle may be another's now. */
static bool is_the_captured(const pki_cuda_graph *g, CUgraph handle, size_t *total)
{
    if (pki_cuda.graph_nodes(handle, NULL, total) || *total == 0)
        return false;
    CUgraphNode *nodes = calloc(*total, sizeof *nodes);
    bool same = nodes && !pki_cuda.graph_nodes(handle, nodes, total);
    for (uint32_t i = 0; same && i < pki_cuda_graph_count(g); i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(g, i);
        pki_cuda_pair *pair = pki_cuda_pair_at(&g->context->pool, pki_cuda_mark_pair(n->mark));
        bool begins = pki_cuda_mark_type_of(n->mark) == PKI_CUDA_BEGIN;
        CUevent event = NULL;
        size_t at = 0;
        while (n->node && at < *total && nodes[at] != n->node)
            at++;
        if (n->node)
            same = at < *total && !pki_cuda.node_event(n->node, &event) &&
                   event == (begins ? pair->begin : pair->end);
    }
    free(nodes);
    return same;
}

static bool make_lanes(pki_cuda_exec *x)
{
    for (uint32_t b = 0; b < x->graph->branches; b++) {
        pki_cuda_lane *l = pki_cuda_lane_acquire(x->graph->context, x->graph->streams[b]);
        if (!l)
            return false;
        l->exec = x;
        l->stream_id = x->graph->stream_ids[b];
        l->graph = x->graph->number;
        l->branch = b;
        x->lanes[b] = l;
    }
    return true;
}

static void release_lanes(pki_cuda_exec *x)
{
    for (uint32_t b = 0; b < PKI_CUDA_BRANCHES; b++)
        if (x->lanes[b])
            pki_store_release(&x->lanes[b]->life, (uint32_t)PKI_CUDA_LEFT); /* acquire: a round */
}

static pki_cuda_exec *make_exec(pki_cuda_graph *g, CUgraphExec handle, CUgraph graph)
{
    size_t total = 0;
    pki_cuda_exec *x = is_the_captured(g, graph, &total) ? calloc(1, sizeof *x) : NULL;
    if (!x)
        return NULL;
    x->graph = g;
    x->handle = handle;
    x->graph_nodes = total;
    x->count = pki_cuda_graph_count(g);
    x->spans = g->spans;
    x->current = PKI_CUDA_NO_SET;
    x->pairs = calloc(x->spans, sizeof *x->pairs);
    for (uint32_t i = 0; x->pairs && i < x->count; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(g, i);
        x->per_replay[n->branch]++;
        x->ends[n->branch] += pki_cuda_mark_type_of(n->mark) == PKI_CUDA_END;
        x->pairs[n->ordinal] = pki_cuda_mark_pair(n->mark);
    }
    if (!x->pairs || !make_lanes(x)) {
        release_lanes(x);
        free(x->pairs);
        free(x);
        return NULL;
    }
    x->next = pki_load(&g->execs);
    while (!__atomic_compare_exchange_n(&g->execs, &x->next, x, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
    return x;
}

static pki_cuda_exec *exec_for(pki_cuda_graph *g, CUgraphExec handle, CUgraph graph)
{
    size_t total = 0;
    pki_cuda_exec *x = pki_load_acquire(&g->execs); /* pairs with the release in make_exec */
    while (x && x->handle != handle)
        x = x->next;
    if (!x)
        return make_exec(g, handle, graph);
    if (pki_cuda.graph_nodes(graph, NULL, &total) || total != x->graph_nodes)
        return NULL;
    return x;
}

/* ---- sets of events ---- */

static bool is_read(const pki_cuda_exec *x, const pki_cuda_set *set)
{
    for (uint32_t b = 0; b < x->graph->branches; b++)
        if (pki_load_acquire(&x->lanes[b]->tail) < set->until[b]) /* release: cuda/cuda.c */
            return false;
    return true;
}

static bool make_events(pki_cuda_exec *x, pki_cuda_stamped *events)
{
    uint32_t made = 0, needed = 2 * x->spans;
    CUstreamCaptureMode mode = pki_cuda_relax();
    CUresult code = pki_cuda_enter(x->graph->context->handle);
    if (!code) {
        while (made < needed && !(code = pki_cuda.event_create(&events[made].event, 0)))
            events[made++].seen = NAN;
        while (code && made > 0)
            pki_cuda.event_destroy(events[--made].event);
        pki_cuda_leave();
    }
    pki_cuda_restore(mode);
    pki_cuda_context_failed(x->graph->context, code);
    return code == CUDA_SUCCESS;
}

static uint32_t make_set(pki_cuda_exec *x)
{
    if (x->sets_made == PKI_CUDA_SETS)
        return PKI_CUDA_NO_SET;
    pki_cuda_stamped *events = calloc(2 * (size_t)x->spans, sizeof *events);
    if (!events || !make_events(x, events)) {
        free(events);
        return PKI_CUDA_NO_SET;
    }
    x->sets[x->sets_made].events = events;
    return x->sets_made++;
}

static bool have_room(const pki_cuda_exec *x)
{
    for (uint32_t b = 0; b < x->graph->branches; b++) {
        const pki_cuda_lane *l = x->lanes[b];
        if (l->head - pki_load_acquire(&l->tail) + x->per_replay[b] > PKI_CUDA_MARKS)
            return false; /* tail's release: cuda/cuda.c */
    }
    return true;
}

static uint32_t find_set(pki_cuda_exec *x)
{
    for (uint32_t i = 0; i < x->sets_made; i++)
        if (i != x->current && is_read(x, &x->sets[i]))
            return i;
    return make_set(x);
}

/* ---- a replay ---- */

static CUevent event_of(const pki_cuda_exec *x, const pki_cuda_node *n, uint32_t set)
{
    bool begins = pki_cuda_mark_type_of(n->mark) == PKI_CUDA_BEGIN;
    pki_cuda_pair *pair = pki_cuda_pair_at(&x->graph->context->pool, pki_cuda_mark_pair(n->mark));
    if (set == PKI_CUDA_NO_SET)
        return begins ? pair->begin : pair->end;
    return x->sets[set].events[n->ordinal * 2 + !begins].event;
}

/* Points the exec's nodes to the set. */
static CUresult point_to(pki_cuda_exec *x, uint32_t set)
{
    CUresult code = CUDA_SUCCESS;
    for (uint32_t i = 0; i < x->count && !code && x->current != set; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(x->graph, i);
        if (n->node)
            code = pki_cuda.exec_set_event(x->handle, n->node, event_of(x, n, set));
    }
    x->current = set;
    x->broken = code != CUDA_SUCCESS;
    return code;
}

static void publish(pki_cuda_exec *x, uint32_t set)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const pki_cuda_node *n = pki_cuda_graph_node(x->graph, i);
        pki_cuda_lane *l = x->lanes[n->branch];
        pki_cuda_mark_type type = pki_cuda_mark_type_of(n->mark);
        if (type == PKI_CUDA_END)
            pki_cuda_replay_enqueue(pki_cuda_pattern(x, n->ordinal));
        pki_cuda_lane_mark(l, type, set * x->spans + n->ordinal, n->mark.region);
        x->sets[set].until[n->branch] = l->head;
    }
}

static void count(pki_cuda_exec *x, size_t of_counters, bool begun)
{
    for (uint32_t b = 0; b < x->graph->branches; b++) {
        pki_cuda_counters *c = &x->lanes[b]->counters;
        uint64_t *also = (uint64_t *)(void *)((char *)c + of_counters);
        pki_bump(&c->begun, x->ends[b]);
        if (!begun)
            pki_store_release(also, pki_load(also) + x->ends[b]); /* acquire: pki_cuda_sum */
    }
}

static void enter_session(pki_cuda_exec *x)
{
    for (uint32_t b = 0; b < x->graph->branches; b++)
        if (x->lanes[b]->session != pki_load(&pki_cuda_session))
            pki_cuda_lane_enter(x->lanes[b]);
}

/* The replay cannot be followed: it stamps the captured events, which are not looked at from then
 * on, since it would be counted twice. */
static PKI_COLD void drop(pki_cuda_exec *x)
{
    pki_store(&x->graph->dropped, pki_load(&pki_cuda_session));
    pki_cuda_note_reason(PKI_CUDA_NO_PAIR, CUDA_SUCCESS, 0);
    count(x, offsetof(pki_cuda_counters, dropped), false);
    point_to(x, PKI_CUDA_NO_SET);
}

static void launch(pki_cuda_exec *x)
{
    enter_session(x);
    uint32_t set = have_room(x) ? find_set(x) : PKI_CUDA_NO_SET;
    if (set == PKI_CUDA_NO_SET) {
        drop(x);
        return;
    }
    CUresult code = point_to(x, set);
    if (code) {
        pki_cuda_note_reason(PKI_CUDA_CALL_FAILED, code, 0);
        pki_cuda_context_failed(x->graph->context, code);
        count(x, offsetof(pki_cuda_counters, skipped), false);
        return;
    }
    count(x, 0, true);
    publish(x, set);
}

static void announce(CUgraphExec exec, CUgraph graph)
{
    pki_cuda_graph *g = pki_cuda_graph_of_handle(graph);
    if (!g || pki_load(&g->context->dead) || g->spans == 0)
        return;
    pki_cuda_exec *x = exec_for(g, exec, graph);
    if (x && !x->broken)
        launch(x);
}

void pk_gpu_graph_launching_on_(void *exec, void *graph, void *stream)
{
    int saved = errno;
    (void)stream; /* the launches of an exec follow each other on whatever stream */
    if (exec && graph && pki_cuda_known() == PKI_CUDA_LIVE)
        announce(exec, graph);
    errno = saved;
}

/* Is anything of it still to be read? */

/* ---- the end ---- */

static bool pki_cuda_exec_pending(const pki_cuda_exec *x)
{
    for (uint32_t b = 0; b < x->graph->branches; b++) {
        const pki_cuda_lane *l = x->lanes[b];
        bool now = pki_load(&l->session) == pki_load(&pki_cuda_session);
        if (now && pki_load_acquire(&l->head) != l->tail) /* head's release: _lane_mark */
            return true;
    }
    return false;
}

/* Destroys its events and leaves its lanes to the collector. By the collector, once the graph is
 * gone. */
static void pki_cuda_exec_retire(pki_cuda_exec *x)
{
    bool alive =
        pki_cuda_context_alive(x->graph->context) && pki_cuda_context_use(x->graph->context);
    release_lanes(x);
    for (uint32_t s = 0; s < x->sets_made; s++) {
        for (uint32_t i = 0; alive && i < 2 * x->spans; i++)
            pki_cuda.event_destroy(x->sets[s].events[i].event);
        free(x->sets[s].events);
    }
    free(x->pairs);
    free(x);
}

/* ---- spans of graphs whose replays nobody announces ---- */

static CUevent sample_event_of(const pki_cuda_graph *g, const pki_cuda_node *n)
{
    pki_cuda_pair *pair = pki_cuda_pair_at(&g->context->pool, pki_cuda_mark_pair(n->mark));
    return pki_cuda_mark_type_of(n->mark) == PKI_CUDA_BEGIN ? pair->begin : pair->end;
}

/* False: not reached, never launched, or being captured. */
static bool read(pki_cuda_graph *g, const pki_cuda_node *n, double *device)
{
    CUevent event = sample_event_of(g, n);
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

static bool sample_make_lanes(pki_cuda_graph *g)
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
    bool dropped = pki_load(&g->dropped) == g->session;
    if (count == 0 || dropped || !has_room(g, count) || !pki_cuda_context_use(g->context) ||
        !pki_cuda_anchors_update(g->context) || !read_all(g, count) || !still_there(g, count) ||
        !sample_make_lanes(g))
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
static void sample_enter_session(pki_cuda_graph *g)
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
        /* Pairs with the releases above. */
        uint32_t state = pki_load_acquire(&g->state);
        if (state == PKI_CUDA_GRAPH_GONE && !is_pending(g))
            retire(g);
        if (state != PKI_CUDA_GRAPH_USED || pki_load(&g->context->dead))
            continue;
        sample_enter_session(g);
        if (g->session == pki_load(&pki_cuda_session))
            sample_graph(g);
    }
}
