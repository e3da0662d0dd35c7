/* Programs that are measured: what the tests of pk's commands look at. Where their files go, the
 * environment says. */
#include <pk/comm.h>
#include <pk/pk.h>
#include <pk/span.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- capture ---- */

/* A rank that makes steps of some milliseconds until it is told to end: capture MILLISECONDS.
 * "ready" on stdout once it has made the first ones; it ends when stdin does. */

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

static int is_over(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

static int run_capture(int argc, char **argv)
{
    useconds_t pause = (useconds_t)(argc > 1 ? atoi(argv[1]) : 5) * 1000;
    if (pk_start(NULL) != PK_OK) {
        fprintf(stderr, "%s\n", pk_error_message());
        return 1;
    }
    for (unsigned long n = 0; !is_over(); n++) {
        {
            PK_REGION_SCOPE(work);
            usleep(pause);
        }
        pk_step(1);
        if (n == 20) {
            puts("ready");
            fflush(stdout);
        }
    }
    return pk_stop() != PK_OK;
}

/* ---- ab ---- */

/* 20 steps, of which one region always takes 300 us and the other so many: ab MICROSECONDS. */

static pk_region ab_fixed = PK_REGION_OF(PK_COMPUTE, "fixed");
static pk_region ab_changed = PK_REGION_OF(PK_COMPUTE, "changed");

static int run_ab(int argc, char **argv)
{
    useconds_t pause = argc > 1 ? (useconds_t)atoi(argv[1]) : 300;
    if (pk_start(NULL) != PK_OK)
        return 1;
    for (int i = 0; i < 20; i++) {
        pk_region_begin(&ab_fixed);
        usleep(300);
        pk_region_next(&ab_fixed, &ab_changed);
        usleep(pause);
        pk_region_end(&ab_changed);
        pk_step(1);
    }
    return pk_stop() != PK_OK;
}

/* ---- comm ---- */

/* A session with communicators of a library that is not there: calls that block, requests that
 * overlap. Where its files go, the environment says. With "die" it kills itself at the end, with
 * "hang" and "long" amid operations, at once or after a while. */

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward \"quoted\"");
static pk_region reduce = PK_REGION_OF(PK_COMM, "ring all-reduce");
static pk_region gather = PK_REGION_OF(PK_COMM, "ring all-gather");

static volatile unsigned sink;

static void comm_work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i;
}

static void blocking(pk_comm *world, unsigned i)
{
    pk_region_begin(&reduce);
    pk_comm_call(&reduce, world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 64u << i % 4, -1);
    comm_work(100u << i % 4);
    pk_region_end(&reduce);
    pk_region_begin(&gather);
    pk_comm_call(&gather, world, PK_COMM_OP_ALL_GATHER, PK_COMM_TYPE_BYTE, 1000, -1);
    comm_work(200);
    pk_region_end(&gather);
}

/* The second one ends first. */
static void overlapping(pk_comm *row)
{
    pk_comm_request a = pk_comm_start(row, PK_COMM_OP_SEND, PK_COMM_TYPE_FLOAT64, 10, 1);
    pk_comm_request b = pk_comm_start(row, PK_COMM_OP_RECV, PK_COMM_TYPE_FLOAT64, 20, 1);
    comm_work(500);
    pk_comm_finish(&b, 0);
    comm_work(100);
    pk_comm_finish(&a, 123);
}

/* Some that never end: a call that does not come back, requests of which only the second does. */
static void hang(pk_comm *world, pk_comm *row, const char *how)
{
    pk_comm_request never = pk_comm_start(row, PK_COMM_OP_SEND, PK_COMM_TYPE_FLOAT64, 10, 1);
    pk_comm_request done = pk_comm_start(row, PK_COMM_OP_RECV, PK_COMM_TYPE_FLOAT64, 20, 1);
    pk_comm_request other = pk_comm_start(row, PK_COMM_OP_RECV, PK_COMM_TYPE_FLOAT64, 20, 1);
    (void)never;
    (void)other;
    pk_comm_finish(&done, 0);
    pk_region_begin(&reduce);
    pk_comm_call(&reduce, world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 64, -1);
    pk_flush();
    for (int i = 0; strcmp(how, "long") == 0 && i < 2; i++) {
        nanosleep(&(struct timespec){1, 200000000}, NULL);
        pk_flush();
    }
    raise(SIGKILL);
}

