/* tools/job/figures/waits_exchanges.h - calls that send and receive (MPI_Sendrecv): late receivers
 * of their sends, without the time for which the receive of the same call waited.
 *
 * Both halves are over when the call is, so a wait of the receive looks like one of the send, too.
 * What is beyond the moment that the receive waited for is the send's. Where the receive was not
 * chosen (comm/figures/figures.h), the share that is beyond is that of the rank's other calls;
 * without any, nothing is.
 */
#pragma once

#include "job/figures/waits_once.h"

/* A receive whose sender was found. */
typedef struct job_half_received {
    size_t rank;
    uint64_t start, end; /* of the rank's clock */
    int64_t until;       /* its sender began; of the axis, as below */
} job_half_received;

/* The send of such a call, whose receiver came while it lasted. */
typedef struct job_half_sent {
    size_t rank, other;
    uint64_t start;                    /* of the rank's clock */
    int64_t waits, ends, until, doubt; /* until: its receiver began */
    double scale;
} job_half_sent;

typedef struct job_exchanges {
    job_half_received *received;
    job_half_sent *sent;
    size_t received_count, received_room, sent_count, sent_room;
} job_exchanges;

void job_exchanges_received(job_exchanges *e, const job_half_received *half);
void job_exchanges_sent(job_exchanges *e, const job_half_sent *half);

/* Adds what of them was a late receiver, and is empty then. */
void job_exchanges_end(job_exchanges *e, job_waiting *to, size_t ranks);
