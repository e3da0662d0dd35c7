/* Ranks whose work is to sleep, so that none lacks a processor: with a fault and without it, how
 * much shorter is a step, beside what `pk job` said? (what_if.py)
 *
 *     what_if reduce|ring|chain|pipe|swap|grid|rows STEPS [late=RANK,PERCENT] [uneven=PERCENT]
 * REPORT
 *
 * ring: halos to both sides; chain: from the left, work, to the right, and no more; pipe: the same
 * with calls that wait, of messages that wait for their receiver; swap: MPI_Sendrecv, from the left
 * to the right; grid: reductions over the rows of a grid, then over its columns; rows: over these
 * alone, and each tenth step over all. */
#include <mpi.h>
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_region share = PK_REGION_OF(PK_COMPUTE, "share");

static int late = -1, percent, uneven, rank, ranks;

static void take(pk_region *region, double us)
{
    long ns = (long)(us * 1e3);
    pk_region_begin(region);
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
    pk_region_end(region);
}

/* +- 5 %, the same in all runs. */
static double noise(int step)
{
    unsigned x = (unsigned)(step * 64 + rank + 1) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    return 0.95 + 0.1 * (double)(x >> 8) / (1 << 24);
}

static void compute(int step)
{
    double part = ranks > 1 ? 2.0 * rank / (ranks - 1) - 1 : 0;
    take(&work, 20e3 * noise(step) * (rank == late ? 1 + percent / 100.0 : 1));
    take(&share, 5e3 * (1 + uneven / 100.0 * part));
}

static void send_to(int to, MPI_Request *request)
{
    static int what;
    MPI_Isend(&what, 1, MPI_INT, to, 0, MPI_COMM_WORLD, request);
}

static void ring(void)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, got[2];
    MPI_Request r[4];
    MPI_Irecv(&got[0], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, right, 0, MPI_COMM_WORLD, &r[1]);
    send_to(left, &r[2]);
    send_to(right, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void chain(int step)
{
    int what = step;
    MPI_Request r;
    if (rank)
        MPI_Recv(&what, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(step);
    if (rank + 1 < ranks) {
        send_to(rank + 1, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

#define LONG (1 << 18) /* bytes: no MPI sends that before it is received */

static void pipe_through(int step)
{
    static char what[LONG];
    if (rank)
        MPI_Recv(what, LONG, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(step);
    if (rank + 1 < ranks)
        MPI_Send(what, LONG, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
}

static void swap(void)
{
    static int out, in;
    MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % ranks, 0, &in, 1, MPI_INT,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static MPI_Comm row, column;

static void sum_up(MPI_Comm comm)
{
    double part = rank, all;
    MPI_Allreduce(&part, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
}

static void step(const char *shape, int i)
{
    if (strcmp(shape, "chain") == 0) {
        chain(i);
        return;
    }
    if (strcmp(shape, "pipe") == 0) {
        pipe_through(i);
        return;
    }
    compute(i);
    if (strcmp(shape, "grid") == 0 || strcmp(shape, "rows") == 0)
        sum_up(row);
    if (strcmp(shape, "grid") == 0)
        sum_up(column);
    if (strcmp(shape, "reduce") == 0 || (strcmp(shape, "rows") == 0 && i % 10 == 9))
        sum_up(MPI_COMM_WORLD);
    if (strcmp(shape, "ring") == 0)
        ring();
    if (strcmp(shape, "swap") == 0)
        swap();
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    for (int i = 3; i + 1 < argc; i++)
        if (sscanf(argv[i], "late=%d,%d", &late, &percent) != 2 &&
            sscanf(argv[i], "uneven=%d", &uneven) != 1)
            return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 3, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3, rank, &column);
    pk_start(pk_options(.report_path = argv[argc - 1], .rank = rank, .world_size = ranks));
    for (int i = 0; i < atoi(argv[2]); i++) {
        step(argv[1], i);
        pk_step(1);
    }
    pk_stop();
    return MPI_Finalize();
}
