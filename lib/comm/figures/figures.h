/* lib/comm/figures/figures.h - communicators' operations in numbers */
#pragma once

#include <pk/comm.h>

#include "measure/steps/steps.h"
#include "measure/summary.h"
#include "measure/union.h"
#include "stats/tally.h"

/* ---- communicators' operations in numbers ---- */

/* One row for each communicator, operation and size class: calls, bytes, the distributions of
 * duration and of both bandwidths (formulas in pk/comm.h); one for each region that made them; the
 * slowest ones; how far each communicator has come, which is what a hang needs; and for all ranks
 * of the job together, with whom messages were exchanged (partners.h) and single operations that
 * all ranks choose alike (sequences.h).
 *
 * Threads: one at a time (the fold lock). Every function takes NULL for c, and then does nothing.
 * Failure: what finds no memory, or no room among PKI_COMM_FIGURES_ROWS, is counted. */

#define PKI_COMM_FIGURES_ROWS 4096
#define PKI_COMM_FIGURES_SLOWEST 10
#define PKI_COMM_FIGURES_STEPS 1024
#define PKI_COMM_ALGORITHMS                                                                        \
    6 /* algorithms of a row; the last one is all others, if there are more */
#define PKI_COMM_OPS 14

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

/* So far, of what a library tells: events that there was no room for, and operations among them. */
void pki_comm_figures_set_dropped(pki_comm_figures *c, uint64_t events, uint64_t operations);

/* So many alike, one behind the other; the sequence number is the last one's. */
void pki_comm_figures_add_calls(pki_comm_figures *c, const pki_timed_operation *op, uint32_t calls);

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

/* ---- with whom messages were exchanged: how many, of how many bytes ---- */

/* Of the first PKI_PARTNERS_MOST ranks exactly; what is exchanged with others is one row more. So a
 * rank's room is bounded, and the sums over all partners are exact. */

#define PKI_PARTNERS_MOST 1024

typedef struct pki_comm_partners {
    size_t count, room;
    pki_partner_row *rows;
    uint16_t table[2 * PKI_PARTNERS_MOST]; /* hash of the rank to index + 1 */
    pki_partner_row others;
} pki_comm_partners;

/* False: there is no memory. What is no message, or with nobody known, is nothing. */
bool pki_comm_partners_add(pki_comm_partners *p, const pki_timed_operation *op);

/* In the order of ranks, those that were too many to be told apart last; in *count. NULL without
 * memory. */
pki_partner_row *pki_comm_partners_rows(const pki_comm_partners *p, size_t *count);

/* The rows of those with most bytes, then most messages; of what is left one row, the last, is the
 * sum. In place; how many there are then. */
size_t pki_partners_narrow(pki_partner_row *rows, size_t count, size_t most);

/* ---- single operations, chosen so that all their ranks choose the same ---- */

/* What a rank waited for lies in other ranks: who was late to send, to receive, to a collective. So
 * the ends of single operations have to be put side by side, and no file has room for all. An
 * operation has a key that all its ranks make alike: of a collective the communicator's number and
 * the operation's on it; of a message the communicator, sender, receiver, tag, and its number among
 * those (messages of one sender, receiver and tag do not overtake each other). It is chosen if its
 * key's lowest bits are 0; how many of them grows until there is room. What one rank chose is then
 * a part of what another one did that chose with fewer bits: rows of any two ranks can be compared,
 * and their sums scaled up.
 *
 * Numbers of messages go by the order in which they end here. Channels are counted in a table that
 * does not grow; messages of channels that find no room in it have no key. */

#define PKI_SEQUENCES_MOST 1024
#define PKI_SEQUENCES_CHANNELS 4096
#define PKI_SEQUENCES_REGIONS 16 /* around their calls, those that come first */

typedef struct pki_comm_sequences {
    uint64_t operations; /* that had a key */
    uint64_t one_in;     /* a power of two; 0: nothing yet */
    size_t count;
    pki_sequence_row *rows; /* room for PKI_SEQUENCES_MOST; region: the id of its name */
    struct pki_channel {
        uint32_t mark, messages;           /* mark: which one, 0: none */
    } channels[2][PKI_SEQUENCES_CHANNELS]; /* sent, received */
} pki_comm_sequences;

/* False: there is no memory. */
bool pki_comm_sequences_add(pki_comm_sequences *s, const pki_timed_operation *op);

/* Chooses fewer, until there are no more than `most` (> 0). In place; how many there are then. */
size_t pki_sequences_narrow(pki_sequence_row *rows, size_t count, uint64_t *one_in, size_t most);

/* ---- what figures.c gathers and rows.c reads. Nobody else includes it ---- */

#define PKI_COMM_ALGORITHM_TEXT 24

typedef struct pki_operation_algorithm {
    char algorithm[PKI_COMM_ALGORITHM_TEXT], protocol[PKI_COMM_ALGORITHM_TEXT];
    uint64_t calls, channels; /* channels added up */
} pki_operation_algorithm;

/* By size class if region is 0, else by region. */
typedef struct pki_operation_cell {
    uint32_t comm, op;
    uint32_t region; /* its id + 1 */
    uint64_t size;
    uint64_t bytes, exposed;
    pki_tally time, algbw, busbw;
    size_t algorithm_count;
    pki_operation_algorithm algorithms[PKI_COMM_ALGORITHMS]; /* by size class only */
} pki_operation_cell;

typedef struct pki_comm_step {
    uint64_t index, start, end;
} pki_comm_step;

typedef struct pki_comm_cell {
    uint64_t calls, bytes, time, exposed, on_stream;
    uint32_t in_flight;
    pki_union busy, waited; /* times in which any operation was under way, and was waited for */
} pki_comm_cell;

struct pki_comm_figures {
    uint64_t unmeasured, dropped_events, dropped_operations;
    size_t comm_room;
    pki_comm_cell *comms; /* by index */
    size_t cell_count;
    pki_operation_cell *cells[PKI_COMM_FIGURES_ROWS];
    uint16_t table[2 * PKI_COMM_FIGURES_ROWS]; /* hash to cell index + 1 */
    size_t slow_count;
    pki_timed_operation slow[PKI_COMM_FIGURES_SLOWEST]; /* slowest first */
    uint64_t step_count;
    pki_comm_step steps[PKI_COMM_FIGURES_STEPS]; /* the last ones, in turn */
    pki_comm_partners partners;
    pki_comm_sequences sequences;
};
