/* bench/collect.c - the collector: does it keep up, whom does it disturb, how fast does it write:
 *     bench-collect collector | neighbour | writer
 */
#include <pk/pk.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/record.h"
#include "core/thread.h"
#include "harness.h"
#include "out/chrome/chrome.h"
#include "out/emit.h"
#include "out/file.h"

/* ---- collector: does it keep up with a thread that records a region every 200 ns? ---- */

/* And what does it take of a processor, then and when there is nothing to do?
 *
 * In two situations, each several times, in turns, each time in a process of its own:
 *     apart   the recording thread has a processor of its own, the collector has the others
 *     shared  both are bound to one processor, which is the usual life of an MPI rank
 * What the rate was is said beside what was dropped: where the two share a processor, or others use
 * it, a region every 200 ns of the thread's time is fewer in a second. Each stall, in which regions
 * were dropped, is looked into: was the collector on a processor meanwhile, did it wait for one, or
 * was it neither (asleep, or the virtual machine's processor was not running). */

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

static int collector_bench(int argc, char **argv)
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

/* ---- neighbour: what the collector does to a program that is bound to one processor ---- */

/* How much longer computations of 100 us take, at their median and at the rare ends, and what an
 * idle session takes.
 *
 *     bench-collect neighbour [--seconds N]
 *
 * In turns of a second: perfkit off; with its collector on the same processor; with it elsewhere.
 * Each computation records 100 regions, a million a second. Delays are the wall's, so what else
 * runs on that processor is in them: the row "off" says how much that is. */

enum { REGIONS = 100, SAMPLES_MOST = 4000000, TURNS_MOST = 600 };
#define TURN_NS UINT64_C(1000000000)

static pk_region part = PK_REGION("part");
static uint64_t spins; /* of one part, about 1 us */

typedef struct way {
    const char *name, *cpus;
    int off;
    double *samples;
    size_t count;
} way;

static void spin(uint64_t n)
{
    for (volatile uint64_t i = 0; i < n;)
        i = i + 1;
}

static void calibrate(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t before = bench_wall_ns();
        spin(10000);
        uint64_t took = bench_wall_ns() - before;
        best = took < best ? took : best;
    }
    spins = 10000 * 1000 / (best ? best : 1);
}

static double compute(void)
{
    uint64_t before = bench_wall_ns();
    for (int i = 0; i < REGIONS; i++) {
        pk_region_begin(&part);
        spin(spins);
        pk_region_end(&part);
    }
    return (double)(bench_wall_ns() - before) * 1e-3;
}

static void turn(way *w, const char *trace)
{
    if (!w->off &&
        pk_start(pk_options(.trace_path = trace, .backends = "none",
                            .tuning = bench_tuning("collector_cpus=%s", w->cpus ? w->cpus : ""))))
        bench_fail(pk_error_message());
    for (uint64_t until = bench_wall_ns() + TURN_NS; bench_wall_ns() < until;) {
        if (w->count < SAMPLES_MOST)
            w->samples[w->count++] = compute();
    }
    if (!w->off)
        pk_stop();
}

static void print(way *w)
{
    static const double shares[] = {0.5, 0.99, 0.999, 0.9999};
    printf("%-34s", w->name);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        printf(" %9.1f", bench_quantile(w->samples, w->count, shares[i]));
    printf(" %9zu\n", w->count);
}

/* CPU time of the whole process while it sleeps, as a share of one processor. */
static double idle(unsigned long seconds)
{
    if (pk_start(pk_options(.backends = "none")))
        bench_fail(pk_error_message());
    nanosleep(&(struct timespec){1, 0}, NULL); /* the clock's first corrections */
    uint64_t wall = bench_wall_ns(), cpu = bench_process_ns();
    nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    double share = (double)(bench_process_ns() - cpu) / (double)(bench_wall_ns() - wall);
    pk_stop();
    return share;
}

/* The first processor that is not this one's; NULL: there is none. */
static const char *elsewhere(void)
{
    static char text[16];
    cpu_set_t may;
    sched_getaffinity(0, sizeof may, &may);
    bench_pin(0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && cpu != (unsigned)sched_getcpu()) {
            snprintf(text, sizeof text, "%u", cpu);
            return text;
        }
    return NULL;
}

