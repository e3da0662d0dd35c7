/* ./solver: a program that knows nothing of perfkit. */
#include <mpi.h>

int main(int argc, char **argv)
{
    double mine = 1, sum = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Finalize() || sum < 1;
}
