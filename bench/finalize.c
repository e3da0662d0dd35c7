/* bench/finalize.c - what the file of the job adds to MPI_Finalize: finalize [--steps N] [--cpu 1].
 * Ranks that make steps, stop their session, and come to MPI_Finalize together. Rank 0 prints in ms
 * how long that took it, how long until perfkit was done and MPI's own began, and with --cpu 1 what
 * until then it took of a processor, it alone and all ranks. finalize.py starts it with job_path
 * and without. */
#include <dlfcn.h>
#include <mpi.h>

#include <pk/pk.h>

#include <stdio.h>
#include <time.h>

#include "harness.h"

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_region halo = PK_REGION_OF(PK_COMM, "halo");

static uint64_t wall_before, cpu_before;
static double own_wall, own_cpu, all_cpu;
static unsigned long ask_all;

static uint64_t cpu_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What libpk_mpi calls when it is done. */
int PMPI_Finalize(void)
{
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Finalize");
    own_wall = 1e-6 * (double)(bench_wall_ns() - wall_before);
    own_cpu = 1e-6 * (double)(cpu_ns() - cpu_before);
    if (ask_all)
        PMPI_Reduce(&own_cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return next();
}

static void make_steps(unsigned long steps, int rank, int ranks)
{
    double mine = rank, sum = 0, other = 0;
    for (unsigned long i = 0; i < steps; i++) {
        pk_region_begin(&work);
        for (volatile int k = 0; k < 1000; k++)
            mine += 1e-9 * k;
        pk_region_end(&work);
        pk_region_begin(&halo);
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &other, 1, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pk_region_end(&halo);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        pk_step(1);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned long steps = bench_number(argc, argv, "--steps", 20);
    ask_all = bench_number(argc, argv, "--cpu", 0);
    if (pk_start(pk_options(.backends = "none")) != PK_OK)
        bench_fail(pk_error_message());
    make_steps(steps, rank, ranks);
    if (pk_stop() != PK_OK)
        bench_fail(pk_error_message());
    PMPI_Barrier(MPI_COMM_WORLD);
    cpu_before = cpu_ns();
    wall_before = bench_wall_ns();
    MPI_Finalize();
    if (rank == 0)
        printf("%.3f %.3f %.3f %.3f\n", 1e-6 * (double)(bench_wall_ns() - wall_before), own_wall,
               own_cpu, all_cpu);
    return 0;
}
