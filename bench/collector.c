/* Does the collector keep up with a thread that records a region every 200 ns, and what does it
 * take of a processor, then and when there is nothing to do? */
#include <pk/pk.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#include "harness.h"
#include "scratch.h"

enum { EVERY_NS = 200 };

static pk_region one = PK_REGION("one");

/* Never closer together than that, also after the processor was somebody else's for a while. */
static void record(uint64_t until)
{
    uint64_t now = pki_monotonic_ns();
    while (now < until) {
        uint64_t next = now + EVERY_NS;
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

static void print(const char *what, uint64_t collector_ns, uint64_t wall_ns)
{
    printf("  %-44s %8.3f s in %.1f s: %.2f %% of a processor\n", what, (double)collector_ns * 1e-9,
           (double)wall_ns * 1e-9, (double)collector_ns * 100 / (double)wall_ns);
}

/* All that the process does besides this thread, the collector does. */
static uint64_t collector_ns(void)
{
    return bench_process_ns() - bench_thread_ns();
}

/* How long the collector could have run, but other programs did. */
static double waited_seconds(void)
{
    char path[64];
    double seconds = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        unsigned long ran = 0, waited = 0;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", e->d_name);
        FILE *f = atoi(e->d_name) == getpid() ? NULL : fopen(path, "r");
        if (f && fscanf(f, "%lu %lu", &ran, &waited) == 2)
            seconds += (double)waited * 1e-9;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return seconds;
}

int main(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 5);
    pk_counts counts = {.size = sizeof counts};
    bench_pin(0);
    if (pk_start(pk_options(.trace_path = bench_scratch("collector.json"))) != PK_OK)
        bench_fail(pk_error_message());
    uint64_t wall = bench_wall_ns(), cpu = collector_ns();
    rest(seconds);
    printf("the collector\n");
    print("nothing recorded", collector_ns() - cpu, bench_wall_ns() - wall);
    wall = bench_wall_ns();
    cpu = collector_ns();
    double waited = waited_seconds();
    record(wall + seconds * 1000000000u);
    uint64_t busy = collector_ns() - cpu;
    wall = bench_wall_ns() - wall;
    waited = waited_seconds() - waited;
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    print("a region every 200 ns, with a trace", busy, wall);
    printf("  %-44s %8llu\n", "regions", (unsigned long long)counts.begun);
    printf("  %-44s %8.3f s\n", "waited for a processor", waited);
    printf("  %-44s %8.1f ns\n", "collector per region", (double)busy / (double)counts.recorded);
    printf("  %-44s %8llu\n", "dropped", (unsigned long long)counts.dropped);
    printf("  %-44s %8llu\n", "written", (unsigned long long)counts.written);
    return 0;
}
