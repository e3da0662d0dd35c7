/* bench/jobs.c - how good the verdicts of `pk job` are, and files for it:
 *     bench-jobs job | parts | live | crew | ranks
 */
#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "job_forge.h"

/* ---- job: how good pk job's verdicts are, on forged jobs whose truth is known ---- */

/* Recall and precision at a slow-down of 5 %, false verdicts of healthy jobs, a slow link.
 *
 *     bench-jobs job [JOBS]
 *
 * So many jobs for each line (default 40; of healthy ones 25 times that).
 */

static double share(size_t part, size_t of)
{
    return of ? (double)part / (double)of : 1;
}

/* Machines that really are slower than the limit, as they were drawn, are no false verdicts. */
static void end_line(const job_score *s)
{
    if (s->drawn)
        printf("  (%zu more: a machine drawn that slow)", s->drawn);
    printf("\n");
}

static void print_late(size_t ranks, size_t steps, bool varying, size_t culprits, size_t jobs)
{
    forge f = {.seed = 1,
               .ranks = ranks,
               .steps = steps,
               .varying = varying,
               .slow = 0.05,
               .culprits = culprits,
               .stage = FORGE_LOAD};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu %6zu  %-7s %8zu %7zu  %6.3f %9.3f %6.3f", ranks, steps,
           varying ? "varying" : "equal", culprits, jobs, share(s.found, s.culprits),
           share(s.rightly, s.accused), share(s.stages, s.found));
    end_line(&s);
}

static void print_healthy(size_t ranks, bool varying, size_t jobs)
{
    forge f = {.seed = 100000, .ranks = ranks, .steps = 50, .varying = varying};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu     50  %-7s  healthy %7zu  false verdicts in %.2f %%", ranks,
           varying ? "varying" : "equal", jobs, 100 * share(s.with_false, s.jobs));
    end_line(&s);
}

static void print_link(size_t ranks, size_t jobs)
{
    forge f = {.seed = 7, .ranks = ranks, .steps = 50, .link = 10};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu     50  a slow link      %7zu  communication named in %.1f %%, ranks accused in"
           " %.1f %%\n",
           ranks, jobs, 100 * share(s.communication, s.jobs), 100 * share(s.with_false, s.jobs));
}

static int job_bench(int argc, char **argv)
{
    size_t jobs = argc > 1 ? strtoul(argv[1], NULL, 10) : 40;
    printf(" ranks  steps  work    culprits    jobs  recall precision  stage\n");
    for (size_t ranks = 64; ranks <= 1024; ranks *= 16)
        for (int varying = 0; varying < 2; varying++)
            for (size_t culprits = 1; culprits < 3; culprits++)
                print_late(ranks, 50, varying, culprits, jobs);
    for (int varying = 0; varying < 2; varying++) {
        print_healthy(64, varying, 25 * jobs);
        print_healthy(1024, varying, jobs);
    }
    print_link(64, jobs);
    return 0;
}

/* ---- parts: ranks that are late in a part of the run ---- */

/* Recall and precision by what is wrong when, and false verdicts of healthy jobs of twelve kinds.
 *
 *     bench-jobs parts [JOBS [RANKS [STEPS [WHAT [SEED]]]]]
 *
 * One rank of each job is slow (default 100 jobs of 64 ranks, 200 steps in blocks as ranks keep
 * them).
 */

typedef struct scene {
    const char *name;
    forge of;
} scene;

static const scene faults[] = {
    {"10 % for good", {.slow = 0.10, .when = FORGE_FOR_GOOD}},
    {"30 % for 20 steps", {.slow = 0.30, .when = FORGE_STRETCH, .length = 20}},
    {"50 % in 10 % of steps", {.slow = 0.50, .when = FORGE_SPORADIC, .share = 0.10}},
    {"50 % each 10th step", {.slow = 0.50, .when = FORGE_PERIODIC, .share = 0.10}},
    {"50 % in 25 % of steps", {.slow = 0.50, .when = FORGE_SPORADIC, .share = 0.25}},
    {"300 % in 5 % of steps", {.slow = 3, .when = FORGE_SPORADIC, .share = 0.05}},
    {"a ramp to 10 %", {.slow = 0.10, .when = FORGE_RAMP}},
    {"1.5 s once", {.slow = 150, .when = FORGE_STOP}},
    {"5 % all along", {.slow = 0.05}},
};

static const scene healthy[] = {
    {"independent noise", {.noise = FORGE_PLAIN}},
    {"noise that lasts", {.noise = FORGE_LASTING}},
    {"heavy tails", {.noise = FORGE_TAILS}},
    {"a drift of all", {.noise = FORGE_DRIFT}},
    {"uneven work", {.noise = FORGE_UNEVEN}},
    {"warm-up", {.noise = FORGE_WARM}},
    {"checkpoints on rank 0", {.noise = FORGE_CHECKPOINTS}},
    {"changing work of all", {.noise = FORGE_CHANGING, .varying = true}},
    {"two kinds of step", {.noise = FORGE_TWO_KINDS}},
    {"hosts held down alike", {.noise = FORGE_ALIKE}},
    {"crowded hosts", {.crowd = FORGE_CROWD_TOLD}},
    {"crowded hosts, of the run", {.crowd = FORGE_CROWD_OF_RUN}},
    {"few steps", {.steps = 25}},
};