static int neighbour_bench(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 10);
    const char *other = elsewhere(), *trace = bench_scratch("neighbour.json");
    way ways[] = {{.name = "off", .off = 1},
                  {.name = "collector on the same processor"},
                  {.name = "collector on another one", .cpus = other}};
    size_t count = sizeof ways / sizeof *ways;
    calibrate();
    for (size_t i = 0; i < count; i++)
        if (!(ways[i].samples = malloc(SAMPLES_MOST * sizeof *ways[i].samples)))
            bench_fail("no memory");
    for (unsigned long s = 0; s < seconds && s < TURNS_MOST; s++)
        for (size_t i = 0; i < count; i++)
            if (!ways[i].cpus || other)
                turn(&ways[i], trace);
    printf("%-34s %9s %9s %9s %9s %9s\n", "a computation of 100 us, in us", "p50", "p99", "p99.9",
           "p99.99", "samples");
    for (size_t i = 0; i < count; i++)
        if (ways[i].count)
            print(&ways[i]);
    printf("nothing recorded: %.4f %% of one processor\n", 100 * idle(seconds));
    for (size_t i = 0; i < count; i++)
        free(ways[i].samples);
    return 0;
}

/* ---- writer: Chrome trace events written without perfkit, five fields each, for comparison ----
 */

/* Both return the bytes made of all records, so many times over. */

enum { BUFFER = 1 << 20, EVENT = 256 };

static const char *const by_hand_names[] = {"forward", "attention", "layer_norm", "mlp"};

/* Ticks are taken for nanoseconds: no clock is converted here. */
static char *put_event(char *p, const pki_record *r)
{
    const char *name = by_hand_names[pki_what_id(r->what) % 4];
    p = PKI_PUT(p, "{\"name\":\"");
    p = pki_put(p, name, strlen(name));
    p = PKI_PUT(p, "\",\"ph\":\"X\",\"pid\":4242,\"tid\":12345,\"ts\":");
    p = pki_put_us(p, r->start);
    p = PKI_PUT(p, ",\"dur\":");
    p = pki_put_us(p, r->value);
    return PKI_PUT(p, "},\n");
}

static void write_all(int fd, const char *data, size_t n)
{
    if (write(fd, data, n) != (ssize_t)n)
        bench_fail("write");
}

static uint64_t bench_write_bare(int fd, const pki_record *records, unsigned count, unsigned times)
{
    static char buffer[BUFFER];
    uint64_t bytes = 0;
    char *p = buffer;
    for (unsigned i = 0; i < count * times; i++) {
        if (buffer + BUFFER - p < EVENT) {
            write_all(fd, buffer, (size_t)(p - buffer));
            bytes += (uint64_t)(p - buffer);
            p = buffer;
        }
        p = put_event(p, &records[i % count]);
    }
    write_all(fd, buffer, (size_t)(p - buffer));
    return bytes + (uint64_t)(p - buffer);
}

static uint64_t bench_write_fprintf(int fd, const pki_record *records, unsigned count,
                                    unsigned times)
{
    uint64_t bytes = 0;
    FILE *f = fdopen(dup(fd), "w");
    if (!f)
        bench_fail("fdopen");
    for (unsigned i = 0; i < count * times; i++) {
        const pki_record *r = &records[i % count];
        int n = fprintf(
            f, "{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f},\n",
            by_hand_names[pki_what_id(r->what) % 4], 4242, 12345, (double)r->start / 1000,
            (double)r->value / 1000);
        bytes += (uint64_t)n;
    }
    if (fclose(f) != 0)
        bench_fail("fclose");
    return bytes;
}

/* ---- writer: how fast one core writes a trace ---- */

/* Perfkit's formatter and file, beside the two ways in which one would write the same events
 * by hand. Million events per second of CPU time, the kernel's included. */

enum { RING = 1 << 20, IN_RING = 1000000 };
enum {
    RECORDS = 65536,
    ROUNDS_OF_RING = 16,
    REPETITIONS = 9,
    WRITER_BUFFER = 1 << 20,
    TID = 12345
};

static pki_record writer_records[RECORDS];
static pki_clock_map map;
static char writer_buffer[WRITER_BUFFER];

static void fill(void)
{
    pki_clock_sample a = pki_clock_read(0), b = a;
    b.ticks += 2300000; /* 2.3 GHz, whatever this machine's is: the digits count */
    b.ns += 1000000;
    pki_clock_map_init(&map, 0, a, b);
    uint64_t at = a.ticks + 2300000000u;
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t ticks = 500 + i * 7919 % 20000;
        writer_records[i] =
            (pki_record){at, ticks, PKI_WHAT(1 + i % 64, PKI_RECORD_REGION, 1), ticks};
        at += ticks + 300;
    }
}

static pki_chrome_name name_of(void *user, uint32_t id)
{
    static const char *const names[] = {"forward", "attention", "layer_norm", "mlp"};
    const char *name = names[id % 4];
    (void)user;
    return (pki_chrome_name){name, "", (uint16_t)strlen(name), 0, PK_OTHER, 0};
}

/* Each way takes every record once and returns how many bytes it has made. */
typedef uint64_t writer_way(int fd);

