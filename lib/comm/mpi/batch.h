/* lib/comm/mpi/batch.h - the requests of one wait or test: claimed before MPI is asked, and each
 * completed or let go of when it has answered. */
#pragma once

#include "comm/mpi/request.h"

#define PKI_MPI_FEW 32 /* without an allocation */

typedef struct pki_mpi_batch {
    int n;             /* 0: none of them is followed, or no memory; then all else is nothing */
    bool receives;     /* one is a receive: statuses are needed */
    uint32_t *entries; /* by index, PKI_MPI_UNKNOWN for those that are not followed */
    MPI_Status *own;   /* where the program wants none */
    uint64_t start;
    uint32_t few[PKI_MPI_FEW];
    MPI_Status few_own[PKI_MPI_FEW];
} pki_mpi_batch;

void pki_mpi_batch_open(pki_mpi_batch *b, int n, const MPI_Request requests[]);

/* What to give to MPI for statuses: the program's, or room of one's own if they are needed. */
MPI_Status *pki_mpi_batch_statuses(pki_mpi_batch *b, MPI_Status *wanted);

/* The same for calls that have one status, whatever the number of requests. */
MPI_Status *pki_mpi_batch_status(pki_mpi_batch *b, MPI_Status *wanted);

/* MPI has answered: the requests of these indices (NULL: the first done) are complete, with
 * statuses in that order. What MPI has taken back besides is complete too, the rest is let go of.
 */
void pki_mpi_batch_close(pki_mpi_batch *b, const MPI_Request requests[], int done,
                         const int indices[], const MPI_Status *statuses);
