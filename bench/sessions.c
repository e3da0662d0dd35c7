/* bench/sessions.c - a session, from its start to its end:
 *     bench-sessions session | absent | clock | calm | memory
 */
#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/record.h"
#include "harness.h"
#include "session/session.h"

/* ---- session: how long pk_start and pk_stop take, on the wall and of the processor ---- */

enum { REPETITIONS = 31, REGIONS = 10000 };

static pk_region one = PK_REGION("one");

typedef struct times {
    double start_wall[REPETITIONS], start_cpu[REPETITIONS];
    double stop_wall[REPETITIONS], stop_cpu[REPETITIONS];
} times;

static void record(void)
{
    for (int i = 0; i < REGIONS; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void once(const pk_options *options, times *t, int i)
{
    uint64_t wall = bench_wall_ns(), cpu = bench_process_ns();
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
    t->start_wall[i] = (double)(bench_wall_ns() - wall) * 1e-6;
    t->start_cpu[i] = (double)(bench_process_ns() - cpu) * 1e-6;
    record();
    wall = bench_wall_ns();
    cpu = bench_process_ns();
    if (pk_stop() != PK_OK)
        bench_fail(pk_error_message());
    t->stop_wall[i] = (double)(bench_wall_ns() - wall) * 1e-6;
    t->stop_cpu[i] = (double)(bench_process_ns() - cpu) * 1e-6;
}

static void measure(const char *title, const pk_options *options)
{
    static times t;
    for (int i = 0; i < REPETITIONS; i++)
        once(options, &t, i);
    printf("%-38s %10s %10s\n", title, "ms", "ms of CPU");
    printf("  %-36s %10.2f %10.2f\n", "pk_start", bench_quantile(t.start_wall, REPETITIONS, 0.5),
           bench_quantile(t.start_cpu, REPETITIONS, 0.5));
    printf("  %-36s %10.2f %10.2f\n\n", "pk_stop, 10,000 regions recorded",
           bench_quantile(t.stop_wall, REPETITIONS, 0.5),
           bench_quantile(t.stop_cpu, REPETITIONS, 0.5));
}

static int session_bench(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char trace[512];
    snprintf(trace, sizeof trace, "%s", bench_scratch("session.json"));
    measure("statistics only", NULL);
    measure("with a trace", pk_options(.trace_path = trace));
    measure("with a trace and a JSON report",
            pk_options(.trace_path = trace, .report_path = bench_scratch("report.json")));
    return 0;
}

/* ---- absent: what finding out costs that there is no GPU ---- */

/* From pk_start to pk_stop, in a process of its own each time, with no backend, with single ones
 * and with all of them, in turns.
 *
 * On a machine with a GPU it is what a session costs there. */

enum { ROUNDS = 41 };

static const char *const lists[] = {"none", "cuda", "nvml", "cuda,cupti,nvtx,nccl,nvml"};
enum { LISTS = sizeof lists / sizeof *lists };

/* In the process of its own: one session, its nanoseconds printed. */
static int once_of(const char *backends)
{
    uint64_t begun = bench_wall_ns();
    if (pk_start(pk_options(.backends = backends)) != PK_OK || pk_stop() != PK_OK)
        bench_fail(pk_error_message());
    printf("%llu\n", (unsigned long long)(bench_wall_ns() - begun));
    return 0;
}

static double in_a_process(const char *backends)
{
    char program[1024], command[1200], line[64] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        bench_fail("/proc/self/exe");
    program[n] = 0;
    snprintf(command, sizeof command, "'%s' absent %s", program, backends);
    FILE *output = popen(command, "r");
    if (!output || !fgets(line, sizeof line, output) || pclose(output) != 0)
        bench_fail(command);
    return strtod(line, NULL) * 1e-6;
}

static void show_status(const char *name)
{
    pk_backend_info info = {.size = sizeof info};
    pk_backend_status(name, &info);
    printf("  %-8s %s %s\n", name, info.live ? "on" : "off:", info.reason);
}

static int absent_bench(int argc, char **argv)
{
    static double ms[LISTS][ROUNDS], more[LISTS][ROUNDS];
    if (argc == 2)
        return once_of(argv[1]);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < LISTS; i++) {
            ms[i][round] = in_a_process(lists[i]);
            more[i][round] = ms[i][round] - ms[0][round];
        }
    printf("%-38s %10s %10s %10s\n", "pk_start to pk_stop, once in a process", "ms", "more", "p90");
    for (int i = 0; i < LISTS; i++)
        printf("  backends %-27s %10.2f %10.2f %10.2f\n", lists[i],
               bench_quantile(ms[i], ROUNDS, 0.5), bench_quantile(more[i], ROUNDS, 0.5),
               bench_quantile(more[i], ROUNDS, 0.9));
    printf("\n");
    show_status("cuda");
    show_status("cupti");
    show_status("nvml");
    return 0;
}

/* ---- clock: how far a trace's clock is from CLOCK_MONOTONIC ---- */

/* While the session runs, read from both at once. */

enum { EVERY_MS = 10 };

typedef struct worst {
    double error, bracket;
} worst;

/* In ns; the bracket is how well both clocks could be read together. */
static void look(const pki_clock_map *map, worst *w)
{
    pki_clock_sample now = pki_clock_read(map->monotonic);
    double error = (double)pki_clock_ns(map, now.ticks) - (double)(now.ns - map->origin_ns);
    if (fabs(error) > w->error)
        w->error = fabs(error);
    w->bracket = (double)now.uncertainty * pki_clock_unit_ns(map);
}

static void watch(const pki_clock_map *map, uint64_t until, worst *w)
{
    const struct timespec pause = {0, EVERY_MS * 1000000};
    while (pki_monotonic_ns() < until) {
        look(map, w);
        nanosleep(&pause, NULL);
    }
}

static void print(const char *when, double seconds, const worst *w)
{
    printf("  %-36s %8.0f ns   bar %6.0f ns   (read to +-%.0f ns)\n", when, w->error,
           1000 + seconds * 1000, w->bracket);
}

static int clock_bench(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 10);
    worst early = {0, 0}, late = {0, 0}, end = {0, 0};
    if (pk_start(NULL) != PK_OK)
        bench_fail(pk_error_message());
    const pki_clock_map *map = &pki_the_session.arena->header->clock;
    uint64_t start = pki_monotonic_ns();
    watch(map, start + 1000000000, &early);
    watch(map, start + seconds * 1000000000u, &late);
    look(map, &end);
    printf("largest error of the clock\n");
    print("in the first second", 1, &early);
    print("after that", (double)seconds, &late);
    print("at the end", (double)seconds, &end);
    printf("  %-36s %8.3f ppm, %u segments, step %llu ticks\n", "rate against the first estimate",
           pki_clock_ppm(map), map->count, (unsigned long long)map->step_ticks);
    return pk_stop() == PK_OK ? 0 : 1;
}

