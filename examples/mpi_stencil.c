/* Heat in a plate, on as many ranks as there are: explicit steps on a grid that is cut into blocks,
 * halos that travel while the inside is computed, and a residual that all ranks add up.
 *
 * The program says where its phases are, and nothing of what MPI does: libpk_mpi, which it is
 * linked with, knows each message and collective, and the report says how much of that was waited
 * for and how much was hidden behind the inside.
 *
 *     mpiexec -n 4 ./mpi_stencil [--cells 512] [--steps 200] [--blocking]
 *
 * --blocking waits for the halos before it computes anything: see what that does to the report. */
#include <mpi.h>
#include <pk/pk.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES, EVERY = 10 };

static pk_region exchange = PK_REGION_OF(PK_COMM, "start halos");
static pk_region inside = PK_REGION_OF(PK_COMPUTE, "inside");
static pk_region arrive = PK_REGION_OF(PK_COMM, "halos");
static pk_region border = PK_REGION_OF(PK_COMPUTE, "border");
static pk_region residual = PK_REGION_OF(PK_COMM, "residual");

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

static double step(block *b, int blocking)
{
    MPI_Request requests[2 * SIDES];
    double change = 0;
    PK_SCOPE(exchange)
        for (int side = 0; side < SIDES; side++)
            start_side(b, side, &requests[2 * side]);
    if (blocking)
        PK_SCOPE(arrive)
            MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
    PK_SCOPE(inside)
        change = update(b, 2, b->nx - 1, 2, b->ny - 1);
    if (!blocking)
        PK_SCOPE(arrive)
            MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
    PK_SCOPE(border)
        change += update_border(b);
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
        if (i % EVERY == EVERY - 1)
            PK_SCOPE(residual)
                MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, b->comm);
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
    if (cells < 2 * ranks || steps < 1) {
        if (rank == 0)
            fputs("mpi_stencil: two cells per rank, and one step, at the least\n", stderr);
        return MPI_Finalize() || 1;
    }
    place(&b, cells);
    fill(&b);
    if (pk_start(pk_options(.trace_path = "mpi_stencil-%r.json",
                            .report_path = "mpi_stencil-%r.txt")) != PK_OK)
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
