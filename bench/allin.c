/* What a region costs all in: CPU time of the whole process, its threads and the writing included.
 *
 *     bench-allin [--turns N] [--millions N] [--every NS] [--compressed 1]
 *
 * In turns, each in a process of its own: perfkit is off; with statistics; with a history; with a
 * trace; if asked, with one that is compressed. A turn makes N million calls (2) of eight regions,
 * with about NS nanoseconds of work from one to the next (500: two million a second), and a step
 * each thousand. The first row runs the very instructions of the others, its calls included, which
 * are a load and a branch there (bench-off: 0.3 ns): the same work in a loop of its own was 30 ns
 * more where the compiler had placed it otherwise. All that the process takes from behind pk_start
 * to behind pk_stop is divided by the calls, and the row with perfkit off is taken off. Of the
 * rest, the program's own thread has the part that is not the collector's; of the collector's, a
 * part is the kernel's: the writing.
 *
 * Where there are two processors the program's thread has the last to itself. Medians over the
 * turns, and the quarter below and above of what is beyond the first row.
 */
#include <pk/pk.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

enum { TURNS_MOST = 200, REGIONS = 8, STEP = 1000, CALIBRATION = 1000000 };

static pk_region regions[REGIONS] = {
    PK_REGION("embed"), PK_REGION("attention"), PK_REGION("softmax"), PK_REGION("mlp"),
    PK_REGION("norm"),  PK_REGION("loss"),      PK_REGION("update"),  PK_REGION("copy")};
static uint64_t state = 88172645463325252u;

/* Each waits for the one before. */
static inline void chain(uint64_t n)
{
    uint64_t x = state;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ __volatile__("" : "+r"(x));
    }
    state = x;
}

static uint64_t chain_of(uint64_t ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = bench_thread_ns();
        chain(CALIBRATION);
        uint64_t took = bench_thread_ns() - before;
        best = took < best ? took : best;
    }
    return ns * CALIBRATION / (best ? best : 1);
}

static __attribute__((noinline)) void work(uint64_t calls, uint64_t links)
{
    for (uint64_t i = 0; i < calls; i++) {
        pk_region *r = &regions[i % REGIONS];
        pk_region_begin(r);
        chain(links / 2);
        pk_region_end(r);
        chain(links - links / 2);
        if (i % STEP == STEP - 1)
            pk_step(1);
    }
}

typedef struct turn {
    double own, beside, kernel; /* ns per call: this thread's, the others', of those the kernel's */
    double dropped;             /* share of the calls */
} turn;

enum { WITHOUT, STATISTICS, HISTORY, TRACE, COMPRESSED, WAYS };

static void start(int way)
{
    const pk_options *options[WAYS] = {
        [STATISTICS] = pk_options(.backends = "none"),
        [HISTORY] = pk_options(.backends = "none", .history_steps = 100),
        [TRACE] = pk_options(.backends = "none", .trace_path = bench_scratch("allin.json")),
    };
    static char path[512];
    snprintf(path, sizeof path, "%s", bench_scratch("allin.json.gz"));
    options[COMPRESSED] = pk_options(.backends = "none", .trace_path = path);
    if (way == TRACE)
        bench_scratch("allin.json");
    if (options[way] && pk_start(options[way]) != PK_OK)
        bench_fail(pk_error_message());
}

static double kernel_ns(int who)
{
    struct rusage used;
    if (getrusage(who, &used) != 0)
        bench_fail("getrusage");
    return (double)used.ru_stime.tv_sec * 1e9 + (double)used.ru_stime.tv_usec * 1e3;
}

/* The collector starts where it may, the rest runs on the last processor. */
static void start_apart(int way)
{
    cpu_set_t all, others;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        bench_fail("sched_getaffinity");
    others = all;
    size_t last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &all))
        last--;
    CPU_CLR(last, &others);
    if (CPU_COUNT(&all) > 1)
        sched_setaffinity(0, sizeof others, &others);
    start(way);
    sched_setaffinity(0, sizeof all, &all);
    bench_pin(0);
}

