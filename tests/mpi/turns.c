/* A program with a loop, of which perfkit is not told: turns HOW STEPS. Its ranks differ in what
 * they do before the loop and beside it:
 *
 *     halo   exchanges with a neighbour and a sum of all; the first two ranks have exchanged
 *            before, the last one has messages to itself, and every 20th step has one more
 *            operation
 *     faces  six exchanges by one function, at the ends one with nobody; a sum every 10th
 *     sums   one of all ranks, and one of each half of them, by the same function
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks;
static double value = 1, sum;

static void work(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static void exchange(void)
{
    MPI_Sendrecv(&value, 1, MPI_DOUBLE, rank ^ 1, 1, &sum, 1, MPI_DOUBLE, rank ^ 1, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tell_oneself(void)
{
    MPI_Request request;
    MPI_Isend(&value, 1, MPI_DOUBLE, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Recv(&sum, 1, MPI_DOUBLE, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void halo(int steps)
{
    for (int i = 0; i < 7 && rank < 2; i++)
        exchange();
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++) {
        exchange();
        for (int k = 0; k < 3 && rank == ranks - 1; k++)
            tell_oneself();
        work(50);
        if (i % 20 == 0)
            MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void shift(int to, int from, int tag)
{
    MPI_Sendrecv(&value, 1, MPI_DOUBLE, to, tag, &sum, 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void faces(int steps)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < steps; i++) {
        shift(left, right, 0);
        shift(right, left, 0);
        for (int k = 0; k < 4; k++)
            shift(rank, rank, k % 2);
        work(50);
        if (i % 10 == 0)
            MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void sums(int steps)
{
    MPI_Comm half, first;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &first);
    MPI_Barrier(first); /* it has the name, so half is the second of it */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; i < steps; i++) {
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        work(50);
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
        work(50);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&first);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 3 && strcmp(argv[1], "halo") == 0)
        halo(atoi(argv[2]));
    else if (argc == 3 && strcmp(argv[1], "faces") == 0)
        faces(atoi(argv[2]));
    else if (argc == 3)
        sums(atoi(argv[2]));
    MPI_Finalize();
    return 0;
}