static int run_comm(int argc, char **argv)
{
    if (pk_start(NULL) != PK_OK)
        return 1;
    pk_comm *world = pk_comm_create("ring", "world", 0, 2, 4);
    pk_comm *row = pk_comm_create("ring", "row \"0\"", 0xFEDCBA9876543210, 0, 2);
    for (unsigned i = 0; i < 40; i++) {
        {
            PK_REGION_SCOPE(backward);
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

/* ---- exact ---- */

/* A second of regions inside each other on two threads, steps and a counter; trace and report as
 * the environment asks. */

#define RUN_NS 1000000000u /* long enough for the first corrections of the clock */

static pk_region exact_outer = PK_REGION("outer"), exact_inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region next = PK_REGION_OF(PK_IO, "next");

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void exact_work(unsigned n)
{
    for (volatile unsigned i = 0; i < n;)
        i = i + 1;
}

static void record(unsigned i)
{
    pk_region_begin(&exact_outer);
    exact_work(10 + i % 1000);
    pk_region_begin(&exact_inner);
    exact_work(100 + i % 7 * 100);
    pk_region_next(&exact_inner, &next);
    exact_work(50);
    pk_region_end(&next);
    exact_work(20);
    pk_region_end(&exact_outer);
}

static void *record_for_a_while(void *steps)
{
    static pk_counter memory = PK_COUNTER("memory", "bytes");
    uint64_t until = now_ns() + RUN_NS;
    for (unsigned i = 0; now_ns() < until; i++) {
        for (unsigned k = 0; k < 20; k++)
            record(20 * i + k);
        if (steps) {
            pk_counter_set(&memory, i & 1 ? 8e10 + 1000 : 8e10 - 1000);
            if (i % 7 == 3)
                pk_step_kind(i % 2 ? "evaluation \"full\"" : "evaluation");
            pk_step(1);
        }
        nanosleep(&(struct timespec){0, 200000}, NULL);
        if (steps && i % 5 == 4)
            pk_step_begin();
    }
    return NULL;
}

static int run_exact(int argc, char **argv)
{
    (void)argc, (void)argv;
    pthread_t other;
    int steps;
    if (pk_start(NULL) || pthread_create(&other, NULL, record_for_a_while, NULL))
        return 1;
    record_for_a_while(&steps);
    pthread_join(other, NULL);
    return pk_stop() != PK_OK;
}

/* ---- hang ---- */

/* hang RANK SIZE MEETING VICTIM HOW STEP - one rank of a job whose steps end in a
 * collective; at that step the victim is stopped, spins, blocks in a read, or is gone. HOW "comm"
 * or "plain" in front of it: with a communicator, or with regions alone. MEETING: a file that the
 * ranks share. */

#define RANKS_MOST 256

static pk_region load = PK_REGION_OF(PK_DATA, "load"),
                 forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region hang_reduce = PK_REGION_OF(PK_COMM, "all-reduce");
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

static void hang_hang(const char *how)
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
    {
        PK_REGION_SCOPE(load);
        if (how && strcmp(how, "blocked") == 0)
            block();
        sleep_us(200);
    }
    {
        PK_REGION_SCOPE(forward);
        if (how)
            hang_hang(how);
        sleep_us(600);
        PK_REGION_SCOPE(odd);
        sleep_us(200);
    }
    {
        PK_REGION_SCOPE(hang_reduce);
        if (world)
            pk_comm_call(&hang_reduce, world, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 1000,
                         -1);
        meet(step);
    }
    if (step % 50 == 0) {
        PK_REGION_SCOPE(checkpoint);
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

static int run_hang(int argc, char **argv)
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
    pk_thread_set_name("trainer");
    pk_comm *world = plain ? NULL : pk_comm_create("test", "world", 0, rank, size);
    for (unsigned step = 1; step <= at + 100000; step++) {
        if (step == at && rank == 0)
            puts("there"), fflush(stdout);
        one_step(step, rank == victim && step == at ? how : NULL, world);
    }
    return pk_stop() != PK_OK;
}

/* ---- rotate ---- */

/* rotate STEPS - a program whose trace is cut into several files: a region around
 * everything, a second thread, so many steps of ten regions each. 0: until it is killed; it says
 * when it has begun. */

static pk_region rotate_all = PK_REGION("all"), rotate_work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_region aside = PK_REGION_OF(PK_IO, "aside");
static pk_counter level = PK_COUNTER("level", "things");
static volatile int over;

static void *beside(void *unused)
{
    (void)unused;
    while (!over) {
        pk_region_begin(&aside);
        pk_region_end(&aside);
        usleep(2000);
    }
    return NULL;
}

static void rotate_one_step(long i)
{
    for (int n = 0; n < 10; n++) {
        pk_region_begin(&rotate_work);
        pk_region_end(&rotate_work);
    }
    pk_counter_set(&level, (double)(i % 10));
    pk_step(1);
}

static int run_rotate(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 0;
    pthread_t thread;
    if (pk_start(NULL) != PK_OK)
        return 1;
    alarm(300); /* should nobody kill it */
    if (pthread_create(&thread, NULL, beside, NULL) != 0)
        return 1;
    pk_region_begin(&rotate_all);
    puts("under way");
    fflush(stdout);
    for (long i = 0; !steps || i < steps; i++) {
        rotate_one_step(i);
        if (i % 500 == 499)
            pk_flush(); /* so that no ring is ever full, on whatever machine */
    }
    pk_region_end(&rotate_all);
    over = 1;
    pthread_join(thread, NULL);
    return pk_stop() == PK_OK ? 0 : 2;
}

/* ---- spans ---- */

/* A program with spans, for spans.py: `spans run|killed`. Options come from the environment. */

enum { STEPS = 40, EACH = 5 };

static pk_region request = PK_REGION_OF(PK_COMM, "request"), queued = PK_REGION("queued");
static pk_region spans_work = PK_REGION_OF(PK_COMPUTE, "work"),
                 session = PK_REGION("user \"session\"");

static void spend(void)
{
    const struct timespec some = {0, 200000};
    nanosleep(&some, NULL);
}

static void *end_all(void *argument)
{
    pk_span *spans = argument;
    for (int i = 0; i < EACH; i++) {
        pk_span_mark(&spans[i], &queued);
        pk_span_end(&spans[i]);
    }
    return NULL;
}

static int step(uint64_t n)
{
    pk_span spans[EACH];
    pthread_t thread;
    for (uint64_t i = 0; i < EACH; i++)
        spans[i] = pk_span_begin(&request, n * EACH + i);
    pk_region_begin(&spans_work);
    spend();
    pk_region_end(&spans_work);
    if (pthread_create(&thread, NULL, end_all, spans))
        return 1;
    return pthread_join(thread, NULL);
}

static int run_spans(int argc, char **argv)
{
    int failed = argc != 2 || pk_start(NULL) != PK_OK;
    pk_span all = pk_span_begin(&session, UINT64_MAX); /* open to the end */
    for (uint64_t n = 0; n < STEPS && !failed; n++) {
        failed = step(n);
        pk_step(1);
    }
    if (argc == 2 && strcmp(argv[1], "killed") == 0)
        raise(SIGKILL);
    pk_span copy = all;
    if (argc == 2 && strcmp(argv[1], "twice") == 0) {
        pk_span_end(&all);
        pk_span_end(&copy);
    }
    return failed || pk_stop() != PK_OK;
}

/* ---- victim ---- */

/* A program that records, says so, and goes on until it is killed. */

/* As a backup does: of the locks that a process has as such, none is left after it. */
static void read_arena(void)
{
    char path[4096], byte;
    const char *apart = getenv("PK_ARENA_PATH"), *trace = getenv("PK_TRACE_PATH");
    snprintf(path, sizeof path, "%s%s", apart ? apart : trace, apart ? "" : ".arena");
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, &byte, 1) != 1)
        _exit(1);
    close(fd);
}

static int run_victim(int argc, char **argv)
{
    (void)argc, (void)argv;
    static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_WAIT, "inner");
    if (pk_start(NULL) != PK_OK)
        return 1;
    alarm(240); /* should nobody kill it */
    for (int i = 0; i < 500; i++) {
        {
            PK_REGION_SCOPE_NAMED("done");
            pk_region_mark(pk_region_variant(&outer, "i", i % 5));
        }
        pk_step(1);
    }
    pk_flush();
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    read_arena();
    puts("under way");
    fflush(stdout);
    for (;;)
        pause();
}

