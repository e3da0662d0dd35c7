/* A program of steps, for the job's file: job WHEN [LATE FILE]. WHEN says where its session ends
 * ("before", "after" MPI_Finalize, "never": exit without both; "slow": before, and steps take 50 ms
 * more; "silent": rank 1's ends amid them; "some": before, and rank 1 has none; "killed", "left":
 * before, and rank 1 kills itself, or leaves, in place of MPI_Finalize). The rank LATE comes to
 * MPI_Finalize when FILE is there. It says whether libpk_mpi has sent anything there.
 */
#include <pk/pk.h>

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEPS 12
#define SLOW_STEPS 40

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

/* What libpk_mpi begins with in MPI_Finalize. */
static int asked;
int PMPI_Ireduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root,
                 MPI_Comm comm, MPI_Request *request)
{
    __typeof__(PMPI_Ireduce) *next;
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Ireduce");
    asked++;
    return next(from, to, count, type, op, root, comm, request);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void make_steps(bool slowly, bool leaves)
{
    double sum = 1, all = 0;
    for (int i = 0; i < (slowly ? SLOW_STEPS : STEPS); i++) {
        if (slowly)
            usleep(50000);
        if (leaves && i == SLOW_STEPS / 4)
            pk_stop();
        pk_region_begin(&work);
        for (volatile int k = 0; k < 2000; k++)
            sum += k;
        pk_region_end(&work);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        pk_step(1);
    }
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "before";
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool some = strcmp(when, "some") == 0;
    if (!getenv("PK_MPI_START") && !(some && rank == 1) && pk_start(NULL) != PK_OK)
        fprintf(stderr, "pk_start: %s\n", pk_error_message());
    bool silent = strcmp(when, "silent") == 0;
    make_steps(silent || strcmp(when, "slow") == 0, silent && rank == 1);
    if (strcmp(when, "never") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        pk_stop();
        exit(0);
    }
    for (int i = 0; argc > 3 && rank == atoi(argv[2]) && access(argv[3], R_OK) != 0 && i < 4000;
         i++)
        usleep(10000);
    bool killed = strcmp(when, "killed") == 0, left = strcmp(when, "left") == 0;
    if (strcmp(when, "before") == 0 || some || killed || left)
        pk_stop(); /* "slow", "silent": PK_MPI_START has begun it, MPI_Finalize ends it */
    if (killed && rank == 1)
        raise(SIGKILL);
    if (left && rank == 1)
        _exit(0);
    double before = seconds();
    MPI_Finalize();
    if (rank == 0)
        printf("MPI_Finalize took %.3f ms\n", 1000 * (seconds() - before));
    if (asked)
        printf("libpk_mpi asked MPI for something\n");
    if (strcmp(when, "after") == 0)
        pk_stop();
    return 0;
}
