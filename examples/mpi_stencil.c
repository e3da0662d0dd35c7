/* Heat in a plate, on as many ranks as there are: explicit steps on a grid that is cut into blocks,
 * halos that travel while the inside is computed, and a residual that all ranks add up.
 *
 * The program says where its phases are, and nothing of what MPI does: libpk_mpi, which it is
 * linked with, knows each message and collective, and the report says how much of that was waited
 * for and how much was hidden behind the inside.
 *
 *     mpiexec -n 4 ./mpi_stencil [--cells 512] [--steps 200] [--blocking] [--work 1]
 *                              [--report %r.rank.json]
 *
 * --blocking waits for the halos before it computes anything: see what that does to the report.
 * --work computes the inside several times, as a heavier scheme would.
 *
 * --fault makes one rank unlike the others, so that one can see what `pk job` makes of it:
 *
 *     --fault late=3       rank 3 computes 5 % longer (--percent says how much)
 *     --fault reader=2     rank 2 reads what heats the plate slowly: 20 ms per step
 *     --fault link=1,3     what rank 1 sends to rank 3 is on its way for 20 ms more */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <pk/pk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES, EVERY = 10 };

static pk_region exchange = PK_REGION_OF(PK_COMM, "start halos");
static pk_region inside = PK_REGION_OF(PK_COMPUTE, "inside");
static pk_region arrive = PK_REGION_OF(PK_COMM, "halos");
static pk_region border = PK_REGION_OF(PK_COMPUTE, "border");
static pk_region residual = PK_REGION_OF(PK_COMM, "residual");
static pk_region source = PK_REGION_OF(PK_DATA, "source");

enum { SLOW_NS = 20000000 };

static struct {
    int rank, late, reader, link_from, link_to; /* ranks; -1: none is */
    int percent, work;
} fault = {-1, -1, -1, -1, -1, 5, 1};

/* This rank's block, with one cell more on each side for the neighbours'. */
typedef struct block {
    int nx, ny, x0, y0, cells;
    double *now, *next;
    MPI_Comm comm;
    int neighbour[SIDES];
    MPI_Datatype column;
} block;

static double *cell(double *grid, const block *b, int x, int y)
{
    return &grid[(size_t)y * (size_t)(b->nx + 2) + (size_t)x];
}

/* ---- what may be wrong ---- */

static void be_slow(void)
{
    nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void be_late(double since)
{
    double until = seconds() + (seconds() - since) * fault.percent / 100;
    while (fault.rank == fault.late && seconds() < until)
        ;
}

/* libpk_mpi's MPI_Isend calls PMPI_Isend, and finds this one in front of MPI's own: so the time on
 * the way lies behind the start of the message, as it does on a slow network. */
int PMPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    typedef int isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static isend *mpi_isend;
    if (!mpi_isend)
        *(void **)&mpi_isend = dlsym(RTLD_NEXT, "PMPI_Isend");
    if (fault.rank == fault.link_from && to == fault.link_to)
        be_slow();
    return mpi_isend(data, count, type, to, tag, comm, request);
}

/* False: there is no such fault, or no such rank. */
static int read_fault(const char *what, int ranks)
{
    int one = -1, other = -1;
    if (sscanf(what, "link=%d,%d", &one, &other) == 2) {
        fault.link_from = one;
        fault.link_to = other;
    } else if (sscanf(what, "late=%d", &one) == 1) {
        fault.late = other = one;
    } else if (sscanf(what, "reader=%d", &one) == 1) {
        fault.reader = other = one;
    }
    return one >= 0 && one < ranks && other >= 0 && other < ranks;
}

/* ---- the grid ---- */

/* Cells of the whole that fall to part i of n. */
static int share(int cells, int n, int i, int *first)
{
    *first = (int)((long)cells * i / n);
    return (int)((long)cells * (i + 1) / n) - *first;
}

static void place(block *b, int cells)
{
    int ranks, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &b->comm);
    MPI_Comm_set_name(b->comm, "plate");
    MPI_Comm_rank(b->comm, &rank);
    MPI_Cart_coords(b->comm, rank, 2, at);
    MPI_Cart_shift(b->comm, 0, 1, &b->neighbour[NORTH], &b->neighbour[SOUTH]);
    MPI_Cart_shift(b->comm, 1, 1, &b->neighbour[WEST], &b->neighbour[EAST]);
    b->cells = cells;
    b->ny = share(cells, dims[0], at[0], &b->y0);
    b->nx = share(cells, dims[1], at[1], &b->x0);
    MPI_Type_vector(b->ny, 1, b->nx + 2, MPI_DOUBLE, &b->column);
    MPI_Type_commit(&b->column);
}

/* sin(pi x) sin(pi y), which decays as it is: the edge of the plate is kept at 0. */
static double start_at(const block *b, int x, int y)
{
    double h = 3.14159265358979323846 / (b->cells + 1);
    return sin((b->x0 + x) * h) * sin((b->y0 + y) * h);
}

