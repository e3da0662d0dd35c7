/* bench/history.c - what is kept of a long run: bench-history captures | windows | switches. */
#include <pk/pk.h>

#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "harness.h"
#include "measure/window/merge.h"
#include "out/file.h"
#include "out/window/write.h"
#include "session/captures/captures.h"

/* ---- captures: what the history costs, whether slow steps are found, and its end's delay ---- */

/* cost: CPU time of perfkit's threads per region, at a million a second: with statistics only,
 * with a history, with a trace. What the recording thread takes is the same in all.
 *
 * slow: 10,000 steps of 1 ms with noise of +- 2 %, 100 of them slowed by 20 to 50 %. How many of
 * these are in a capture with the 3 before, and what else is?
 *
 * delay: steps of the same work, bound to one processor, four of each 80 captured (20 MB). How long
 * do the 40 behind a capture take, while it is written, and how long the others?
 *
 * A machine that does other things adds noise of its own, which "slow" calls false ones. */

enum { STEPS = 10000, SLOWED = 100, DELAY_STEPS = 8000, PERIOD = 80, REGIONS = 45000 };

static pk_region one = PK_REGION("one");
static uint64_t chance = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % below;
}

static void wait_until(uint64_t wall_ns)
{
    while (bench_wall_ns() < wall_ns)
        ;
}

