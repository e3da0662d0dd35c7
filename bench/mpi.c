/* bench/mpi.c - what libpk_mpi adds: bench-mpi calls | finalize. */
#include <mpi.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "harness.h"

static int rank;

/* ---- calls: what libpk_mpi adds to a call ---- */

/* MPI's function as the program calls it, beside the same one called under its PMPI name, in turns,
 * on two ranks that sit on a processor of their own each. The wall's time: both ranks wait for each
 * other.
 *
 *     mpiexec -n 2 bench-mpi calls [--rounds N]
 */

enum { CALLS = 100, MESSAGE = 8 };

static double mine = 1, sum;
static char out[MESSAGE], in[MESSAGE];

static void reduce(void)
{
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_plain(void)
{
    PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Nobody to wait for: what the wrapper itself takes. */
static void reduce_alone(void)
{
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static void reduce_alone_plain(void)
{
    PMPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void barrier_plain(void)
{
    PMPI_Barrier(MPI_COMM_WORLD);
}

/* A message each way, as a halo is exchanged: four calls and two requests. */
static void exchange(void)
{
    MPI_Request r[2];
    MPI_Irecv(in, MESSAGE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, MESSAGE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void exchange_plain(void)
{
    MPI_Request r[2];
    PMPI_Irecv(in, MESSAGE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r[0]);
    PMPI_Isend(out, MESSAGE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &r[1]);
    PMPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static const struct {
    const char *name;
    void (*plain)(void), (*wrapped)(void);
} pairs[] = {{"MPI_Allreduce, 8 bytes", reduce_plain, reduce},
             {"the same on MPI_COMM_SELF", reduce_alone_plain, reduce_alone},
             {"MPI_Barrier", barrier_plain, barrier},
             {"Irecv, Isend, Waitall, 8 bytes", exchange_plain, exchange}};

enum { PAIRS = sizeof pairs / sizeof *pairs };

static double batch(void (*call)(void))
{
    PMPI_Barrier(MPI_COMM_WORLD);
    uint64_t start = bench_wall_ns();
    for (int i = 0; i < CALLS; i++)
        call();
    return (double)(bench_wall_ns() - start) / CALLS;
}

/* One first and then the other, and the other way round in the next. */
static void measure(size_t which, unsigned long rounds, double alone[], double more[])
{
    for (unsigned long i = 0; i < rounds; i++) {
        double wrapped = i % 2 ? batch(pairs[which].wrapped) : 0;
        alone[i] = batch(pairs[which].plain);
        wrapped = i % 2 ? wrapped : batch(pairs[which].wrapped);
        more[i] = wrapped - alone[i];
        if (i % 16 == 0)
            pk_flush();
    }
}

/* On a machine with other work only the rounds without it tell something: the quartiles say how
 * many these were. */
static void show(const char *title, unsigned long rounds)
{
    static double alone[BENCH_ROUNDS_MAX], more[BENCH_ROUNDS_MAX];
    if (rank == 0)
        printf("%-38s %8s %8s  25 %% .. 75 %%\n", title, "PMPI, ns", "more, ns");
    for (size_t i = 0; i < PAIRS; i++) {
        measure(i, rounds, alone, more);
        if (rank == 0)
            printf("  %-36s %8.0f %8.0f  %.0f .. %.0f\n", pairs[i].name,
                   bench_quantile(alone, rounds, 0.5), bench_quantile(more, rounds, 0.5),
                   bench_quantile(more, rounds, 0.25), bench_quantile(more, rounds, 0.75));
    }
    if (rank == 0)
        putchar('\n');
    fflush(stdout);
}

static int calls_bench(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned long rounds = bench_number(argc, argv, "--rounds", 999);
    if (size != 2 || rounds > BENCH_ROUNDS_MAX)
        bench_fail("this is for two ranks, and a thousand rounds at most");
    bench_pin((unsigned)rank);
    show("perfkit off", rounds);
    if (pk_start(pk_options(.backends = "none")) != PK_OK)
        bench_fail(pk_error_message());
    show("perfkit on", rounds);
    pk_step(1); /* from here on the borders of waiting are looked at, too */
    show("perfkit on, in steps", rounds);
    pk_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK || counts.dropped)
        bench_fail("a ring was full: the figures above are not of recorded calls");
    return MPI_Finalize();
}

/* ---- finalize: what the file of the job adds to MPI_Finalize ---- */

/* Ranks that make steps, stop their session, and come to MPI_Finalize together.
 *
 *     mpiexec -n N bench-mpi finalize [--steps N] [--cpu 1]
 *
 * Rank 0 prints in ms how long that took it, how long until perfkit was done and MPI's own began,
 * and with --cpu 1 what until then it took of a processor, it alone and all ranks. finalize.py
 * starts it with job_path and without. */

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

static void make_steps(unsigned long steps, int ranks)
{
    double own = rank, all = 0, other = 0;
    for (unsigned long i = 0; i < steps; i++) {
        pk_region_begin(&work);
        for (volatile int k = 0; k < 1000; k++)
            own += 1e-9 * k;
        pk_region_end(&work);
        pk_region_begin(&halo);
        MPI_Sendrecv(&own, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &other, 1, MPI_DOUBLE,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pk_region_end(&halo);
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        pk_step(1);
    }
}

static int finalize_bench(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned long steps = bench_number(argc, argv, "--steps", 20);
    ask_all = bench_number(argc, argv, "--cpu", 0);
    if (pk_start(pk_options(.backends = "none")) != PK_OK)
        bench_fail(pk_error_message());
    make_steps(steps, ranks);
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

int main(int argc, char **argv)
{
    static const bench_program programs[] = {{"calls", calls_bench}, {"finalize", finalize_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
