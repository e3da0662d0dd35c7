/* comm_run.c - a session with communicators of a library that is not there: calls that block,
 * requests that overlap. Where its files go, the environment says. With "die" it kills itself at
 * the end, with "hang" and "long" amid operations, at once or after a while. */
#include <pk/pk.h>

#include <signal.h>
#include <string.h>
#include <time.h>

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward \"quoted\"");
static pk_region reduce = PK_REGION_OF(PK_COMM, "ring all-reduce");
static pk_region gather = PK_REGION_OF(PK_COMM, "ring all-gather");

static volatile unsigned sink;

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i;
}

static void blocking(pk_comm *world, unsigned i)
{
    pk_region_begin(&reduce);
    pk_comm_call(&reduce, world, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 64u << i % 4, -1);
    work(100u << i % 4);
    pk_region_end(&reduce);
    pk_region_begin(&gather);
    pk_comm_call(&gather, world, PK_OP_ALL_GATHER, PK_TYPE_BYTE, 1000, -1);
    work(200);
    pk_region_end(&gather);
}

/* The second one ends first. */
static void overlapping(pk_comm *row)
{
    pk_comm_request a = pk_comm_start(row, PK_OP_SEND, PK_TYPE_FLOAT64, 10, 1);
    pk_comm_request b = pk_comm_start(row, PK_OP_RECV, PK_TYPE_FLOAT64, 20, 1);
    work(500);
    pk_comm_finish(&b, 0);
    work(100);
    pk_comm_finish(&a, 123);
}

/* Some that never end: a call that does not come back, requests of which only the second does. */
static void hang(pk_comm *world, pk_comm *row, const char *how)
{
    pk_comm_request never = pk_comm_start(row, PK_OP_SEND, PK_TYPE_FLOAT64, 10, 1);
    pk_comm_request done = pk_comm_start(row, PK_OP_RECV, PK_TYPE_FLOAT64, 20, 1);
    pk_comm_request other = pk_comm_start(row, PK_OP_RECV, PK_TYPE_FLOAT64, 20, 1);
    (void)never;
    (void)other;
    pk_comm_finish(&done, 0);
    pk_region_begin(&reduce);
    pk_comm_call(&reduce, world, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 64, -1);
    pk_flush();
    for (int i = 0; strcmp(how, "long") == 0 && i < 2; i++) {
        nanosleep(&(struct timespec){1, 200000000}, NULL);
        pk_flush();
    }
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    if (pk_start(NULL) != PK_OK)
        return 1;
    pk_comm *world = pk_comm_create("ring", "world", 0, 2, 4);
    pk_comm *row = pk_comm_create("ring", "row \"0\"", 0xFEDCBA9876543210, 0, 2);
    for (unsigned i = 0; i < 40; i++) {
        PK_SCOPE(backward) {
            blocking(world, i);
            overlapping(row);
        }
        pk_step(1);
    }
    pk_flush();
    if (argc > 1 && strcmp(argv[1], "die") != 0)
        hang(world, row, argv[1]);
    if (argc > 1)
        raise(SIGKILL);
    return pk_stop() != PK_OK;
}
