/* A collective that is a request, beside which ranks work: requests HOW STEPS.
 *
 *     late      rank 1 enters it 50 ms after the others, who wait
 *     overlap   so it does, but they have work for longer
 *     progress  it enters with them, and works then, without a call of MPI
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void work(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "late";
    bool overlap = strcmp(how, "overlap") == 0, progress = strcmp(how, "progress") == 0;
    int rank, steps = argc > 2 ? atoi(argv[2]) : 1;
    double value = 1, sum;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < steps; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && !progress)
            work(50);
        MPI_Iallreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        if (overlap)
            work(rank == 1 ? 50 : 100);
        else if (rank == 1 && progress)
            work(50);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
