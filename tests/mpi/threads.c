/* MPI_THREAD_MULTIPLE: threads that each have a communicator of their own for collectives, and send
 * to the same thread of the next rank on one that all of them share. Started by the program, linked
 * with the library. */
#include "ledger.h"

#include <pk/pk.h>

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, ROUNDS = 200, BATCH = 8 };

static MPI_Comm own[THREADS];

static void reduce(long thread, int round)
{
    double mine = rank + round, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, own[thread]);
    if (sum != 4.0 * round + 6)
        MPI_Abort(MPI_COMM_WORLD, 7);
}

/* Handles that one thread gives back come to another at once. */
static void ring(long thread, int round)
{
    MPI_Request r[2 * BATCH];
    int in[BATCH], out[BATCH];
    for (int i = 0; i < BATCH; i++) {
        out[i] = 1000 * round + i;
        MPI_Irecv(&in[i], 1, MPI_INT, (rank + 3) % 4, (int)thread * BATCH + i, MPI_COMM_WORLD,
                  &r[2 * i]);
        MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % 4, (int)thread * BATCH + i, MPI_COMM_WORLD,
                  &r[2 * i + 1]);
    }
    MPI_Waitall(2 * BATCH, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BATCH; i++)
        if (in[i] != out[i])
            MPI_Abort(MPI_COMM_WORLD, 7);
}

static void *work(void *arg)
{
    long thread = (long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 20 == 0)
            reduce(thread, i);
        ring(thread, i);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            MPI_Abort(MPI_COMM_WORLD, 6);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void expect_all(void)
{
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < ROUNDS; i++) {
            char name[16];
            snprintf(name, sizeof name, "thread %d", t);
            if (i % 20 == 0)
                expect("MPI_Allreduce", "all_reduce", name, 8, -1);
            for (int k = 0; k < BATCH; k++) {
                expect_call("MPI_Irecv");
                expect_call("MPI_Isend");
                expect_message("request", "recv", "MPI_COMM_WORLD messages", 4, (rank + 3) % 4,
                               t * BATCH + k);
                expect_message("request", "send", "MPI_COMM_WORLD messages", 4, (rank + 1) % 4,
                               t * BATCH + k);
            }
            expect_call("MPI_Waitall");
        }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    ledger_open(4);
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "thread %d", i);
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
        MPI_Comm_set_name(own[i], name);
    }
    if (pk_start(pk_options(.trace_path = "run-%r.json", .report_path = "report-%r.json",
                            .backends = "none")) != PK_OK)
        MPI_Abort(MPI_COMM_WORLD, 5);
    expect("MPI_Barrier", "barrier", "MPI_COMM_WORLD", 0, -1);
    MPI_Barrier(MPI_COMM_WORLD);
    run_threads();
    expect_all();
    pk_stop();
    ledger_close();
    return MPI_Finalize();
}
