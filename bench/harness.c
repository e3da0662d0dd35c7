#include "harness.h"

#include <pk/bench.h>
#include <pk/region.h>

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/drive.h"

/* ---- what nobody who knows when a region began and ended can undercut ---- */

static _Thread_local pki_record *ring;

pki_record *bench_floor_prepare(void)
{
    size_t bytes = BENCH_FLOOR_RECORDS * sizeof *ring;
    ring = aligned_alloc(4096, bytes);
    if (!ring)
        bench_fail("no memory");
    return memset(ring, 1, bytes);
}

void bench_floor_run(uint64_t n)
{
    pki_record *base = ring;
    for (uint64_t i = 0; i < n; i++) {
        bench_floor_pair(base, i);
        bench_barrier();
    }
}

void bench_loop_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        bench_barrier();
}

/* ---- a folder for the traces that are written while measuring ---- */

#define ENOUGH ((uint64_t)3 << 30) /* what bench/collect.c writes in five seconds, and some */

static char folder[256];
static char path[512];

void bench_scratch_empty(void)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0); /* fails for . and .. */
    closedir(d);
}

static void remove_folder(void)
{
    bench_scratch_empty();
    rmdir(folder);
}

static const char *place(void)
{
    struct statvfs fs;
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted)
        return wanted;
    bool room = statvfs("/dev/shm", &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_bsize >= ENOUGH;
    return room ? "/dev/shm" : "/tmp";
}

static void need_folder(void)
{
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%.200s/pk-bench-XXXXXX", place());
    if (!mkdtemp(folder))
        bench_fail("no folder for traces");
    atexit(remove_folder);
}

const char *bench_scratch(const char *name)
{
    need_folder();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

const char *bench_tuning(const char *format, ...)
{
    static char text[PATH_MAX + 100];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return text;
}

pid_t bench_fork(void)
{
    need_folder();
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        bench_fail("fork");
    return pid;
}

void bench_leave(bool good)
{
    fflush(stdout);
    _exit(!good);
}

void bench_join(pid_t pid, const char *what, struct rusage *used)
{
    int status;
    if (wait4(pid, &status, 0, used) != pid || status != 0)
        bench_fail(what);
    bench_scratch_empty();
}

/* ---- how the programs in this folder measure ---- */

_Noreturn void bench_fail(const char *what)
{
    fflush(stdout);
    fprintf(stderr, "cannot measure: %s\n", what);
    exit(1);
}

unsigned long bench_number(int argc, char **argv, const char *option, unsigned long standard)
{
    unsigned long value = standard;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0) {
            char *end = NULL;
            value = i + 1 < argc ? strtoul(argv[i + 1], &end, 10) : 0;
            if (!value || *end)
                bench_fail("a whole number has to follow the option");
        }
    return value;
}

void bench_pin(unsigned from_last)
{
    cpu_set_t may, one;
    size_t cpus[CPU_SETSIZE], count = 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        bench_fail("sched_getaffinity");
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may))
            cpus[count++] = i;
    CPU_ZERO(&one);
    CPU_SET(cpus[count - 1 - from_last % count], &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        bench_fail("sched_setaffinity");
}

static uint64_t read_clock(clockid_t id)
{
    struct timespec t = {0, 0};
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bench_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t bench_process_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t bench_wall_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare);
    return values[(size_t)(q * (double)(n - 1) + 0.5)];
}

/* ---- a case is a benchmark of pk/bench.h, driven from here: one sample of each in a round ---- */

static void body(pk_bench_run *bench)
{
    const bench_case *c = pk_bench_user(bench);
    uint64_t n = pk_bench_begin(bench);
    c->run(n);
    pk_bench_end(bench);
}

static void before(void *user)
{
    const bench_case *c = user;
    if (c->before)
        c->before();
}

static void after(void *user)
{
    const bench_case *c = user;
    if (c->after)
        c->after();
}

/* Several threads may measure at once; the last one on the list is the one just added. */
static pki_bench_handle *open_case(bench_case *c)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pki_bench_handle *handle;
    pthread_mutex_lock(&lock);
    if (pk_bench_add(c->name && *c->name ? c->name : "a case", body,
                     pk_bench_options(.user = c, .before = before, .after = after)) ||
        pk_bench_open_(pk_bench_instance_count_() - 1, &handle))
        bench_fail(pk_error_message());
    pthread_mutex_unlock(&lock);
    return handle;
}

