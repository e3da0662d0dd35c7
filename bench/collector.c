/* Does the collector keep up with a thread that records a region every 200 ns, and what does it
 * take of a processor, then and when there is nothing to do?
 *
 * In two situations, each several times, in turns, each time in a process of its own:
 *     apart   the recording thread has a processor of its own, the collector has the others
 *     shared  both are bound to one processor, which is the usual life of an MPI rank
 * What the rate was is said beside what was dropped: where the two share a processor, or others use
 * it, a region every 200 ns of the thread's time is fewer in a second.
 */
#include <pk/pk.h>

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#include "harness.h"
#include "scratch.h"

static pk_region one = PK_REGION("one");

/* One every so often, on average; what has not been recorded while the processor was somebody
 * else's is not made up for. */
static void record(uint64_t every, uint64_t until)
{
    uint64_t now = pki_monotonic_ns(), next = now;
    while (now < until) {
        next = now > next + every ? now + every : next + every;
        pk_region_begin(&one);
        pk_region_end(&one);
        while ((now = pki_monotonic_ns()) < next)
            ;
    }
}

static void rest(unsigned long seconds)
{
    struct timespec t = {(time_t)seconds, 0};
    nanosleep(&t, NULL);
}

/* All that the process does besides this thread, the collector does. */
static uint64_t collector_ns(void)
{
    return bench_process_ns() - bench_thread_ns();
}

/* How long the collector could have run, but others did. */
static double waited_seconds(void)
{
    char path[64];
    double seconds = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        unsigned long ran = 0, waited = 0;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", e->d_name);
        bool other = e->d_name[0] != '.' && atoi(e->d_name) != getpid(); /* ".." is this thread's */
        FILE *f = other ? fopen(path, "r") : NULL;
        if (f && fscanf(f, "%lu %lu", &ran, &waited) == 2)
            seconds += (double)waited * 1e-9;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return seconds;
}

/* The threads that are created from here on get all processors but the last; the caller follows
 * with bench_pin. False if there is only one. */
static bool leave_the_last(void)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return false;
    size_t last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &all))
        last--;
    cpu_set_t others = all;
    CPU_CLR(last, &others);
    if (sched_setaffinity(0, sizeof others, &others) != 0)
        bench_fail("sched_setaffinity");
    return true;
}

/* bench_pin goes by what the thread may use. */
static void pin_to_the_last(const cpu_set_t *all)
{
    if (sched_setaffinity(0, sizeof *all, all) != 0)
        bench_fail("sched_setaffinity");
    bench_pin(0);
}

static void start(bool shared)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        bench_fail("sched_getaffinity");
    if (shared)
        bench_pin(0);
    else
        leave_the_last();
    if (pk_start(pk_options(.trace_path = bench_scratch("collector.json"), .backends = "none")) !=
        PK_OK)
        bench_fail(pk_error_message());
    if (!shared)
        pin_to_the_last(&all);
}

static double kernel_seconds(int who)
{
    struct rusage used;
    if (getrusage(who, &used) != 0)
        bench_fail("getrusage");
    return (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec * 1e-6;
}

/* What the collector spends in the kernel: the writing, above all. */
static double collector_kernel_ns(void)
{
    return (kernel_seconds(RUSAGE_SELF) - kernel_seconds(RUSAGE_THREAD)) * 1e9;
}

static double percent(uint64_t part, uint64_t whole)
{
    return (double)part * 100 / (double)whole;
}

static void measure(const char *name, bool shared, unsigned long seconds, uint64_t every)
{
    pk_counts counts = {.size = sizeof counts};
    start(shared);
    uint64_t wall = bench_wall_ns(), cpu = collector_ns();
    rest(1);
    double idle = percent(collector_ns() - cpu, bench_wall_ns() - wall);
    wall = bench_wall_ns();
    cpu = collector_ns();
    uint64_t own = bench_thread_ns();
    double waited = waited_seconds(), kernel = collector_kernel_ns();
    record(every, wall + seconds * 1000000000u);
    uint64_t busy = collector_ns() - cpu;
    wall = bench_wall_ns() - wall;
    own = bench_thread_ns() - own;
    waited = waited_seconds() - waited;
    kernel = collector_kernel_ns() - kernel;
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    double n = (double)counts.begun, recorded = (double)counts.recorded;
    printf(
        "  %-7s %6.2f M/s, one per %5.0f ns (%4.0f of its own time) %10llu dropped of %11llu;"
        " collector %5.1f ns per record, %5.1f of them the kernel's, %5.1f %% of a processor (idle %4.2f),"
        " waited %5.2f s\n",
        name, n * 1e3 / (double)wall, (double)wall / n, (double)own / n,
        (unsigned long long)counts.dropped, (unsigned long long)counts.begun,
        (double)busy / recorded, kernel / recorded, percent(busy, wall), idle, waited);
}

/* In a process of its own: affinities and what a session leaves are not the next one's. */
static void in_a_child(const char *name, bool shared, unsigned long seconds, uint64_t every)
{
    int status = 1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        measure(name, shared, seconds, every);
        fflush(stdout);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        bench_fail(name);
}

int main(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 5);
    unsigned long rounds = bench_number(argc, argv, "--rounds", 3);
    unsigned long every = bench_number(argc, argv, "--every", 200);
    cpu_set_t all;
    double load = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || getloadavg(&load, 1) != 1)
        bench_fail("what the machine is");
    printf("the collector, with a trace; a region every %lu ns for %lu s; load %.1f\n", every,
           seconds, load);
    for (unsigned long i = 0; i < rounds; i++) {
        if (CPU_COUNT(&all) > 1)
            in_a_child("apart", false, seconds, every);
        in_a_child("shared", true, seconds, every);
    }
    if (CPU_COUNT(&all) < 2)
        printf("  apart: only one processor\n");
    return 0;
}
