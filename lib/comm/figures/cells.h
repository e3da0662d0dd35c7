/* lib/comm/figures/cells.h - what figures.c gathers and rows.c reads. Nobody
 * else includes it. */
#pragma once

#include "comm/figures/partners.h"
#include "comm/figures/sequences.h"
#include "stats/tally.h"
#include "measure/union.h"

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
    uint64_t unmeasured;
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

/* algorithms.c */
void pki_comm_figures_count_algorithm(pki_operation_cell *cell, const pki_timed_operation *op);

/* slowest.c: the step that it began in, if that is known by now. */
void pki_comm_figures_find_step(const pki_comm_figures *c, pki_timed_operation *op);
