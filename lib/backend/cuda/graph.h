/* lib/backend/cuda/graph.h - spans that are captured into a graph */
#pragma once

#include "backend/cuda/cuda.h"
#include "backend/cuda/lane.h"

/* ---- spans that were captured into a graph, in the order of the capture ---- */

/* A record lives as long as the graph and every exec made of it: a user object that the graph holds
 * tells when both are gone. Until then the events belong to it, since each replay stamps them. Its
 * nodes are appended by the capturing threads under a lock of theirs, and read without one: chunks
 * never move, and `count` is stored behind what it counts (release; readers acquire). */

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
    PKI_CUDA_GRAPH_TAKEN, /* for a graph that does not hold our object yet */
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
    bool refuses;     /* it takes no events */
    uint32_t dropped; /* the session of the last replay that was announced and dropped */
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

void pki_cuda_graphs_after_fork(void);

/* ---- a begin or an end on a stream that is being captured ---- */

/* An event that is recorded into a capture as an external one becomes a node of the graph: nothing
 * depends on it but what the stream does next, and each replay stamps it. Of the calls made here
 * none is one that a capture forbids, whatever its mode.
 *
 * Where no such node may be, spans are kept out. That can be known of the body of a conditional
 * node, which the driver tells when the first one is added, and where what the stream does next
 * depends on a part of a kernel (programmatic dependent launch), which the stream's capture tells.
 * It cannot be known that a graph will be instantiated for launches from the device, that a later
 * kernel is launched with the programmatic attribute, or that the graph becomes the child of a
 * conditional node's body: for those there is PK_GPU_GRAPHS=0. */

/* False: captures are left alone (PK_GPU_GRAPHS). Set between sessions. */
extern bool pki_cuda_captures;

/* Why not, or PKI_CUDA_FINE. Takes a pair, which is the graph's from here on, and what lies between
 * its events, which may be NULL. */
pki_cuda_reason pki_cuda_capture_begin(const pki_cuda_lane *lane, pki_cuda_open *open,
                                       pki_cuda_operation *op, CUresult *code);
pki_cuda_reason pki_cuda_capture_end(const pki_cuda_lane *lane, const pki_cuda_open *open,
                                     CUresult *code);

/* What was begun in the capture has no end: its replays are nothing. */
void pki_cuda_capture_cancel(const pki_cuda_lane *lane, const pki_cuda_open *open);
