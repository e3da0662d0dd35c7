/* lib/comm/mpi/gather.h - a text of each rank to rank 0, without any rank ever holding more than
 * PKI_MPI_GROUP of others.
 *
 * Within PKI_MPI_GROUP ranks it is a binomial tree: rank r sends to r without its lowest bit what
 * it and those behind it have, so it is log2(ranks) messages one after the other. The first rank of
 * each group then waits until rank 0 asks for what it has, which does so group by group, in their
 * order, and is done with one before the next one comes. All ranks have to be within MPI_Finalize,
 * since messages go over MPI_COMM_WORLD: with a tag that no receive of the program's may meet any
 * more.
 *
 * A rank that is silent is left out, with those behind it, and nothing is left behind that others
 * could wait for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PKI_MPI_GROUP
#define PKI_MPI_GROUP 64 /* a power of two */
#endif

typedef struct pki_mpi_gathered {
    int rank, ranks;
    char *bytes; /* for each text a rank, a length, and the text */
    size_t used, room;
    size_t texts, most_texts; /* in it, by now and at most: others' and one's own */
    double since;             /* it began */
    bool kept; /* MPI has not taken all of it yet, and may look at it until the process ends */
} pki_mpi_gathered;

/* On rank 0: one text after the other, in the order of ranks. It is gone when this returns. */
typedef void pki_mpi_gathered_text(void *user, int32_t rank, const char *text, size_t bytes);

/* This rank's own text; bytes 0: it has none. Who does not answer is left out, and those behind it;
 * all of it takes twice `seconds` and PKI_MPI_GROUP_SECONDS for each group at most. */
#define PKI_MPI_GROUP_SECONDS 0.5
void pki_mpi_gather(pki_mpi_gathered *g, const char *text, size_t bytes, double seconds,
                    pki_mpi_gathered_text *take, void *user);

/* Rank 0's word to each of the others: told[rank] of `ranks`, from malloc, which is taken over;
 * NULL without memory: it says nothing. Whether this rank's is true; false also if none came. The
 * others wait as long as gathering and writing may take. */
bool pki_mpi_gathered_answer(const pki_mpi_gathered *g, bool *answers, double seconds);

void pki_mpi_gathered_finish(pki_mpi_gathered *g);
