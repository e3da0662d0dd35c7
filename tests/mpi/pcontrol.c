/* Parts of a program, told by MPI_Pcontrol alone: pcontrol TURNS [names] */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int turns = argc > 1 ? atoi(argv[1]) : 0; turns > 0; turns--) {
        if (argc > 2) {
            MPI_Pcontrol(1, "solve");
            MPI_Pcontrol(0, "residual");
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Pcontrol(-1, "solve");
            continue;
        }
        MPI_Pcontrol(1);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pcontrol(3);
        MPI_Pcontrol(2);
        MPI_Pcontrol(0);
    }
    return MPI_Finalize();
}