/* ---- windows ---- */

/* windows STEPS [kill|full|slow] - a loop of so many steps with regions inside each other, a
 * counter and a second thread that records more than its ring holds; what is written the
 * environment says. With "kill" the process ends as by somebody else's hand; with "full" no file
 * may grow any more once half of the steps are done; with "slow" a step takes a millisecond more.
 */

static pk_region windows_forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region windows_reduce = PK_REGION_OF(PK_COMM, "reduce \"all\"");
static pk_region windows_load = PK_REGION_OF(PK_DATA, "load");
static pk_region flood = PK_REGION("flood");
static pk_counter windows_level = PK_COUNTER("level", "m");

/* The same in each run. */
static unsigned next_random(void)
{
    static unsigned state = 12345;
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

static void windows_work(unsigned n)
{
    for (volatile unsigned i = 0; i < n;)
        i = i + 1;
}

/* Faster than anybody could take it. */
static void *overflow(void *unused)
{
    for (int i = 0; i < 60000; i++) {
        pk_region_begin(&flood);
        pk_region_end(&flood);
    }
    return unused;
}

static void windows_step(unsigned i)
{
    pk_region_begin(&windows_load);
    windows_work(next_random() % 500);
    pk_region_end(&windows_load);
    pk_region_begin(&windows_forward);
    windows_work(next_random() % 3000);
    pk_region_begin(&windows_reduce);
    pk_region_add(&windows_reduce, next_random(), 7);
    windows_work(next_random() % 300);
    pk_region_end(&windows_reduce);
    pk_region_end(&windows_forward);
    if (i % 1000 == 999) {
        pk_region_begin(pk_region_variant(&windows_load, "i", i / 1000));
        windows_work(20000);
        pk_region_end(pk_region_variant(&windows_load, "i", i / 1000));
    }
    if (i % 100 == 50) {
        pk_step_kind("evaluation");
        windows_work(1000);
    }
    pk_counter_set(&windows_level, next_random() / 7.0 - 2000);
    pk_step(32);
    if (i % 200 == 100)
        pk_step_begin();
}

static void fill_disk(void)
{
    struct rlimit limit = {1000, 1000};
    pk_flush();
    setrlimit(RLIMIT_FSIZE, &limit);
}

static int run_windows(int argc, char **argv)
{
    pthread_t other;
    unsigned steps = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    if (pk_start(NULL) != PK_OK || pthread_create(&other, NULL, overflow, NULL)) {
        fprintf(stderr, "%s\n", pk_error_message());
        return 1;
    }
    for (unsigned i = 0; i < steps; i++) {
        if (argc > 2 && strcmp(argv[2], "full") == 0 && i == steps / 2)
            fill_disk();
        if (argc > 2 && strcmp(argv[2], "slow") == 0)
            usleep(1000);
        windows_step(i);
    }
    pthread_join(other, NULL);
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        pk_flush();
        kill(getpid(), SIGKILL);
    }
    if (pk_stop() == PK_OK)
        return 0;
    fprintf(stderr, "%s\n", pk_error_message());
    return 3;
}

/* runs NAME ARGUMENT...: one of these. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"ab", run_ab},       {"capture", run_capture}, {"comm", run_comm},
        {"exact", run_exact}, {"hang", run_hang},       {"rotate", run_rotate},
        {"spans", run_spans}, {"victim", run_victim},   {"windows", run_windows},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
