/* What recording takes of memory: 200 regions on each of 128 threads, durations over four octaves.
 * Once as always, once with a report that lists every thread's regions, which keeps a distribution
 * of each. */
#include <pk/pk.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/record.h"

#include "harness.h"

enum { THREADS = 128, REGIONS = 200, OCTAVES = 4, RING_RECORDS = 65536 };

static pk_region *regions[REGIONS];
static pthread_barrier_t recorded, leave;

/* From 0.2 us on, each time twice as long. */
static void spin(unsigned octave)
{
    uint64_t start = pki_monotonic_ns();
    while (pki_monotonic_ns() - start < (uint64_t)200 << octave)
        ;
}

static void *work(void *arg)
{
    for (unsigned octave = 0; octave < OCTAVES; octave++)
        for (unsigned i = 0; i < REGIONS; i++) {
            pk_region_begin(regions[i]);
            spin(octave);
            pk_region_end(regions[i]);
        }
    pthread_barrier_wait(&recorded);
    pthread_barrier_wait(&leave);
    return arg;
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
        bench_fail("/proc/self/statm");
    fclose(f);
    return (uint64_t)resident * 4096;
}

static void start_threads(pthread_t threads[THREADS])
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small, work, NULL) != 0)
            bench_fail("pthread_create");
    pthread_attr_destroy(&small);
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print(const char *title, uint64_t resident)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_flush() != PK_OK || pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    uint64_t rings = (uint64_t)THREADS * RING_RECORDS * sizeof(pki_record);
    printf("%s\n", title);
    printf("  %-44s %8.1f MiB\n", "in use (pk_counts.memory_bytes)", mib(counts.memory_bytes));
    printf("  %-44s %8.1f MiB\n", "of that, rings", mib(rings));
    printf("  %-44s %8.1f MiB\n", "beyond the rings", mib(counts.memory_bytes - rings));
    printf("  %-44s %8.1f MiB\n", "resident: rings count only where touched", mib(resident));
    printf("  %-44s %8llu of %u\n\n", "regions recorded", (unsigned long long)counts.recorded,
           THREADS * REGIONS * OCTAVES);
}

static void run(const char *title, const pk_options *options)
{
    pthread_t threads[THREADS];
    if (pthread_barrier_init(&recorded, NULL, THREADS + 1) ||
        pthread_barrier_init(&leave, NULL, THREADS + 1))
        bench_fail("pthread_barrier_init");
    uint64_t before = resident_bytes();
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
    start_threads(threads);
    pthread_barrier_wait(&recorded);
    print(title, resident_bytes() - before);
    pthread_barrier_wait(&leave);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pk_stop();
}

/* In a process of its own: what one session leaves resident is not the next one's. */
static void measure(const char *title, const pk_options *options)
{
    pid_t pid = bench_fork();
    if (pid == 0) {
        run(title, options);
        bench_leave(true);
    }
    bench_join(pid, title, NULL);
}

int main(void)
{
    char name[32];
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "region %d", i);
        regions[i] = pk_region_named(name);
    }
    printf("%d regions on %d threads, durations over %d octaves\n\n", REGIONS, THREADS, OCTAVES);
    fflush(stdout);
    measure("statistics and trace",
            pk_options(.trace_path = bench_scratch("memory.json"),
                       .tuning = bench_tuning("ring_records=%u", RING_RECORDS)));
    measure("and every thread's own, for the report",
            pk_options(.trace_path = bench_scratch("memory.json"),
                       .tuning = bench_tuning("ring_records=%u,report_threads=1", RING_RECORDS)));
    return 0;
}
