/* lib/measure/collectives/state.h - what collectives.c gathers and collectives/fill.c reads. Nobody
 * else includes it. */
#ifndef PKI_MEASURE_COLLECTIVES_STATE_H
#define PKI_MEASURE_COLLECTIVES_STATE_H

#include "measure/collectives/collectives.h"
#include "measure/tally.h"

/* By size class if region is 0, else by region. */
typedef struct pki_collective_cell {
    uint32_t comm, op;
    uint32_t region; /* its id + 1 */
    uint64_t size;
    uint64_t bytes, exposed;
    pki_tally time, algbw, busbw;
} pki_collective_cell;

typedef struct pki_comm_cell {
    uint64_t calls, bytes, time, exposed;
    uint32_t in_flight;
} pki_comm_cell;

struct pki_collectives {
    uint64_t unmeasured;
    uint32_t comm_room;
    pki_comm_cell *comms; /* by index */
    size_t cell_count;
    pki_collective_cell *cells[PKI_COLLECTIVE_ROWS];
    uint16_t table[2 * PKI_COLLECTIVE_ROWS]; /* hash to cell index + 1 */
    size_t slow_count;
    pki_collective slow[PKI_COLLECTIVE_SLOWEST]; /* slowest first */
};

#endif
