/* comm/mpi/ranks.h with groups of 2 ranks: each text comes to rank 0, in the order of ranks, no
 * rank holds more than a group's, and each hears rank 0's word. */
#include "comm/mpi/ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 3600 /* s: nobody is silent */
#define MOST 40000    /* bytes of a text: beyond what MPIs send unasked, and below */

static int rank, ranks, next;

static void fail(const char *what, long a, long b)
{
    fprintf(stderr, "rank %d of %d: %s: %ld, expected %ld\n", rank, ranks, what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect(const char *what, long is, long wanted)
{
    if (is != wanted)
        fail(what, is, wanted);
}

/* Rank 3 has none. */
static size_t bytes_of(int of)
{
    return of == 3 ? 0 : (size_t)(of + 1) * 7919 % MOST;
}

static char *text_of(int of)
{
    char *text = malloc(MOST);
    if (!text)
        fail("memory", 0, MOST);
    memset(text, 'a' + of % 26, MOST);
    return text;
}

static void take(void *user, int32_t from, const char *text, size_t bytes)
{
    next += next == 3;
    expect("the next text is of rank", from, next++);
    expect("its bytes", (long)bytes, (long)bytes_of(from));
    char *wanted = text_of(from);
    expect("they are others", memcmp(text, wanted, bytes), 0);
    free(wanted);
    ++*(int *)user;
}

int main(int argc, char **argv)
{
    int taken = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    pki_mpi_gathered g = {.rank = rank, .ranks = ranks};
    char *own = text_of(rank);
    pki_mpi_gather(&g, own, bytes_of(rank), PATIENCE, take, &taken);
    if (g.most_texts > PKI_MPI_GROUP)
        fail("texts held at once", (long)g.most_texts, PKI_MPI_GROUP);
    expect("texts at rank 0", taken, rank == 0 ? ranks - (ranks > 3) : 0);
    bool *told = rank == 0 ? calloc((size_t)ranks, sizeof *told) : NULL;
    for (int i = 0; told && i < ranks; i++)
        told[i] = i % 3 == 0;
    expect("rank 0's word", pki_mpi_gathered_answer(&g, told, PATIENCE), rank % 3 == 0);
    pki_mpi_gathered_finish(&g);
    free(own);
    return MPI_Finalize();
}
