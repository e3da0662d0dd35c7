/* lib/comm/figures/figures.h - communicators' operations in numbers.
 *
 * One row for each communicator, operation and size class: calls, bytes, the distributions of
 * duration and of both bandwidths (formulas in pk/comm.h); one for each region that made them; the
 * slowest ones; how far each communicator has come, which is what a hang needs; and for all ranks
 * of the job together, with whom messages were exchanged (partners.h) and single operations that
 * all ranks choose alike (sequences.h).
 *
 * Threads: one at a time (the fold lock). Every function takes NULL for c, and then does nothing.
 * Failure: what finds no memory, or no room among PKI_COMM_FIGURES_ROWS, is counted.
 */
#pragma once

#include <pk/comm.h>

#include "measure/steps/steps.h"
#include "measure/summary.h"

#define PKI_COMM_FIGURES_ROWS 4096
#define PKI_COMM_FIGURES_SLOWEST 10
#define PKI_COMM_FIGURES_STEPS 1024
#define PKI_COMM_ALGORITHMS                                                                        \
    6 /* algorithms of a row; the last one is all others, if there are more */
#define PKI_COMM_OPS 14
#define PKI_COMM_TYPES 13

/* An operation that has ended; times in ns since the session started. */
typedef struct pki_timed_operation {
    uint32_t comm; /* index, see lib/comm/model/communicator.h */
    uint32_t ranks;
    pk_comm_op op;
    uint32_t region; /* name id of the region that made it; 0: none */
    uint64_t bytes;  /* count * size of an element, as given to the call */
    uint64_t sequence;
    uint64_t start, end;
    uint64_t exposed;   /* ns of it that the program waited; all of it where the call blocks */
    uint32_t in_flight; /* operations of the communicator that were under way, this one included */
    uint32_t unrated;   /* 1: when the data moved is not known, so no bandwidth */
    uint32_t sharers;   /* operations that had this time together, of which this one's part is
                           entered; 0, 1: it alone */
    uint32_t on_stream; /* 1: timed on a device's stream: what the program waited is not known */
    const char *algorithm, *protocol; /* as the library says; NULL or "": it does not */
    uint32_t channels;
    uint64_t comm_id; /* the same on all its ranks; 0: not known, and then it is in no sequence */
    uint64_t tag;     /* as in pki_operation */
    uint32_t self;    /* this rank of the job + 1; 0: not known */
    uint32_t partner; /* of a message, or the root: its rank of the job + 1; 0: none, not known */
    uint32_t in_step; /* filled in by pki_comm_figures_step */
    uint64_t step;
} pki_timed_operation;

typedef struct pki_comm_figures pki_comm_figures;

pki_comm_figures *pki_comm_figures_create(void);
void pki_comm_figures_destroy(pki_comm_figures *c);

void pki_comm_figures_add(pki_comm_figures *c, const pki_timed_operation *op);

/* So many alike, one behind the other; the sequence number is the last one's. */
void pki_comm_figures_add_calls(pki_comm_figures *c, const pki_timed_operation *op, uint32_t calls);

/* Its part of the time. */
static inline uint64_t pki_timed_operation_share(const pki_timed_operation *op)
{
    uint64_t sharers = op->sharers ? op->sharers : 1;
    return op->end > op->start ? (op->end - op->start) / sharers : 0;
}

/* A step of the loop, from start until before end, so that the slowest operations can be listed
 * with the step that they began in. Of the last PKI_COMM_FIGURES_STEPS it does not matter which of
 * the two is added first. */
void pki_comm_figures_step(pki_comm_figures *c, uint64_t index, uint64_t start, uint64_t end);

/* Bytes that nccl-tests divide by the duration, and the factor from there to bus bandwidth; 0 where
 * there is no such figure. */
double pki_comm_size(pk_comm_op op, uint64_t bytes, uint32_t ranks);
double pki_comm_bus_factor(pk_comm_op op, uint32_t ranks);

/* The power of two that begins the class of so many bytes; 0 for none. */
uint64_t pki_comm_class(uint64_t bytes);

/* What is known of a communicator besides: lib/comm/model/communicator.h, through a door, since
 * files have it, too. */
typedef struct pki_comm_facts {
    const char *library, *name;
    uint64_t id;
    int32_t rank, size;
    uint64_t enqueued, started, completed; /* sequence numbers of the last ones, from 1; 0: none */
    uint64_t under_way;
} pki_comm_facts;

typedef bool pki_comm_facts_of(void *user, uint32_t comm, pki_comm_facts *facts);

/* Replaces out->comms and what belongs to it. False without memory: there are none then. */
bool pki_comm_figures_build_rows(const pki_comm_figures *c, pki_comm_facts_of *facts,
                                 pki_steps_name *name, void *user, pki_summary *out);
