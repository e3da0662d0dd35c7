/* Messages of which a call has both: sent and received in one (MPI_Sendrecv and its like), found
 * and then received (MPI_Mprobe, MPI_Improbe). Each round another rank of 4 comes late. ranks.py
 * knows what is sent to whom. */
#include <mpi.h>

#include <stdlib.h>
#include <time.h>

enum { RANKS = 4, LARGE = 40000 };

static int rank;
static double out[LARGE], in[LARGE];

static void come_late(int who)
{
    if (rank == who)
        nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
}

/* Around the ring, of which the second call's partners are not named; with the neighbour, more
 * than fits into an eager message, and another number of bytes each way; at a border. */
static void both_at_once(int to, int from)
{
    int other = rank ^ 1, up = rank + 1 < RANKS ? rank + 1 : MPI_PROC_NULL,
        down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Status status;
    MPI_Sendrecv(out, 3, MPI_DOUBLE, to, 1, in, 64, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv_replace(out, 4, MPI_DOUBLE, to, 2, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv(out, LARGE - rank, MPI_DOUBLE, other, 3, in, LARGE, MPI_DOUBLE, other, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 5, MPI_DOUBLE, up, 4, in, 64, MPI_DOUBLE, down, 4, MPI_COMM_WORLD, &status);
}

static void found_first(int to)
{
    MPI_Message message;
    MPI_Request sent, received;
    MPI_Status status;
    int found = 0, bytes;
    MPI_Isend(out, 6, MPI_DOUBLE, to, 5, MPI_COMM_WORLD, &sent);
    MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Isend(out, 7, MPI_DOUBLE, to, 6, MPI_COMM_WORLD, &sent);
    while (!found)
        MPI_Improbe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 64, MPI_DOUBLE, &message, &received);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 64, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
}

/* Of MPI 4: the same in a request. (MPICH 4.0 leaves its status as it was.) */
static void both_later(int to, int from)
{
#if MPI_VERSION >= 4
    MPI_Request both;
    MPI_Isendrecv(out, 8, MPI_DOUBLE, to, 8, in, 8, MPI_DOUBLE, from, 8, MPI_COMM_WORLD, &both);
    MPI_Wait(&both, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(out, 9, MPI_DOUBLE, to, 9, from, 9, MPI_COMM_WORLD, &both);
    MPI_Wait(&both, MPI_STATUS_IGNORE);
#else
    (void)to, (void)from;
#endif
}

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != RANKS)
        MPI_Abort(MPI_COMM_WORLD, 8);
    for (int round = 0; round < RANKS; round++) {
        int to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;
        come_late(round);
        both_at_once(to, from);
        come_late(round);
        found_first(to);
        both_later(to, from);
    }
    return MPI_Finalize();
}