static void fill(block *b)
{
    size_t size = (size_t)(b->nx + 2) * (size_t)(b->ny + 2);
    b->now = calloc(size, sizeof *b->now);
    b->next = calloc(size, sizeof *b->next);
    if (!b->now || !b->next) {
        fputs("mpi_stencil: no memory for the grid\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int y = 1; y <= b->ny; y++)
        for (int x = 1; x <= b->nx; x++)
            *cell(b->now, b, x, y) = start_at(b, x, y);
}

static void empty(block *b)
{
    free(b->now);
    free(b->next);
    MPI_Type_free(&b->column);
    MPI_Comm_free(&b->comm);
}

/* ---- a step ---- */

/* Where the cells of a side lie: mine that the neighbour needs, and the room for its own. */
static void start_side(block *b, int side, MPI_Request r[2])
{
    static const int tag_of_other[SIDES] = {SOUTH, NORTH, EAST, WEST};
    int rows = side == NORTH || side == SOUTH;
    MPI_Datatype type = rows ? MPI_DOUBLE : b->column;
    int count = rows ? b->nx : 1;
    int x = side == EAST ? b->nx : 1, y = side == SOUTH ? b->ny : 1;
    int halo_x = side == EAST ? b->nx + 1 : side == WEST ? 0 : 1;
    int halo_y = side == SOUTH ? b->ny + 1 : side == NORTH ? 0 : 1;
    MPI_Irecv(cell(b->now, b, halo_x, halo_y), count, type, b->neighbour[side], tag_of_other[side],
              b->comm, &r[0]);
    MPI_Isend(cell(b->now, b, x, y), count, type, b->neighbour[side], side, b->comm, &r[1]);
}

static double update(block *b, int x0, int x1, int y0, int y1)
{
    double change = 0;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            double *c = cell(b->now, b, x, y);
            double d = 0.25 * (c[-1] + c[1] + c[-(b->nx + 2)] + c[b->nx + 2]) - *c;
            *cell(b->next, b, x, y) = *c + 0.8 * d;
            change += d * d;
        }
    return change;
}

/* The outermost cells, which need the neighbours'. */
static double update_border(block *b)
{
    double change = update(b, 1, b->nx, 1, 1);
    if (b->ny > 1)
        change += update(b, 1, b->nx, b->ny, b->ny);
    change += update(b, 1, 1, 2, b->ny - 1);
    if (b->nx > 1)
        change += update(b, b->nx, b->nx, 2, b->ny - 1);
    return change;
}

/* One by one as they come: so it is known of each when it came. */
static void take_halos(MPI_Request requests[2 * SIDES])
{
    int one;
    PK_REGION_SCOPE(arrive);
    do
        MPI_Waitany(2 * SIDES, requests, &one, MPI_STATUS_IGNORE);
    while (one != MPI_UNDEFINED);
}

static double step(block *b, int blocking)
{
    MPI_Request requests[2 * SIDES];
    double change = 0, since;
    {
        PK_REGION_SCOPE(source);
        if (fault.rank == fault.reader)
            be_slow();
    }
    {
        PK_REGION_SCOPE(exchange);
        for (int side = 0; side < SIDES; side++)
            start_side(b, side, &requests[2 * side]);
    }
    if (blocking)
        take_halos(requests);
    {
        PK_REGION_SCOPE(inside);
        since = seconds();
        for (int i = 0; i < fault.work; i++)
            change = update(b, 2, b->nx - 1, 2, b->ny - 1);
        be_late(since);
    }
    if (!blocking)
        take_halos(requests);
    {
        PK_REGION_SCOPE(border);
        change += update_border(b);
    }
    double *old = b->now;
    b->now = b->next;
    b->next = old;
    return change;
}

static double run(block *b, int steps, int blocking)
{
    double all = 0;
    for (int i = 0; i < steps; i++) {
        double mine = step(b, blocking);
        if (i % EVERY == EVERY - 1) {
            PK_REGION_SCOPE(residual);
            MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, b->comm);
        }
        pk_step((uint64_t)b->nx * (uint64_t)b->ny);
    }
    return sqrt(all) / b->cells;
}

/* ---- is it right? ---- */

/* What the start has decayed to, exactly; the largest difference over all ranks. */
static double error_of(block *b, int steps)
{
    double h = 3.14159265358979323846 / (b->cells + 1), worst = 0, all;
    double factor = pow(1 - 0.8 * (1 - cos(h)), steps);
    for (int y = 1; y <= b->ny; y++)
        for (int x = 1; x <= b->nx; x++)
            worst = fmax(worst, fabs(*cell(b->now, b, x, y) - factor * start_at(b, x, y)));
    MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    return all;
}

static int number(int argc, char **argv, const char *option, int standard)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return atoi(argv[i + 1]);
    return standard;
}

static const char *word(int argc, char **argv, const char *option, const char *standard)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return argv[i + 1];
    return standard;
}

static int has(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    block b = {0};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int cells = number(argc, argv, "--cells", 512), steps = number(argc, argv, "--steps", 200);
    const char *wrong = word(argc, argv, "--fault", NULL);
    const char *report = word(argc, argv, "--report", NULL);
    if (cells < 2 * ranks || steps < 1 || (wrong && !read_fault(wrong, ranks))) {
        if (rank == 0)
            fputs("mpi_stencil: two cells per rank, and one step, at the least; --fault late=RANK,"
                  " reader=RANK or link=FROM,TO\n",
                  stderr);
        return MPI_Finalize() || 1;
    }
    fault.percent = number(argc, argv, "--percent", fault.percent);
    fault.work = number(argc, argv, "--work", fault.work);
    place(&b, cells);
    fill(&b);
    MPI_Comm_rank(b.comm, &fault.rank);
    if (pk_start(pk_options(.trace_path = report ? NULL : "mpi_stencil-%r.json",
                            .report_path = report ? report : "mpi_stencil-%r.txt")) != PK_OK)
        fprintf(stderr, "mpi_stencil: rank %d: %s\n", rank, pk_error_message());
    double change = run(&b, steps, has(argc, argv, "--blocking"));
    pk_stop();
    double error = error_of(&b, steps);
    if (rank == 0)
        printf("%d x %d cells on %d ranks, %d steps: residual %.3e, error %.3e\n", cells, cells,
               ranks, steps, change, error);
    empty(&b);
    return MPI_Finalize() || error > 1e-9;
}