static uint64_t with_perfkit(int fd)
{
    pki_chrome chrome;
    pki_trace_file file = PKI_TRACE_FILE_NONE;
    size_t used = 0;
    if (!pki_own_adopt(&file.own, fd))
        bench_fail("file");
    pki_chrome_init(&chrome, &map, 4242, name_of, NULL);
    for (unsigned i = 0; i < RECORDS * ROUNDS_OF_RING; i++) {
        const pki_record *r = &writer_records[i % RECORDS];
        if (WRITER_BUFFER - used < PKI_EVENT_BYTES) {
            if (!pki_trace_file_append(&file, writer_buffer, used, PKI_CHROME_TAIL,
                                       sizeof PKI_CHROME_TAIL - 1))
                bench_fail("write");
            used = 0;
        }
        used += pki_chrome_event(&chrome, writer_buffer + used, TID, r, r);
    }
    if (!pki_trace_file_append(&file, writer_buffer, used, PKI_CHROME_TAIL,
                               sizeof PKI_CHROME_TAIL - 1))
        bench_fail("write");
    pki_chrome_finish(&chrome);
    return file.end;
}

static uint64_t bare(int fd)
{
    return bench_write_bare(fd, writer_records, RECORDS, ROUNDS_OF_RING);
}

static uint64_t with_fprintf(int fd)
{
    return bench_write_fprintf(fd, writer_records, RECORDS, 1);
}

static double million_per_second(writer_way *write, unsigned events, const char *path,
                                 uint64_t *bytes)
{
    double rates[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
            bench_fail(path);
        uint64_t writer_start = bench_thread_ns();
        *bytes = write(fd);
        rates[i] = (double)events * 1e3 / (double)(bench_thread_ns() - writer_start);
        close(fd);
    }
    bench_scratch_empty();
    return bench_quantile(rates, REPETITIONS, 0.5);
}

static void line(const char *name, writer_way *write, unsigned events)
{
    uint64_t bytes;
    double null = million_per_second(write, events, "/dev/null", &bytes);
    double memory = million_per_second(write, events, bench_scratch("writer.json"), &bytes);
    printf("  %-36s %10.1f %10.1f %10.1f\n", name, null, memory, (double)bytes / events);
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    return counts;
}

static void fill_ring(pk_region *region)
{
    for (int n = 0; n < IN_RING; n++) {
        pk_region_begin(region);
        pk_region_end(region);
    }
}

static void writer_start(const pk_options *options)
{
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

/* The whole way: a full ring, folded, formatted and written by pk_flush on this thread. What the
 * collector has taken before is not counted. */
static void empty_full_rings(void)
{
    static pk_region attention = PK_REGION("attention");
    double rates[REPETITIONS];
    writer_start(pk_options(.trace_path = bench_scratch("writer.json"),
                            .tuning = bench_tuning("ring_records=%u", RING)));
    for (int i = 0; i < REPETITIONS; i++) {
        fill_ring(&attention);
        uint64_t before = counts_now().written, began = bench_thread_ns();
        pk_flush();
        uint64_t took = bench_thread_ns() - began;
        rates[i] = (double)(counts_now().written - before) * 1e3 / (double)took;
    }
    pk_stop();
    printf("  %-36s %10s %10.1f\n", "a full ring, by pk_flush", "",
           bench_quantile(rates, REPETITIONS, 0.5));
}

/* The same without a trace: into the distributions, by whoever asks for one. */
static void fold_full_rings(void)
{
    static pk_region attention = PK_REGION("attention");
    static pk_stats stats;
    double times[REPETITIONS];
    writer_start(pk_options(.tuning = bench_tuning("ring_records=%u", RING)));
    for (int i = 0; i < REPETITIONS; i++) {
        fill_ring(&attention);
        uint64_t before = counts_now().recorded, began = bench_thread_ns();
        pk_region_stats(&attention, &stats);
        uint64_t took = bench_thread_ns() - began;
        times[i] = (double)took / (double)(counts_now().recorded - before);
    }
    pk_stop();
    printf("\n%-38s %10.1f ns\n", "from the ring into a distribution",
           bench_quantile(times, REPETITIONS, 0.5));
}

static int writer_bench(int argc, char **argv)
{
    (void)argc, (void)argv;
    bench_pin(0);
    fill();
    printf("%-38s %10s %10s %10s\n", "million events per second", "/dev/null", "tmpfs",
           "bytes each");
    line("perfkit's formatter and file", with_perfkit, RECORDS * ROUNDS_OF_RING);
    line("five fields, digits from a table", bare, RECORDS * ROUNDS_OF_RING);
    line("five fields, fprintf", with_fprintf, RECORDS);
    empty_full_rings();
    fold_full_rings();
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {
        {"collector", collector_bench}, {"neighbour", neighbour_bench}, {"writer", writer_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
