/* lib/backend/cuda/graph.h - spans that were captured into a graph, in the order of the capture.
 *
 * A record lives as long as the graph and every exec made of it: a user object that the graph holds
 * tells when both are gone. Until then the events belong to it, since each replay stamps them. Its
 * nodes are appended by the capturing threads under a lock of theirs, and read without one: chunks
 * never move, and `count` is stored behind what it counts (release; readers acquire).
 */
#pragma once

#include "backend/cuda/lane.h"

#define PKI_CUDA_BRANCHES 8u /* streams that take part in one capture */
#define PKI_CUDA_CHUNK 64u

typedef struct pki_cuda_node {
    CUgraphNode node;
    pki_cuda_mark mark; /* pair: of the pool; in it lie the events that the capture recorded */
    uint32_t ordinal;   /* of the span, in the order of their begins */
    uint32_t branch;
} pki_cuda_node;

typedef struct pki_cuda_chunk {
    struct pki_cuda_chunk *next;
    pki_cuda_node nodes[PKI_CUDA_CHUNK];
} pki_cuda_chunk;

typedef enum pki_cuda_graph_state {
    PKI_CUDA_GRAPH_FREE,
    PKI_CUDA_GRAPH_USED,
    PKI_CUDA_GRAPH_GONE /* destroyed, its execs too */
} pki_cuda_graph_state;

typedef struct pki_cuda_graph {
    struct pki_cuda_graph *next; /* of all; grows at the head only */
    uint32_t state;
    uint32_t number; /* another one at each use */
    pki_cuda_context *context;
    CUgraph handle;
    uint64_t capture;
    uint32_t count; /* of nodes */
    uint32_t spans; /* begun */
    uint32_t branches;
    bool refuses; /* it takes no events */
    CUstream streams[PKI_CUDA_BRANCHES];
    uint64_t stream_ids[PKI_CUDA_BRANCHES];
    pki_cuda_chunk *first;
    struct pki_cuda_exec *execs; /* grows at the head only, while the graph is there */

    /* the collector's: for replays that nobody announces */
    uint32_t session;
    bool seen_any;
    double seen;   /* the latest time of the replay that was read last */
    double *times; /* of the nodes, while they are read */
    uint32_t times_room;
    pki_cuda_lane *lanes[PKI_CUDA_BRANCHES];
} pki_cuda_graph;

pki_cuda_graph *pki_cuda_graphs(void);

/* The record of the capture, made if needed; NULL and the reason if it cannot be followed. */
pki_cuda_graph *pki_cuda_graph_for(pki_cuda_context *context, CUgraph handle, uint64_t capture,
                                   CUresult *code);

/* The one of that capture; NULL if there is none, or none any more. */
pki_cuda_graph *pki_cuda_graph_of_capture(uint64_t capture);

/* The newest one with this handle. */
pki_cuda_graph *pki_cuda_graph_of_handle(CUgraph handle);

/* Appends a node; for a begin, *ordinal is set. False without room. */
bool pki_cuda_graph_append(pki_cuda_graph *graph, CUstream stream, CUgraphNode node,
                           pki_cuda_mark mark, uint32_t *ordinal);

uint32_t pki_cuda_graph_count(const pki_cuda_graph *graph);
const pki_cuda_node *pki_cuda_graph_node(const pki_cuda_graph *graph, uint32_t i);

/* Once it is gone, and nothing of it is left to read: its events go back. By the collector. */
void pki_cuda_graph_retire(pki_cuda_graph *graph);

void pki_cuda_graphs_after_fork(void);