static void must_start(const pk_options *options)
{
    if (options && pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

/* ---- cost ---- */

static double cpu_per_region(const pk_options *options, unsigned long seconds)
{
    uint64_t n = 0, begin, next, end;
    must_start(options);
    uint64_t cpu = bench_process_ns() - bench_thread_ns();
    begin = next = bench_wall_ns();
    end = begin + seconds * 1000000000u;
    while (bench_wall_ns() < end) {
        for (int i = 0; i < 1000; i++) {
            pk_region_begin(&one);
            pk_region_end(&one);
        }
        n += 1000;
        pk_step(1);
        next += 1000000;
        wait_until(next);
    }
    cpu = bench_process_ns() - bench_thread_ns() - cpu;
    if (options)
        pk_stop();
    return (double)cpu / (double)n;
}

static void cost(unsigned long seconds)
{
    static char trace[512];
    snprintf(trace, sizeof trace, "%s", bench_scratch("cost.json"));
    const struct {
        const char *name;
        const pk_options *options;
    } ways[] = {{"statistics only", pk_options(.backends = "none")},
                {"history of 100 steps",
                 pk_options(.backends = "none", .history_steps = 100, .tuning = "arena_path=none")},
                {"trace", pk_options(.backends = "none", .trace_path = trace)},
                {"trace and history",
                 pk_options(.backends = "none", .trace_path = trace, .history_steps = 100)}};
    printf("collector's CPU time per region, at 1 million a second      ns\n");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        printf("  %-54s %6.1f\n", ways[i].name, cpu_per_region(ways[i].options, seconds));
        bench_scratch_empty();
    }
}

/* ---- slow ---- */

static void spin_step(uint64_t ns)
{
    uint64_t until = bench_wall_ns() + ns;
    for (int i = 0; i < 20; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
    wait_until(until);
    pk_step(1);
}

typedef struct found {
    bool captured[STEPS];
    unsigned files;
} found;

/* The range of steps that a capture says it is of. */
static void look_into(const char *path, found *f)
{
    static char text[1 << 22];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    const char *about = strstr(text, "\"perfkitCapture\"");
    unsigned long first, last;
    const char *range = about ? strstr(about, "\"first\":") : NULL;
    if (!range || sscanf(range, "\"first\":%lu,\"last\":%lu", &first, &last) != 2)
        return;
    f->files++;
    for (unsigned long s = first; s <= last && s < STEPS; s++)
        f->captured[s] = true;
}

static found look_at_captures(const char *pattern)
{
    static found f;
    glob_t files = {0};
    memset(&f, 0, sizeof f);
    if (glob(pattern, 0, NULL, &files) == 0)
        for (size_t i = 0; i < files.gl_pathc; i++)
            look_into(files.gl_pathv[i], &f);
    globfree(&files);
    return f;
}

static void run_slow(const pk_options *options, const char *pattern)
{
    static bool slowed[STEPS];
    static double took[STEPS];
    unsigned in = 0, usual = 0;
    memset(slowed, 0, sizeof slowed);
    for (unsigned n = 0; n < SLOWED;) {
        uint64_t at = 100 + draw(STEPS - 100);
        n += !slowed[at];
        slowed[at] = true;
    }
    must_start(options);
    for (unsigned s = 0; s < STEPS; s++) {
        uint64_t ns = 980000 + draw(40001);
        ns = slowed[s] ? ns + ns * (20 + draw(31)) / 100 : ns;
        uint64_t begin = bench_wall_ns();
        spin_step(ns);
        took[s] = slowed[s] ? 0 : (double)(bench_wall_ns() - begin);
    }
    pki_capture_counts counts = pki_captures_counted();
    pk_stop();
    found f = look_at_captures(pattern);
    for (unsigned s = 0; s < STEPS; s++) {
        bool whole = f.captured[s] && f.captured[s - 1] && f.captured[s - 2] && f.captured[s - 3];
        in += slowed[s] && whole;
        usual += !slowed[s] && took[s] > 1.1 * 1000000;
    }
    printf("  %u captures; of %u slowed steps in one with the 3 before: %u\n", f.files, SLOWED, in);
    printf("  the machine made %u others slow; refused %llu, removed for worse ones %llu\n", usual,
           (unsigned long long)counts.refused, (unsigned long long)counts.removed);
    bench_scratch_empty();
}

static void slow(void)
{
    char path[512], pattern[512];
    snprintf(path, sizeof path, "%s", bench_scratch("slow-%s.json"));
    snprintf(pattern, sizeof pattern, "%s", bench_scratch("slow-*.json"));
    printf("slow=1.1,floor:30 of %u steps, 3600 captures an hour\n", STEPS);
    run_slow(pk_options(.backends = "none", .capture = "slow=1.1,floor:30", .capture_path = path,
                        .tuning = "captures_per_hour=3600,arena_path=none"),
             pattern);
    printf("the same, 10 captures an hour\n");
    run_slow(pk_options(.backends = "none", .capture = "slow=1.1,floor:30", .capture_path = path,
                        .tuning = "captures_per_hour=10,arena_path=none"),
             pattern);
}

/* ---- delay ---- */

/* Always the same work, some milliseconds of it. */
static void work_step(void)
{
    for (int i = 0; i < REGIONS; i++) {
        pk_region_begin(&one);
        for (volatile int k = 0; k < 250; k++)
            ;
        pk_region_end(&one);
    }
    pk_step(1);
}

static void print_times(const char *name, double *ms, size_t n, double usual)
{
    size_t late = 0;
    for (size_t i = 0; i < n; i++)
        late += ms[i] > usual + 1;
    if (n)
        printf("  %-36s %8zu %8.3f %8.3f %8.3f %8.3f %11.2f %%\n", name, n,
               bench_quantile(ms, n, 0.5), bench_quantile(ms, n, 0.99),
               bench_quantile(ms, n, 0.999), bench_quantile(ms, n, 1),
               100 * (double)late / (double)n);
}

static double megabytes(const char *pattern)
{
    glob_t files = {0};
    struct stat of = {0};
    if (glob(pattern, 0, NULL, &files) == 0)
        stat(files.gl_pathv[0], &of);
    globfree(&files);
    return (double)of.st_size * 1e-6;
}

typedef struct delays {
    double ms[2][DELAY_STEPS]; /* without and with a capture being written */
    size_t n[2];
    double megabytes;
} delays;

/* The first period has no capture behind it and is nobody's. */
static void make_steps(const char *pattern, delays *d)
{
    for (unsigned s = 0; s < PERIOD + DELAY_STEPS; s++) {
        uint64_t before = pki_captures_counted().written, begin = bench_wall_ns();
        work_step();
        double took = (double)(bench_wall_ns() - begin) * 1e-6;
        bool busy = pki_captures_counted().waiting || before != pki_captures_counted().written ||
                    s % PERIOD < PERIOD / 2;
        if (s < PERIOD)
            continue;
        d->ms[busy][d->n[busy]++] = took;
        if (s % PERIOD == PERIOD - 5) {
            d->megabytes = megabytes(pattern);
            bench_scratch_empty();
        }
    }
}

static void delay(void)
{
    static delays d;
    static char path[512], pattern[512];
    double load = 0;
    memset(&d, 0, sizeof d);
    snprintf(path, sizeof path, "%s", bench_scratch("delay-%s.json"));
    snprintf(pattern, sizeof pattern, "%s", bench_scratch("delay-*.json"));
    must_start(
        pk_options(.backends = "none", .capture = "cycle=wait:76,active:4", .capture_path = path,
                   .tuning =
                       "captures_per_hour=3600,capture_bytes_per_hour=1024G,arena_path=none"));
    bench_pin(0); /* the steps alone: perfkit's threads have the other processors */
    make_steps(pattern, &d);
    getloadavg(&load, 1);
    unsigned long long written = pki_captures_counted().written;
    pk_stop();
    double usual = bench_quantile(d.ms[0], d.n[0], 0.5);
    printf("steps of the same work, ms; %llu captures of %.0f MB; load %.1f\n"
           "  %-36s %8s %8s %8s %8s %8s %s\n",
           written, d.megabytes, load, "", "steps", "p50", "p99", "p99.9", "max", "1 ms late");
    print_times("no capture is being written", d.ms[0], d.n[0], usual);
    print_times("within 40 steps of a capture's end", d.ms[1], d.n[1], usual);
}

static int captures_bench(int argc, char **argv)
{
    cost(bench_number(argc, argv, "--seconds", 3));
    slow();
    delay();
    return 0;
}

/* ---- windows: what those of a long run cost, and that nothing grows ---- */

/* Windows.c [STEPS [REGIONS]] - what windows of a long run cost, and that nothing grows: steps of a
 * clock of its own making are folded into the figures of a run, cut into windows, written into a
 * file of bounded size, and added up again beside the run's own figures.
 *
 * No thread records, so what is timed is the windows' part alone: the cut, under the fold lock, and
 * the line, on the collector. Prints both for each region and window, the memory before and after,
 * and the bytes of the files. */

#define WINDOW 100000u
#define PATH "/tmp/pk-bench-windows.jsonl"
#define MOST_BYTES ((uint64_t)1 << 20)

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Of the file and its earlier parts. */
static uint64_t bytes_on_disk(void)
{
    char name[PATH_MAX] = PATH;
    struct stat file;
    uint64_t all = 0;
    for (unsigned part = 0; part <= PKI_ROLLING_PARTS; part++)
        if ((part == 0 || pki_rolling_part(PATH, part, name)) && stat(name, &file) == 0)
            all += (uint64_t)file.st_size;
    return all;
}

static void remove_files(void)
{
    char name[PATH_MAX];
    remove(PATH);
    for (unsigned part = 1; part <= PKI_ROLLING_PARTS; part++)
        if (pki_rolling_part(PATH, part, name))
            remove(name);
}

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

typedef struct run {
    pki_steps *steps, *joined;
    uint32_t regions;
    uint64_t index, clock;
    uint64_t cut_ns, line_ns, windows, bytes, most_on_disk;
    pki_rolling file;
    pki_window_line line;
} run;

static void make_step(run *r)
{
    uint64_t all = 0;
    for (uint32_t id = 0; id < r->regions; id++) {
        uint64_t self = 1000 + next_random() % 1000;
        pki_steps_add_self(r->steps, id, PK_COMPUTE, self);
        all += self;
    }
    pki_step step = {.index = r->index++,
                     .start = r->clock,
                     .duration = all + 100,
                     .items = 1,
                     .broken_down = true};
    r->clock += step.duration;
    pki_steps_add(r->steps, &step);
}

static void name_regions(const run *r, pki_window *w)
{
    w->regions = calloc(r->regions, sizeof *w->regions);
    w->region_count = r->regions;
    for (uint32_t id = 0; id < r->regions; id++) {
        char name[32];
        snprintf(name, sizeof name, "region%u", id);
        w->regions[id] = (pki_window_region){.name = strdup(name), .kind = PK_COMPUTE};
    }
}

static void write_line(run *r, pki_window *w)
{
    uint64_t began = now_ns();
    if (!pki_window_line_begin(&r->line, w))
        exit(1);
    while (!pki_window_line_advance(&r->line))
        ;
    if (!pki_window_line_end(&r->line) ||
        !pki_rolling_append(&r->file, r->line.text, r->line.bytes))
        exit(1);
    r->line_ns += now_ns() - began;
    r->bytes += r->line.bytes;
    r->most_on_disk = PKI_MAX(r->most_on_disk, bytes_on_disk());
    pki_window_line_finish(&r->line);
}

static void end_window(run *r)
{
    pki_window w = {.index = r->windows++, .end = r->clock};
    uint64_t began = now_ns();
    if (!pki_steps_cut(r->steps, &w.steps.exact))
        exit(1);
    r->cut_ns += now_ns() - began;
    name_regions(r, &w);
    write_line(r, &w);
    if (!pki_steps_join(r->joined, &w.steps.exact))
        exit(1);
    pki_window_finish(&w);
}

static const char *no_name(void *user, uint32_t id)
{
    (void)user, (void)id;
    return NULL;
}

/* Of the run and of its windows: the same to the last digit? */
static int same(const run *r)
{
    pki_summary a, b;
    pki_summary_init(&a);
    pki_summary_init(&b);
    int alike = pki_steps_fill(r->steps, 0, no_name, NULL, &a) &&
                pki_steps_fill(r->joined, 0, no_name, NULL, &b) &&
                memcmp(&a.steps.all, &b.steps.all, sizeof a.steps.all) == 0 &&
                memcmp(&a.steps.steady, &b.steps.steady, sizeof a.steps.steady) == 0 &&
                memcmp(a.steps.kinds, b.steps.kinds, sizeof a.steps.kinds) == 0 &&
                a.steps.count == b.steps.count && a.steps.warmup == b.steps.warmup;
    pki_summary_finish(&a);
    pki_summary_finish(&b);
    return alike;
}

static int windows_bench(int argc, char **argv)
{
    static run r;
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000u, first = 0;
    r.regions = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2;
    r.steps = pki_steps_create();
    r.joined = pki_steps_create();
    for (uint32_t id = 0; id < r.regions; id++)
        pki_steps_region(r.joined, id, PK_COMPUTE);
    if (!pki_rolling_open(&r.file, PATH, false, MOST_BYTES))
        return 1;
    for (uint64_t i = 0; i < steps; i++) {
        make_step(&r);
        if (r.index % WINDOW == 0)
            end_window(&r);
        if (r.index == 2 * WINDOW)
            first = resident_bytes();
    }
    end_window(&r);
    double each = (double)r.windows * r.regions;
    printf("%llu steps of %u regions, %llu windows\n", (unsigned long long)steps, r.regions,
           (unsigned long long)r.windows);
    printf("cut   %10.0f ns a window, %8.0f ns a region\n", (double)r.cut_ns / (double)r.windows,
           (double)r.cut_ns / each);
    printf("line  %10.0f ns a window, %8.0f ns a region, %.0f bytes a window\n",
           (double)r.line_ns / (double)r.windows, (double)r.line_ns / each,
           (double)r.bytes / (double)r.windows);
    printf("resident memory after 2 windows %.1f MB, at the end %.1f MB\n", (double)first / 1e6,
           (double)resident_bytes() / 1e6);
    printf("written %.1f MB, on disk at most %.3f MB; the bound is %.3f MB\n",
           (double)r.bytes / 1e6, (double)r.most_on_disk / 1e6, (double)MOST_BYTES / 1e6);
    pki_rolling_close(&r.file);
    remove_files();
    printf("windows add up to the run's figures: %s\n", same(&r) ? "to the last digit" : "NO");
    return !same(&r);
}

/* ---- switches: what it takes the stepping thread that they are recorded ---- */

/* A byte goes to another thread and back, both bound to one processor, so each trip has each thread
 * off its processor once. CPU time of the process per trip, in sessions without and with a history,
 * in turns: fewer trips than make the records end. */

enum { TRIPS = 4000, TURNS = 31 };

static int there[2], back[2];

static void *answer(void *nothing)
{
    char c;
    while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
        ;
    return nothing;
}

static double trips(unsigned history_steps)
{
    must_start(pk_options(.backends = "none", .history_steps = history_steps));
    pk_step(1);
    pk_flush(); /* whoever makes steps is known from here on */
    double begun = (double)bench_process_ns();
    for (int i = 0; i < TRIPS; i++) {
        char c = 0;
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
            bench_fail("pipe");
    }
    double took = (double)bench_process_ns() - begun;
    pk_stop();
    return took / TRIPS;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int switches_bench(int argc, char **argv)
{
    double without[TURNS], more[TURNS];
    pthread_t other;
    cpu_set_t here;
    (void)argc, (void)argv;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    if (sched_setaffinity(0, sizeof here, &here) || pipe(there) || pipe(back) ||
        pthread_create(&other, NULL, answer, NULL))
        bench_fail("no processor, pipe or thread");
    for (int i = 0; i < TURNS; i++) {
        without[i] = trips(0);
        more[i] = trips(32) - without[i];
    }
    qsort(without, TURNS, sizeof *without, ascending);
    qsort(more, TURNS, sizeof *more, ascending);
    printf("a trip %.0f ns; with records of switches %.0f ns more (quartiles %.0f and %.0f)\n",
           without[TURNS / 2], more[TURNS / 2], more[TURNS / 4], more[TURNS * 3 / 4]);
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {
        {"captures", captures_bench}, {"windows", windows_bench}, {"switches", switches_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
