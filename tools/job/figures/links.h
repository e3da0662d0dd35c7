/* tools/job/figures/links.h - communication: communicators, operations by size, who comes last.
 *
 * An operation in which all ranks take part ends for all at about the same time, so who is in it
 * for the shortest time came last, and the longest minus the shortest is how far their arrivals lay
 * apart: no clocks are compared. That is known of the operations that stand one by one in the
 * ranks' files, by their sequence number, where two ranks or more have the same one.
 */
#pragma once

#include "job/job.h"

#define JOB_COMMUNICATION_MOST 0.2 /* of the steps: what even the last one waits */

typedef struct job_comm {
    char *library, *name;
    uint64_t id;
    int32_t size;
    size_t ranks; /* whose files tell of it */
    double calls, bytes;
    job_spread waited; /* by rank: how long the program waited for it, each moment once */
} job_comm;

/* Of all ranks, of one sort and size. */
typedef struct job_operation {
    size_t comm; /* of job_links.comms */
    uint32_t op;
    uint64_t size;
    double calls, bytes;
    job_spread time;  /* by rank: the mean of its calls, ns */
    job_spread busbw; /* by rank: the mean of its calls, GB/s; have 0: there is none */
    int32_t slowest;  /* the rank with the lowest busbw */
} job_operation;

/* One operation, as several ranks saw it. */
typedef struct job_arrival {
    size_t comm;
    uint32_t op;
    uint64_t sequence, bytes;
    size_t ranks;
    uint64_t shortest, longest; /* ns in it */
    int32_t last;               /* the rank that came last */
} job_arrival;

typedef struct job_links {
    size_t comm_count, operation_count, arrival_count;
    job_comm *comms;
    job_operation *operations; /* by communicator, operation, size */
    job_arrival *arrivals;     /* furthest apart first */
} job_links;

job_links job_find_links(const job *j);
void job_links_finish(job_links *l);
