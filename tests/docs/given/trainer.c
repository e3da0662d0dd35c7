/* ./trainer: a loop on many ranks, of which rank 5 loads slowly. */
#include <mpi.h>
#include <pk/pk.h>
#include <stdint.h>
#include <time.h>

static pk_region load = PK_REGION_OF(PK_DATA, "load");
static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");

static void spend(int64_t us)
{
    struct timespec part = {0, us * 1000};
    nanosleep(&part, NULL);
}

int main(int argc, char **argv)
{
    double mine = 1, sum = 0;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pk_start(NULL);
    for (int i = 0; i < 60; i++) {
        pk_region_begin(&load);
        spend(rank == 5 ? 4000 : 1000);
        pk_region_next(&load, &forward);
        spend(3000);
        pk_region_end(&forward);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        pk_step(32);
    }
    pk_stop();
    return MPI_Finalize();
}
