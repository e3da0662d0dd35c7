/* pk-train-ranks: the trainer on several ranks of MPI, each on batches of its own.
 *
 *     mpiexec -n 8 pk-train-ranks --steps 200 --report report-%r.json --trace trace-%r.json
 *
 * A step is as in trainer.c, with the mean of all ranks' gradients in front of the optimiser. So
 * all ranks have the same weights at any moment, and each step ends with the slowest of them. What
 * goes over the network is libpk_mpi's to tell, which the program is linked with.
 *
 * Each rank also tells the next one its loss, as programs do that watch over each other.
 *
 * --fault makes one of them unlike the others, so that one can see how it shows:
 *
 *     --fault late=3       rank 3 computes 5 % longer (--slow-compute says how much)
 *     --fault reader=2     rank 2 reads its batches slowly (--slow-loader: how slowly)
 *     --fault link=4,5     what rank 4 sends to rank 5 is on its way for 20 ms
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pk/pk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "trainer.h"

enum { GOOD = 0, FAILED = 1, BAD_INPUT = 2, USUAL_LATE = 5, LINK_MS = 20 };

static pk_region average_region = PK_REGION_OF(PK_COMM, "average gradients");
static pk_region neighbour_region = PK_REGION_OF(PK_COMM, "tell the next rank");

typedef struct job {
    int rank, size;
    int late, reader, link_from, link_to; /* ranks; -1: none is */
} job;

static job here = {.late = -1, .reader = -1, .link_from = -1, .link_to = -1};

/* ---- a link that is slow ---- */

/* libpk_mpi's MPI_Send calls PMPI_Send, and finds this one in front of MPI's own. So the time on
 * the way lies in the send, as it does on a slow network. */
int PMPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    typedef int send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    static send *mpi_send;
    if (!mpi_send)
        *(void **)&mpi_send = dlsym(RTLD_NEXT, "PMPI_Send");
    if (here.rank == here.link_from && to == here.link_to)
        nanosleep(&(struct timespec){.tv_nsec = LINK_MS * 1000000L}, NULL);
    return mpi_send(data, count, type, to, tag, comm);
}

/* ---- a step's communication ---- */

static void tell_next(double loss)
{
    int next = (here.rank + 1) % here.size, before = (here.rank + here.size - 1) % here.size;
    double theirs = 0;
    MPI_Request receipt;
    PK_REGION_SCOPE(neighbour_region);
    MPI_Irecv(&theirs, 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &receipt);
    MPI_Send(&loss, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);
    MPI_Wait(&receipt, MPI_STATUS_IGNORE);
}

static void average(parameters *p)
{
    MPI_Datatype type = sizeof(real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    real part = (real)1 / (real)here.size;
    PK_REGION_SCOPE(average_region);
    MPI_Allreduce(MPI_IN_PLACE, p->gradients, (int)p->count, type, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < p->count; i++)
        p->gradients[i] *= part;
}

static void communicate(parameters *p, double loss)
{
    if (here.size > 1)
        tell_next(loss);
    average(p);
}

/* ---- the command line ---- */

static bool read_fault(const char *what)
{
    int one = -1, other = -1;
    if (sscanf(what, "link=%d,%d", &one, &other) == 2) {
        here.link_from = one;
        here.link_to = other;
    } else if (sscanf(what, "late=%d", &one) == 1) {
        here.late = other = one;
    } else if (sscanf(what, "reader=%d", &one) == 1) {
        here.reader = other = one;
    }
    return one >= 0 && one < here.size && other >= 0 && other < here.size;
}

/* Takes --fault out of the arguments, which are otherwise pk-train's. False after complaining. */
static bool take_faults(int *argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--fault") != 0) {
            argv[kept++] = argv[i];
            continue;
        }
        if (i + 1 == *argc || !read_fault(argv[i + 1])) {
            complain("--fault takes late=RANK, reader=RANK or link=FROM,TO, and there are %d ranks",
                     here.size);
            return false;
        }
        i++;
    }
    *argc = kept;
    return true;
}

static void apply_faults(options *o)
{
    uint64_t late = o->slow_compute ? o->slow_compute : USUAL_LATE;
    uint64_t slow = o->slow_ms ? o->slow_ms : UINT64_MAX;
    o->slow_compute = here.rank == here.late ? late : here.late >= 0 ? 0 : o->slow_compute;
    o->slow_ms = here.rank == here.reader ? slow : here.reader >= 0 ? 0 : o->slow_ms;
    o->shard = (uint64_t)here.rank;
    o->quiet |= here.rank != 0;
}

/* ---- the whole ---- */

/* The same on all ranks, or the averaging has gone wrong. */
static bool agree(const parameters *p)
{
    double sums[2] = {0, 0}, least, most;
    for (size_t i = 0; i < p->count; i++)
        sums[i & 1] += (double)p->values[i] * (double)(i % 1021);
    double sum = sums[0] - sums[1];
    MPI_Allreduce(&sum, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (here.rank == 0)
        printf("the weights of %d ranks %s\n", here.size,
               least == most ? "are the same" : "differ");
    return least == most;
}

static int train(const options *o)
{
    trainer t;
    int status = BAD_INPUT;
    if (trainer_init(&t, o)) {
        t.communicate = communicate;
        status = trainer_run(&t, NULL) && agree(&t.model->parameters) ? GOOD : FAILED;
    }
    trainer_finish(&t);
    return status;
}

static bool start_session(const options *o)
{
    pk_status status = pk_start(pk_options(.trace_path = o->trace, .report_path = o->report,
                                           .rank = here.rank, .world_size = here.size));
    if (status != PK_OK)
        complain("perfkit: %s (%s)", pk_error_message(), pk_status_name(status));
    return status == PK_OK;
}

static int run(const options *o)
{
    if (!start_session(o))
        return BAD_INPUT;
    pk_thread_set_name("trainer");
    int status = train(o);
    pk_stop();
    return status;
}

/* A rank that cannot go on takes the others with it: they would wait for it for ever. Arguments are
 * wrong on all of them alike. */
static int start(int argc, char **argv)
{
    options o;
    if (!take_faults(&argc, argv) || !options_parse(&o, argc, argv))
        return BAD_INPUT;
    if (o.help) {
        options_print_help();
        return GOOD;
    }
    apply_faults(&o);
    int status = run(&o);
    if (status != GOOD)
        MPI_Abort(MPI_COMM_WORLD, status);
    return status;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &here.size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status = start(argc, argv);
    MPI_Finalize();
    return status;
}
