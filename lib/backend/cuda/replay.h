/* lib/backend/cuda/replay.h - graphs that are replayed: announced, or seen by their events */
#pragma once

#include "backend/cuda/graph.h"

/* ---- the replays of a graph that its program announces ---- */

/* Each one gets a set of events of its own, which the exec's nodes are set to record instead of
 * those before, and its marks go onto lanes of the exec: one for each stream of the capture, since
 * branches run beside each other. A set is used again once it has been read, but never the one that
 * the nodes point to. What a set holds from an earlier replay must not be taken for this one's,
 * which perhaps has not begun: so it is remembered when each of its events was, and an event counts
 * as reached when it is at another time. */

#define PKI_CUDA_SETS 64u
#define PKI_CUDA_NO_SET UINT32_MAX

typedef struct pki_cuda_stamped {
    CUevent event;
    double seen; /* device time at which it was read last; NaN: never. The collector's */
} pki_cuda_stamped;

typedef struct pki_cuda_set {
    pki_cuda_stamped *events;          /* two for each span: its begin, its end */
    uint64_t until[PKI_CUDA_BRANCHES]; /* it has been read when the lanes' tails are here */
} pki_cuda_set;

typedef struct pki_cuda_exec {
    struct pki_cuda_exec *next; /* of the graph's */
    pki_cuda_graph *graph;
    CUgraphExec handle;
    size_t graph_nodes; /* of all kinds: a graph with others is another one */
    uint32_t count;     /* of our nodes */
    uint32_t spans;
    uint32_t *pairs;    /* of the spans, as captured: what they are operations of lies there */
    uint32_t current;   /* the set that the nodes point to; PKI_CUDA_NO_SET: the captured events */
    bool broken;        /* some nodes could not be set */
    uint32_t sets_made; /* release; the collector acquires by the marks */
    pki_cuda_set sets[PKI_CUDA_SETS];
    uint32_t per_replay[PKI_CUDA_BRANCHES];  /* marks */
    uint32_t ends[PKI_CUDA_BRANCHES];        /* of them, ends: spans that are whole */
    pki_cuda_lane *lanes[PKI_CUDA_BRANCHES]; /* a mark's pair there: set * spans + ordinal */
} pki_cuda_exec;

/* The pattern of the operation that this span is; its what is 0: none. */
static inline pki_cuda_operation *pki_cuda_pattern(const pki_cuda_exec *exec, uint32_t ordinal)
{
    return &pki_cuda_pair_at(&exec->graph->context->pool, exec->pairs[ordinal])->operation;
}

/* ---- spans of graphs whose replays nobody announces ---- */

/* Their events are stamped by each replay, so a replay is seen if its end stamps the last event
 * between two rounds, and the next one has not begun to stamp the others. All that is known of the
 * others is that they are missing. */

/* One look at every graph; gives back what belonged to those that are gone. */
void pki_cuda_sample(void);
