/* hang_run.c RANK SIZE MEETING VICTIM HOW STEP - one rank of a job whose steps end in a collective;
 * at that step the victim is stopped, spins, blocks in a read, or is gone. HOW "comm" or "plain"
 * in front of it: with a communicator, or with regions alone. MEETING: a file that the ranks share.
 */
#include <pk/pk.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MOST 256

static pk_region load = PK_REGION_OF(PK_DATA, "load"),
                 forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region reduce = PK_REGION_OF(PK_COMM, "all-reduce");
static pk_region odd = PK_REGION("rückwärts");
static pk_region checkpoint = PK_REGION_OF(PK_IO, "checkpoint");

static _Atomic unsigned *arrived; /* the step that each rank has reached */
static int rank, size;

static void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void meet(unsigned step)
{
    atomic_store(&arrived[rank], step);
    for (int i = 0; i < size; i++)
        while (atomic_load(&arrived[i]) < step)
            sleep_us(500);
}

static void spin(void)
{
    static volatile unsigned long n;
    for (;;)
        n++;
}

static void block(void)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 1)
        _exit(3);
}

static void hang(const char *how)
{
    if (strcmp(how, "stopped") == 0)
        raise(SIGSTOP);
    else if (strcmp(how, "spinning") == 0)
        spin();
    else if (strcmp(how, "gone") == 0)
        _exit(0);
}

static void one_step(unsigned step, const char *how, pk_comm *world)
{
    PK_SCOPE(load) {
        if (how && strcmp(how, "blocked") == 0)
            block();
        sleep_us(200);
    }
    PK_SCOPE(forward) {
        if (how)
            hang(how);
        sleep_us(600);
        PK_SCOPE(odd) {
            sleep_us(200);
        }
    }
    PK_SCOPE(reduce) {
        if (world)
            pk_comm_call(&reduce, world, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 1000, -1);
        meet(step);
    }
    if (step % 50 == 0)
        PK_SCOPE(checkpoint) {
            sleep_us(30000);
        }
    pk_step(1);
}

static void share(const char *path)
{
    int fd = open(path, O_RDWR);
    arrived = mmap(NULL, RANKS_MOST * sizeof *arrived, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || arrived == MAP_FAILED)
        exit(2);
}

int main(int argc, char **argv)
{
    if (argc < 7)
        return 2;
    rank = atoi(argv[1]);
    size = atoi(argv[2]);
    share(argv[3]);
    int victim = atoi(argv[4]);
    unsigned at = (unsigned)atoi(argv[6]);
    bool plain = strncmp(argv[5], "plain-", 6) == 0;
    const char *how = plain ? argv[5] + 6 : argv[5];
    if (pk_start(pk_options(.rank = rank, .world_size = size, .backends = "none")) != PK_OK)
        return 1;
    alarm(240);
    pk_thread_name("trainer");
    pk_comm *world = plain ? NULL : pk_comm_create("test", "world", 0, rank, size);
    for (unsigned step = 1; step <= at + 100000; step++) {
        if (step == at && rank == 0)
            puts("there"), fflush(stdout);
        one_step(step, rank == victim && step == at ? how : NULL, world);
    }
    return pk_stop() != PK_OK;
}
