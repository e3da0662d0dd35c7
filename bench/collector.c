/* Does the collector keep up with a thread that records a region every 200 ns, and what does it
 * take of a processor, then and when there is nothing to do?
 *
 * In two situations, each several times, in turns, each time in a process of its own:
 *     apart   the recording thread has a processor of its own, the collector has the others
 *     shared  both are bound to one processor, which is the usual life of an MPI rank
 * What the rate was is said beside what was dropped: where the two share a processor, or others use
 * it, a region every 200 ns of the thread's time is fewer in a second. Each stall, in which regions
 * were dropped, is looked into: was the collector on a processor meanwhile, did it wait for one, or
 * was it neither (asleep, or the virtual machine's processor was not running).
 */
#include <pk/pk.h>

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/thread.h"

#include "harness.h"

enum { STALLS_SHOWN = 4 };
static const uint64_t APART_NS = 1000000; /* what is dropped later than this is another stall */

static pk_region one = PK_REGION("one");
static unsigned long ring; /* records; 0: as it is by default */

/* ---- what the collector did, as the kernel's scheduler says ---- */

typedef struct schedule {
    unsigned long ran, waited; /* ns, of all threads but this one */
} schedule;

static void add_thread(const char *tid, schedule *s)
{
    char path[64];
    unsigned long ran = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", tid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lu %lu", &ran, &waited) == 2) {
        s->ran += ran;
        s->waited += waited;
    }
    if (f)
        fclose(f);
}

static schedule look(void)
{
    schedule s = {0};
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != getpid()) /* ".." is this thread's */
            add_thread(e->d_name, &s);
    if (tasks)
        closedir(tasks);
    return s;
}

/* ---- stalls ---- */

typedef struct stall {
    uint64_t begun, last; /* its first and last drop, CLOCK_MONOTONIC */
    schedule before, after;
} stall;

static struct {
    uint64_t dropped;
    unsigned count;
    bool open;
    stall now, shown[STALLS_SHOWN]; /* the longest ones */
} stalls;

static uint64_t length_of(const stall *s)
{
    return s->last - s->begun;
}

static void end_stall(void)
{
    stall *least = &stalls.shown[0];
    stalls.open = false;
    stalls.now.after = look();
    for (unsigned i = 1; i < STALLS_SHOWN; i++)
        if (length_of(&stalls.shown[i]) < length_of(least))
            least = &stalls.shown[i];
    if (length_of(&stalls.now) >= length_of(least))
        *least = stalls.now;
}

/* Behind each region: a load and two tests. */
static void watch(uint64_t now)
{
    uint64_t dropped = pki_load(&pki_self->dropped);
    if (dropped == stalls.dropped) {
        if (stalls.open && now - stalls.now.last > APART_NS)
            end_stall();
        return;
    }
    stalls.dropped = dropped;
    if (!stalls.open) {
        stalls.open = true;
        stalls.count++;
        stalls.now = (stall){.begun = now, .before = look()};
    }
    stalls.now.last = now;
}

static void print_stalls(void)
{
    for (unsigned i = 0; i < STALLS_SHOWN && stalls.count; i++) {
        const stall *s = &stalls.shown[i];
        if (s->begun)
            printf(
                "    %s %u stalls: dropped for %6.2f ms; in these and the millisecond behind, the "
                "collector ran %6.2f ms and waited %6.2f ms for a processor\n",
                i ? "  of the" : "one of", stalls.count, (double)length_of(s) * 1e-6,
                (double)(s->after.ran - s->before.ran) * 1e-6,
                (double)(s->after.waited - s->before.waited) * 1e-6);
    }
}

/* One every so often, on average; what has not been recorded while the processor was somebody
 * else's is not made up for. */
static void record(uint64_t every, uint64_t until)
{
    uint64_t now = pki_monotonic_ns(), next = now;
    while (now < until) {
        next = now > next + every ? now + every : next + every;
        pk_region_begin(&one);
        pk_region_end(&one);
        watch(now);
        while ((now = pki_monotonic_ns()) < next)
            ;
    }
    if (stalls.open) /* while there is a collector to be looked at */
        end_stall();
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
    if (pk_start(pk_options(.trace_path = bench_scratch("collector.json"), .backends = "none",
                            .tuning = bench_tuning("ring_records=%u", (uint32_t)ring))) != PK_OK)
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
    double waited = (double)look().waited * 1e-9, kernel = collector_kernel_ns();
    record(every, wall + seconds * 1000000000u);
    uint64_t busy = collector_ns() - cpu;
    wall = bench_wall_ns() - wall;
    own = bench_thread_ns() - own;
    waited = (double)look().waited * 1e-9 - waited;
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
    print_stalls();
}

/* In a process of its own: affinities and what a session leaves are not the next one's. */
static void in_a_child(const char *name, bool shared, unsigned long seconds, uint64_t every)
{
    pid_t pid = bench_fork();
    if (pid == 0) {
        measure(name, shared, seconds, every);
        bench_leave(true);
    }
    bench_join(pid, name, NULL);
}

int main(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 5);
    unsigned long rounds = bench_number(argc, argv, "--rounds", 3);
    unsigned long every = bench_number(argc, argv, "--every", 200);
    ring = bench_number(argc, argv, "--ring", 0);
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
