/* lib/comm/live/operation.h - what a communicator's operation says of itself in the trace: the
 * arguments that PyTorch's profiler gives a collective, the same from every backend. */
#ifndef PKI_COMM_LIVE_OPERATION_H
#define PKI_COMM_LIVE_OPERATION_H

#include <stddef.h>

#include "core/activity.h"
#include "comm/model/communicator.h"

#define PKI_OPERATION_ARGS 12
#define PKI_OPERATION_RANKS 384 /* as much as an argument may have */

typedef struct pki_operation {
    const pk_comm *comm;
    pk_comm_op op;
    pk_comm_type type;
    uint64_t count; /* as given to the call */
    uint64_t sequence;
    int32_t peer; /* -1: none */
} pki_operation;

/* Room for the texts among them. */
typedef struct pki_operation_text {
    char hash[17], ranks[PKI_OPERATION_RANKS];
} pki_operation_text;

/* Fills in so many and returns how many. */
size_t pki_operation_args(const pki_operation *o, pki_operation_text *words,
                          pki_activity_arg args[PKI_OPERATION_ARGS]);

#endif
