/* lib/measure/comm_rows.h - what a report says of communication: communicators, their operations by
 * size and region, messages by partner, and single operations, which are put beside other ranks'.
 * Part of a pki_summary.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/series.h"

#define PKI_PARTNERS_OTHER (-1) /* all those that were too many to be told apart */

/* Messages exchanged with a rank of the job. */
typedef struct pki_partner_row {
    int32_t rank;
    uint64_t sent, sent_bytes, sent_time; /* time: of the operations, added up */
    uint64_t received, received_bytes, received_time;
} pki_partner_row;

/* One operation, among those that all its ranks choose alike (comm/figures/figures.h). */
typedef struct pki_sequence_row {
    uint64_t key; /* the same on all its ranks */
    uint64_t start, duration;
    uint64_t waited; /* of it the program did, at its end */
    uint64_t bytes;
    uint32_t op, ranks; /* a pk_comm_op; of the communicator */
    int32_t partner;    /* of a message, or the root: rank of the job; -1: none */
} pki_sequence_row;

typedef struct pki_sequences {
    uint64_t operations; /* that rows were chosen from; first: 0 leaves it out of the report file */
    uint64_t one_in;     /* they are those whose key this divides */
    uint64_t origin;     /* the start of the session, ns of... */
    char *clock;         /* ...this clock: the same for processes that share one */
    size_t row_count;
    pki_sequence_row *rows;
} pki_sequences;

/* One operation. */
typedef struct pki_comm_call_row {
    char *region;
    size_t comm;
    uint32_t op;
    uint64_t bytes, sequence, start, duration, exposed;
    bool in_step; /* it began in... */
    uint64_t step;
} pki_comm_call_row;

/* A communicator, as this process sees it. */
typedef struct pki_comm_row {
    char *library, *name;
    uint64_t id; /* 0: unknown */
    int32_t rank, size;
    uint64_t calls, bytes;  /* bytes as given to the calls */
    uint64_t time, exposed; /* added up: of operations beside each other more than has passed */
    uint64_t busy, waited;  /* each moment once: any was under way, any was waited for */
    uint64_t on_stream; /* of time: timed on a device's stream; what of it was waited is unknown */
    uint64_t enqueued, started, completed; /* sequence numbers of the last ones, from 1 */
    uint64_t under_way;                    /* at the end: they need not complete in their order */
    uint32_t in_flight;                    /* most at once */
} pki_comm_row;

/* How a library went about it, as it says: "RING", "LL128". */
typedef struct pki_comm_way {
    char *algorithm, *protocol; /* "": unknown */
    uint64_t calls;
    double channels; /* mean */
} pki_comm_way;

/* Its operations of one sort and size; bandwidths in GB/s, count 0 where there is none. */
typedef struct pki_operation_row {
    size_t comm;   /* index of pki_summary.comms */
    uint32_t op;   /* a pk_comm_op */
    uint64_t size; /* the class: from so many bytes up to twice that; 0: none */
    uint64_t bytes, exposed;
    pki_dist time, algbw, busbw;
    size_t way_count;
    pki_comm_way *ways; /* those that the library named, most calls first */
} pki_operation_row;

/* Its operations of one sort in one region. */
typedef struct pki_comm_region_row {
    char *region; /* "": none was open */
    size_t comm;
    uint32_t op;
    uint64_t bytes, exposed;
    pki_dist time;
} pki_comm_region_row;

typedef struct pki_comm_summary {
    uint64_t unmeasured; /* operations missing in the rows for want of memory or room */
    size_t comm_count, collective_count, region_count, slowest_count;
    pki_comm_row *comms;
    pki_operation_row *collectives; /* by communicator, operation and size */
    pki_comm_region_row *regions;   /* by total time, most first */
    pki_comm_call_row *slowest;     /* slowest first */
    size_t partner_count;
    pki_partner_row *partners; /* by rank; PKI_PARTNERS_OTHER last */
    pki_sequences sequences;
} pki_comm_summary;
