/* bench/jobs.c - how good the verdicts of `pk job` are, and files for it:
 *     bench-jobs job | ranks
 */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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
    printf("%6zu %6zu  %-7s %8zu %7zu  %6.3f %9.3f %6.3f\n", ranks, steps,
           varying ? "varying" : "equal", culprits, jobs, share(s.found, s.culprits),
           share(s.rightly, s.accused), share(s.stages, s.found));
}

static void print_healthy(size_t ranks, bool varying, size_t jobs)
{
    forge f = {.seed = 100000, .ranks = ranks, .steps = 50, .varying = varying};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu     50  %-7s  healthy %7zu  false verdicts in %.2f %%\n", ranks,
           varying ? "varying" : "equal", jobs, 100 * share(s.with_false, s.jobs));
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
    static const bench_program programs[] = {{"job", job_bench}, {"ranks", ranks_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
