/* What libpk_mpi adds to a call: MPI's function as the program calls it, beside the same one called
 * under its PMPI name, in turns, on two ranks that sit on a processor of their own each. The wall's
 * time: both ranks wait for each other.
 *
 * mpiexec -n 2 bench-mpi [--rounds N] */
#include <mpi.h>

#include <pk/pk.h>

#include <stdio.h>

#include "harness.h"

enum { CALLS = 100, MESSAGE = 8 };

static double mine = 1, sum;
static char out[MESSAGE], in[MESSAGE];
static int rank;

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

int main(int argc, char **argv)
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
