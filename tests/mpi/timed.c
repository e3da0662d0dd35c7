/* Calls of MPI of which no more is known than how long they take, on 2 ranks; ranks.py counts them.
 */
#include <mpi.h>

static int rank;

static void one_sided(void)
{
    MPI_Win window;
    int *window_of;
    MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window_of,
                     &window);
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, window);
    MPI_Accumulate(&rank, 1, MPI_INT, 1 - rank, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_unlock(1 - rank, window);
    if (window_of[0] != 1 - rank)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_free(&window);
}

static void files(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, "timed.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof rank, &rank, 1, MPI_INT, &status);
    MPI_File_close(&file);
}

static void neighbours(void)
{
    int ranks[1] = {2}, periods[1] = {1}, got[2];
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, ranks, periods, 0, &ring);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
    if (got[0] != 1 - rank)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void of_mpi_4(void)
{
#if MPI_VERSION >= 4
    MPI_Request request;
    int value[1];
    MPI_Allreduce_c(&rank, value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce_init(&rank, value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
#endif
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    one_sided();
    files();
    neighbours();
    of_mpi_4();
    MPI_Finalize();
    return 0;
}
