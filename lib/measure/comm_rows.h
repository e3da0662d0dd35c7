/* lib/measure/exchange_rows.h - of a summary what is put beside other ranks': whom messages were
 * exchanged with, and single operations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_PARTNERS_OTHER (-1) /* all those that were too many to be told apart */

/* Messages exchanged with a rank of the job. */
typedef struct pki_partner_row {
    int32_t rank;
    uint64_t sent, sent_bytes, sent_time; /* time: of the operations, added up */
    uint64_t received, received_bytes, received_time;
} pki_partner_row;

/* One operation, among those that all its ranks choose alike (comm/figures/sequences.h). */
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
