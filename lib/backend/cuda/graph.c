#include "backend/cuda/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

pki_cuda_graph *pki_cuda_graph_of_capture(uint64_t capture)
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

pki_cuda_graph *pki_cuda_graph_for(pki_cuda_context *context, CUgraph handle, uint64_t capture,
                                   CUresult *code)
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

bool pki_cuda_graph_append(pki_cuda_graph *g, CUstream stream, CUgraphNode node, pki_cuda_mark mark,
                           uint32_t *ordinal)
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