/* The loop is the case's own, so only what surrounds the batch is subtracted. */
static double batch(const bench_case *c, pki_bench_handle *handle)
{
    pki_bench_sample sample;
    if (pk_bench_take_(handle, c->n, &sample) != PK_OK)
        bench_fail(pk_error_message());
    return sample.cpu / (double)c->n;
}

static void sum_up(bench_case *c, const bench_case *floor, size_t rounds)
{
    double ratios[BENCH_ROUNDS_MAX], differences[BENCH_ROUNDS_MAX], times[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        times[i] = c->rounds[i];
        ratios[i] = c->rounds[i] / floor->rounds[i];
        differences[i] = c->rounds[i] - floor->rounds[i];
    }
    c->ns = bench_quantile(times, rounds, 0.5);
    c->ratio = bench_quantile(ratios, rounds, 0.5);
    c->low = bench_quantile(ratios, rounds, 0.1);
    c->high = bench_quantile(ratios, rounds, 0.9);
    c->more = bench_quantile(differences, rounds, 0.5);
}

void bench_rounds(bench_case *cases, size_t count, unsigned long rounds)
{
    pki_bench_handle *handles[BENCH_CASES_MAX];
    if (rounds > BENCH_ROUNDS_MAX)
        rounds = BENCH_ROUNDS_MAX;
    if (count > BENCH_CASES_MAX)
        bench_fail("too many cases in a table");
    for (size_t i = 0; i < count; i++) {
        handles[i] = open_case(&cases[i]);
        batch(&cases[i], handles[i]);
    }
    for (unsigned long r = 0; r < rounds; r++)
        for (size_t i = 0; i < count; i++)
            cases[i].rounds[r] = batch(&cases[i], handles[i]);
    for (size_t i = 0; i < count; i++) {
        sum_up(&cases[i], &cases[0], rounds);
        pk_bench_close_(handles[i]);
    }
}

void bench_print(const char *title, const bench_case *cases, size_t count)
{
    printf("%-38s %8s %8s %7s  10 %% .. 90 %%\n", title, "ns", "more", "ratio");
    for (size_t i = 0; i < count; i++)
        printf("  %-36s %8.2f %8.2f %7.3f  %.3f .. %.3f\n", cases[i].name, cases[i].ns,
               cases[i].more, cases[i].ratio, cases[i].low, cases[i].high);
    putchar('\n');
    fflush(stdout);
}

/* ---- several benchmarks in one program ---- */

int bench_programs(const bench_program *programs, size_t count, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "which one?");
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s", programs[i].name);
    fputc('\n', stderr);
    return 2;
}

/* ---- many regions, each with its own call sites, as in a program ---- */

#define FOUR(n)                                                                                    \
    PK_REGION("r" #n "a"), PK_REGION("r" #n "b"), PK_REGION("r" #n "c"), PK_REGION("r" #n "d")
#define SIXTEEN(n) FOUR(n##a), FOUR(n##b), FOUR(n##c), FOUR(n##d)
#define SIXTY_FOUR(n) SIXTEEN(n##a), SIXTEEN(n##b), SIXTEEN(n##c), SIXTEEN(n##d)

static pk_region many[256] = {SIXTY_FOUR(a), SIXTY_FOUR(b), SIXTY_FOUR(c), SIXTY_FOUR(d)};

#define PAIR(i) (pk_region_begin(&many[i]), pk_region_end(&many[i]))
#define PAIRS_4(i) (PAIR(i), PAIR((i) + 1), PAIR((i) + 2), PAIR((i) + 3))
#define PAIRS_16(i) (PAIRS_4(i), PAIRS_4((i) + 4), PAIRS_4((i) + 8), PAIRS_4((i) + 12))

void bench_64_run(uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 64) {
        PAIRS_16(0);
        PAIRS_16(16);
        PAIRS_16(32);
        PAIRS_16(48);
    }
}

void bench_many_pairs(unsigned regions)
{
    for (unsigned i = 0; i < regions; i++)
        PAIR(i);
}
