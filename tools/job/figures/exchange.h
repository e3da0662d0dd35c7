/* tools/job/figures/exchange.h - MPI over the ranks, and who talks to whom.
 *
 * MPI's time is that inside its functions (regions "MPI_..."), as mpiP and Caliper's mpi-report
 * have it; of a rank's run, from the start of its session to its end.
 *
 * Messages are counted where they were sent; where the sender's file is missing, or what it sent to
 * this rank is among its others, where they were received.
 */
#pragma once

#include "job/job.h"

typedef struct job_pair {
    size_t from, to; /* places among the ranks */
    double messages, bytes;
    double time; /* of the operations at the rank that has counted them, ns */
} job_pair;

/* Operations in one region of the program, of all ranks. */
typedef struct job_site {
    char *region; /* "": outside all */
    uint32_t op;
    double calls, bytes, time;
} job_site;

typedef struct job_exchange {
    size_t mpi_ranks; /* that have called MPI */
    double mpi_time;  /* ns, of all ranks */
    double run_time;  /* of those ranks' runs */
    job_spread share; /* by rank: MPI's share of its run */
    size_t call_count;
    size_t *calls; /* MPI's functions: places among the regions, most time first */
    size_t pair_count;
    job_pair *pairs;                    /* by sender, then by receiver */
    double messages, bytes;             /* of all pairs */
    double other_messages, other_bytes; /* sent to ranks that are not told one by one */
    size_t site_count;
    job_site *sites; /* most time first */
} job_exchange;

job_exchange job_find_exchange(const job *j);
void job_exchange_finish(job_exchange *e);

/* What MPI took of a rank's run; -1: it has not called it. */
double job_mpi_share(const job *j, size_t rank);
