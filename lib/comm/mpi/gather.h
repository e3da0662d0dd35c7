/* lib/comm/mpi/gather.h - a text of each rank to rank 0, over a binomial tree of all ranks.
 *
 * Rank r sends to r without its lowest bit what it and those behind it have: so it is log2(ranks)
 * messages one after the other, and each rank holds what it passes on. All ranks have to be within
 * MPI_Finalize (meet.h): the messages go over MPI_COMM_WORLD, where nobody else receives any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "comm/mpi/job_report.h"

typedef struct pki_mpi_gathered {
    int rank, ranks;
    char *bytes; /* for each text a rank, a length, and the text */
    size_t used, room;
    double since; /* it began */
    bool kept;    /* MPI has not taken all of it yet, and may look at it until the process ends */
} pki_mpi_gathered;

/* This rank's own text; bytes 0: it has none. Then what others send is added, and all of it sent
 * on. Who does not answer is left out, and those behind it; all of it takes `seconds` at most. */
void pki_mpi_gather(pki_mpi_gathered *g, const char *text, size_t bytes, double seconds);

/* Rank 0's word to each of the others: told[rank] of `ranks`, from malloc, which is taken over;
 * NULL without memory: it says nothing. Whether this rank's is true; false also if none came. The
 * others wait as long as gathering and a report may take. */
bool pki_mpi_gathered_tell(const pki_mpi_gathered *g, bool *told, double seconds);

/* On rank 0: the texts. To be freed; NULL without memory. */
pki_job_piece *pki_mpi_gathered_pieces(const pki_mpi_gathered *g, size_t *count);

void pki_mpi_gathered_finish(pki_mpi_gathered *g);