static void print_scene(const scene *of, size_t jobs, size_t ranks, size_t steps, uint64_t seed,
                        bool is_healthy)
{
    forge f = of->of;
    f.seed = seed;
    f.ranks = ranks;
    f.per_host = 8;
    f.joined = true;
    f.steps = f.steps ? f.steps : steps;
    f.culprits = !is_healthy;
    f.stage = FORGE_BACKWARD;
    job_score s = score_jobs(&f, jobs);
    printf("%6zu %6zu  %-26s %6zu", f.ranks, f.steps, of->name, s.jobs);
    if (is_healthy) {
        printf("  false verdicts in %.1f %%", 100 * share(s.with_false, s.jobs));
        end_line(&s);
        return;
    }
    printf("  %6.3f %9.3f %6.3f", share(s.found, s.culprits), share(s.rightly, s.accused),
           share(s.stages, s.found));
    if (s.since)
        printf("  beginning %.3f, off by %.1f steps", share(s.since_near, s.since),
               (double)s.since_off / (double)s.since);
    end_line(&s);
}

static int parts_bench(int argc, char **argv)
{
    size_t jobs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    size_t ranks = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    size_t steps = argc > 3 ? strtoul(argv[3], NULL, 10) : 200;
    const char *what = argc > 4 ? argv[4] : ""; /* those with that in their name */
    uint64_t seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 31;
    printf(" ranks  steps  what                         jobs  recall precision  stage\n");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strstr(faults[i].name, what))
            print_scene(&faults[i], jobs, ranks, steps, seed, false);
    for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++)
        if (strstr(healthy[i].name, what))
            print_scene(&healthy[i], jobs, ranks, steps, seed, true);
    return 0;
}

/* ---- live: ranks that become slower, in windows as they come ---- */

/* After how many steps `pk job --follow` names a rank that becomes slower, by the steps of a
 * window, and in how many windows it names somebody wrongly.
 *
 *     bench-jobs live [JOBS [RANKS [PERCENT [STEPS]]]]
 *
 * Default 100 jobs of 128 ranks, 5 %, windows of 1 to 20 steps, 160 windows of each job; of healthy
 * jobs as many.
 */

enum { LIVE_WINDOWS = 160 };

static int by_number(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static void print_live(size_t jobs, size_t ranks, double slow, size_t steps)
{
    static live_score late, fine;
    forge f = {.ranks = ranks,
               .per_host = 8,
               .steps = LIVE_WINDOWS * steps,
               .slow = slow,
               .culprits = 1,
               .stage = FORGE_BACKWARD,
               .when = FORGE_FOR_GOOD};
    late = fine = (live_score){0};
    f.seed = 1;
    score_live(&f, steps, jobs, &late);
    f.seed += jobs;
    f.culprits = 0;
    score_live(&f, steps, jobs, &fine);
    size_t n = late.named < FORGE_LIVE ? late.named : FORGE_LIVE;
    qsort(late.after, n, sizeof *late.after, by_number);
    printf("%6zu %7zu %6zu %6.3f %6.3f %7.0f %7.0f %7.0f  %6.2f %6.2f\n", ranks, steps, jobs,
           share(late.named, jobs), share(late.near, jobs), n ? late.after[n / 2] : 0,
           n ? late.after[n * 95 / 100] : 0, n ? late.after[n - 1] : 0,
           1000 * share(late.with_false, late.verdicts),
           1000 * share(fine.with_false, fine.verdicts));
    fflush(stdout);
}

static int live_bench(int argc, char **argv)
{
    static const size_t windows[] = {1, 2, 5, 10, 20};
    size_t jobs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    size_t ranks = argc > 2 ? strtoul(argv[2], NULL, 10) : 128;
    double slow = argc > 3 ? strtod(argv[3], NULL) / 100 : 0.05;
    size_t steps = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    printf("              named           steps until it is       false of 1,000 windows\n"
           " ranks  window   jobs    all  near  median    95 %%    most    late healthy\n");
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (!steps || steps == windows[i])
            print_live(jobs, ranks, slow, windows[i]);
    return 0;
}

/* ---- crew: real processes without MPI, of which one becomes slower ---- */

/* So many processes whose work is to sleep and that meet after each step; what they have taken of
 * processors, all together, and of the time. bench/live.py follows it.
 *
 *     bench-jobs crew FOLDER|- RANKS STEPS MILLISECONDS LATE SINCE PERCENT WINDOW
 *
 * With "-" nobody starts perfkit.
 */

typedef struct crew {
    const char *folder; /* NULL: without perfkit */
    int ranks, steps, late, since;
    double ns, slower;
    const char *window;
    pthread_barrier_t *meeting;
} crew;

static void work_asleep(const crew *c, int rank, int step)
{
    double ns = c->ns * (rank == c->late && step >= c->since ? 1 + c->slower : 1);
    struct timespec t = {.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)};
    nanosleep(&t, NULL);
}

