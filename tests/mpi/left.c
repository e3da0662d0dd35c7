/* Requests that nobody ever waits for, though all has arrived, and a job that ends by MPI_Abort:
 * the report says how far each rank has come. */
#include "ledger.h"

int main(int argc, char **argv)
{
    MPI_Request r[2];
    static int in, out = 7;
    MPI_Init(&argc, &argv);
    ledger_open(4);
    MPI_Irecv(&in, 1, MPI_INT, (rank + 3) % 4, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(&out, 1, MPI_INT, (rank + 1) % 4, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    ledger_close();
    if (argc > 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return MPI_Finalize();
}
