/* Communicators that share a name: halves of the world, made twice over, used in another order by
 * each of their ranks, and one that is made and freed again and again. Messages within them, so
 * that partners have to be told as ranks of the job. */
#include <mpi.h>

enum { RANKS = 4, TIMES = 5 };

static MPI_Comm half_of(int rank, const char *name)
{
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &made);
    MPI_Comm_set_name(made, name);
    return made;
}

/* To the other one of two. */
static void swap(MPI_Comm comm, int rank)
{
    int mine = rank, theirs;
    MPI_Request r;
    MPI_Irecv(&theirs, 1, MPI_INT, 1 - rank, 7, comm, &r);
    MPI_Send(&mine, 1, MPI_INT, 1 - rank, 7, comm);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, in_half;
    MPI_Request r[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm one = half_of(rank, "half"), other = half_of(rank, "half");
    MPI_Comm_rank(one, &in_half);
    swap(one, in_half);
    MPI_Ibarrier(rank % 2 ? one : other, &r[0]);
    MPI_Ibarrier(rank % 2 ? other : one, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm again;
        MPI_Comm_dup(MPI_COMM_WORLD, &again);
        MPI_Comm_set_name(again, "again");
        MPI_Barrier(again);
        MPI_Comm_free(&again);
    }
    MPI_Comm_free(&one);
    MPI_Comm_free(&other);
    return MPI_Finalize();
}