static int serve(const crew *c, int rank)
{
    static pk_region compute = PK_REGION("compute"), meet = PK_REGION_OF(PK_COMM, "meet");
    char path[4096];
    snprintf(path, sizeof path, "%s/%%r.windows.jsonl", c->folder ? c->folder : "");
    setenv("PK_WINDOW_STEPS", c->window, 1);
    if (c->folder && pk_start(pk_options(.windows_path = path, .rank = rank, .backends = "none",
                                         .world_size = c->ranks)) != PK_OK)
        return 1;
    for (int step = 0; step < c->steps; step++) {
        pk_region_begin(&compute);
        work_asleep(c, rank, step);
        pk_region_end(&compute);
        pk_region_begin(&meet);
        pthread_barrier_wait(c->meeting);
        pk_region_end(&meet);
        pk_step(1);
    }
    return c->folder && pk_stop() != PK_OK;
}

static int crew_bench(int argc, char **argv)
{
    if (argc < 9)
        return fprintf(stderr,
                       "bench-jobs crew FOLDER|- RANKS STEPS MILLISECONDS LATE SINCE PERCENT"
                       " WINDOW\n"),
               2;
    crew c = {.folder = strcmp(argv[1], "-") != 0 ? argv[1] : NULL,
              .ranks = atoi(argv[2]),
              .steps = atoi(argv[3]),
              .ns = 1e6 * strtod(argv[4], NULL),
              .late = atoi(argv[5]),
              .since = atoi(argv[6]),
              .slower = strtod(argv[7], NULL) / 100,
              .window = argv[8]};
    pthread_barrierattr_t shared;
    struct rusage used;
    int failed = 0, status;
    uint64_t began = pki_monotonic_ns();
    c.meeting =
        mmap(NULL, sizeof *c.meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(c.meeting, &shared, (unsigned)c.ranks);
    for (int rank = 0; rank < c.ranks; rank++)
        if (fork() == 0)
            _exit(serve(&c, rank));
    while (wait(&status) > 0)
        failed += status != 0;
    getrusage(RUSAGE_CHILDREN, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("%.3f %.3f\n", cpu, 1e-9 * (double)(pki_monotonic_ns() - began));
    return failed != 0;
}

/* ---- ranks: files of a job's ranks, for `pk job` ---- */

/* 95 regions, 50 steps, each rank a session.
 *
 *     bench-jobs ranks FOLDER [RANKS]       FOLDER/0/0.rank.json and so on (default 10,240 ranks)
 */

#define REGIONS 95
#define STEPS 50

static pk_region *regions[REGIONS];

static void name_regions(void)
{
    for (int i = 0; i < REGIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer %d of the model", i);
        regions[i] = pk_region_named_of(i % 8 == 7 ? PK_COMM : PK_COMPUTE, name);
    }
}

static void work(volatile int *sum, int n)
{
    for (int i = 0; i < n; i++)
        *sum += i;
}

static int run(const char *folder, int rank, int ranks)
{
    char path[4096];
    volatile int sum = 0;
    snprintf(path, sizeof path, "%s/%d", folder, rank / 1000);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%d/%%r.rank.json", folder, rank / 1000);
    if (pk_start(pk_options(.report_path = path, .rank = rank, .world_size = ranks,
                            .backends = "none")) != PK_OK)
        return -1;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < REGIONS; i++) {
            pk_region_begin(regions[i]);
            work(&sum, 20 + 3 * i % 50);
            pk_region_end(regions[i]);
        }
        pk_step(1);
    }
    return pk_stop() == PK_OK ? 0 : -1;
}

static int ranks_bench(int argc, char **argv)
{
    int ranks = argc > 2 ? atoi(argv[2]) : 10240;
    if (argc < 2 || (mkdir(argv[1], 0777) != 0 && argc < 3)) {
        fprintf(stderr, "bench-jobs ranks FOLDER [RANKS]\n");
        return 2;
    }
    name_regions();
    for (int rank = 0; rank < ranks; rank++)
        if (run(argv[1], rank, ranks) != 0) {
            fprintf(stderr, "rank %d: %s\n", rank, pk_error_message());
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {{"job", job_bench},
                                             {"parts", parts_bench},
                                             {"live", live_bench},
                                             {"crew", crew_bench},
                                             {"ranks", ranks_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