static turn measure(int way, uint64_t calls, uint64_t links)
{
    pk_counts counts = {.size = sizeof counts};
    start_apart(way);
    double all = (double)bench_process_ns(), own = (double)bench_thread_ns();
    double kernel = kernel_ns(RUSAGE_SELF) - kernel_ns(RUSAGE_THREAD);
    work(calls, links);
    if (way != WITHOUT && (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK))
        bench_fail(pk_error_message());
    kernel = kernel_ns(RUSAGE_SELF) - kernel_ns(RUSAGE_THREAD) - kernel;
    own = (double)bench_thread_ns() - own;
    all = (double)bench_process_ns() - all;
    double n = (double)calls;
    return (turn){own / n, (all - own) / n, kernel / n, (double)counts.dropped / n};
}

/* In a process of its own: what a session leaves is not the next one's. */
static turn in_a_child(int way, uint64_t calls, uint64_t links)
{
    turn t;
    int ends[2];
    if (pipe(ends) != 0)
        bench_fail("pipe");
    pid_t pid = bench_fork();
    if (pid == 0) {
        t = measure(way, calls, links);
        bench_leave(write(ends[1], &t, sizeof t) == sizeof t);
    }
    bench_join(pid, "a turn", NULL);
    if (read(ends[0], &t, sizeof t) != sizeof t)
        bench_fail("a turn");
    close(ends[0]);
    close(ends[1]);
    return t;
}

static double median_of(turn *turns, unsigned long n, const turn *without_it, int what, double q)
{
    double values[TURNS_MOST];
    for (unsigned long i = 0; i < n; i++) {
        double more = turns[i].own - without_it[i].own;
        values[i] = what == 0   ? more + turns[i].beside
                    : what == 1 ? more
                    : what == 2 ? turns[i].beside
                                : turns[i].kernel;
    }
    return bench_quantile(values, n, q);
}

int main(int argc, char **argv)
{
    static const char *const names[WAYS] = {"perfkit is off", "statistics", "history of 100 steps",
                                            "trace", "trace, compressed"};
    static turn turns[WAYS][TURNS_MOST];
    unsigned long n = bench_number(argc, argv, "--turns", 11), every;
    uint64_t calls = bench_number(argc, argv, "--millions", 2) * 1000000u;
    every = bench_number(argc, argv, "--every", 500);
    int ways = bench_number(argc, argv, "--compressed", 9) == 9 ? COMPRESSED : WAYS;
    uint64_t links = chain_of(every > 40 ? every - 20 : every);
    n = n < TURNS_MOST ? n : TURNS_MOST;
    for (unsigned long t = 0; t < n; t++)
        for (int way = 0; way < ways; way++)
            turns[way][t] = in_a_child(way, calls, links);
    printf(
        "CPU time per region of the whole process, ns; one each %lu ns, %.0f million a turn, %lu "
        "turns\n",
        every, (double)calls / 1e6, n);
    printf("%-24s %8s   %-16s %8s %10s %10s %9s\n", "", "all in", "quartiles", "program",
           "collector", "its kernel", "dropped");
    for (int way = WITHOUT + 1; way < ways; way++) {
        const turn *zero = turns[WITHOUT];
        printf("%-24s %8.1f   %6.1f .. %6.1f %8.1f %10.1f %10.1f %8.3f%%\n", names[way],
               median_of(turns[way], n, zero, 0, 0.5), median_of(turns[way], n, zero, 0, 0.25),
               median_of(turns[way], n, zero, 0, 0.75), median_of(turns[way], n, zero, 1, 0.5),
               median_of(turns[way], n, zero, 2, 0.5), median_of(turns[way], n, zero, 3, 0.5),
               100 * turns[way][n - 1].dropped);
    }
    return 0;
}
