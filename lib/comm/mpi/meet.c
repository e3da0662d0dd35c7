#include "comm/mpi/meet.h"

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <pk/job.h>

#include "comm/mpi/patience.h"

#define SAVE_AFTER_SECONDS 1.0
#define MARGIN_SECONDS 5.0 /* for rank 0's word to arrive */

/* MPI cannot call a collective off, so what one reads and writes stays. */
static int64_t my_arrival, first_arrival; /* CLOCK_REALTIME, ns: they come from several nodes */
static char word;

static int64_t real_time(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool wait_and_save(MPI_Request *request, double seconds)
{
    double grace = fmin(seconds, SAVE_AFTER_SECONDS);
    if (pki_mpi_wait(request, MPI_STATUS_IGNORE, grace))
        return true;
    pk_job_save_();
    return pki_mpi_wait(request, MPI_STATUS_IGNORE, seconds - grace);
}

/* ---- rank 0 decides ---- */

/* Whoever came first still waits, unless that is too long ago already. */
static pki_mpi_met decide(MPI_Request *came, bool writes, double seconds)
{
    if (!wait_and_save(came, seconds) || 1e-9 * (double)(real_time() - first_arrival) > seconds)
        return PKI_MPI_NOT_ALL;
    return writes ? PKI_MPI_ALL : PKI_MPI_NOBODY;
}

/* To each by itself, so that nobody needs to be awake to pass it on. */
static void send_to_all(pki_mpi_met met, int ranks)
{
    int *counts = calloc((size_t)ranks, 2 * sizeof *counts + 1);
    MPI_Request sent;
    if (!counts)
        return;
    int *places = counts + ranks;
    char *words = (char *)(places + ranks);
    for (int to = 1; to < ranks; to++) {
        counts[to] = 1;
        places[to] = to;
        words[to] = (char)met;
    }
    if (PMPI_Iscatterv(words, counts, places, MPI_CHAR, &word, 0, MPI_CHAR, 0, MPI_COMM_WORLD,
                       &sent) != MPI_SUCCESS ||
        pki_mpi_wait(&sent, MPI_STATUS_IGNORE, MARGIN_SECONDS))
        free(counts);
}

/* ---- the others ---- */

static pki_mpi_met receive(MPI_Request *came, double seconds)
{
    MPI_Request answer;
    if (PMPI_Iscatterv(NULL, NULL, NULL, MPI_CHAR, &word, 1, MPI_CHAR, 0, MPI_COMM_WORLD,
                       &answer) != MPI_SUCCESS ||
        !wait_and_save(&answer, pki_mpi_meet_most(seconds)) ||
        !pki_mpi_wait(came, MPI_STATUS_IGNORE, word == PKI_MPI_NOT_ALL ? 0 : MARGIN_SECONDS))
        return PKI_MPI_NOT_ALL;
    return (pki_mpi_met)word;
}

double pki_mpi_meet_most(double seconds)
{
    return seconds + fmin(seconds, MARGIN_SECONDS);
}

pki_mpi_met pki_mpi_meet(int rank, int ranks, bool writes, double seconds)
{
    MPI_Request came;
    my_arrival = real_time();
    if (ranks == 1)
        return writes ? PKI_MPI_ALL : PKI_MPI_NOBODY;
    if (PMPI_Ireduce(&my_arrival, &first_arrival, 1, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD,
                     &came) != MPI_SUCCESS)
        return PKI_MPI_NOT_ALL;
    if (rank != 0)
        return receive(&came, seconds);
    pki_mpi_met met = decide(&came, writes, seconds);
    send_to_all(met, ranks);
    return met;
}
