/* Point to point: every way to send, to receive, to wait and to ask; what is shorter than its
 * buffer, who comes from anywhere, nobody, requests that are made once, cancelled, and never waited
 * for. Neighbours on a ring of 4 ranks. */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#define WORLD "MPI_COMM_WORLD messages"

static MPI_Comm world;
static double in[64], out[64];
static int to, from;

static void prepare(void)
{
    for (int i = 0; i < 64; i++) {
        in[i] = rank * 100 + i + 0.25;
        out[i] = -1;
    }
}

static void said(const char *what, const MPI_Status *status)
{
    int n = -1;
    if (status) {
        MPI_Get_count(status, MPI_DOUBLE, &n);
        result_number("count", n);
        result_number("source", status->MPI_SOURCE);
        result_number("tag", status->MPI_TAG);
    }
    result(what, out, sizeof out);
    prepare();
}

/* A request that is waited for by MPI_Wait. */
static void wait_for(MPI_Request *request)
{
    expect_call("MPI_Wait");
    result_status("MPI_Wait", MPI_Wait(request, MPI_STATUS_IGNORE));
}

#define WAY(SEND, ISEND)                                                                           \
    do {                                                                                           \
        MPI_Request r;                                                                             \
        MPI_Status s;                                                                              \
        expect_call("MPI_Irecv");                                                                  \
        expect_message("request", "recv", WORLD, 24, from, 1);                                     \
        MPI_Irecv(out, 64, MPI_DOUBLE, from, 1, world, &r);                                        \
        expect("MPI_Barrier", "barrier", "MPI_COMM_WORLD", 0, -1);                                 \
        MPI_Barrier(world);                                                                        \
        expect_message("MPI_" #SEND, "send", WORLD, 24, to, 1);                                    \
        result_status(#SEND, MPI_##SEND(in, 3, MPI_DOUBLE, to, 1, world));                         \
        expect_call("MPI_Wait");                                                                   \
        MPI_Wait(&r, &s);                                                                          \
        said(#SEND, &s);                                                                           \
        expect_call("MPI_Irecv");                                                                  \
        expect_message("request", "recv", WORLD, 8, from, 2);                                      \
        MPI_Request both[2];                                                                       \
        MPI_Irecv(out, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 2, world, &both[0]);                        \
        expect("MPI_Barrier", "barrier", "MPI_COMM_WORLD", 0, -1);                                 \
        MPI_Barrier(world);                                                                        \
        expect_call("MPI_" #ISEND);                                                                \
        expect_message("request", "send", WORLD, 8, to, 2);                                        \
        result_status(#ISEND, MPI_##ISEND(in, 1, MPI_DOUBLE, to, 2, world, &both[1]));             \
        expect_call("MPI_Waitall");                                                                \
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);                                                 \
        said(#ISEND, NULL);                                                                        \
    } while (0)

static void ways(void)
{
    static char buffer[4096 + MPI_BSEND_OVERHEAD];
    void *back;
    int n;
    MPI_Buffer_attach(buffer, sizeof buffer);
    WAY(Send, Isend);
    WAY(Ssend, Issend);
    WAY(Rsend, Irsend);
    WAY(Bsend, Ibsend);
    MPI_Buffer_detach(&back, &n);
}

static void receive(void)
{
    MPI_Status s;
    MPI_Request r;
    expect_call("MPI_Isend");
    expect_message("request", "send", WORLD, 40, to, 3);
    MPI_Isend(in, 5, MPI_DOUBLE, to, 3, world, &r);
    expect_call("MPI_Probe");
    MPI_Probe(MPI_ANY_SOURCE, 3, world, &s);
    expect_message("MPI_Recv", "recv", WORLD, 40, from, 3);
    result_status("MPI_Recv",
                  MPI_Recv(out, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 3, world, MPI_STATUS_IGNORE));
    wait_for(&r);
    said("MPI_Recv", &s);
    expect_message("MPI_Sendrecv", "send_recv", WORLD, 16, to, 4);
    expect_message("request", "recv", WORLD, 16, from, 4);
    MPI_Sendrecv(in, 2, MPI_DOUBLE, to, 4, out, 64, MPI_DOUBLE, from, 4, world, &s);
    said("MPI_Sendrecv", &s);
    expect_message("MPI_Sendrecv_replace", "send_recv", WORLD, 32, to, 5);
    expect_message("request", "recv", WORLD, 32, from, 5);
    MPI_Sendrecv_replace(out, 4, MPI_DOUBLE, to, 5, from, 5, world, MPI_STATUS_IGNORE);
    said("MPI_Sendrecv_replace", NULL);
}

/* Found first, received then. */
static void matched(void)
{
    MPI_Message message;
    MPI_Request r, got;
    MPI_Status s;
    expect_call("MPI_Isend");
    expect_message("request", "send", WORLD, 40, to, 92);
    MPI_Isend(in, 5, MPI_DOUBLE, to, 92, world, &r);
    expect_call("MPI_Mprobe");
    expect_message("request", "recv", WORLD, 40, from, 92);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &message, MPI_STATUS_IGNORE);
    expect_call("MPI_Mrecv");
    result_status("MPI_Mrecv", MPI_Mrecv(out, 64, MPI_DOUBLE, &message, &s));
    result_number("received", message == MPI_MESSAGE_NULL);
    wait_for(&r);
    said("MPI_Mrecv", &s);
    expect_call("MPI_Isend");
    expect_message("request", "send", WORLD, 48, to, 93);
    MPI_Isend(in, 6, MPI_DOUBLE, to, 93, world, &r);
    int found = 0;
    expect_message("request", "recv", WORLD, 48, from, 93);
    while (!found)
        MPI_Improbe(from, 93, world, &found, &message, &s);
    expect_call("MPI_Imrecv");
    MPI_Imrecv(out, 64, MPI_DOUBLE, &message, &got);
    wait_for(&got);
    wait_for(&r);
    said("MPI_Imrecv", &s);
    expect_call("MPI_Mprobe");
    MPI_Mprobe(MPI_PROC_NULL, 94, world, &message, &s);
    expect_call("MPI_Mrecv");
    MPI_Mrecv(out, 64, MPI_DOUBLE, &message, &s);
    said("nobody", &s);
}

#if MPI_VERSION >= 4
#ifdef MPICH_VERSION
enum { IS_TOLD = 0 }; /* who has sent it: its status is an earlier request's */
#else
enum { IS_TOLD = 1 };
#endif

/* Behind a receive of fewer bytes with the same tag, whose request and status it may get. */
static void both_behind(int source, int known)
{
    MPI_Request r[2], both;
    expect_call("MPI_Isend");
    expect_call("MPI_Irecv");
    expect_message("request", "send", WORLD, 8, to, 97);
    expect_message("request", "recv", WORLD, 8, from, 97);
    MPI_Isend(in, 1, MPI_DOUBLE, to, 97, world, &r[0]);
    MPI_Irecv(out, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 97, world, &r[1]);
    wait_for(&r[0]);
    wait_for(&r[1]);
    expect_call("MPI_Isendrecv");
    expect_message("request", "send_recv", WORLD, 16, to, 97);
    expect_message("request", "recv", WORLD, 16, known, 97);
    MPI_Isendrecv(in, 2, MPI_DOUBLE, to, 97, out, 2, MPI_DOUBLE, source, 97, world, &both);
    wait_for(&both);
}

static void both_later(void)
{
    MPI_Request r;
    MPI_Status s;
    expect_call("MPI_Isendrecv");
    expect_message("request", "send_recv", WORLD, 16, to, 95);
    expect_message("request", "recv", WORLD, 16, from, 95);
    result_status("MPI_Isendrecv", MPI_Isendrecv(in, 2, MPI_DOUBLE, to, 95, out, 2, MPI_DOUBLE,
                                                 from, 95, world, &r));
    wait_for(&r); /* whose status MPICH 4.0 leaves as it was */
    said("MPI_Isendrecv", NULL);
    expect_call("MPI_Isendrecv_replace");
    expect_message("request", "send", WORLD, 32, to, 96);
    MPI_Isendrecv_replace(out, 4, MPI_DOUBLE, to, 96, MPI_PROC_NULL, 96, world, &r);
    wait_for(&r);
    expect_message("MPI_Recv", "recv", WORLD, 32, from, 96);
    MPI_Recv(out, 4, MPI_DOUBLE, from, 96, world, &s);
    said("MPI_Isendrecv_replace", &s);
    both_behind(from, from);
    both_behind(MPI_ANY_SOURCE, IS_TOLD ? from : -1);
}
#else
static void both_later(void) {}
#endif

/* A border: the last rank has nobody on its right, the first nobody on its left. */
static void nobody(void)
{
    int right = rank == 3 ? MPI_PROC_NULL : to, left = rank == 0 ? MPI_PROC_NULL : from;
    MPI_Request r[2];
    MPI_Status s[2];
    if (rank == 3)
        expect_message("MPI_Sendrecv", "recv", WORLD, 16, left, 6);
    else
        expect_message("MPI_Sendrecv", rank == 0 ? "send" : "send_recv", WORLD, 16, right, 6);
    if (rank == 1 || rank == 2)
        expect_message("request", "recv", WORLD, 16, left, 6);
    MPI_Sendrecv(in, 2, MPI_DOUBLE, right, 6, out, 8, MPI_DOUBLE, left, 6, world, &s[0]);
    said("border", &s[0]);
    expect_call("MPI_Irecv");
    expect_call("MPI_Isend");
    if (rank != 0)
        expect_message("request", "recv", WORLD, 16, left, 7);
    if (rank != 3)
        expect_message("request", "send", WORLD, 16, right, 7);
    MPI_Irecv(out, 8, MPI_DOUBLE, left, 7, world, &r[0]);
    MPI_Isend(in, 2, MPI_DOUBLE, right, 7, world, &r[1]);
    expect_call("MPI_Waitall");
    MPI_Waitall(2, r, s);
    said("border", &s[0]);
    expect_call("MPI_Send");
    MPI_Send(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 8, world);
    expect_call("MPI_Wait");
    MPI_Request none = MPI_REQUEST_NULL;
    result_status("null", MPI_Wait(&none, &s[0]));
}

static void exchange(MPI_Request r[], int pairs, int tag)
{
    for (int i = 0; i < pairs; i++) {
        expect_call("MPI_Irecv");
        expect_message("request", "recv", WORLD, 8 * (1 + i % 3), from, tag + i);
        MPI_Irecv(&out[i % 20 * 3], 3, MPI_DOUBLE, from, tag + i, world, &r[2 * i]);
    }
    for (int i = 0; i < pairs; i++) {
        expect_call("MPI_Isend");
        expect_message("request", "send", WORLD, 8 * (1 + i % 3), to, tag + i);
        MPI_Isend(&in[i % 20], 1 + i % 3, MPI_DOUBLE, to, tag + i, world, &r[2 * i + 1]);
    }
}

/* Which one comes first is chance, so only that all have come is a result. */
static void any_and_some(void)
{
    MPI_Request r[8];
    int left = 8, index, done[8], n;
    exchange(r, 4, 10);
    for (; left; left--) {
        expect_call("MPI_Waitany");
        MPI_Waitany(8, r, &index, MPI_STATUS_IGNORE);
    }
    expect_call("MPI_Waitany");
    MPI_Waitany(8, r, &index, MPI_STATUS_IGNORE);
    result_number("undefined", index == MPI_UNDEFINED);
    said("any", NULL);
    exchange(r, 4, 20);
    for (left = 8; left; left -= n) {
        MPI_Status s[8];
        expect_call("MPI_Waitsome");
        MPI_Waitsome(8, r, &n, done, s);
    }
    said("some", NULL);
}

static void asking(void)
{
    MPI_Request r[8];
    int left = 8, flag = 0, index, done[8], n;
    exchange(r, 1, 30);
    for (int i = 0; i < 2; i++)
        for (flag = 0; !flag;) {
            expect_call("MPI_Test");
            MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE);
        }
    exchange(r, 4, 40);
    for (flag = 0; !flag;) {
        expect_call("MPI_Testall");
        MPI_Testall(8, r, &flag, MPI_STATUSES_IGNORE);
    }
    exchange(r, 4, 50);
    while (left) {
        expect_call("MPI_Testany");
        MPI_Testany(8, r, &index, &flag, MPI_STATUS_IGNORE);
        left -= flag && index != MPI_UNDEFINED;
    }
    exchange(r, 4, 60);
    for (left = 8; left; left -= n) {
        expect_call("MPI_Testsome");
        MPI_Testsome(8, r, &n, done, MPI_STATUSES_IGNORE);
    }
    said("asking", NULL);
}

/* More than fit without an allocation. */
static void many(void)
{
    static MPI_Request r[400];
    exchange(r, 200, 100);
    expect_call("MPI_Waitall");
    result_status("many", MPI_Waitall(400, r, MPI_STATUSES_IGNORE));
    said("many", NULL);
}

static void persistent(void)
{
    MPI_Request r[2];
    MPI_Recv_init(out, 64, MPI_DOUBLE, from, 70, world, &r[0]);
    MPI_Send_init(in, 6, MPI_DOUBLE, to, 70, world, &r[1]);
    for (int i = 0; i < 3; i++) {
        expect_call(i ? "MPI_Startall" : "MPI_Start");
        if (!i)
            expect_call("MPI_Start");
        expect_message("request", "recv", WORLD, 48, from, 70);
        expect_message("request", "send", WORLD, 48, to, 70);
        if (i)
            MPI_Startall(2, r);
        else
            result_status("start", MPI_Start(&r[0]) + MPI_Start(&r[1]));
        expect_call("MPI_Waitall");
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        said("persistent", NULL);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    result_number("freed", r[0] == MPI_REQUEST_NULL);
}

/* One that is cancelled has moved nothing; one that is given back is over. */
static void given_up(void)
{
    MPI_Request r;
    MPI_Status s;
    int cancelled = 0;
    expect_call("MPI_Irecv");
    expect_message("request", "recv", WORLD, 0, from, 90);
    MPI_Irecv(out, 8, MPI_DOUBLE, from, 90, world, &r);
    expect_call("MPI_Cancel");
    MPI_Cancel(&r);
    expect_call("MPI_Wait");
    MPI_Wait(&r, &s);
    MPI_Test_cancelled(&s, &cancelled);
    result_number("cancelled", cancelled);
    expect_call("MPI_Isend");
    expect_message("request", "send", WORLD, 8, to, 91);
    MPI_Isend(in, 1, MPI_DOUBLE, to, 91, world, &r);
    MPI_Request_free(&r);
    expect_message("MPI_Recv", "recv", WORLD, 8, from, 91);
    MPI_Recv(out, 1, MPI_DOUBLE, from, 91, world, &s);
    said("given up", &s);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    ledger_open(4);
    to = (rank + 1) % 4;
    from = (rank + 3) % 4;
    prepare();
    ways();
    receive();
    nobody();
    any_and_some();
    asking();
    many();
    persistent();
    given_up();
    matched();
    both_later();
    ledger_close();
    return MPI_Finalize();
}
