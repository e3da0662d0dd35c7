/* tools/job/figures/waits_once.h - what ranks waited, each moment of a rank once.
 *
 * Who waits for 26 requests at once (MPI_Waitall) waits once, and not 26 times: of operations that
 * a rank waits for at the same moment the moment belongs to the one that kept it waiting longest.
 *
 * Operations that were not chosen (comm/figures/figures.h) are scaled up from those that were.
 * That alone would count such a wait as often as requests were chosen of it, so what all chosen
 * operations stand for together is compared with what the rank waited, which its file tells of all
 * operations, each moment once: messages and collectives apart, of which the latter wait alone as a
 * rule. What is more than that is scaled down. So no rank waits longer than it was in MPI.
 */
#pragma once

#include "job/figures/waits.h"

/* An operation at one of its ranks; moments are the axis'. */
typedef struct job_waited {
    size_t rank, other;  /* places; other: who was late */
    job_wait sort;       /* which it would be */
    int64_t waits, ends; /* while the rank waited for it */
    int64_t from, until; /* of that: since the other was late; until <= from: it was not */
    double scale;        /* stands for so many */
    int64_t doubt;       /* of the two clocks */
    double share;        /* of from..until that counts: 1, unless it is not known which part */
} job_waited;

typedef struct job_waiting {
    job_waited *all;
    size_t count, room;
} job_waiting;

void job_waiting_add(job_waiting *w, const job_waited *one);

/* Fills in by and caused; empty then. */
void job_waiting_end(job_waiting *w, const job *j, job_waits *to);