/* ---- calm: how often the watchdog raises an alarm in a run that never hangs ---- */

/* Steps of 100 ms, one of 20 times as long for a compiler, announced by a limit, and checkpoints of
 * 30 times as long, in a region of kind PK_IO, with hang_seconds = 1, which all of these exceed.
 *
 *     bench-sessions calm [--minutes N]
 *
 * N: 60. Prints the number of steps, checkpoints and alarms. Steps wait rather than compute, so
 * the run can share its machine with any other: being held up for a second is no hang either. */

enum { STEP_MS = 100, COMPILE_AT = 10, CHECKPOINT_EACH = 50, MINUTES = 60 };

static pk_region load = PK_REGION_OF(PK_DATA, "load"), forward = PK_REGION("forward");
static pk_region compile = PK_REGION("compile"), checkpoint = PK_REGION_OF(PK_IO, "checkpoint");
static unsigned alarms;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    puts(message);
    if (level == PK_LOG_ERROR)
        __atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void one_step(unsigned long step)
{
    {
        PK_REGION_SCOPE(load);
        wait_ms(STEP_MS / 5);
    }
    {
        PK_REGION_SCOPE(forward);
        wait_ms(STEP_MS - STEP_MS / 5);
    }
    if (step == COMPILE_AT) {
        PK_REGION_SCOPE(compile);
        wait_ms(20 * STEP_MS);
    }
    if (step % CHECKPOINT_EACH == 0) {
        PK_REGION_SCOPE(checkpoint);
        wait_ms(30 * STEP_MS);
    }
    pk_step(1);
}

static int calm_bench(int argc, char **argv)
{
    uint64_t until =
        bench_wall_ns() + bench_number(argc, argv, "--minutes", MINUTES) * UINT64_C(60000000000);
    unsigned long step = 0;
    if (pk_start(pk_options(.hang_seconds = 1, .log = hear, .backends = "none")) != PK_OK)
        return 1;
    pk_region_set_limit(&compile, 60);
    while (bench_wall_ns() < until)
        one_step(++step);
    printf("%lu steps, %lu checkpoints: %u alarms\n", step, step / CHECKPOINT_EACH, alarms);
    return pk_stop() != PK_OK;
}

/* ---- memory: what recording takes of it ---- */

/* 200 regions on each of 128 threads, durations over four octaves. Once as always, once with a
 * report that lists every thread's regions, which keeps a distribution of each. */

enum { THREADS = 128, MEMORY_REGIONS = 200, OCTAVES = 4, RING_RECORDS = 65536 };

static pk_region *regions[MEMORY_REGIONS];
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
        for (unsigned i = 0; i < MEMORY_REGIONS; i++) {
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

static void memory_print(const char *title, uint64_t resident)
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
           THREADS * MEMORY_REGIONS * OCTAVES);
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
    memory_print(title, resident_bytes() - before);
    pthread_barrier_wait(&leave);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pk_stop();
}

/* In a process of its own: what one session leaves resident is not the next one's. */
static void memory_measure(const char *title, const pk_options *options)
{
    pid_t pid = bench_fork();
    if (pid == 0) {
        run(title, options);
        bench_leave(true);
    }
    bench_join(pid, title, NULL);
}

static int memory_bench(int argc, char **argv)
{
    (void)argc, (void)argv;
    char name[32];
    for (int i = 0; i < MEMORY_REGIONS; i++) {
        snprintf(name, sizeof name, "region %d", i);
        regions[i] = pk_region_named(name);
    }
    printf("%d regions on %d threads, durations over %d octaves\n\n", MEMORY_REGIONS, THREADS,
           OCTAVES);
    fflush(stdout);
    memory_measure("statistics and trace",
                   pk_options(.trace_path = bench_scratch("memory.json"),
                              .tuning = bench_tuning("ring_records=%u", RING_RECORDS)));
    memory_measure(
        "and every thread's own, for the report",
        pk_options(.trace_path = bench_scratch("memory.json"),
                   .tuning = bench_tuning("ring_records=%u,report_threads=1", RING_RECORDS)));
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {{"session", session_bench},
                                             {"absent", absent_bench},
                                             {"clock", clock_bench},
                                             {"calm", calm_bench},
                                             {"memory", memory_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
